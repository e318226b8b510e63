//! Who looks at the places of faults, beside the probes and the emulator: each of them only where a fault of the plan needs
//! it, and then from the trial's beginning to its end, so that the baseline is looked at in the same way.

mod clock;
mod disk;
mod largest;
mod pace;
mod process;
mod trains;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_cluster::{Beat, Heartbeats, Question};
use brownout_network::Network;
use brownout_record::{Quantity, Subject, WitnessRow};

pub(crate) use disk::EVERY as DISK_EVERY;
pub(crate) use pace::{LEAST_STALL, Pace};

use crate::{LabError, faults::Needs, handles::Handles};

/// A live node answers within this, nearly always, also on a busy machine. It is short, because what is asked this long
/// before a node goes on is answered all the same.
const PATIENCE: Duration = Duration::from_millis(400);

/// All witnesses of a trial, until this is dropped.
pub struct Witnesses {
    seen: Receiver<WitnessRow>,
    heartbeats: Option<Heartbeats>,
    trains: Option<trains::Trains>,
    disks: Vec<disk::Disk>,
    /// The database's answers tell of its clock, too.
    clocks: bool,
    /// Its answers alone tell that it lives.
    answers: bool,
    _threads: Vec<Looker>,
}

impl Witnesses {
    /// Begins to look.
    pub fn start(needs: &Needs, network: &Network, mtu: u16, handles: &Handles) -> Result<Witnesses, LabError> {
        let (sender, seen) = mpsc::channel();
        let mut threads = Vec::new();
        let pace = Pace::of(needs.shortest_stall);
        if needs.process_witness {
            threads.push(process::start(handles.nodes.clone(), pace.look, sender.clone())?);
        }
        if needs.clock_witness {
            threads.extend(clock::start(network, sender.clone())?);
        }
        if !needs.largest_packets.is_empty() {
            threads.push(largest::start(network, mtu, &needs.largest_packets, sender.clone())?);
        }
        let disks = || handles.disks.iter().filter(|((node, _), _)| needs.disks.contains(node));
        if needs.disk_counters {
            let all = disks().map(|((node, directory), disk)| (node.clone(), directory.clone(), disk.control.clone()));
            threads.push(disk::count(all.collect(), sender)?);
        }
        let asked = needs.process_witness || needs.clock_witness;
        let question = if needs.clock_witness { Question::Clock } else { Question::Alive };
        let heartbeats = asked.then(|| Heartbeats::start(&handles.nodes, question, pace.beat, PATIENCE)).transpose()?;
        Ok(Witnesses {
            seen,
            heartbeats,
            trains: (!needs.trains.is_empty()).then(|| trains::Trains::start(needs, network)).transpose()?,
            disks: disks()
                .map(|((node, directory), disk)| disk::Disk::start(node, directory, disk))
                .collect::<Result<_, _>>()?,
            clocks: needs.clock_witness,
            answers: needs.process_witness,
            _threads: threads,
        })
    }

    /// What was seen since the last call; times are of `CLOCK_MONOTONIC`.
    pub fn drain(&self) -> Vec<WitnessRow> {
        let mut rows: Vec<WitnessRow> = self.seen.try_iter().collect();
        for beat in self.heartbeats.iter().flat_map(Heartbeats::drain) {
            self.beat(beat, &mut rows);
        }
        rows.extend(self.trains.iter().flat_map(trains::Trains::drain));
        rows.extend(self.disks.iter().flat_map(disk::Disk::drain));
        rows
    }

    fn beat(&self, beat: Beat, rows: &mut Vec<WitnessRow>) {
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

/// A thread that looks at something again and again, until this is dropped.
struct Looker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Looker {
    /// Calls `look` on a thread of its own, once in every `every`. `prepare` runs there first: it may enter a host.
    fn start(
        name: String,
        every: Duration,
        prepare: impl FnOnce() -> io::Result<()> + Send + 'static,
        mut look: impl FnMut() + Send + 'static,
    ) -> Result<Looker, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            // A witness that cannot get to its place sees nothing, and what is not seen is not proven.
            if prepare().is_err() {
                return;
            }
            while !stopped.load(Ordering::Relaxed) {
                look();
                thread::sleep(every);
            }
        };
        let failed = |source| LabError::Ground { doing: "start a witness", source };
        Ok(Looker { stop, thread: Some(thread::Builder::new().name(name).spawn(run).map_err(failed)?) })
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Where a witness tells what it saw. Nobody listens any more when all is about to end.
fn tell(to: &Sender<WitnessRow>, row: WitnessRow) {
    let _ = to.send(row);
}
