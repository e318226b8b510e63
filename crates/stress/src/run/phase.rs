//! One phase: an engine, its paces, and when it ends.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{Bucket, ConnectionEvent, Engine, EngineConfig, Live, LoadError, Pace};

use crate::{
    operations::StressWorkload,
    output::{Fold, Interval, Measure, Total},
};

/// What ends a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// There are no more operations: `n=`, `no-wrap`, token ranges.
    Dry,
    /// This time has passed, or there are no more operations.
    After(Duration),
    /// The standard error of the mean row rate is below a share of the mean: `err<`.
    Sure {
        /// The share.
        target: f64,
        /// Not before this many intervals.
        least: u64,
        /// After this many at the latest.
        most: u64,
    },
}

impl End {
    /// When a phase that began at `start_ns` ends, if that is known in advance.
    fn at_ns(self, start_ns: u64) -> Option<u64> {
        match self {
            End::After(time) => Some(start_ns.saturating_add(time.as_nanos() as u64)),
            End::Dry | End::Sure { .. } => None,
        }
    }
}

/// How a phase has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// As planned.
    Done,
    /// An operation failed, and failures are not ignored.
    Failed,
    /// The user interrupted.
    Interrupted,
}

/// Receives the events of a phase.
pub trait Watch {
    /// The first operation is due at this time (CLOCK_MONOTONIC, ns).
    fn begun(&mut self, start_ns: u64) {
        let _ = start_ns;
    }

    /// From this time on (likewise) nothing was due any more; open operations may take longer.
    fn over(&mut self, end_ns: u64) {
        let _ = end_ns;
    }

    /// Buckets by intended start, each complete so far; the CPU time that the engine has used, in ns; connection
    /// events.
    fn buckets(&mut self, buckets: &[Bucket], load_cpu_ns: u64, connections: &[ConnectionEvent]) {
        let _ = (buckets, load_cpu_ns, connections);
    }

    /// An interval has ended; the total includes it.
    fn interval(&mut self, interval: &Interval, total: &Total) {
        let _ = (interval, total);
    }

    /// A message about a failed operation.
    fn complaint(&mut self, line: &str) {
        let _ = line;
    }

    /// Called several times a second if [`Watch::wants_live`]; `share` of the phase is done, 0 to 1, if that is known.
    fn live(&mut self, live: &Live, share: Option<f64>) {
        let _ = (live, share);
    }

    /// Whether [`Watch::live`] is used.
    fn wants_live(&self) -> bool {
        false
    }
}

/// A phase to be run.
pub struct Phase {
    /// The operations.
    pub workload: Arc<StressWorkload>,
    /// How the engine sends; the phase sets the epoch and the length of buckets.
    pub config: EngineConfig,
    /// How fast, by flow.
    pub paces: Vec<Pace>,
    /// How long.
    pub end: End,
    /// Which latency the columns show.
    pub measure: Measure,
    /// Length of an interval.
    pub interval: Duration,
    /// A failed operation ends the phase.
    pub stop_on_error: bool,
}

/// The result of a phase.
pub struct Finished {
    /// All of it.
    pub total: Total,
    /// How it ended.
    pub how: How,
}

/// How often to check whether it is over, if time does not decide that; every check is a wake-up, which costs.
const LOOK: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_millis(50);
/// How often to report progress.
const LIVE: Duration = Duration::from_millis(200);
/// How long to wait for open operations after Ctrl-C.
const IMPATIENT: Duration = Duration::from_secs(1);

