//! Trains: short bursts of UDP datagrams that show at which rate a link lets packets through.
//!
//! They are sent back to back and the kernel stamps their arrivals; how far they have been pulled apart is the rate.
//! Unlike probes they load a link, for a moment each; so they are sent only where, and while, a rate is to be proven.

mod dispersion;
mod packet;
mod plan;
mod room;
mod trainer;

use std::{
    sync::{Arc, PoisonError, atomic::Ordering, mpsc},
    thread::{self, JoinHandle},
};

use brownout_base::{EnterableHost, HostId, Link, Mesh};
use brownout_machine::{Scheduling, run_urgently};
use brownout_units::BitRate;

pub use self::{dispersion::TrainSample, plan::TrainSpec};
use self::{
    plan::Plan,
    room::Room,
    trainer::{Shared, Trainer},
};
use crate::{
    error::ProbeError,
    moves::Move,
    selection::{Selection, from_here},
    socket::Socket,
};

/// One below the probes, so that a train never delays one.
const FIFO_PRIORITY: u8 = 18;

/// Trains that run until this is dropped.
#[derive(Debug)]
pub struct Trains {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
}

impl Trains {
    /// The most packets a second over all links: more would be a load of their own.
    pub const BUDGET: u32 = 20_000;

    /// Sends trains on each of `links`, by turns.
    ///
    /// Where a rate is expected, a train is as long as takes 40 ms there, within 5 and [`TrainSpec::packets`] packets,
    /// and comes so rarely that all trains together take at most a fifth of that rate. Without an expectation it is
    /// [`TrainSpec::packets`] long, every [`TrainSpec::every`]. A link that is named twice gets what was said last.
    ///
    /// A train ends when all of it has arrived, or when nothing has arrived for [`crate::Probes::LOST_AFTER`] and the
    /// longest delay in force.
    ///
    /// # Errors
    /// [`ProbeError::Trains`] when they could not measure, or would exceed [`Trains::BUDGET`];
    /// [`ProbeError::NoSuchLink`]; [`ProbeError::Socket`] when a host's socket cannot be made.
    pub fn start(network: &dyn Mesh, links: &[(Link, Option<BitRate>)], spec: TrainSpec) -> Result<Trains, ProbeError> {
        spec.check(network.mtu())?;
        let packet_bytes = spec.packet_bytes();
        let named: Vec<_> = links.iter().map(|(link, _)| *link).collect();
        let selection = Selection::of(network.enterable_hosts().len(), &named)?;
        let plan = |link: &Link| {
            let expected = links.iter().rev().find(|(other, _)| other == link).and_then(|(_, expected)| *expected);
            (*link, Plan::of(&spec, packet_bytes, expected))
        };
        let plans: Vec<_> = selection.links().iter().map(plan).collect();
        from_here(network, selection.links())?;
        let packet_rate: f64 = plans.iter().map(|(_, plan)| plan.packet_rate()).sum();
        if packet_rate > f64::from(Self::BUDGET) {
            return Err(ProbeError::Trains(format!(
                "trains on {} links would be {packet_rate:.0} packets a second, more than {}; \
                 measure fewer links, or each more rarely",
                plans.len(),
                Self::BUDGET
            )));
        }

        let sockets = Socket::open_with(network, Room::here, Room::elsewhere)?;
        let shared = Arc::new(Shared::default());
        let trainer = Trainer::new(sockets, plans, spec.payload, packet_bytes, network.holds(), Arc::clone(&shared));
        let priority = network.is_realtime().then_some(FIFO_PRIORITY);
        let (announce, announced) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("trainer".to_owned())
            .spawn(move || {
                let _ = announce.send(run_urgently(priority));
                trainer.run();
            })
            .map_err(|source| ProbeError::Thread { does: "sends trains", source })?;
        let scheduling = announced.recv().unwrap_or(Scheduling::Default);
        Ok(Trains { shared, thread: Some(thread), scheduling })
    }

    /// A host's network is gone since that moment of the monotonic clock: trains that are on their way to or from it are no samples,
    /// and no others are sent until [`Trains::came`].
    pub fn left(&self, host: HostId, since_ns: u64) {
        self.shared.moves.tell(Move::Left { host, since_ns });
    }

    /// A host that had left is there again, in the network and with the address that `there` has.
    ///
    /// # Errors
    /// [`ProbeError::Socket`] when its socket cannot be made; it stays left.
    pub fn came(&self, host: HostId, there: &dyn EnterableHost) -> Result<(), ProbeError> {
        self.shared.moves.tell(Move::Came { host, there: Socket::open_in(there, Room::here)? });
        Ok(())
    }

    /// The same of a host on another machine, which is where its arrivals say.
    pub fn back(&self, host: HostId) {
        self.shared.moves.tell(Move::Back { host });
    }

    /// All trains that ended since this was last called.
    pub fn drain(&self) -> Vec<TrainSample> {
        std::mem::take(&mut *self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Trains that were due and to be sent, since they were started.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Trains that are no samples, since they were started: the kernel took none of it, the receiving socket had no
    /// room, the wall clock (on which the kernel stamps arrivals) was stepped meanwhile, or nobody drained in time.
    pub fn discarded(&self) -> u64 {
        self.shared.discarded.load(Ordering::Relaxed)
    }

    /// How urgently their thread really runs.
    pub fn realtime(&self) -> Scheduling {
        self.scheduling
    }
}

impl Drop for Trains {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed by itself.
            let _ = thread.join();
        }
    }
}
