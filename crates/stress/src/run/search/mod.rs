//! `search(slo=…)`: the highest open rate that keeps an objective, and how sure that is.
//!
//! Every step runs at one rate: a while to settle, which is not counted, then the measured stretch. The step has kept
//! the objective if all its conditions hold for the operations that were *intended* to start in that stretch, failed
//! ones and those that timed out counting as longer than any limit. The rate is doubled until a step fails, twice at
//! the same rate, so that one pause of the machine does not end the climb; then [`Threshold`] places the steps. Between
//! two steps nothing starts until the database has caught up.

mod run;
pub mod threshold;

use std::time::Duration;

use brownout_base::clock::monotonic_ns;
use brownout_load::{Bucket, Engine, LoadError, Outcome, Pace, histogram};
use brownout_units::Rate;

use crate::settings::{Objective, Search};
use threshold::{Estimate, Threshold};

/// At most so many steps after the climb.
const STEPS: usize = 24;
/// Not beyond this, per second, unless a limit is given.
const HIGHEST: f64 = 1e6;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Operations per second.
    pub rate: f64,
    /// The objective was kept.
    pub kept: bool,
    /// Operations intended in the measured stretch.
    pub operations: u64,
    /// Answered, and right, per second.
    pub goodput: f64,
    /// Response time at the quantile of the first such objective (else 0.99), ns; failed operations count as endless.
    pub at_quantile_ns: Option<u64>,
    /// The client itself was late.
    pub late: bool,
}

/// What came of it.
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
    /// The user asked for an end; what was known until then.
    Interrupted(Option<Estimate>),
}

/// How a search is told.
pub trait SearchWatch {
    /// A step at this rate per second begins; its first operation is due at this time (CLOCK_MONOTONIC, ns).
    fn begun(&mut self, start_ns: u64, rate: f64);

    /// A step has ended; these are the buckets it is judged by. `known` from the end of the climb on.
    fn step(&mut self, step: &Step, stretch: &[Bucket], known: Option<&Estimate>);

    /// All buckets that were drained.
    fn drained(&mut self, engine: &Engine, buckets: &[Bucket]);
}

/// Length of the engine's buckets in a search: fine enough that the settling quarter of a step is cut off well.
pub fn bucket(asked: &Search) -> Duration {
    (asked.step / 40).clamp(Duration::from_millis(20), Duration::from_secs(1))
}

/// Between two looks at what has ended, ns.
const TELL_NS: u64 = 1_000_000_000;
/// No climb down goes below this, per second.
const LOWEST: f64 = 1.0;

/// Searches. The engine has one flow and is idle; it is idle again afterwards. Its buckets should be some tenths of a
/// second long: those that a stretch cuts are left out.
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
        let highest = self.asked.to.map_or(HIGHEST, |to| to.get());
        let mut rate = self.asked.from.get();
        let (mut kept, mut missed): (Option<f64>, Option<f64>) = (None, None);
        let mut outcomes: Vec<(f64, bool)> = Vec::new();
        // The climb: up by doubling, or down by halving.
        let (low, high) = loop {
            let Some(step) = self.step(rate, watch, None, interrupted)? else {
                return Ok(Found::Interrupted(None));
            };
            outcomes.push((rate, step.kept));
            if step.kept {
                kept = Some(rate);
            } else {
                // Once more at the same rate, before it is believed.
                let again = outcomes.iter().filter(|(at, kept)| *at == rate && !*kept).count() < 2;
                if again {
                    continue;
                }
                missed = Some(rate);
            }
            match (kept, missed) {
                (Some(low), Some(high)) => break (low, high),
                (Some(low), None) if low >= highest => return Ok(Found::Always { highest: low }),
                (Some(low), None) => rate = (low * 2.0).min(highest),
                (None, Some(high)) if high <= LOWEST => return Ok(Found::Never { lowest: high }),
                (None, Some(high)) => rate = (high / 2.0).max(LOWEST),
                (None, None) => {}
            }
        };
        let mut threshold = Threshold::between(low / 2.0, high * 2.0);
        for (rate, kept) in &outcomes {
            threshold.learn(*rate, *kept);
        }
        for _ in 0..STEPS {
            if threshold.estimate().width() <= self.asked.precision {
                break;
            }
            let rate = threshold.next().min(highest);
            let Some(_) = self.step(rate, watch, Some(&mut threshold), interrupted)? else {
                return Ok(Found::Interrupted(Some(threshold.estimate())));
            };
        }
        Ok(Found::Threshold(threshold.estimate()))
    }

    fn step(
        &self,
        rate: f64,
        watch: &mut dyn SearchWatch,
        threshold: Option<&mut Threshold>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Step>, LoadError> {
        let Some(asked) = Rate::per_second(rate) else { return Ok(None) };
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
        while monotonic_ns() < to_ns {
            if interrupted() {
                self.engine.set_pace(Pace::Idle)?;
                return Ok(None);
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
                // What is open is not known to have failed.
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        take(watch);
        // Buckets that are cut by the stretch's ends are left out.
        buckets.retain(|_, bucket| bucket.start_ns >= from_ns && bucket.start_ns + bucket.length_ns <= to_ns);
        let stretch: Vec<Bucket> = buckets.into_values().collect();
        // Where nothing was due there is no bucket.
        let length_ns = stretch.first().map_or(0, |bucket| {
            let (start_ns, each_ns) = (bucket.start_ns, bucket.length_ns);
            let first_ns = start_ns - (start_ns - from_ns) / each_ns * each_ns;
            (to_ns - first_ns) / each_ns * each_ns
        });
        let step = judge(&self.asked.objectives, rate, &stretch, length_ns);
        let known = threshold.map(|threshold| {
            threshold.learn(rate, step.kept);
            threshold.estimate()
        });
        watch.step(&step, &stretch, known.as_ref());
        Ok(Some(step))
    }
}

/// Judges the operations of the buckets of so long a stretch.
fn judge(objectives: &[Objective], rate: f64, buckets: &[Bucket], length_ns: u64) -> Step {
    let mut good = histogram();
    let (mut operations, mut late, mut lateness) = (0u64, 0u64, 0u64);
    for bucket in buckets {
        operations += bucket.scheduled;
        late += bucket.late_starts;
        lateness += bucket.lateness.len();
        for series in bucket.series.iter().filter(|series| series.outcome == Outcome::Ok) {
            let _ = good.add(&series.response);
        }
    }
    let all = operations as f64;
    let failed = all - good.len() as f64;
    // Below the limit, as written; a histogram's cell is 0.1 % wide.
    let within = |limit: Duration| good.count_between(0, limit.as_nanos() as u64) as f64;
    let holds = |objective: &Objective| match *objective {
        Objective::Latency { quantile, below } => within(below) >= quantile * all,
        Objective::Mean { below } => failed == 0.0 && good.mean() < below.as_nanos() as f64,
        Objective::Errors { below } => failed < below * all,
    };
    let quantile = objectives.iter().find_map(|objective| match objective {
        Objective::Latency { quantile, .. } => Some(*quantile),
        Objective::Mean { .. } | Objective::Errors { .. } => None,
    });
    let rank = (quantile.unwrap_or(0.99) * all).ceil();
    let at_quantile_ns = (!good.is_empty() && rank <= good.len() as f64)
        .then(|| good.value_at_quantile((rank / good.len() as f64).min(1.0)));
    Step {
        rate,
        kept: operations > 0 && objectives.iter().all(holds),
        operations,
        goodput: crate::output::per_second(good.len(), length_ns),
        at_quantile_ns,
        late: late * 100 > lateness,
    }
}
