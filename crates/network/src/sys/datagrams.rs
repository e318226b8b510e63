//! A UDP socket that sends and receives many datagrams of one size at once (`UDP_SEGMENT`, `UDP_GRO`: udp(7), Linux 5.0).

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
    set_socket_send_buffer_size_force,
};

/// What may wait in the socket each way, in bytes of kernel memory: some 1,500 full packets, each counted as large as its
/// buffer.
const BUFFER: usize = 4 << 20;

/// Datagrams that came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagrams {
    /// Bytes of all of them.
    pub(crate) length: usize,
    /// Bytes of each but the last.
    pub(crate) size: usize,
    /// Who sent them.
    pub(crate) from: Ipv4Addr,
}

/// A non-blocking socket on one address.
pub(crate) struct DatagramSocket(UdpSocket);

impl DatagramSocket {
    /// One in the calling thread's namespace. What it sends may be fragmented on the way, as a tunnel's packets may.
    pub(crate) fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // A kernel without it gives datagrams one by one.
        let _ = set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        set_option(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)?;
        // Beyond net.core.{r,w}mem_max takes real root; below that, as much as it allows.
        set_socket_recv_buffer_size_force(&socket, BUFFER).or_else(|_| set_socket_recv_buffer_size(&socket, BUFFER))?;
        set_socket_send_buffer_size_force(&socket, BUFFER).or_else(|_| set_socket_send_buffer_size(&socket, BUFFER))?;
        Ok(DatagramSocket(socket))
    }

    /// Sends the datagrams of `size` bytes (the last may be shorter) that `bytes` consists of: at most 64, and 65,507 bytes.
    pub(crate) fn send(&self, bytes: &[u8], size: usize, to: SocketAddrV4) -> io::Result<()> {
        if bytes.len() <= size {
            return self.0.send_to(bytes, to).map(drop);
        }
        match self.send_segments(bytes, size, to) {
            // A kernel, or a path, that does not take them together.
            Err(error) if [libc::EIO, libc::EINVAL, libc::EMSGSIZE].map(Some).contains(&error.raw_os_error()) => {
                bytes.chunks(size).try_for_each(|datagram| self.0.send_to(datagram, to).map(drop))
            }
            sent => sent,
        }
    }

    fn send_segments(&self, bytes: &[u8], size: usize, to: SocketAddrV4) -> io::Result<()> {
        let size = u16::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut name = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: to.port().to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
            sin_zero: [0; 8],
        };
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // Room for one number; u64 for the alignment that control messages need.
        let mut control = [0u64; 4];
        // SAFETY: all bytes zero is a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = std::ptr::from_mut(&mut name).cast();
        message.msg_namelen = size_of_val(&name) as libc::socklen_t;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: computes a length; that of two bytes is less than `control` has.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(2) } as _;
        // SAFETY: the control buffer has room for one header and two bytes, and is aligned for the header.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_UDP;
            (*header).cmsg_type = libc::UDP_SEGMENT;
            (*header).cmsg_len = libc::CMSG_LEN(2) as _;
            libc::CMSG_DATA(header).cast::<u16>().write_unaligned(size);
        }
        // SAFETY: `message` points to buffers that are readable for the lengths it states.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &message, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next datagrams; `None` when there are none at the moment.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Datagrams>> {
        // SAFETY: all bytes zero is a valid `sockaddr_in`.
        let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0u64; 8];
        // SAFETY: all bytes zero is a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = std::ptr::from_mut(&mut name).cast();
        message.msg_namelen = size_of_val(&name) as libc::socklen_t;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` points to buffers that are writable for the lengths it states.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut message, 0) };
        match usize::try_from(length).map_err(|_| io::Error::last_os_error()) {
            Ok(length) => {
                let size = segment_size(&message).filter(|size| *size > 0).unwrap_or(length);
                let from = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
                Ok(Some(Datagrams { length, size, from }))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the kernel says the size of the datagrams is that it has put together.
fn segment_size(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the control buffer in, and the CMSG functions stay inside of it; a UDP_GRO carries one
    // int, which may be unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO) {
                return usize::try_from(libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned()).ok();
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
    None
}

fn set_option(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is readable for the length stated.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(&value).cast(), length) };
    super::check(set).map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn datagrams_that_are_sent_together_arrive_with_their_sizes() {
        // The kernel chooses the port, which the first socket says.
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (sender, receiver) = (DatagramSocket::bind(any).unwrap(), DatagramSocket::bind(any).unwrap());
        let to = match receiver.0.local_addr().unwrap() {
            std::net::SocketAddr::V4(to) => to,
            std::net::SocketAddr::V6(to) => panic!("bound to {to}"),
        };
        let bytes: Vec<u8> = (0..10_500).map(|n| (n / 1_000) as u8).collect();
        sender.send(&bytes, 1_000, to).unwrap();
        let (mut buffer, mut sizes) = (vec![0; 65_535], Vec::new());
        let deadline = Instant::now() + Duration::from_secs(10);
        while sizes.iter().sum::<usize>() < bytes.len() {
            assert!(Instant::now() < deadline, "{sizes:?}");
            let Some(came) = receiver.receive(&mut buffer).unwrap() else { continue };
            assert_eq!(came.from, Ipv4Addr::LOCALHOST);
            for datagram in buffer[..came.length].chunks(came.size) {
                assert!(datagram.iter().all(|byte| usize::from(*byte) == sizes.len()), "in order and apart");
                sizes.push(datagram.len());
            }
        }
        assert_eq!(sizes, [[1_000; 10].as_slice(), &[500]].concat());
    }
}
