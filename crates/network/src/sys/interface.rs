//! An interface by its name.

use std::io;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::name_to_index, socket_with};

/// The number of the interface `name` in the calling thread's namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(any, name)?)
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
