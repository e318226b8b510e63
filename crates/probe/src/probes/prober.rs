//! The prober's thread.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use brownout_base::{HostId, Link, LongestHold, clock::monotonic_ns};

use super::{
    datagram::{self, Datagram},
    health::Health,
    overflow::Overflow,
    window::{COPY_GRACE_NS, ProbeSample, Window},
};
use crate::{
    LOST_AFTER,
    moves::{Move, Moves},
    selection::Selection,
    socket::{Socket, can_pass},
    stamps::{STAMPS_AFTER_NS, Stamp, WallClock},
};

/// See [`super::Probes::LATE`].
pub(super) const LATE: Duration = Duration::from_millis(1);
/// Probes of the same slot are sent together: waking up, here and in whoever carries them, costs more
/// than sending does.
const SLOT_NS: u64 = 2_000_000;
/// How often arrivals are collected. Their times are the kernel's, so this costs no precision.
pub(super) const COLLECT_NS: u64 = 10_000_000;
/// Copies are waited for as long as a link may hold them, but not longer than this: else a delay of a minute anywhere
/// would keep all samples back for a minute.
const LATEST_COPY_NS: u64 = 1_000_000_000;
/// What a probe may take on a busy machine, besides what its link holds it for.
const ON_THE_WAY_NS: u64 = 50_000_000;
/// Samples kept for a caller who does not drain: a minute and a half of the whole budget.
const KEPT_SAMPLES: usize = 200_000;

/// What the thread and its handle share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) settled: Mutex<Vec<ProbeSample>>,
    pub(super) stop: AtomicBool,
    pub(super) health: Health,
    pub(super) moves: Moves<Socket>,
}

pub(super) struct Prober {
    /// Per host.
    sockets: Vec<Socket>,
    selection: Selection,
    /// Per link of the selection.
    windows: Vec<Window>,
    interval_ns: u64,
    holds: Arc<dyn LongestHold>,
    shared: Arc<Shared>,
    wall: WallClock,
    /// Per host.
    overflows: Vec<Overflow>,
    /// Per host, whether it is not there at the moment.
    away: Vec<bool>,
    /// Of one round: the probes that arrived, with their stamps.
    arrivals: Vec<(Datagram, Option<Stamp>)>,
    settled: Vec<ProbeSample>,
}

