//! What a TCP socket would use.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt::tcp_congestion},
};

/// The discard port, where nobody answers.
const PORT: u16 = 9;

/// Which congestion control a TCP connection from here to `peer` gets.
///
/// It begins to connect, without waiting, because only then is the route known: one SYN is sent.
pub(crate) fn tcp_congestion_control(peer: IpAddr) -> io::Result<String> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&socket, &SocketAddr::new(peer, PORT)) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(tcp_congestion(&socket)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Which congestion control a TCP connection gets in the calling thread's namespace where no route says otherwise; nothing is
/// sent.
pub(crate) fn default_congestion_control() -> io::Result<String> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(tcp_congestion(&socket)?)
}
