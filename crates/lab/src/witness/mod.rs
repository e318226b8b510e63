//! Witnesses: measurements where faults act, beside the probes and the emulator. Each runs only where a fault of the plan
//! needs it, and then from the trial's beginning to its end, so that the baseline is measured in the same way.

mod clock;
mod disk;
mod external;
mod largest;
mod matrix;
mod poller;
mod process;
mod sampling;
mod trains;

use std::sync::{
    Arc,
    mpsc::{self, Receiver},
};

use brownout_base::Mesh;
use brownout_cluster::{Beat, ClusterControl, Heartbeats, Question};
use brownout_network::Network;
use brownout_probe::Trains;
use brownout_record::{ClockRow, Quantity, Subject, WitnessRow};

pub(crate) use clock::ask as ask_clock;
pub(crate) use sampling::{LEAST_STALL, Sampling};

use self::poller::{PATIENCE, Poller};
use crate::{
    LabError,
    containers::Follower,
    controls::{Controls, are_only_asked},
    faults::Needs,
};

/// Asks every node for its clock, as it is asked in a trial with a wrong one.
pub(crate) fn ask_databases(nodes: &ClusterControl) -> Result<Heartbeats, LabError> {
    Ok(Heartbeats::start(nodes, Question::Clock, Sampling::of(None).beat, PATIENCE)?)
}

/// All witnesses of a trial, until this is dropped.
pub struct Witnesses {
    seen: Receiver<WitnessRow>,
    clocks_seen: Receiver<ClockRow>,
    heartbeats: Option<Heartbeats>,
    trains: Option<trains::RateWitness>,
    sizes: Option<Arc<largest::Ends>>,
    disks: Vec<disk::DiskWitness>,
    /// The database's answers tell of its clock, too.
    clocks: bool,
    /// Its answers alone tell that it lives.
    answers: bool,
    /// The clocks of nodes that are not ours.
    own_clocks: Option<external::Clocks>,
    _threads: Vec<Poller>,
}

impl Witnesses {
    /// Begins to look. Bursts go over `mesh`: the network, or that of hosts on several machines.
    pub fn start(
        needs: &Needs,
        network: &Network,
        mesh: &dyn Mesh,
        mtu: u16,
        controls: &Controls,
    ) -> Result<Witnesses, LabError> {
        let (sender, seen) = mpsc::channel();
        let mut threads = Vec::new();
        let sampling = Sampling::of(needs.shortest_stall);
        if needs.process_witness {
            threads.push(process::start(controls.nodes.clone(), sampling.look, sender.clone())?);
        }
        // In containers nobody of ours answers: a server there would tell of the machine's clock, not of its database's.
        if needs.clock_witness && !network.is_attached() {
            threads.extend(clock::start(network, sender.clone())?);
        }
        let (clock_sender, clocks_seen) = mpsc::channel();
        if needs.clock_matrix {
            threads.extend(matrix::start(network, controls, &clock_sender)?);
        }
        let mut sizes = None;
        if !needs.largest_packets.is_empty() {
            let (thread, ends) = largest::start(network, mtu, &needs.largest_packets, sender.clone())?;
            threads.push(thread);
            sizes = Some(ends);
        }
        let disks = || controls.disks.iter().filter(|((node, _), _)| needs.disks.contains(node));
        if needs.disk_counters {
            let all = disks().map(|((node, directory), disk)| (node.clone(), directory.clone(), disk.control.clone()));
            threads.push(disk::count(all.collect(), sender)?);
        }
        // Of nodes that can only be asked nothing else tells how they fare.
        let external = are_only_asked(&controls.nodes);
        let own_clocks = external.then(|| external::start(&controls.nodes, &clock_sender)).transpose()?;
        let asked = external || needs.process_witness || needs.clock_witness;
        let question = if external || needs.clock_witness { Question::Clock } else { Question::Alive };
        let heartbeats =
            asked.then(|| Heartbeats::start(&controls.nodes, question, sampling.beat, PATIENCE)).transpose()?;
        Ok(Witnesses {
            seen,
            clocks_seen,
            heartbeats,
            trains: (!needs.trains.is_empty()).then(|| trains::RateWitness::start(needs, network, mesh)).transpose()?,
            sizes,
            disks: disks()
                .map(|((node, directory), disk)| disk::DiskWitness::start(node, directory, disk))
                .collect::<Result<_, _>>()?,
            clocks: needs.clock_witness,
            answers: external || needs.process_witness,
            own_clocks,
            _threads: threads,
        })
    }

    /// Who sends bursts, if anybody does.
    pub(crate) fn trains(&self) -> Option<Arc<Trains>> {
        self.trains.as_ref().map(trains::RateWitness::trains)
    }

    /// Those who measure links by packets of their own.
    pub(crate) fn followers(&self) -> Vec<Arc<dyn Follower>> {
        let trains = self.trains.iter().map(|trains| trains.trains() as Arc<dyn Follower>);
        trains.chain(self.sizes.iter().map(|sizes| Arc::clone(sizes) as Arc<dyn Follower>)).collect()
    }

    /// What was seen since the last call; times are of `CLOCK_MONOTONIC`.
    pub fn drain(&self) -> Vec<WitnessRow> {
        let mut rows: Vec<WitnessRow> = self.seen.try_iter().collect();
        for beat in self.heartbeats.iter().flat_map(Heartbeats::drain) {
            self.beat(beat, &mut rows);
        }
        rows.extend(self.trains.iter().flat_map(trains::RateWitness::drain));
        rows.extend(self.disks.iter().flat_map(disk::DiskWitness::drain));
        rows
    }

    /// What hosts have learned of each other's clocks since the last call; times are of `CLOCK_MONOTONIC`.
    pub fn drain_clocks(&self) -> Vec<ClockRow> {
        let rows = self.clocks_seen.try_iter().collect();
        match &self.own_clocks {
            Some(clocks) => clocks.with_databases(rows),
            None => rows,
        }
    }

    /// What they failed to see, since the beginning.
    pub fn unseen(&self) -> Option<String> {
        self.trains.as_ref().and_then(trains::RateWitness::unseen)
    }

    fn beat(&self, beat: Beat, rows: &mut Vec<WitnessRow>) {
        if let Some(clocks) = &self.own_clocks {
            clocks.note(&beat);
        }
        let Beat { node, asked_ns: at_ns, answered_ns, offset_ns, error_ns } = beat;
        let row = |quantity, source: &str, value, error| {
            let (subject, source) = (Subject::host(node.clone()), source.to_owned());
            WitnessRow { at_ns, subject, quantity, source, value, error }
        };
        if self.answers {
            rows.push(row(Quantity::Answers, "heartbeat", f64::from(u8::from(answered_ns.is_some())), 0.0));
            let took = answered_ns.map(|answered_ns| answered_ns.saturating_sub(at_ns) as f64);
            rows.extend(took.map(|took| row(Quantity::AnswerTime, "heartbeat", took, 0.0)));
        }
        if let Some(offset) = offset_ns.filter(|_| self.clocks) {
            rows.push(row(Quantity::ClockOffset, "database", offset as f64, error_ns as f64));
        }
    }
}
