//! A limit on a container's CPU time: at most a share of all processors that we may use, in every period.
//!
//! As for nodes that were started here (see `governor.rs` of the crate `cluster`): a thread counts what all processes of the
//! container have used, has them stand when that is what they may use in a period, and lets them go on in the next. Nothing of
//! it outlives this process; the container's own limits stay as they are.

use std::{
    fmt, io,
    sync::{Arc, PoisonError},
    thread,
    time::{Duration, Instant},
};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_cluster::{
    ClusterError, CpuHold,
    hands::{Account, PERIOD_NS, check_cpu_share},
};
use brownout_machine::{Processors, run_urgently};
use brownout_units::Share;

use super::life::{Life, Shared};

/// Above the load and the databases, below the emulator and its probes, whose work is shorter.
const PRIORITY: u8 = 15;
/// For the governor's thread to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// A limit, in force until this is dropped.
pub(super) struct Limit {
    shared: Arc<Shared>,
    number: u64,
    share: Share,
    since: Change,
}

impl Limit {
    pub(super) fn start(shared: &Arc<Shared>, share: Share) -> Result<Limit, ClusterError> {
        check_cpu_share(share)?;
        let processors = Processors::of_this_process();
        let (capacity, count) = (processors.capacity(), u64::from(processors.count()));
        let asked_ns = monotonic_ns();
        let failed = |source| ClusterError::Governor { node: shared.name.clone(), source };
        let mut life = shared.life();
        let number = life.governing.next;
        life.governing.next += 1;
        life.governing.limits.push((number, share));
        shared.changed.notify_all();
        if !life.governing.running {
            let spawned = thread::Builder::new().name(format!("cpu-{}", shared.name)).spawn({
                let shared = Arc::clone(shared);
                move || govern(&shared, capacity, count)
            });
            if let Err(source) = spawned {
                life.governing.limits.retain(|(other, _)| *other != number);
                return Err(failed(source));
            }
        }
        let begun = Instant::now();
        while !life.governing.running {
            let Some(left) = PATIENCE.checked_sub(begun.elapsed()) else {
                life.governing.limits.retain(|(other, _)| *other != number);
                return Err(failed(io::Error::new(io::ErrorKind::TimedOut, "its thread does not start")));
            };
            life = shared.changed.wait_timeout(life, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(life);
        let since = Change::between(asked_ns, monotonic_ns());
        Ok(Limit { shared: Arc::clone(shared), number, share, since })
    }

    fn lift(&self) -> Change {
        let asked_ns = monotonic_ns();
        let mut life = self.shared.life();
        life.governing.limits.retain(|(number, _)| *number != self.number);
        if life.governing.limits.is_empty() {
            life.count();
            life.release();
        }
        self.shared.changed.notify_all();
        drop(life);
        Change::between(asked_ns, monotonic_ns())
    }
}

impl CpuHold for Limit {
    fn since(&self) -> Change {
        self.since
    }

    fn heal(self: Box<Self>) -> Change {
        self.lift()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.lift();
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.shared.name;
        f.debug_struct("Limit").field("container", name).field("share", &self.share).finish_non_exhaustive()
    }
}

impl Life {
    /// The least of the limits in force; `None` when nobody keeps one.
    pub(super) fn cpu_share(&self) -> Option<Share> {
        let kept = self.governing.limits.iter().filter(|_| self.governing.running);
        kept.map(|(_, share)| *share).reduce(|a, b| if a < b { a } else { b })
    }

    /// Time for which limits have held it, in nanoseconds.
    pub(super) fn held_ns(&self) -> u64 {
        let held = self.governing.held_since_ns.map_or(0, |since| monotonic_ns().saturating_sub(since));
        self.governing.held_ns + held
    }

    /// Adds what was used and how long was held since the last count; says what was used, in nanoseconds.
    fn count(&mut self) -> u64 {
        let now_ns = monotonic_ns();
        let (before, from_ns) = self.governing.read;
        let used_ns = match self.read_clock() {
            Some((pid, to_ns)) => {
                self.governing.read = (pid, to_ns);
                // Another process: all that it has used was used since.
                if pid == before { to_ns.saturating_sub(from_ns) } else { to_ns }
            }
            None => 0,
        };
        if let Some(since) = self.governing.held_since_ns.as_mut() {
            self.governing.held_ns += now_ns.saturating_sub(*since);
            *since = now_ns;
        }
        used_ns
    }

    fn read_clock(&mut self) -> Option<(u32, u64)> {
        let main = self.main.as_mut().filter(|main| main.lives())?;
        Some((main.pid, main.cpu_ns()))
    }

    fn restrain(&mut self) {
        self.throttle(true);
        if self.throttled() && self.governing.held_since_ns.is_none() {
            self.governing.held_since_ns = Some(monotonic_ns());
        }
    }

    fn release(&mut self) {
        self.throttle(false);
        if !self.throttled() {
            self.governing.held_since_ns = None;
        }
    }
}

/// However the governor's thread ends, by a panic too, the container goes on.
struct HoldRelease<'a>(&'a Shared);

impl Drop for HoldRelease<'_> {
    fn drop(&mut self) {
        let mut life = self.0.life();
        life.governing.running = false;
        life.release();
        self.0.changed.notify_all();
    }
}

/// Keeps the limits of a container while there are any. `capacity` is the CPU time that there is in a second, s; `count` is how
/// many threads may use it at once.
fn govern(shared: &Shared, capacity: f64, count: u64) {
    run_urgently(PRIORITY);
    let release = HoldRelease(shared);
    let mut life = shared.life();
    life.governing.read = life.read_clock().unwrap_or_default();
    let mut account = Account::begin(monotonic_ns());
    life.governing.running = true;
    shared.changed.notify_all();
    loop {
        let Some(share) = life.cpu_share().filter(|_| !life.ended) else {
            // Under the same lock under which a new limit would look whether somebody keeps it.
            life.governing.running = false;
            life.release();
            drop(life);
            std::mem::forget(release);
            return;
        };
        let quota_ns = (share.fraction() * capacity * PERIOD_NS as f64) as u64;
        account.used_ns += life.count();
        let now_ns = monotonic_ns();
        account.turn(now_ns, quota_ns);
        if account.used_ns >= quota_ns && share < Share::ALL {
            life.restrain();
        } else {
            life.release();
        }
        let nap = account.nap_ns(now_ns, quota_ns, count);
        life = shared.changed.wait_timeout(life, Duration::from_nanos(nap)).unwrap_or_else(PoisonError::into_inner).0;
    }
}
