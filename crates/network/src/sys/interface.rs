//! Settings of a network interface of the calling thread's namespace (netdevice(7)).

use std::{
    io,
    net::Ipv4Addr,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use super::check;

/// An interface by name, seen from the namespace in which this was made.
pub(crate) struct Interface {
    socket: OwnedFd,
    name: &'static str,
}

impl Interface {
    pub(crate) fn new(name: &'static str) -> io::Result<Self> {
        // SAFETY: the descriptor is new and owned by nobody else.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?)
        };
        Ok(Interface { socket, name })
    }

    /// Gives it this one address (`/32`: routes are added apart).
    pub(crate) fn set_address(&self, address: Ipv4Addr) -> io::Result<()> {
        self.set(libc::SIOCSIFADDR, |request| request.ifr_ifru.ifru_addr = socket_address(address))?;
        self.set(libc::SIOCSIFNETMASK, |request| request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::BROADCAST))
    }

    /// The largest packet, in bytes.
    pub(crate) fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        self.set(libc::SIOCSIFMTU, |request| request.ifr_ifru.ifru_mtu = libc::c_int::from(mtu))
    }

    /// Brings it up, and leaves its other flags: without a TUN's `IFF_NOARP`, IPv6 would look for neighbours on it.
    pub(crate) fn set_up(&self) -> io::Result<()> {
        let mut request = request(self.name);
        self.ioctl(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: a successful SIOCGIFFLAGS has filled in this member of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let up = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        self.set(libc::SIOCSIFFLAGS, |request| request.ifr_ifru.ifru_flags = flags | up)
    }

    /// Its number.
    pub(crate) fn index(&self) -> io::Result<u32> {
        let mut request = request(self.name);
        self.ioctl(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: a successful SIOCGIFINDEX has filled in this member of the union.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    fn set(&self, what: libc::Ioctl, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
        let mut request = request(self.name);
        fill(&mut request);
        self.ioctl(what, &mut request)
    }

    fn ioctl(&self, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every request used here reads and writes one `ifreq`, which `request` is.
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), what, std::ptr::from_mut(request)) })?;
        Ok(())
    }
}

/// A request about the interface `name`, all else zero.
pub(super) fn request(name: &str) -> libc::ifreq {
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (slot, byte) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let [a, b, c, d] = address.octets().map(|octet| octet as libc::c_char);
    // The port of a `sockaddr_in` comes first and stays zero.
    let mut data = [0; 14];
    data[2..6].copy_from_slice(&[a, b, c, d]);
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}
