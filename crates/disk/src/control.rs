//! How a disk is made to fail and asked, from any thread.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use brownout_base::{Change, clock::monotonic_ns, random::Random};

use crate::{
    counters::DiskCounters,
    decision::Decision,
    delay_queue::{DelayQueue, HEALED_WITHIN},
    error::DiskError,
    fault::DiskFault,
    operation::Operation,
};

/// A handle to a mounted disk: cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct DiskControl(Arc<Shared>);

/// What the handles and the threads that serve the disk share. It holds no file descriptor: those belong to the file
/// table of the serving threads (see `service`).
pub(crate) struct Shared {
    target: PathBuf,
    faults: Mutex<Faults>,
    counters: Mutex<DiskCounters>,
    /// Requests that wait because of a fault.
    pub(crate) delayed: DelayQueue,
    /// The disk is no longer served.
    gone: AtomicBool,
}

struct Faults {
    /// In the order in which they came.
    active: Vec<ActiveFault>,
    last_id: u64,
    random: Random,
}

struct ActiveFault {
    id: u64,
    fault: DiskFault,
}

impl DiskControl {
    pub(crate) fn new(target: PathBuf, seed: u64) -> Self {
        let faults = Faults { active: Vec::new(), last_id: 0, random: Random::new(seed) };
        DiskControl(Arc::new(Shared {
            target,
            faults: Mutex::new(faults),
            counters: Mutex::new(DiskCounters::default()),
            delayed: DelayQueue::default(),
            gone: AtomicBool::new(false),
        }))
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// From now on, all that is drawn is drawn from another seed, as if the disk had just been mounted with it.
    pub fn reseed(&self, seed: u64) {
        self.0.faults().random = Random::new(seed);
    }

    /// Adds `fault` to whatever is wrong with the disk already, until the guard goes. Delays add up; each fault draws
    /// for itself whether it hits; of several errors the oldest fault's is answered.
    ///
    /// # Errors
    /// [`DiskError::Fault`] as [`DiskFault::check`] says; [`DiskError::Gone`] when the disk is no longer served.
    pub fn impair(&self, fault: &DiskFault) -> Result<DiskGuard, DiskError> {
        fault.check()?;
        let asked_ns = monotonic_ns();
        self.alive()?;
        let id = {
            let mut faults = self.0.faults();
            faults.last_id += 1;
            let id = faults.last_id;
            faults.active.push(ActiveFault { id, fault: *fault });
            id
        };
        Ok(DiskGuard { control: Some(self.clone()), fault_id: id, since: Change::between(asked_ns, monotonic_ns()) })
    }

    /// What is really done to operations at this moment, read from where it is done.
    ///
    /// # Errors
    /// [`DiskError::Gone`] when the disk is no longer served.
    pub fn effective(&self) -> Result<Vec<DiskFault>, DiskError> {
        self.alive()?;
        let faults = self.0.faults();
        Ok(faults.active.iter().map(|active| active.fault).collect())
    }

    /// What the disk counted since this was last called, by whomever.
    pub fn take_counters(&self) -> DiskCounters {
        let fresh = DiskCounters::default();
        std::mem::replace(&mut *self.0.counters(), fresh)
    }

    /// How many requests wait at this moment because of a fault.
    pub fn waiting(&self) -> usize {
        self.0.delayed.len()
    }

    fn alive(&self) -> Result<(), DiskError> {
        if self.0.gone.load(Ordering::Acquire) { Err(DiskError::Gone(self.0.target.clone())) } else { Ok(()) }
    }

    fn amend(&self, id: u64, fault: &DiskFault) -> Result<Change, DiskError> {
        fault.check()?;
        let asked_ns = monotonic_ns();
        self.alive()?;
        for active in self.0.faults().active.iter_mut().filter(|active| active.id == id) {
            active.fault = *fault;
        }
        Ok(Change::between(asked_ns, monotonic_ns()))
    }

    fn heal(&self, id: u64) -> Result<Change, DiskError> {
        let asked_ns = monotonic_ns();
        self.0.faults().active.retain(|active| active.id != id);
        self.0.delayed.heal(id, monotonic_ns());
        let healed = Change::between(asked_ns, monotonic_ns());
        self.alive().map(|()| healed)
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> MutexGuard<'_, DiskCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that nobody serves the disk any more.
    pub(crate) fn end(&self) {
        self.gone.store(true, Ordering::Release);
        self.delayed.end();
    }

    pub(crate) fn ended(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Decides about one operation; `allocates` says that it needs space on the disk.
    pub(crate) fn decide(&self, operation: Operation, allocates: bool) -> Decision {
        let mut decision = Decision::default();
        let mut faults = self.faults();
        let Faults { active, random, .. } = &mut *faults;
        for ActiveFault { id, fault } in active.iter().filter(|one| one.fault.operations.contains(operation)) {
            // A fault that hits all draws nothing, so that it does not shift what others draw.
            if fault.share.fraction() < 1.0 && random.fraction() >= fault.share.fraction() {
                continue;
            }
            let jitter_ns = match fault.jitter.ns() {
                0 => 0.0,
                jitter => (2.0 * random.fraction() - 1.0) * jitter as f64,
            };
            let delay_ns = (fault.delay.ns() as f64 + jitter_ns).max(0.0) as u64;
            if delay_ns > 0 {
                decision.waits.push((*id, delay_ns));
            }
            let error = fault.error.filter(|error| error.can_come_from(operation, allocates));
            decision.error = decision.error.or(error.map(crate::DiskErrno::errno));
        }
        decision
    }
}

impl fmt::Debug for DiskControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskControl").field("target", &self.0.target).finish_non_exhaustive()
    }
}

/// A fault in force. The disk heals of it when this is dropped, or by [`DiskGuard::heal`], which says when.
///
/// Operations that arrive from then on are free of it. Those that wait already finish at the time they were given, but
/// no later than [`DiskGuard::HEALED_WITHIN`] after the healing (unless other faults hold them longer), and fail if they
/// were to fail: an operation is decided about once, when it arrives. A proof leaves out that much after a healing.
#[must_use = "the disk heals as soon as the guard is dropped"]
pub struct DiskGuard {
    control: Option<DiskControl>,
    fault_id: u64,
    since: Change,
}

impl DiskGuard {
    /// After this, no operation waits any more because of a fault that was healed.
    pub const HEALED_WITHIN: Duration = HEALED_WITHIN;

    /// When it came into force.
    pub fn since(&self) -> Change {
        self.since
    }

    /// Makes it another fault, in its place among the others, and says when that came into force
    /// ([`DiskGuard::since`] stays what it was). Operations that wait already keep their time and their error; a ramp is
    /// many of these.
    ///
    /// # Errors
    /// As [`DiskControl::impair`]; it stays as it was then.
    pub fn amend(&mut self, fault: &DiskFault) -> Result<Change, DiskError> {
        self.control.as_ref().map_or(Ok(self.since), |control| control.amend(self.fault_id, fault))
    }

    /// Takes it back, and says when that came into force.
    ///
    /// # Errors
    /// [`DiskError::Gone`] when the disk is no longer served: it did not heal, it ended.
    pub fn heal(mut self) -> Result<Change, DiskError> {
        self.control.take().map_or(Ok(self.since), |control| control.heal(self.fault_id))
    }
}

impl Drop for DiskGuard {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            // The only failure is a disk that has ended, and then there is nothing to heal.
            let _ = control.heal(self.fault_id);
        }
    }
}

impl fmt::Debug for DiskGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskGuard").field("since", &self.since).finish_non_exhaustive()
    }
}
