//! What a TCP socket would use.

use std::{
    io,
    net::{IpAddr, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use super::check;

/// Which congestion control a TCP connection from here to `peer` gets.
///
/// It begins to connect, without waiting, because only then is the route known: one SYN is sent.
pub(crate) fn tcp_congestion_control(peer: IpAddr) -> io::Result<String> {
    let domain = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: the descriptor is new and owned by nobody else.
    let socket = unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        TcpStream::from(OwnedFd::from_raw_fd(check(libc::socket(domain, kind, 0))?))
    };
    match connect(&socket, peer) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    let mut name = [0u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: `name` is writable for the length stated.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut length,
        )
    })?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// To the discard port, where nobody answers.
fn connect(socket: &TcpStream, peer: IpAddr) -> io::Result<()> {
    const PORT: u16 = 9u16.to_be();
    let fd = socket.as_raw_fd();
    let connected = match peer {
        IpAddr::V4(peer) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: PORT,
                sin_addr: libc::in_addr { s_addr: u32::from(peer).to_be() },
                sin_zero: [0; 8],
            };
            let length = size_of_val(&address) as libc::socklen_t;
            // SAFETY: `address` is a valid socket address of the length stated.
            unsafe { libc::connect(fd, std::ptr::from_ref(&address).cast(), length) }
        }
        IpAddr::V6(peer) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: PORT,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: peer.octets() },
                sin6_scope_id: 0,
            };
            let length = size_of_val(&address) as libc::socklen_t;
            // SAFETY: `address` is a valid socket address of the length stated.
            unsafe { libc::connect(fd, std::ptr::from_ref(&address).cast(), length) }
        }
    };
    check(connected).map(drop)
}
