//! What is the largest packet that a link carries? Found out as a sender would: by packets that must not be taken apart.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    sync::mpsc::Sender,
    thread,
    time::Duration,
};

use brownout_network::{Host, Network, monotonic_ns};
use brownout_record::{Quantity, Subject, WitnessRow};

use super::{Looker, tell};
use crate::LabError;

/// Between two rounds of packets on all links.
const EVERY: Duration = Duration::from_millis(250);
/// What takes longer than this does not count: a slow link is another fault.
const PATIENCE: Duration = Duration::from_millis(100);
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
const PORT: u16 = 47_002;
/// Sizes that are tried, besides the network's own: what standards name, and steps between.
const SIZES: [usize; 12] = [576, 640, 768, 900, 1_024, 1_152, 1_280, 1_360, 1_400, 1_440, 1_480, 1_492];

struct End {
    name: String,
    address: Ipv4Addr,
    socket: UdpSocket,
}

/// `limits` are sizes that faults ask for: those, and one more, are tried, too.
pub(super) fn start(network: &Network, mtu: u16, limits: &[u16], seen: Sender<WitnessRow>) -> Result<Looker, LabError> {
    let failed = |source| LabError::Ground { doing: "find out the largest packets", source };
    let ends = network.hosts().iter().map(end).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let asked = limits.iter().flat_map(|limit| [usize::from(*limit), usize::from(*limit) + 1]);
    let sizes: BTreeSet<usize> =
        SIZES.into_iter().chain(asked).chain([usize::from(mtu)]).filter(|size| *size <= usize::from(mtu)).collect();
    let mut round = 0_u32;
    let look = move || {
        round = round.wrapping_add(1);
        self::round(&ends, &sizes, round, &seen);
    };
    Looker::start("witness-mtu".to_owned(), EVERY, || Ok(()), look)
}

fn end(host: &Host) -> io::Result<End> {
    let socket = host.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
    socket.set_nonblocking(true)?;
    // Sets "don't fragment", and looks at no path MTU that the kernel has learned (ip(7)).
    let probe: libc::c_int = libc::IP_PMTUDISC_PROBE;
    // SAFETY: the option is an int, and its address and size are right.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            (&raw const probe).cast(),
            size_of_val(&probe) as libc::socklen_t,
        )
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(End { name: host.name().to_owned(), address: host.address(), socket })
}

/// One packet of every size on every link; the largest that arrives is told.
fn round(ends: &[End], sizes: &BTreeSet<usize>, round: u32, seen: &Sender<WitnessRow>) {
    let at_ns = monotonic_ns();
    let mut buffer = vec![0; 65_536];
    for (from, sender) in (0_u16..).zip(ends) {
        for receiver in ends.iter().filter(|receiver| receiver.address != sender.address) {
            for size in sizes {
                buffer[..4].copy_from_slice(&round.to_be_bytes());
                buffer[4..6].copy_from_slice(&from.to_be_bytes());
                // An error here is the kernel's about an earlier packet that was too large.
                let _ = sender.socket.send_to(&buffer[..size - HEADERS], SocketAddr::from((receiver.address, PORT)));
            }
        }
    }
    thread::sleep(PATIENCE);
    for receiver in ends {
        let mut largest = vec![0; ends.len()];
        loop {
            match receiver.socket.recv_from(&mut buffer) {
                Ok((length, _)) if length >= 6 => {
                    let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                    let from = usize::from(u16::from_be_bytes([buffer[4], buffer[5]]));
                    if let Some(largest) = largest.get_mut(from).filter(|_| number == round) {
                        *largest = (length + HEADERS).max(*largest);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What the sender's side of this socket was told of packets that did not pass.
                Err(_) => {}
            }
        }
        for (sender, size) in ends.iter().zip(largest).filter(|(_, size)| *size > 0) {
            tell(
                seen,
                WitnessRow {
                    at_ns,
                    subject: Subject::pair(sender.name.clone(), receiver.name.clone()),
                    quantity: Quantity::LargestPacket,
                    source: "sizes".to_owned(),
                    value: size as f64,
                    error: 0.0,
                },
            );
        }
    }
}
