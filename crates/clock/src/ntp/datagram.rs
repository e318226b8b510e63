//! Datagrams in and out, and when they came.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket},
    os::fd::AsRawFd,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    event::{PollFd, Timespec, poll},
    io::Errno,
    net::{SendFlags, sendto},
};

/// The oldest that a datagram may be by the kernel's stamp; one that seems older is taken as new, because
/// then rather the machine's clock was stepped since it came.
const OLDEST: Duration = Duration::from_secs(1);

/// A datagram that has come.
pub(crate) struct Received {
    /// Its bytes that fitted.
    pub(crate) length: usize,
    /// Who sent it.
    pub(crate) from: SocketAddr,
    /// For how long it lay in the socket, in nanoseconds. The kernel stamps what comes with this process's
    /// clock; an age can be taken from any host's.
    pub(crate) age_ns: u64,
}

/// Asks the kernel to stamp what comes on this socket. Without stamps an age is zero, which widens the error bound
/// of an exchange by the time that a thread takes to wake up, and is no error.
pub(crate) fn stamp(socket: &UdpSocket) {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, whose size is given. (rustix has neither it nor the stamps.)
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

/// Takes a datagram that is there already; `WouldBlock` if there is none.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Received> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Aligned for the headers inside.
    let mut control = [0_u64; 16];
    // SAFETY: all bytes zero is a valid address and a valid message header.
    let (mut from, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as libc::socklen_t;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all that the header points to lives until the call returns, with the lengths given.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let from = address(&from).ok_or_else(|| io::Error::other("a datagram without a sender's IP address"))?;
    Ok(Received { length, from, age_ns: age_ns(&message) })
}

/// How long ago the kernel stamped the datagram; zero if it did not.
fn age_ns(message: &libc::msghdr) -> u64 {
    // SAFETY: the kernel has filled the control buffer, and the macros keep within it.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let stamp: libc::timespec = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                let stamped = Duration::new(u64::try_from(stamp.tv_sec).unwrap_or(0), stamp.tv_nsec as u32);
                // Not the machine's time in any case: in a process with a shifted clock, the stamp is shifted, too.
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let age = now.checked_sub(stamped).filter(|age| *age < OLDEST).unwrap_or_default();
                return u64::try_from(age.as_nanos()).unwrap_or(0);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    0
}

fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the family says which of the two it is, and the storage holds and aligns both.
    unsafe {
        match libc::c_int::from(storage.ss_family) {
            libc::AF_INET => {
                let v4 = &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                let v6 = &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), v6.sin6_flowinfo, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// Sends without waiting for room, whether or not the socket would.
pub(crate) fn send(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
    sendto(socket, datagram, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &to)?;
    Ok(())
}

/// Waits until one of these can be read, at most so long (`None`: without end). Interrupted, it returns early.
pub(crate) fn wait(descriptors: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // What is too long for a timespec is without end.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(descriptors, timeout.as_ref()) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            descriptors.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(errno) => Err(errno.into()),
    }
}