impl Phase {
    /// Runs it. Intervals end at whole multiples of their length on the wall clock, so that clients on several machines
    /// print rows for the same time.
    ///
    /// After the end nothing is scheduled; open operations are awaited, at most for their timeout.
    ///
    /// # Errors
    /// The engine cannot be started, or a load thread died.
    pub fn run(
        mut self,
        watch: &mut dyn Watch,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Finished, LoadError> {
        let interval_ns = self.interval.as_nanos() as u64;
        self.config.bucket = self.interval;
        self.config.epoch_ns = last_boundary(interval_ns);
        let timeout = self.config.timeout;
        let engine = Engine::launch_unless(self.config.clone(), Arc::clone(&self.workload) as _, interrupted)?;
        let start_ns = engine.set_paces(self.paces.clone())?.at_ns;
        watch.begun(start_ns);
        let idle = || vec![Pace::Idle; self.paces.len()];
        if let Some(end_ns) = self.end.at_ns(start_ns) {
            // Set in advance, so that a rate gets exactly its operations.
            engine.set_paces_from(end_ns, idle())?;
        }
        let mut state = State {
            engine: &engine,
            fold: Fold::new(start_ns, self.measure).with_conditional(self.workload.conditional()),
            next_ns: last_boundary(interval_ns) + interval_ns,
            interval_ns,
            start_ns,
            live_ns: start_ns,
            intervals: 0,
            drain: None,
        };
        // The first interval begins with the first operation and may be short; one that is nearly empty becomes part of
        // the next.
        if state.next_ns < start_ns + interval_ns / 10 {
            state.next_ns += interval_ns;
        }
        let mut how = loop {
            std::thread::sleep(state.rest(&self));
            if let Some(due_until_ns) = self.workload.due_until_ns() {
                state.over(due_until_ns.min(monotonic_ns()), watch);
            }
            state.look(&self, watch)?;
            if interrupted() {
                break How::Interrupted;
            }
            if self.stop_on_error && self.workload.complaints().any() {
                break How::Failed;
            }
            if state.is_over(&self, &engine) {
                break How::Done;
            }
        };
        let planned_ns = self.end.at_ns(start_ns).filter(|end_ns| *end_ns <= monotonic_ns());
        if planned_ns.is_none() {
            engine.set_paces(idle())?;
        }
        // Rates refer to the time in which operations were due: operations open now may take as long as their time-out.
        let due_until_ns = planned_ns.or_else(|| self.workload.due_until_ns()).unwrap_or_else(monotonic_ns);
        watch.over(due_until_ns);
        state.over(due_until_ns, watch);
        let patience = if how == How::Interrupted { IMPATIENT } else { timeout + Duration::from_millis(500) };
        let deadline_ns = monotonic_ns() + patience.as_nanos() as u64;
        let mut over = false;
        while !over && monotonic_ns() < deadline_ns && (how == How::Interrupted || !interrupted()) {
            // This cannot be true before the idle pace is in force: until then operations may begin.
            over = engine.exhausted();
            if !over {
                std::thread::sleep(LOOK);
                state.look(&self, watch)?;
            }
        }
        if !over && interrupted() {
            // Open operations are cut off.
            how = How::Interrupted;
        }
        let State { mut fold, drain, .. } = state;
        let (cpu_ns, connections) = (engine.cpu_ns(), engine.connection_events());
        let (buckets, balance) = engine.stop(Duration::ZERO);
        let end_ns = monotonic_ns();
        self.tell(watch);
        watch.buckets(&buckets, cpu_ns, &connections);
        let mut last = fold.drain(end_ns, &buckets);
        if let Some(mut drain) = drain {
            drain.add(&last);
            last = drain;
        }
        let total = fold.total_mut();
        total.due_ns = Some(due_until_ns.saturating_sub(start_ns)).filter(|due_ns| *due_ns > 0);
        if let Some(drain) = &mut total.drain {
            // For users, the drain began with the first that found no more operations; its length is the time after the
            // due time.
            drain.length_ns = end_ns.saturating_sub(due_until_ns);
        }
        watch.interval(&last, fold.total());
        fold.total_mut().balance = balance;
        let failed = self.stop_on_error && self.workload.complaints().any();
        let how = if how == How::Done && failed { How::Failed } else { how };
        Ok(Finished { total: fold.into_total(), how })
    }

    fn tell(&self, watch: &mut dyn Watch) {
        for line in self.workload.complaints().take() {
            watch.complaint(&line);
        }
    }

    /// The share that is done, 0 to 1, if that is known.
    fn done(&self, start_ns: u64, n: Option<u64>) -> Option<f64> {
        match (self.end, n, self.workload.permits().left()) {
            (End::After(time), ..) => Some((monotonic_ns() - start_ns) as f64 / time.as_nanos() as f64),
            (_, Some(n), Some(left)) if n > 0 => Some(1.0 - left as f64 / n as f64),
            _ => None,
        }
    }
}

/// What changes while a phase runs.
struct State<'a> {
    engine: &'a Engine,
    fold: Fold,
    next_ns: u64,
    interval_ns: u64,
    start_ns: u64,
    live_ns: u64,
    intervals: u32,
    /// What ended after nothing was due any more: it has one row, and says nothing about the throughput.
    drain: Option<Interval>,
}

