//! `search(slo=…)`: the highest open rate that keeps an objective, and how certain that is.
//!
//! Every step runs at one rate: a settling time, which is not counted, then the measured part. The step has kept the
//! objective if all its conditions hold for the operations that were *intended* to start in that part, with failed and
//! timed-out ones counting as longer than any limit. A step in which the client itself was late is unusable: if
//! it misses, that may be why; if it was late for long, its rate was never offered. Which rate is next, and when it is over, says [`Capacity`]. Between two steps
//! nothing starts until the database has caught up.

mod run;

use std::time::Duration;

use brownout_base::clock::monotonic_ns;
use brownout_load::{Bucket, Engine, LoadError, Pace};
use brownout_record::{Latencies, Percentile, Population};
use brownout_statistics::capacity::{self, Answer, Capacity, Estimate, Next, StepOutcome};
use brownout_units::Rate;

use crate::{
    output::add_ended,
    settings::{Objective, Search},
};

/// A step that misses while the client sent more than this share of its operations late, or stood still for more than this share of it,
/// may miss for that.
const LATE: f64 = 0.01;
/// One that keeps the objective in spite of that has kept it (the lateness is part of the response times), unless the client was late
/// for more than this: then the rate was never offered, and errors, for one, show no lateness.
const NOT_OFFERED: f64 = 0.1;
/// A step in which the client was late is run at most this many times in all.
const TRIES: usize = 4;
/// Most steps after the climb.
const STEPS: usize = 24;
/// The highest rate per second, unless a limit is given.
const HIGHEST: f64 = 1e6;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Operations per second.
    pub rate: f64,
    /// Whether the objective was kept; not told where the client itself was late.
    pub verdict: StepOutcome,
    /// Operations intended in the measured stretch.
    pub operations: u64,
    /// Operations answered correctly per second.
    pub goodput: f64,
    /// Response time at the quantile of the first such objective (else 0.99), ns; failed operations count as infinite.
    pub at_quantile_ns: Option<u64>,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    /// The threshold.
    Threshold(Estimate),
    /// Even the lowest rate misses it.
    Never {
        /// The lowest rate tried.
        lowest: f64,
    },
    /// Even the highest rate allowed keeps it.
    Always {
        /// The highest rate tried.
        highest: f64,
    },
    /// The client is the limit: it was late in every attempt at a step, so that none says anything about the database.
    Client {
        /// The highest rate that kept the objectives, if any did.
        at_least: Option<f64>,
        /// The rate that the client could not offer.
        tried: f64,
    },
    /// There were no more operations: a step without them says nothing of the database.
    Dry {
        /// The highest rate that kept the objectives, if any did.
        at_least: Option<f64>,
        /// The rate at which they ran out.
        tried: f64,
    },
    /// The user asked for an end; what was known until then.
    Interrupted(Option<Estimate>),
}

/// Receives the events of a search.
pub trait SearchWatch {
    /// A step at this rate per second begins; its first operation is due at this time (CLOCK_MONOTONIC, ns).
    fn begun(&mut self, start_ns: u64, rate: f64);

    /// A step has ended; it is judged by these buckets. `known` is given from the end of the climb on.
    fn step(&mut self, step: &Step, stretch: &[Bucket], known: Option<&Estimate>);

    /// All buckets that were drained.
    fn drained(&mut self, engine: &Engine, buckets: &[Bucket]);

    /// Whether the schedule has called for an operation in vain: there are no more.
    fn dry(&self) -> bool {
        false
    }
}

/// Length of the engine's buckets in a search: short enough that the settling quarter of a step is cut off precisely.
pub fn bucket(asked: &Search) -> Duration {
    (asked.step / 40).clamp(Duration::from_millis(20), Duration::from_secs(1))
}

/// How often to report what has ended, ns.
const TELL_NS: u64 = 1_000_000_000;
/// The search never goes below this rate per second.
const LOWEST: f64 = 1.0;

/// Runs the search. The engine has one flow and is idle; it is idle again afterwards. Its buckets should be some tenths
/// of a second long: those that are cut by the ends of a measured part are left out.
///
/// # Errors
/// A load thread died.
pub fn search(
    asked: &Search,
    engine: &Engine,
    watch: &mut dyn SearchWatch,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Found, LoadError> {
    Searcher { asked, engine }.run(watch, interrupted)
}

struct Searcher<'a> {
    asked: &'a Search,
    engine: &'a Engine,
}

