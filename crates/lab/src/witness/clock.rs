//! The clock of each host, asked by NTP on the host itself, so that no fault of the network interferes.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::mpsc::Sender,
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};
use brownout_clock::ntp::{PORT as NTP_PORT, Sample, exchange};
use brownout_network::Network;
use brownout_record::{Quantity, Subject, WitnessRow};

use super::poller::{PATIENCE, Poller, tell};
use crate::{LabError, hosts::Hosts};

const EVERY: Duration = Duration::from_millis(100);

/// What the NTP server of this address says; to be asked on its own host.
pub(crate) fn ask(address: Ipv4Addr, patience: Duration) -> Option<Sample> {
    ask_at(address.into(), patience)
}

/// The same of any address that can be reached from where this is called.
pub(super) fn ask_at(address: IpAddr, patience: Duration) -> Option<Sample> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    exchange(&socket, SocketAddr::new(address, NTP_PORT), &realtime_ns, patience).ok()
}

/// One for each node.
pub(super) fn start(network: &Network, seen: Sender<WitnessRow>) -> Result<Vec<Poller>, LabError> {
    let nodes = network.hosts().iter().filter(|host| host.name() != Hosts::LOAD);
    nodes
        .map(|host| {
            let (name, seen, inside) = (host.name().to_owned(), seen.clone(), host.clone());
            let address = host.address();
            let look = move || {
                let at_ns = monotonic_ns();
                if let Some(sample) = ask(address, PATIENCE) {
                    let row = WitnessRow {
                        at_ns,
                        subject: Subject::host(name.clone()),
                        quantity: Quantity::ClockOffset,
                        source: "sntp".to_owned(),
                        value: sample.offset_ns as f64,
                        error: sample.error_bound_ns() as f64,
                    };
                    tell(&seen, row);
                }
            };
            Poller::start(format!("witness-ntp-{}", host.name()), EVERY, move || inside.enter(), look)
        })
        .collect()
}