impl State<'_> {
    /// Reports what is new.
    fn look(&mut self, phase: &Phase, watch: &mut dyn Watch) -> Result<(), LoadError> {
        phase.tell(watch);
        let now = monotonic_ns();
        if now >= self.next_ns {
            let buckets = self.engine.drain();
            watch.buckets(&buckets, self.engine.cpu_ns(), &self.engine.connection_events());
            // After a pause of this process several boundaries may have passed: one interval then covers all of them.
            let end_ns = self.next_ns + (now - self.next_ns) / self.interval_ns * self.interval_ns;
            match &mut self.drain {
                Some(drain) => drain.add(&self.fold.drain(end_ns, &buckets)),
                None => {
                    let interval = self.fold.interval(end_ns, &buckets);
                    watch.interval(&interval, self.fold.total());
                }
            }
            self.next_ns = end_ns + self.interval_ns;
            self.intervals += 1;
            self.engine.health()?;
        }
        if watch.wants_live() && now >= self.live_ns {
            self.live_ns = now + LIVE.as_nanos() as u64;
            watch.live(&self.engine.live(), phase.done(self.start_ns, phase.workload.permits().total()));
        }
        Ok(())
    }

    /// Nothing has been due since then: the current interval ends, and the drain begins.
    fn over(&mut self, due_until_ns: u64, watch: &mut dyn Watch) {
        if self.drain.is_some() {
            return;
        }
        let (start_ns, measure) = (self.fold.total().interval.end_ns(), self.fold.total().interval.measure);
        let begins_ns = due_until_ns.max(start_ns);
        if begins_ns > start_ns {
            let buckets = self.engine.drain();
            watch.buckets(&buckets, self.engine.cpu_ns(), &self.engine.connection_events());
            let interval = self.fold.interval(begins_ns, &buckets);
            watch.interval(&interval, self.fold.total());
        }
        self.drain = Some(Interval::new(begins_ns, 0, measure));
    }

    /// Time until the next check.
    fn rest(&self, phase: &Phase) -> Duration {
        let by_time = matches!(phase.end, End::After(_)) && phase.workload.permits().total().is_none();
        let end_ns = phase.end.at_ns(self.start_ns);
        let next_ns = self.next_ns.min(end_ns.unwrap_or(u64::MAX)).saturating_sub(monotonic_ns()).max(100_000);
        Duration::from_nanos(next_ns).min(if by_time { SELDOM } else { LOOK })
    }

    fn is_over(&self, phase: &Phase, engine: &Engine) -> bool {
        let by_end = match phase.end {
            End::Dry => false,
            End::After(_) => phase.end.at_ns(self.start_ns).is_some_and(|end_ns| end_ns <= monotonic_ns()),
            End::Sure { target, least, most } => self.fold.total().uncertainty.converged(target, least, most),
        };
        // Asking the engine wakes its threads, so it is asked only when a user has found no more operations.
        by_end || phase.workload.may_be_exhausted() && engine.exhausted()
    }
}

/// The last moment, on CLOCK_MONOTONIC, at which the wall clock showed a whole multiple of `interval_ns`.
fn last_boundary(interval_ns: u64) -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    monotonic_ns().saturating_sub(unix % interval_ns)
}
