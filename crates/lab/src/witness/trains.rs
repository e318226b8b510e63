//! The rate of links, measured by short bursts of packets.

use brownout_network::Network;
use brownout_probe::TrainSpec;
use brownout_record::{Quantity, Subject, WitnessRow};

use crate::{
    LabError,
    faults::{Needs, TrainNeed},
};

/// Packet trains on the links whose rate a fault limits, and on as many that it spares.
pub(super) struct RateWitness {
    trains: brownout_probe::Trains,
    names: Vec<String>,
}

impl RateWitness {
    pub(super) fn start(needs: &Needs, network: &Network) -> Result<RateWitness, LabError> {
        let mut links = Vec::new();
        for TrainNeed { from, to, expected, .. } in &needs.trains {
            links.extend(network.link(from, to).map(|link| (link, Some(*expected))));
            // The way back is another link; if it is limited, too, it is in the list itself.
            if !needs.trains.iter().any(|other| other.from == *to && other.to == *from) {
                links.extend(network.link(to, from).map(|link| (link, None)));
            }
        }
        let whole = TrainSpec::default();
        let packets = needs.trains.iter().map(|need| need.packets).min().unwrap_or(whole.packets).min(whole.packets);
        let names = network.hosts().iter().map(|host| host.name().to_owned()).collect();
        Ok(RateWitness {
            trains: brownout_probe::Trains::start(network, &links, TrainSpec { packets, ..whole })?,
            names,
        })
    }

    pub(super) fn drain(&self) -> Vec<WitnessRow> {
        let name = |host: brownout_network::HostId| self.names.get(host.index()).cloned().unwrap_or_default();
        let samples = self.trains.drain().into_iter();
        let row = |sample: brownout_probe::TrainSample| {
            Some(WitnessRow {
                at_ns: sample.sent_ns,
                subject: Subject::pair(name(sample.link.from), name(sample.link.to)),
                quantity: Quantity::Rate,
                source: "train".to_owned(),
                value: sample.rate_bps?,
                error: 0.0,
            })
        };
        samples.filter_map(row).collect()
    }
}
