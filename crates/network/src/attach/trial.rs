//! Whether this kernel can divert, tried out on an interface of our own.

use std::{
    io,
    net::IpAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{Exit, exit};
use crate::{
    emulator::Port,
    error::NetworkError,
    host::tun_error,
    sys::{self, Destinations, Diverted, PacketSocket, TUN_DEVICE, Tap},
};

/// Who the messages are about.
const HOST: &str = "trial";

const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of `struct virtio_net_hdr`.
const HEADER: usize = 10;

/// An Ethernet header and an IPv4 packet to 192.0.2.1 (RFC 5737) of an experimental protocol (253, RFC 3692) with a few bytes.
const FRAME: [u8; 14 + 20 + 12] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
    0x45, 0, 0, 32, 0, 1, 0x40, 0, 64, 253, 0xB5, 0xDC, 192, 0, 2, 2, 192, 0, 2, 1, // IPv4
    b'b', b'r', b'o', b'w', b'n', b'o', b'u', b't', b' ', b'?', b' ', b' ',
];

/// What of the ways to divert works here, tried in a namespace of its own: for `doctor` and `brownout ground`.
///
/// A packet is diverted to a TAP, sent on, and, when nothing is diverted any more, passes by. Takes some 50 ms.
///
/// # Errors
/// What does not work, with what it needs; see [`NetworkError`].
pub fn attach_check() -> Result<(), NetworkError> {
    let failed = |source| NetworkError::Namespace { host: HOST.to_owned(), source };
    thread::Builder::new()
        .name("attach-check".to_owned())
        .spawn(move || {
            sys::unshare_network().map_err(failed)?;
            divert()
        })
        .map_err(failed)?
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs in a namespace of its own.
fn divert() -> Result<(), NetworkError> {
    let configure = |action: &str| {
        let action = action.to_owned();
        move |source| NetworkError::Configure { host: HOST.to_owned(), action, source }
    };
    // In the place of a container's interface: what leaves by it can be read.
    let container = Tap::create(Path::new(TUN_DEVICE), 1_500, 16).map_err(|error| tun_error(HOST.to_owned(), error))?;
    let sender = PacketSocket::open(container.index(), 0).map_err(configure("open a packet socket"))?;
    let send = || sender.send(&[0; HEADER], &FRAME).map_err(configure("send a packet"));

    let (mut open, port) = exit::open(HOST, &Exit { interface: container.name().to_owned(), to: None })?;
    let Port::Exit(devices) = port else { return Ok(()) };
    let to = IpAddr::from([192, 0, 2, 1]);
    open.divert(HOST, &Diverted { from_none_of: None, to: Destinations::These(vec![to]) })?;
    send()?;
    arrives(&devices.tap).map_err(configure("divert a packet"))?;
    devices.packets.send(&[0; HEADER], &FRAME).map_err(configure("send a packet on"))?;
    arrives(&container).map_err(configure("send a diverted packet on"))?;
    open.divert_no_more();
    send()?;
    arrives(&container).map_err(configure("stop to divert packets"))
}

/// Waits until the packet comes.
fn arrives(at: &Tap) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut buffer = [0; 2_048];
    while Instant::now() < end {
        match at.read(&mut buffer)? {
            Some(length) if buffer[..length].get(HEADER..) == Some(&FRAME[..]) => return Ok(()),
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not arrive within {PATIENCE:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_diverted_sent_on_and_let_pass() {
        attach_check().unwrap();
    }
}
