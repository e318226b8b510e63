//! A search for the largest rate that keeps an objective: what its trials have shown so far, where it goes on, and what it says.
//! The rules are those of `brownout_statistics::capacity`, which `brownout stress` searches with, too.

use brownout_statistics::capacity::{Answer, Capacity, Next, Search, StepOutcome};
use brownout_units::Delay;
use serde::Serialize;

use super::{Amount, Lesson, LevelFindings, levels};

/// No rate is tried that is more often halved.
const HALVED: u32 = 5;
/// Steps after the climb, at most.
const MOST_STEPS: usize = 24;

/// What is searched.
#[derive(Debug, Clone)]
pub struct MaxRate {
    search: Search,
    ends: [String; 2],
}

/// The largest rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CapacityFindings {
    /// What is known.
    pub outcome: CapacityOutcome,
    /// The rate at which half of the trials keep the objective, per second; of `never` and `always` the lowest and the highest
    /// that was tried, of `undetermined` the highest that was kept, if any was.
    pub rate: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// With a probability of 90 %, 19 of 20 trials at this rate keep the objective.
    pub safe: Option<f64>,
}

/// What is known of the largest rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityOutcome {
    /// Where it is.
    Threshold,
    /// Even the lowest rate misses the objective.
    Never,
    /// Even the highest rate keeps it.
    Always,
    /// These trials do not show it.
    Undetermined,
}

impl MaxRate {
    /// None if an end is no rate, or `to` is below `from`.
    pub fn new(from: &str, to: &str, precision: f64) -> Option<MaxRate> {
        let (first, highest) = (Amount::Rate.read(from)?, Amount::Rate.read(to)?);
        let lowest = first / 2f64.powi(HALVED as i32);
        let search = Search { from: first, lowest, highest, precision, most_steps: MOST_STEPS, attempts: 1 };
        (highest >= first).then(|| MaxRate { search, ends: [from.to_owned(), to.to_owned()] })
    }

    /// The highest rate that is tried where the file names none: ten times doubled.
    pub fn highest(from: &str) -> Option<String> {
        Amount::Rate.write(Amount::Rate.read(from)? * 1_024.0)
    }

    /// How many trials there are at most: two at each rate of the way down, or one at each of the way up and a second miss, and
    /// those after the climb.
    pub fn most_trials(&self) -> usize {
        let up = (self.search.highest / self.search.from).log2().ceil() as usize + 2;
        up.max(2 * HALVED as usize + 3) + MOST_STEPS
    }

    fn learnt(&self, lessons: &[Lesson]) -> Capacity {
        let mut capacity = Capacity::new(self.search);
        for lesson in lessons {
            let Some(rate) = Amount::Rate.read(&lesson.level) else { continue };
            capacity.learn(
                rate,
                match lesson.kept {
                    Some(true) => StepOutcome::Kept,
                    Some(false) => StepOutcome::Missed,
                    None => StepOutcome::Unusable,
                },
            );
        }
        capacity
    }

    /// The rate of the next trial; none: the search is over.
    pub fn next(&self, lessons: &[Lesson]) -> Option<String> {
        match self.learnt(lessons).next() {
            Next::Try(rate) if lessons.len() < self.most_trials() => self.written(rate, lessons),
            Next::Try(_) | Next::End(_) => None,
        }
    }

    /// A rate as it is written: an end or one that was tried as it was, any other with three digits.
    fn written(&self, rate: f64, lessons: &[Lesson]) -> Option<String> {
        let tried = lessons.iter().map(|lesson| &lesson.level);
        let is_same = |level: &&String| Amount::Rate.read(level).is_some_and(|one| (one / rate - 1.0).abs() < 1e-6);
        match self.ends.iter().chain(tried).find(is_same) {
            Some(known) => Some(known.clone()),
            None => Amount::Rate.write(rate),
        }
    }

    /// What was found so far.
    pub fn answer(&self, lessons: &[Lesson]) -> CapacityFindings {
        let capacity = self.learnt(lessons);
        let found = |outcome, rate| CapacityFindings { outcome, rate, interval: None, safe: None };
        match capacity.next() {
            Next::End(Answer::Threshold(estimate)) => CapacityFindings {
                interval: Some(estimate.interval),
                safe: Some(estimate.safe),
                ..found(CapacityOutcome::Threshold, Some(estimate.rate))
            },
            Next::End(Answer::Never { lowest }) => found(CapacityOutcome::Never, Some(lowest)),
            Next::End(Answer::Always { highest }) => found(CapacityOutcome::Always, Some(highest)),
            Next::End(Answer::Undetermined { at_least, .. }) => found(CapacityOutcome::Undetermined, at_least),
            Next::Try(_) => found(CapacityOutcome::Undetermined, capacity.highest_kept()),
        }
    }

    /// What was tried, the lowest rate first.
    pub(super) fn levels(&self, lessons: &[Lesson]) -> Vec<LevelFindings> {
        let all: Vec<&Lesson> = lessons.iter().collect();
        levels(&all, |level| Amount::Rate.read(level), |_| None)
    }

    /// All of it in words.
    pub(super) fn sentence(&self, (share, response_ns): (f64, u64), faulty: bool, found: &CapacityFindings) -> String {
        let asked = format!("p{} ≤ {}", (share * 1e4).round() / 100.0, Delay::from_ns(response_ns));
        let phase = if faulty { "the fault phase" } else { "the baseline" };
        let rate = |rate: Option<f64>| rate.and_then(|rate| Amount::Rate.write(rate)).unwrap_or_default();
        match found.outcome {
            CapacityOutcome::Threshold => {
                let (low, high) = found.interval.unzip();
                format!(
                    "At {} half of the trials keep {asked} in {phase} (95% interval {} … {}); at {} 19 of 20 do, with a \
                     probability of 90%.",
                    rate(found.rate),
                    rate(low),
                    rate(high),
                    rate(found.safe)
                )
            }
            CapacityOutcome::Never => format!("Even at {} {phase} misses {asked}.", rate(found.rate)),
            CapacityOutcome::Always => {
                format!("Even at {}, the highest rate that was tried, {phase} keeps {asked}.", rate(found.rate))
            }
            CapacityOutcome::Undetermined => match found.rate {
                Some(_) => format!(
                    "Undetermined: a trial at {} kept {asked} in {phase}; what becomes of it at higher rates, these trials do not say.",
                    rate(found.rate)
                ),
                None => format!("Undetermined: no valid trial kept {asked} in {phase}."),
            },
        }
    }
}
