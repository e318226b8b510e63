//! A TUN device: the end of a host's only interface that the emulator reads and writes.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use super::{check, interface};

/// How interfaces in hosts of others are called; the kernel puts the first free number in.
pub(super) const OWN_NAME: &str = "brownout%d";

/// Where the driver is asked for one.
pub(crate) const TUN_DEVICE: &str = "/dev/net/tun";

/// Bytes of the header that each packet carries: `struct virtio_net_hdr_v1_hash_tunnel` of `linux/virtio_net.h`, or as many
/// of which a kernel that does not know it uses the first ten.
const HEADER: libc::c_int = 24;

/// `linux/if_tun.h`, since Linux 6.17: GSO packets in UDP tunnels, with and without a checksum of the tunnel's own.
const TUN_F_UDP_TUNNEL_GSO: libc::c_uint = 0x80;
const TUN_F_UDP_TUNNEL_GSO_CSUM: libc::c_uint = 0x100;

/// One end of an interface; what is written appears in the host, what the host sends can be read.
pub(crate) struct Tun(File);

/// Where making a TUN failed.
pub(crate) enum OpenError {
    /// Opening the device file.
    Open(io::Error),
    /// Making the interface.
    Create(io::Error),
    /// Switching offloads on.
    Offload(io::Error),
}

impl Tun {
    /// Makes the interface `name` in the calling thread's namespace. It goes when this is dropped.
    ///
    /// Each packet carries a virtio-net header (`IFF_VNET_HDR`), so that checksums and segmentation can be left undone
    /// between hosts. What a kernel does not know is left to the sending one: UDP segmentation before Linux 6.2, that of
    /// packets in UDP tunnels (VXLAN) before 6.17.
    pub(crate) fn create(device: &Path, name: &str) -> Result<Tun, OpenError> {
        let (file, _) = make(device, name, libc::IFF_TUN)?;
        // SAFETY: TUNSETVNETHDRSZ reads one `int`.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, std::ptr::from_ref(&HEADER)) })
            .map_err(OpenError::Offload)?;
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let tunnels = TUN_F_UDP_TUNNEL_GSO | TUN_F_UDP_TUNNEL_GSO_CSUM;
        set_offload(&file, tcp | udp | tunnels)
            .or_else(|_| set_offload(&file, tcp | udp))
            .or_else(|_| set_offload(&file, tcp))
            .map_err(OpenError::Offload)?;
        Ok(Tun(file))
    }

    /// Makes one for packets of up to `mtu` bytes of which so many may wait, as [`super::Tap::create`] does, and says how the
    /// kernel calls it. Packets come as they would be on a wire: nothing is left undone.
    pub(crate) fn create_plain(device: &Path, mtu: u16, queue: u32) -> Result<(Tun, String), OpenError> {
        let (file, name) = make(device, OWN_NAME, libc::IFF_TUN)?;
        // SAFETY: TUNSETVNETHDRSZ reads one `int`.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, std::ptr::from_ref(&HEADER)) })
            .map_err(OpenError::Offload)?;
        set_offload(&file, 0).map_err(OpenError::Offload)?;
        interface::prepare(&name, mtu, queue).map_err(OpenError::Create)?;
        Ok((Tun(file), name))
    }

    /// The next frame that the host sent, header first; `None` when there is none at the moment.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        read(&self.0, buffer)
    }

    /// Gives the host a frame, header first. What an error means: [`is_gone`].
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes an interface of this kind (`IFF_TUN`, `IFF_TAP`) in the calling thread's namespace, whose packets carry a virtio-net
/// header; says how it is called, which a `%d` in `name` leaves to the kernel.
pub(super) fn make(device: &Path, name: &str, kind: libc::c_int) -> Result<(File, String), OpenError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(device)
        .map_err(OpenError::Open)?;
    let mut request = interface::request(name);
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which `request` is.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(&mut request)) })
        .map_err(OpenError::Create)?;
    Ok((file, interface::name(&request)))
}

/// The next frame; `None` when there is none at the moment.
#[inline]
pub(super) fn read(mut file: &File, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match file.read(buffer) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an interface that answers so takes nothing any more: it was taken down (`EIO`), or deleted (`EBADFD`). Of one that
/// is down nothing else tells: it can be read, and has nothing to say.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EBADFD))
}

pub(super) fn set_offload(file: &File, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) })?;
    Ok(())
}