impl Searcher<'_> {
    fn run(&self, watch: &mut dyn SearchWatch, interrupted: &(dyn Fn() -> bool + Sync)) -> Result<Found, LoadError> {
        let mut capacity = Capacity::new(capacity::Search {
            from: self.asked.from.get(),
            lowest: LOWEST,
            highest: self.asked.to.map_or(HIGHEST, |to| to.get()),
            precision: self.asked.precision,
            most_steps: STEPS,
            attempts: TRIES,
        });
        loop {
            let rate = match capacity.next() {
                Next::Try(rate) => rate,
                Next::End(answer) => return Ok(found(answer)),
            };
            if !self.step(rate, watch, &mut capacity, interrupted)? {
                return Ok(cut(watch, &capacity, rate, interrupted));
            }
        }
    }

    /// Makes one step and learns from it; false: it came to no end.
    fn step(
        &self,
        rate: f64,
        watch: &mut dyn SearchWatch,
        capacity: &mut Capacity,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, LoadError> {
        let Some(asked) = Rate::per_second(rate) else { return Ok(false) };
        let mut buckets: std::collections::BTreeMap<u64, Bucket> = std::collections::BTreeMap::new();
        let mut take = |watch: &mut dyn SearchWatch| {
            let drained = self.engine.drain();
            watch.drained(self.engine, &drained);
            buckets.extend(drained.into_iter().map(|bucket| (bucket.start_ns, bucket)));
        };
        let start_ns = self.engine.set_pace(Pace::Open { rate: asked, arrivals: self.asked.arrivals })?.at_ns;
        watch.begun(start_ns, rate);
        let step_ns = self.asked.step.as_nanos() as u64;
        let (from_ns, to_ns) = (start_ns + step_ns / 4, start_ns + step_ns);
        let mut told_ns = start_ns;
        while monotonic_ns() < to_ns && !watch.dry() {
            if interrupted() {
                self.engine.set_pace(Pace::Idle)?;
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
            self.engine.health()?;
            if monotonic_ns() >= told_ns + TELL_NS {
                told_ns = monotonic_ns();
                take(watch);
            }
        }
        self.engine.set_pace(Pace::Idle)?;
        while !self.engine.exhausted() {
            self.engine.health()?;
            if interrupted() {
                // Operations still open are not known to have failed.
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        take(watch);
        if watch.dry() {
            // This rate was never offered, or not to the end.
            return Ok(false);
        }
        // Buckets that are cut by the stretch's ends are left out.
        buckets.retain(|_, bucket| bucket.start_ns >= from_ns && bucket.start_ns + bucket.length_ns <= to_ns);
        let stretch: Vec<Bucket> = buckets.into_values().collect();
        // There is no bucket where nothing was due.
        let length_ns = stretch.first().map_or(0, |bucket| {
            let (start_ns, each_ns) = (bucket.start_ns, bucket.length_ns);
            let first_ns = start_ns - (start_ns - from_ns) / each_ns * each_ns;
            (to_ns - first_ns) / each_ns * each_ns
        });
        let step = judge(&self.asked.objectives, rate, &stretch, length_ns);
        capacity.learn(rate, step.verdict);
        watch.step(&step, &stretch, capacity.estimate().as_ref());
        Ok(true)
    }
}

fn found(answer: Answer) -> Found {
    match answer {
        Answer::Threshold(estimate) => Found::Threshold(estimate),
        Answer::Never { lowest } => Found::Never { lowest },
        Answer::Always { highest } => Found::Always { highest },
        // Only a late client leaves it undetermined.
        Answer::Undetermined { at_least, tried } => Found::Client { at_least, tried },
    }
}

/// Why there is no step at this rate: the user asked for an end, or there were no more operations.
fn cut(watch: &dyn SearchWatch, capacity: &Capacity, tried: f64, interrupted: &(dyn Fn() -> bool + Sync)) -> Found {
    if watch.dry() && !interrupted() {
        return Found::Dry { at_least: capacity.highest_kept(), tried };
    }
    Found::Interrupted(capacity.estimate())
}

/// Judges the operations in the buckets of a measured part of this length.
fn judge(objectives: &[Objective], rate: f64, buckets: &[Bucket], length_ns: u64) -> Step {
    let mut response = Latencies::new();
    let (mut operations, mut late, mut lateness, mut still_ns) = (0u64, 0u64, 0u64, 0u64);
    for bucket in buckets {
        operations += bucket.scheduled;
        late += bucket.late_starts;
        lateness += bucket.lateness.len();
        still_ns += bucket.stood_still_ns;
        for series in &bucket.series {
            add_ended(&mut response, series.outcome, series.count, &series.response);
        }
    }
    response.add_never_sent(operations.saturating_sub(response.count(Population::Due)));
    let good = response.count(Population::Ok);
    let failed = operations.saturating_sub(good);
    // Below the limit, as written; a histogram's cell is 0.1 % wide.
    let holds = |objective: &Objective| match *objective {
        Objective::Latency { quantile, below } => {
            response.share_within(Population::Due, below.as_nanos() as u64) >= quantile
        }
        Objective::Mean { below } => failed == 0 && response.times(Population::Ok).mean() < below.as_nanos() as f64,
        Objective::Errors { below } => (failed as f64) < below * operations as f64,
    };
    let quantile = objectives.iter().find_map(|objective| match objective {
        Objective::Latency { quantile, .. } => Some(*quantile),
        Objective::Mean { .. } | Objective::Errors { .. } => None,
    });
    let at_quantile_ns = match response.percentile(Population::Due, quantile.unwrap_or(0.99) * 100.0) {
        Some(Percentile::Is(ns)) => Some(ns),
        // A user who gave up was not served, however soon that was known.
        Some(Percentile::AtLeast(_) | Percentile::Never) | None => None,
    };
    let kept = operations > 0 && objectives.iter().all(holds);
    let was_late = |share: f64| late as f64 > share * lateness as f64 || still_ns as f64 > share * length_ns as f64;
    let verdict = if was_late(if kept { NOT_OFFERED } else { LATE }) {
        StepOutcome::Unusable
    } else if kept {
        StepOutcome::Kept
    } else {
        StepOutcome::Missed
    };
    Step { rate, verdict, operations, goodput: crate::output::per_second(good, length_ns), at_quantile_ns }
}

#[cfg(test)]
mod tests {
    use brownout_load::{ErrorClass, Outcome};

    use super::*;
    use crate::output::sample;

    #[test]
    fn whoever_failed_timed_out_or_was_never_sent_is_beyond_every_limit() {
        const SECOND: u64 = 1_000_000_000;
        let judged = |bad: &[sample::Sample<'_>], never_sent, quantile| {
            let ok: &[(u64, u64)] = &[(0, 1); 95];
            let all = [&[("READ", "n1", Outcome::Ok, ok)][..], bad].concat();
            let mut bucket = sample::bucket(0, true, &all);
            bucket.scheduled += never_sent;
            let objective = Objective::Latency { quantile, below: Duration::from_secs(1) };
            let step = judge(&[objective], 100.0, &[bucket], SECOND);
            (step.verdict == StepOutcome::Kept, step.at_quantile_ns.is_some(), step.operations)
        };
        let few: &[(u64, u64)] = &[(0, 2); 5];
        let failed = Outcome::Failed(ErrorClass::Overloaded);
        assert_eq!(judged(&[("READ", "n1", Outcome::Ok, few)], 0, 0.99), (true, true, 100));
        assert_eq!(judged(&[("READ", "n1", failed, few)], 0, 0.99), (false, false, 100));
        assert_eq!(judged(&[("READ", "n1", Outcome::TimedOut, few)], 0, 0.99), (false, false, 100));
        assert_eq!(judged(&[], 5, 0.99), (false, false, 100));
        assert_eq!(judged(&[("READ", "n1", failed, few)], 0, 0.95), (true, true, 100));
    }

    #[test]
    fn a_step_of_a_late_client_is_unusable_whatever_was_asked() {
        const SECOND: u64 = 1_000_000_000;
        let below = Duration::from_millis(20);
        for objective in
            [Objective::Latency { quantile: 0.99, below }, Objective::Mean { below }, Objective::Errors { below: 0.01 }]
        {
            // Failures miss each of them.
            let verdict = |service_ms, outcome, stood_still_ns| {
                let answered: &[(u64, u64)] = &[(0, service_ms); 100];
                let bucket = sample::bucket(0, true, &[("READ", "n1", outcome, answered)]);
                judge(&[objective], 100.0, &[Bucket { stood_still_ns, ..bucket }], SECOND).verdict
            };
            let failed = Outcome::Failed(ErrorClass::Overloaded);
            let told = |still_ns| [verdict(1, Outcome::Ok, still_ns), verdict(50, failed, still_ns)];
            assert_eq!(told(0), [StepOutcome::Kept, StepOutcome::Missed], "{objective}");
            // A moment of standing still may cost what was asked, and does not make it.
            assert_eq!(told(SECOND / 20), [StepOutcome::Kept, StepOutcome::Unusable], "{objective}");
            assert_eq!(told(SECOND / 2), [StepOutcome::Unusable; 2], "{objective}");
        }
    }

    struct Told {
        dry: bool,
    }

    impl SearchWatch for Told {
        fn begun(&mut self, _: u64, _: f64) {}

        fn step(&mut self, _: &Step, _: &[Bucket], _: Option<&Estimate>) {}

        fn drained(&mut self, _: &Engine, _: &[Bucket]) {}

        fn dry(&self) -> bool {
            self.dry
        }
    }

    #[test]
    fn a_rate_that_operations_were_missing_for_is_no_threshold() {
        let begun = Capacity::new(capacity::Search {
            from: 100.0,
            lowest: LOWEST,
            highest: HIGHEST,
            precision: 0.05,
            most_steps: STEPS,
            attempts: TRIES,
        });
        let mut capacity = begun.clone();
        [100.0, 200.0].iter().for_each(|rate| capacity.learn(*rate, StepOutcome::Kept));
        let ended = |dry, interrupted: bool| cut(&Told { dry }, &capacity, 400.0, &move || interrupted);
        assert_eq!(ended(true, false), Found::Dry { at_least: Some(200.0), tried: 400.0 });
        assert_eq!(ended(true, true), Found::Interrupted(None));
        assert_eq!(ended(false, false), Found::Interrupted(None));
        assert_eq!(cut(&Told { dry: true }, &begun, 400.0, &|| false), Found::Dry { at_least: None, tried: 400.0 });
    }
}
