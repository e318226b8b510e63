//! Trains: short bursts of UDP datagrams that show at which rate a link lets packets through.
//!
//! They are sent back to back and the kernel stamps their arrivals; how far they have been pulled apart is the rate.
//! Unlike probes they load a link, for a moment each; so they are sent only where, and while, a rate is to be proven.

mod dispersion;
mod packet;
mod plan;
mod trainer;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::{Link, Mesh};
use brownout_machine::{Scheduling, run_urgently};
use brownout_units::BitRate;

use self::{plan::Plan, trainer::Trainer};
use crate::{error::ProbeError, selection::Selection, socket::Socket};

/// One below the probes, so that a train never delays one.
const FIFO_PRIORITY: u8 = 18;

/// Bytes of an IPv4 and a UDP header.
const HEADERS: u16 = 28;

/// How trains are made. Links of a known rate get shorter trains, and more rarely; see [`Trains::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainSpec {
    /// The most packets of a train, at least two.
    pub packets: u32,
    /// Bytes of each, without IP and UDP headers (28 more).
    pub payload: u16,
    /// From the beginning of a train to that of the next on the same link.
    pub every: Duration,
}

impl Default for TrainSpec {
    /// 200 packets (at 500 Mbit/s they take 4 ms) of 1,200 bytes (they pass wherever IPv6 does), once a second.
    fn default() -> Self {
        TrainSpec { packets: 200, payload: 1_200, every: Duration::from_secs(1) }
    }
}

/// What one train showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainSample {
    /// Which way it went.
    pub link: Link,
    /// When its first packet was sent, on the monotonic clock.
    pub sent_ns: u64,
    /// Bits of IP packets that came after the first arrival, per second from the first arrival to the last. `None` if
    /// fewer than half of the packets arrived, or all at one instant.
    pub rate_bps: Option<f64>,
    /// Packets that arrived, copies not counted.
    pub arrived: u32,
    /// Packets sent.
    pub packets: u32,
}

/// Trains that run until this is dropped.
#[derive(Debug)]
pub struct Trains {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
}

#[derive(Debug, Default)]
struct Shared {
    settled: Mutex<Vec<TrainSample>>,
    stop: AtomicBool,
    discarded: AtomicU64,
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
        check(&spec, network.mtu())?;
        let packet_bytes = u32::from(spec.payload + HEADERS);
        let named: Vec<_> = links.iter().map(|(link, _)| *link).collect();
        let selection = Selection::of(network.places().len(), &named)?;
        let plan = |link: &Link| {
            let expected = links.iter().rev().find(|(other, _)| other == link).and_then(|(_, expected)| *expected);
            (*link, Plan::of(&spec, packet_bytes, expected))
        };
        let plans: Vec<_> = selection.links().iter().map(plan).collect();
        let packet_rate: f64 = plans.iter().map(|(_, plan)| plan.packet_rate()).sum();
        if packet_rate > f64::from(Self::BUDGET) {
            return Err(ProbeError::Trains(format!(
                "trains on {} links would be {packet_rate:.0} packets a second, more than {}; \
                 measure fewer links, or each more rarely",
                plans.len(),
                Self::BUDGET
            )));
        }

        let sockets = Socket::open_all(network)?;
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

    /// All trains that ended since this was last called.
    pub fn drain(&self) -> Vec<TrainSample> {
        std::mem::take(&mut *self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner))
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

fn check(spec: &TrainSpec, mtu: u16) -> Result<(), ProbeError> {
    /// What a receiving socket holds of full packets.
    const LONGEST: u32 = 1_000;
    let refuse = |message: String| Err(ProbeError::Trains(message));
    if !(2..=LONGEST).contains(&spec.packets) {
        return refuse(format!("a train of {} packets shows no rate; choose 2 to {LONGEST}", spec.packets));
    }
    let (shortest, longest) = (packet::SHORTEST as u16, mtu.saturating_sub(HEADERS));
    if !(shortest..=longest).contains(&spec.payload) {
        return refuse(format!(
            "a payload of {} bytes is impossible with an MTU of {mtu}; choose {shortest} to {longest}",
            spec.payload
        ));
    }
    if spec.every < Duration::from_millis(10) {
        return refuse(format!("trains every {:?} would overtake one another; choose 10 ms or more", spec.every));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_that_cannot_measure_are_refused_with_what_can() {
        let default = TrainSpec::default();
        assert!(check(&default, 1_500).is_ok());
        for (spec, reason) in [
            (TrainSpec { packets: 1, ..default }, "choose 2 to 1000"),
            (TrainSpec { packets: 1_001, ..default }, "choose 2 to 1000"),
            (TrainSpec { payload: 23, ..default }, "choose 24 to 1472"),
            (TrainSpec { payload: 1_473, ..default }, "choose 24 to 1472"),
            (TrainSpec { every: Duration::ZERO, ..default }, "10 ms or more"),
        ] {
            let error = check(&spec, 1_500).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
