//! A TAP device: what is diverted from an interface is read here, with its Ethernet header.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use super::{OpenError, interface, tun};

/// One end of an interface without an address; what is forwarded to the interface can be read. It goes when this is
/// dropped.
///
/// Each frame begins with the ten bytes of `struct virtio_net_hdr` (`linux/virtio_net.h`), then has an Ethernet header.
pub(crate) struct Tap {
    file: File,
    name: String,
    index: u32,
}

impl Tap {
    /// Makes one in the calling thread's namespace, for packets of up to `mtu` bytes of which so many may wait, and brings it
    /// up. Nothing is sent by it: it has no address, not even one of IPv6 for the link.
    pub(crate) fn create(device: &Path, mtu: u16, queue: u32) -> Result<Tap, OpenError> {
        let (file, name) = tun::make(device, tun::OWN_NAME, libc::IFF_TAP)?;
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        // UDP segmentation is left undone from Linux 6.2 on.
        tun::set_offload(&file, tcp | udp).or_else(|_| tun::set_offload(&file, tcp)).map_err(OpenError::Offload)?;
        let index = interface::prepare(&name, mtu, queue).map_err(OpenError::Create)?;
        Ok(Tap { file, name, index })
    }

    /// What the kernel calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its number in its namespace.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The next frame that was forwarded to it, header first; `None` when there is none at the moment.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        tun::read(&self.file, buffer)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