impl Prober {
    pub(super) fn new(
        sockets: Vec<Socket>,
        selection: Selection,
        interval: Duration,
        holds: Arc<dyn LongestHold>,
        shared: Arc<Shared>,
    ) -> Self {
        Prober {
            overflows: sockets.iter().map(|_| Overflow::default()).collect(),
            away: vec![false; sockets.len()],
            sockets,
            windows: selection.links().iter().copied().map(Window::new).collect(),
            selection,
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            holds,
            shared,
            wall: WallClock::read(),
            arrivals: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Sends each probe at its time and collects arrivals in between, until told to end.
    pub(super) fn run(mut self) {
        let begin = monotonic_ns() + STAMPS_AFTER_NS;
        let links = self.windows.len().max(1) as u64;
        let (mut turn, mut collect_at) = (0, begin + COLLECT_NS);
        while !self.shared.stop.load(Ordering::Relaxed) {
            // Not a multiple of a rounded gap, which would drift.
            let since_begin = (u128::from(self.interval_ns) * u128::from(turn) / u128::from(links)) as u64;
            let send_at = match self.windows.is_empty() {
                true => u64::MAX,
                false => begin + since_begin / SLOT_NS * SLOT_NS,
            };
            let now = monotonic_ns();
            let next = send_at.min(collect_at);
            if now < next {
                thread::sleep(Duration::from_nanos(next - now));
                continue;
            }
            if collect_at <= now {
                self.hear();
                self.collect();
                collect_at = now + COLLECT_NS;
            }
            if send_at <= now {
                self.send((turn % links) as usize, send_at, now);
                turn += 1;
            }
        }
    }

    /// Learns which hosts are not there any more, and where others are now.
    fn hear(&mut self) {
        for told in self.shared.moves.take() {
            match told {
                Move::Left { host, since_ns } => self.leave_out(host, since_ns),
                Move::Came { host, there } => {
                    let at = host.index();
                    if let Some(socket) = self.sockets.get_mut(at) {
                        // What the other one had dropped is none of this one's counts.
                        (*socket, self.overflows[at], self.away[at]) = (there, Overflow::default(), false);
                    }
                }
                Move::Back { host } => {
                    if let Some(away) = self.away.get_mut(host.index()) {
                        *away = false;
                    }
                }
            }
        }
    }

    fn leave_out(&mut self, host: HostId, since_ns: u64) {
        let Some(away) = self.away.get_mut(host.index()) else { return };
        *away = true;
        for window in &mut self.windows {
            let Link { from, to } = window.link();
            if from == host || to == host {
                // What was on its way then came to nobody, or from nobody.
                let on_the_way_ns = self.holds.longest_hold_of_ns(window.link()).saturating_add(ON_THE_WAY_NS);
                let (left, refused) = window.leave_out(since_ns.saturating_sub(on_the_way_ns));
                add(&self.shared.health.absent, left);
                self.shared.health.refused.fetch_sub(refused, Ordering::Relaxed);
            }
        }
    }

    fn send(&mut self, link: usize, due_ns: u64, now_ns: u64) {
        let health = &self.shared.health;
        let Link { from, to } = self.windows[link].link();
        if self.away[from.index()] || self.away[to.index()] {
            add(&health.absent, 1);
            return;
        }
        let lateness = now_ns - due_ns;
        if lateness >= self.interval_ns.max(COLLECT_NS) {
            // Catching up would be a burst, which measures itself.
            add(&health.skipped, 1);
            return;
        }
        health.worst_lateness_ns.fetch_max(lateness, Ordering::Relaxed);
        add(&health.late_sends, u64::from(u128::from(lateness) > LATE.as_nanos()));
        let window = &mut self.windows[link];
        let target = self.sockets[to.index()].address();
        let probe = Datagram { link: window.link(), seq: window.next_seq(), sent_ns: monotonic_ns() };
        match self.sockets[from.index()].send(&probe.encode(), target) {
            Ok(()) => {
                window.sent(probe.sent_ns);
                add(&health.sent, 1);
            }
            // That there is no room at the moment says nothing of the link: no number, and no sample.
            Err(error) if can_pass(&error) => add(&health.send_errors, 1),
            // A filter of the sending host, or no way there: what its programs send there is lost, and so is this.
            Err(_) => {
                window.sent(probe.sent_ns);
                window.refused();
                add(&health.sent, 1);
                add(&health.refused, 1);
            }
        }
    }

    fn collect(&mut self) {
        let mut buffer = [0; datagram::LENGTH + 1];
        for host in 0..self.sockets.len() {
            // An error here is an ICMP message about an earlier probe: that probe will be missed anyway.
            while let Ok(Some(received)) = self.sockets[host].receive(&mut buffer) {
                let new = self.overflows[host].note(received.overflowed, monotonic_ns());
                add(&self.shared.health.overflowed, u64::from(new));
                let probe = Datagram::decode(&buffer[..received.length]).filter(|probe| probe.link.to.index() == host);
                self.arrivals.extend(probe.map(|probe| (probe, received.arrived)));
            }
        }
        let round = self.wall.next_round();
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for (probe, stamp) in arrivals.drain(..) {
            let arrived_ns = stamp.and_then(|stamp| round.on_monotonic(stamp));
            self.arrived(probe, arrived_ns);
        }
        self.arrivals = arrivals;
        self.settle();
    }

    fn arrived(&mut self, probe: Datagram, arrived_ns: Option<u64>) {
        let window = self.selection.index(probe.link).and_then(|index| self.windows.get_mut(index));
        if !window.is_some_and(|window| window.arrived(probe.seq, arrived_ns)) {
            add(&self.shared.health.late_answers, 1);
        }
    }

    fn settle(&mut self) {
        let now = monotonic_ns();
        let lost_after = LOST_AFTER.as_nanos() as u64;
        let mut void = 0;
        let mut latest = lost_after;
        for window in &mut self.windows {
            // Each by its own link: that another is slow must not keep back what is known of this one.
            let longest_hold = self.holds.longest_hold_of_ns(window.link());
            let lost_after = lost_after.saturating_add(longest_hold);
            latest = latest.max(lost_after);
            let copies_within = longest_hold.min(LATEST_COPY_NS) + COPY_GRACE_NS;
            let overflow = &mut self.overflows[window.link().to.index()];
            void += window.settle(now, lost_after, copies_within, |sample| {
                if sample.delay_ns.is_some() || !overflow.excuses(sample.sent_ns) {
                    self.settled.push(sample);
                }
            });
        }
        add(&self.shared.health.discarded, void);
        self.overflows.iter_mut().for_each(|overflow| overflow.forget_before(now.saturating_sub(latest)));
        // A caller who is draining at this moment gets them next time: a real-time thread must not
        // wait for one that is not.
        if let Ok(mut drained) = self.shared.settled.try_lock() {
            let room = KEPT_SAMPLES.saturating_sub(drained.len());
            add(&self.shared.health.discarded, self.settled.len().saturating_sub(room) as u64);
            drained.extend(self.settled.drain(..).take(room));
        }
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
