//! Sockets by which packets leave as they are: frames by an interface (packet(7)), IP packets by the routes (raw(7)).

use std::{
    io::{self, IoSlice},
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::{
    io::writev,
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
        sockopt::{set_socket_send_buffer_size, set_socket_send_buffer_size_force},
    },
};

/// What may wait in a socket, in bytes of kernel memory: some 200 GSO packets of full size.
const BUFFER: usize = 16 << 20;

/// Sends frames by one interface, and receives none.
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// One in the calling thread's namespace for the interface with number `interface`. Its frames carry `mark`, by which a
    /// packet filter knows them.
    pub(crate) fn open(interface: u32, mark: u32) -> io::Result<Self> {
        // Without a protocol nothing is received.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark as libc::c_int)?;
        // Beyond net.core.wmem_max takes real root; below that, as much as it allows.
        set_socket_send_buffer_size_force(&socket, BUFFER).or_else(|_| set_socket_send_buffer_size(&socket, BUFFER))?;
        // SAFETY: all bytes zero is a valid `sockaddr_ll`.
        let mut name: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        name.sll_family = libc::AF_PACKET as libc::c_ushort;
        name.sll_ifindex = interface as libc::c_int;
        let length = size_of_val(&name) as libc::socklen_t;
        // SAFETY: `name` is readable for the length stated.
        super::check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) })?;
        Ok(PacketSocket(socket))
    }

    /// Sends one frame that is in two pieces. It begins with the ten bytes of `struct virtio_net_hdr`, then has an Ethernet
    /// header.
    #[inline]
    pub(crate) fn send(&self, head: &[u8], rest: &[u8]) -> io::Result<()> {
        writev(&self.0, &[IoSlice::new(head), IoSlice::new(rest)])?;
        Ok(())
    }
}

/// Sends IP packets whose headers are whole already.
pub(crate) struct RawSockets {
    v4: OwnedFd,
    /// `None` on a machine without IPv6.
    v6: Option<OwnedFd>,
}

impl RawSockets {
    /// Those of the calling thread's namespace. Their packets carry `mark`.
    pub(crate) fn open(mark: u32) -> io::Result<Self> {
        RawSockets::with(|socket| set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark as libc::c_int))
    }

    /// The same, by routes of this interface alone.
    pub(crate) fn by(interface: &str) -> io::Result<Self> {
        RawSockets::with(|socket| {
            set_socket_send_buffer_size_force(socket, BUFFER)
                .or_else(|_| set_socket_send_buffer_size(socket, BUFFER))?;
            let length = interface.len() as libc::socklen_t;
            let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
            // SAFETY: `interface` is readable for the length stated.
            let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, interface.as_ptr().cast(), length) };
            super::check(set).map(drop)
        })
    }

    fn with(prepare: impl Fn(&OwnedFd) -> io::Result<()>) -> io::Result<Self> {
        let open = |family| -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // This protocol means that whoever sends has made the IP header.
            let socket = socket_with(family, SocketType::RAW, flags, Some(ipproto::RAW))?;
            prepare(&socket)?;
            Ok(socket)
        };
        Ok(RawSockets { v4: open(AddressFamily::INET)?, v6: open(AddressFamily::INET6).ok() })
    }

    /// Sends an IP packet to where it is addressed to, by the routes: to an address of its own namespace, it is delivered
    /// there.
    pub(crate) fn send(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        let socket = match (to, &self.v6) {
            (IpAddr::V4(_), _) => &self.v4,
            (IpAddr::V6(_), Some(socket)) => socket,
            (IpAddr::V6(_), None) => return Err(io::ErrorKind::Unsupported.into()),
        };
        sendto(socket, packet, SendFlags::empty(), &SocketAddr::new(to, 0))?;
        Ok(())
    }
}

pub(super) fn set_option(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is readable for the length stated.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(&value).cast(), length) };
    super::check(set).map(drop)
}
