//! All hosts ask each other what time it is, by NTP over the network, on the way that nodes take to each other, through an
//! overlay, if there is one: how far apart are they, and their clocks?

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::mpsc::Sender,
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};
use brownout_clock::ntp::{PORT as NTP_PORT, exchange};
use brownout_network::Network;
use brownout_record::ClockRow;

use super::poller::Poller;
use crate::{LabError, controls::Controls};

/// A host asks all others once in this time, one after the other.
const ROUND: Duration = Duration::from_secs(1);
/// For one exchange, beside the longest delay in force at the start. A host behind a cut link must not keep the others waiting for long.
const PATIENCE: Duration = Duration::from_millis(400);

/// A thread for each host.
pub(super) fn start(network: &Network, controls: &Controls, seen: &Sender<ClockRow>) -> Result<Vec<Poller>, LabError> {
    let patience = PATIENCE + 2 * Duration::from_nanos(controls.control.longest_hold_ns());
    let all: Vec<(String, Ipv4Addr)> =
        network.hosts().iter().map(|host| (host.name().to_owned(), host.service())).collect();
    let asking = network.hosts().iter().map(|host| {
        let (name, inside, seen) = (host.name().to_owned(), host.clone(), seen.clone());
        let others: Vec<(String, Ipv4Addr)> = all.iter().filter(|(other, _)| *other != name).cloned().collect();
        let every = ROUND / u32::try_from(others.len().max(1)).unwrap_or(u32::MAX);
        // What a process on that host would read.
        let own = controls.clocks.get(&name).cloned();
        let mut turn = 0;
        let look = move || {
            let Some((server, address)) = others.get(turn % others.len().max(1)) else { return };
            turn += 1;
            let clock = || own.as_ref().map_or_else(realtime_ns, |own| own.realtime_ns());
            let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else { return };
            // No answer is no row: how many there are tells of it.
            let address = SocketAddr::from((*address, NTP_PORT));
            let Ok(sample) = exchange(&socket, address, &clock, patience) else { return };
            // Nobody listens any more when all is about to end.
            let _ = seen.send(ClockRow {
                at_ns: monotonic_ns(),
                host: name.clone(),
                server: server.clone(),
                round_trip_ns: sample.delay_ns,
                offset_ns: sample.offset_ns,
                bound_ns: sample.error_bound_ns(),
            });
        };
        Poller::start(format!("matrix-{}", host.name()), every, move || inside.enter(), look)
    });
    asking.collect()
}
