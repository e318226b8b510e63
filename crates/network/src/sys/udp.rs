//! Sockets that know when a datagram arrived.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
};

use super::{check, check_len};

/// What a probe socket may hold, in bytes of kernel memory: some 5,000 probes, two seconds and a half of the whole
/// budget at one host. The kernel's default holds 300.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// What may wait in the sending host for the emulator, in bytes of kernel memory: some 1,000 full packets.
const SEND_BUFFER: libc::c_int = 4 << 20;

/// A datagram's length, and what the kernel says beside it.
pub(crate) struct Received {
    pub(crate) length: usize,
    /// When it arrived, in nanoseconds of `CLOCK_REALTIME`; `None` if the kernel did not say.
    pub(crate) realtime_ns: Option<u64>,
    /// How many datagrams the socket had no room for until this one arrived, since it was made (modulo 2³²).
    pub(crate) overflowed: u32,
}

/// A non-blocking UDP socket whose datagrams carry the kernel's receive time.
pub(crate) struct ProbeSocket(UdpSocket);

impl ProbeSocket {
    /// A socket on `address`, any port, in the calling thread's namespace.
    pub(crate) fn bind(address: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_nonblocking(true)?;
        set_option(&socket, libc::SO_TIMESTAMPNS, 1)?;
        set_option(&socket, libc::SO_RXQ_OVFL, 1)?;
        // Beyond net.core.rmem_max takes real root; below that, as much as it allows.
        set_option(&socket, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)
            .or_else(|_| set_option(&socket, libc::SO_RCVBUF, RECEIVE_BUFFER))?;
        set_option(&socket, libc::SO_SNDBUFFORCE, SEND_BUFFER)
            .or_else(|_| set_option(&socket, libc::SO_SNDBUF, SEND_BUFFER))?;
        Ok(ProbeSocket(socket))
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        self.0.local_addr().map(|address| address.port())
    }

    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.0.send_to(datagram, to).map(drop)
    }

    /// Sends the datagrams of `size` bytes that `datagrams` consists of, back to back, and says how many the kernel
    /// took at once.
    pub(crate) fn send_burst(&self, datagrams: &mut [u8], size: usize, to: SocketAddrV4) -> io::Result<usize> {
        let mut to = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: to.port().to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
            sin_zero: [0; 8],
        };
        let part =
            |datagram: &mut [u8]| libc::iovec { iov_base: datagram.as_mut_ptr().cast(), iov_len: datagram.len() };
        let mut parts: Vec<libc::iovec> = datagrams.chunks_mut(size).map(part).collect();
        let message = |part: &mut libc::iovec| {
            // SAFETY: all bytes zero is a valid `mmsghdr`.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = std::ptr::from_mut(&mut to).cast();
            message.msg_hdr.msg_namelen = size_of_val(&to) as libc::socklen_t;
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message
        };
        let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
        // SAFETY: the messages point to an address and to buffers that outlive the call.
        let sent = check(unsafe {
            libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), messages.len() as libc::c_uint, 0)
        })?;
        Ok(sent as usize)
    }

    /// The next datagram; `None` when there is none at the moment.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        // Room for one timestamp and one count; u64 for the alignment that control messages need.
        let mut control = [0u64; 8];
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all bytes zero is a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` points to buffers that are writable for the lengths it states.
        match check_len(unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut message, 0) }) {
            Ok(length) => {
                let mut received = Received { length, realtime_ns: None, overflowed: 0 };
                read_control(&message, &mut received);
                Ok(Some(received))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads `SCM_TIMESTAMPNS` and `SO_RXQ_OVFL` (socket(7)) among the control messages of a received `message`. The latter
/// is left out by the kernel while it is zero.
fn read_control(message: &libc::msghdr, received: &mut Received) {
    // SAFETY: the kernel filled the control buffer in, and the CMSG functions stay inside of it;
    // a SCM_TIMESTAMPNS carries one timespec, a SO_RXQ_OVFL one u32, which may be unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    received.realtime_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => received.overflowed = data.cast::<u32>().read_unaligned(),
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, control);
        }
    }
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let (fd, length) = (socket.as_raw_fd(), size_of_val(&value) as libc::socklen_t);
    // SAFETY: `value` is readable for the length stated.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, std::ptr::from_ref(&value).cast(), length) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_socket_holds_what_comes_in_seconds_and_counts_what_it_cannot() {
        let socket = ProbeSocket::bind(Ipv4Addr::LOCALHOST).unwrap();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.port().unwrap());
        let sender = ProbeSocket::bind(Ipv4Addr::LOCALHOST).unwrap();
        let send = |count: u32| (0..count).for_each(|_| sender.send(&[7; 28], to).unwrap());
        let drain = || std::iter::from_fn(|| socket.receive(&mut [0; 64]).unwrap()).collect::<Vec<_>>();

        send(2_000);
        let received = drain();
        assert_eq!(received.len(), 2_000, "the kernel allows no larger buffer: see net.core.rmem_max");
        assert!(received.iter().all(|one| one.overflowed == 0 && one.realtime_ns.is_some()));

        // The kernel makes the smallest buffer of it that it has.
        set_option(&socket.0, libc::SO_RCVBUF, 1).unwrap();
        send(100);
        let before = drain().len() as u32;
        assert!(before < 100);
        send(1);
        assert_eq!(drain()[0].overflowed, 100 - before);
    }
}
