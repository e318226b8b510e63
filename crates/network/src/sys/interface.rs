//! An interface by its name.

use std::{io, os::fd::AsRawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};

use super::netlink::{forbid_link_local, set_mtu, set_queue_length, set_up};

/// `linux/sockios.h`.
const SIOCGIFMTU: libc::Ioctl = 0x8921;
const SIOCGIFHWADDR: libc::Ioctl = 0x8927;

/// The number of the interface `name` in the calling thread's namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(any, name)?)
}

/// The largest packet, in bytes, of the interface `name` in the calling thread's namespace.
pub(crate) fn interface_mtu(name: &str) -> io::Result<u32> {
    let request = asked(name, SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU fills this member in; any number is valid in it.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
}

/// Whether packets of the interface `name` in the calling thread's namespace begin with an Ethernet header.
pub(crate) fn is_ethernet(name: &str) -> io::Result<bool> {
    let request = asked(name, SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR fills this member in; any bytes are valid in it.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family == libc::ARPHRD_ETHER)
}

/// Lets the interface `name` in the calling thread's namespace carry packets of up to `mtu` bytes, of which so many may wait, and
/// brings it up; its number. It sends nothing by itself: it has no address, not even one of IPv6 for the link.
pub(super) fn prepare(name: &str, mtu: u16, queue: u32) -> io::Result<u32> {
    let index = interface_index(name)?;
    // A kernel without IPv6 refuses, and sends none.
    let _ = forbid_link_local(index);
    set_queue_length(index, queue)?;
    set_mtu(index, mtu)?;
    set_up(index)?;
    Ok(index)
}

/// What the kernel answers to this question about an interface.
fn asked(name: &str, question: libc::Ioctl) -> io::Result<libc::ifreq> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut request = request(name);
    // SAFETY: both questions read and write one `ifreq`, which `request` is.
    super::check(unsafe { libc::ioctl(any.as_raw_fd(), question, std::ptr::from_mut(&mut request)) })?;
    Ok(request)
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

/// Which interface a request is about.
pub(super) fn name(request: &libc::ifreq) -> String {
    let bytes: Vec<u8> = request.ifr_name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
