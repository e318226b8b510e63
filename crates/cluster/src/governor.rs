//! A limit on a node's CPU time: at most a share of all processors, in every period.
//!
//! The kernel's own limit (cgroups: `cpu.max`, `cpu.cfs_quota_us`) is a directory in a tree that belongs to the machine. It
//! would outlive a lab that is killed, and nothing of a lab may; it takes a delegated tree, which few containers and no
//! user namespace have. So the limit is kept here: a thread that reads the process's CPU clock, stops the process (SIGSTOP)
//! when it has used what it may in a period, and lets it go on in the next. When the lab dies, so does the process.
//!
//! What differs from the kernel's: all threads are stopped at once, not each when it next wants CPU time; and after a stop
//! some system calls (`epoll_wait` among them) return EINTR, which every serious program expects (signal(7)).

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_machine::{Processors, run_urgently};
use brownout_units::Share;

use crate::{
    ClusterError, CpuHold, clock,
    hands::check_cpu_share,
    quota::{Account, PERIOD_NS},
    supervisor::{Life, Supervisor},
};

/// Above the load and the databases, below the emulator and its probes, whose work is shorter.
const PRIORITY: u8 = 15;
/// For the governor's thread to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// A limit on the CPU time of a node that was started here: what is in a [`crate::CpuLimit`].
pub(crate) struct Limit {
    supervisor: Arc<Supervisor>,
    number: u64,
    share: Share,
    since: Change,
}

impl Limit {
    /// Limits the node to `share` of the CPU time of all processors that we may use.
    pub(crate) fn start(supervisor: &Arc<Supervisor>, share: Share) -> Result<Limit, ClusterError> {
        Limit::start_on(supervisor, share, &Processors::of_this_process())
    }

    /// Limits it to `share` of the CPU time of these.
    pub(crate) fn start_on(
        supervisor: &Arc<Supervisor>,
        share: Share,
        processors: &Processors,
    ) -> Result<Limit, ClusterError> {
        check_cpu_share(share)?;
        let (capacity, count) = (processors.capacity(), u64::from(processors.count()));
        let asked_ns = monotonic_ns();
        let mut life = supervisor.open()?;
        let number = life.governing.next;
        life.governing.next += 1;
        life.governing.limits.push((number, share));
        supervisor.changed.notify_all();
        if !life.governing.running {
            let spawned = thread::Builder::new().name(format!("cpu-{}", supervisor.name)).spawn({
                let supervisor = Arc::clone(supervisor);
                move || govern(&supervisor, capacity, count)
            });
            if let Err(source) = spawned {
                life.governing.limits.retain(|(other, _)| *other != number);
                return Err(ClusterError::Governor { node: supervisor.name.clone(), source });
            }
        }
        let begun = Instant::now();
        while !life.governing.running {
            let Some(left) = PATIENCE.checked_sub(begun.elapsed()) else {
                life.governing.limits.retain(|(other, _)| *other != number);
                let source = std::io::Error::new(std::io::ErrorKind::TimedOut, "its thread does not start");
                return Err(ClusterError::Governor { node: supervisor.name.clone(), source });
            };
            life = supervisor.changed.wait_timeout(life, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        drop(life);
        let since = Change::between(asked_ns, monotonic_ns());
        Ok(Limit { supervisor: Arc::clone(supervisor), number, share, since })
    }

    fn lift(&self) -> Change {
        let asked_ns = monotonic_ns();
        let mut life = self.supervisor.life();
        life.governing.limits.retain(|(number, _)| *number != self.number);
        if life.governing.limits.is_empty() {
            life.count();
            life.let_go();
        }
        self.supervisor.changed.notify_all();
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

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.supervisor.name;
        f.debug_struct("Limit").field("node", name).field("share", &self.share).finish_non_exhaustive()
    }
}

impl Life {
    /// The least of the limits in force; `None` when nobody keeps one.
    pub(crate) fn cpu_share(&self) -> Option<Share> {
        let kept = self.governing.limits.iter().filter(|_| self.governing.running);
        kept.map(|(_, share)| *share).reduce(|a, b| if a < b { a } else { b })
    }

    /// Time for which limits have held the node, in nanoseconds.
    pub(crate) fn held_ns(&self) -> u64 {
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

    fn read_clock(&self) -> Option<(u32, u64)> {
        let pid = self.living_pid()?;
        Some((pid, clock::process_cpu_ns(pid)?))
    }

    fn hold(&mut self) {
        self.throttle(true);
        if self.throttled() && self.governing.held_since_ns.is_none() {
            self.governing.held_since_ns = Some(monotonic_ns());
        }
    }

    fn let_go(&mut self) {
        self.throttle(false);
        self.governing.held_since_ns = None;
    }
}

/// However the governor's thread ends, by a panic too, the node goes on.
struct HoldRelease<'a>(&'a Supervisor);

impl Drop for HoldRelease<'_> {
    fn drop(&mut self) {
        let mut life = self.0.life();
        life.governing.running = false;
        life.let_go();
        self.0.changed.notify_all();
    }
}

/// Keeps the limits of a node while there are any. `capacity` is the CPU time that there is in a second, s; `count` is how
/// many threads may use it at once.
fn govern(supervisor: &Supervisor, capacity: f64, count: u64) {
    run_urgently(PRIORITY);
    let release = HoldRelease(supervisor);
    let mut life = supervisor.life();
    life.governing.read = life.read_clock().unwrap_or_default();
    let mut account = Account::begin(monotonic_ns());
    life.governing.running = true;
    supervisor.changed.notify_all();
    loop {
        let Some(share) = life.cpu_share().filter(|_| !life.ended()) else {
            // Under the same lock under which a new limit would look whether somebody keeps it.
            life.governing.running = false;
            life.let_go();
            drop(life);
            std::mem::forget(release);
            return;
        };
        #[cfg(test)]
        assert!(!std::mem::take(&mut life.governing.sabotaged), "a panic of the test's making");
        let quota_ns = (share.fraction() * capacity * PERIOD_NS as f64) as u64;
        let used_ns = life.count();
        account.used_ns += used_ns;
        let now_ns = monotonic_ns();
        account.turn(now_ns, quota_ns);
        if account.used_ns >= quota_ns && share < Share::ALL {
            life.hold();
        } else {
            life.let_go();
        }
        let nap = account.nap_ns(now_ns, quota_ns, count);
        life = match supervisor.changed.wait_timeout(life, Duration::from_nanos(nap)) {
            Ok((life, _)) => life,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}
