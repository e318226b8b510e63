//! A search for the severities at which the loss of goodput passes thresholds: what its trials have shown so far, where it goes
//! on, and what it says. The rules are those of `brownout_statistics::Zone`.

use brownout_record::Arm;
use brownout_statistics::{Zone, median};
use serde::Serialize;

use super::{Amount, Lesson, LevelFindings, levels};
use crate::words::percent;

/// Trials without a fault, among those of the first look.
const WITHOUT: usize = 6;
/// With fewer valid ones nobody knows how trials scatter.
const LEAST_WITHOUT: usize = 3;
/// Trials after the first look, at most.
const FURTHER: usize = 8;
/// A standard deviation of trials that blurs a threshold of 10 %.
const NOISY: f64 = 0.03;

/// What is searched.
#[derive(Debug, Clone)]
pub struct DangerZone {
    amount: Amount,
    ends: [String; 2],
    range: (f64, f64),
    /// −1 where the smaller value is the more severe one.
    sign: f64,
    thresholds: Vec<f64>,
}

/// Where the loss passes a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdFindings {
    /// The threshold: a share of the goodput.
    pub loss: f64,
    /// What is known.
    pub outcome: ThresholdOutcome,
    /// Here less is lost, surely; none: that is known of no severity before `high`.
    pub low: Option<String>,
    /// Here more is lost, surely; none: that is known of no severity.
    pub high: Option<String>,
    /// More severe than `high`, and yet less is lost, surely: the response is not monotone.
    pub back: Vec<String>,
}

/// What is known of a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdOutcome {
    /// It is passed between two severities.
    Between,
    /// More is lost already at the mildest one.
    Below,
    /// Less is lost even at the most severe one, and nowhere more.
    NotReached,
    /// These trials do not show it; an end may be known.
    Undetermined,
}

impl DangerZone {
    /// None if an end is no amount, or they are of two kinds, or the same, or nothing.
    pub fn new(from: &str, to: &str, thresholds: &[f64]) -> Option<DangerZone> {
        let amount = Amount::of(from)?;
        let (mild, severe) = (amount.read(from)?, amount.read(to)?);
        if mild <= 0.0 || severe <= 0.0 || mild == severe {
            return None;
        }
        let sign = if mild < severe { 1.0 } else { -1.0 };
        let range = (sign * mild.log10(), sign * severe.log10());
        let ends = [from.to_owned(), to.to_owned()];
        Some(DangerZone { amount, ends, range, sign, thresholds: thresholds.to_vec() })
    }

    /// The severities of the first look, the mildest first.
    pub fn scan(&self) -> Vec<String> {
        let scan = Zone::new(self.range, &self.thresholds, &[0.0]).scan();
        scan.into_iter().filter_map(|at| self.written(at, &[])).collect()
    }

    /// How many trials without a fault go with it.
    pub fn without_fault(&self) -> usize {
        WITHOUT
    }

    /// How many trials there are at most.
    pub fn most_trials(&self) -> usize {
        self.first_look() + FURTHER
    }

    fn first_look(&self) -> usize {
        self.scan().len() + WITHOUT
    }

    /// The severity of the next trial after the first look; none: the search is over.
    pub fn next(&self, lessons: &[Lesson]) -> Option<String> {
        let left = self.most_trials().checked_sub(lessons.len()).filter(|left| *left > 0)?;
        self.written(self.learnt(lessons)?.next(left)?, lessons)
    }

    /// Whether no trial is left that would be made.
    pub(super) fn is_over(&self, lessons: &[Lesson]) -> bool {
        lessons.len() >= self.first_look() && self.next(lessons).is_none()
    }

    /// All that was learnt; none while too few trials without a fault are valid.
    pub(super) fn learnt(&self, lessons: &[Lesson]) -> Option<Zone> {
        let without: Vec<f64> =
            lessons.iter().filter(|lesson| lesson.arm == Arm::None).filter_map(|lesson| lesson.log_ratio).collect();
        if without.len() < LEAST_WITHOUT {
            return None;
        }
        let middle = median(&without);
        let mut zone = Zone::new(self.range, &self.thresholds, &without);
        for lesson in lessons.iter().filter(|lesson| lesson.arm == Arm::Fault) {
            if let (Some(at), Some(value)) = (self.position(&lesson.level), lesson.log_ratio) {
                zone.learn(at, value - middle);
            }
        }
        Some(zone)
    }

    /// The position of a severity within the range, rising with how severe it is.
    pub(super) fn position(&self, level: &str) -> Option<f64> {
        let value = self.amount.read(level).filter(|value| *value > 0.0)?;
        Some(self.sign * value.log10())
    }

    /// A position as it is written: an end or a severity that was tried as it was, any other with three digits.
    fn written(&self, at: f64, lessons: &[Lesson]) -> Option<String> {
        let tried = lessons.iter().map(|lesson| &lesson.level);
        let is_there = |level: &&String| self.position(level).is_some_and(|own| (own - at).abs() < 1e-6);
        match self.ends.iter().chain(tried).find(is_there) {
            Some(known) => Some(known.clone()),
            None => self.amount.write(10f64.powf(self.sign * at)),
        }
    }

    /// Where each threshold is passed.
    pub fn thresholds(&self, lessons: &[Lesson]) -> Vec<ThresholdFindings> {
        let zone = self.learnt(lessons);
        let one = |(number, loss): (usize, &f64)| {
            let crossing = zone.as_ref().map(|zone| zone.crossing(number));
            let (low, high, back) = crossing.map_or((None, None, Vec::new()), |one| (one.low, one.high, one.back));
            let is_end = |at: Option<f64>, end: f64| at.is_some_and(|at| (at - end).abs() < 1e-6);
            let outcome = match (low, high) {
                (Some(_), Some(_)) => ThresholdOutcome::Between,
                (None, Some(_)) if is_end(high, self.range.0) => ThresholdOutcome::Below,
                (Some(_), None) if is_end(low, self.range.1) && !self.seems_passed(lessons, *loss) => {
                    ThresholdOutcome::NotReached
                }
                _ => ThresholdOutcome::Undetermined,
            };
            ThresholdFindings {
                loss: *loss,
                outcome,
                low: low.and_then(|at| self.written(at, lessons)),
                high: high.and_then(|at| self.written(at, lessons)),
                back: back.into_iter().filter_map(|at| self.written(at, lessons)).collect(),
            }
        };
        self.thresholds.iter().enumerate().map(one).collect()
    }

    /// Whether the trials at some severity lose more on the median, surely or not.
    fn seems_passed(&self, lessons: &[Lesson], loss: f64) -> bool {
        self.levels(lessons).iter().any(|level| level.loss.is_some_and(|lost| lost > loss))
    }

    /// What was tried, the mildest first.
    pub(super) fn levels(&self, lessons: &[Lesson]) -> Vec<LevelFindings> {
        let without: Vec<f64> =
            lessons.iter().filter(|lesson| lesson.arm == Arm::None).filter_map(|lesson| lesson.log_ratio).collect();
        let middle = if without.is_empty() { 0.0 } else { median(&without) };
        let faulty: Vec<&Lesson> = lessons.iter().filter(|lesson| lesson.arm == Arm::Fault).collect();
        levels(&faulty, |level| self.position(level), |lesson| lesson.log_ratio.map(|value| value - middle))
    }

    /// All of it in words: `loss` is of the key or variable `factor`.
    pub(super) fn sentence(&self, factor: &str, found: &[ThresholdFindings], lessons: &[Lesson]) -> String {
        let Some(zone) = self.learnt(lessons) else {
            return format!(
                "Undetermined: fewer than {LEAST_WITHOUT} trials without a fault are valid, and without them nobody knows how \
                 trials scatter."
            );
        };
        let mut text = String::new();
        for one in found {
            let loss = percent(one.loss);
            let is = |level: &Option<String>| level.clone().unwrap_or_default();
            text += &match one.outcome {
                ThresholdOutcome::Between => {
                    format!(
                        "The loss of goodput passes {loss} between {factor} {} and {}. ",
                        is(&one.low),
                        is(&one.high)
                    )
                }
                ThresholdOutcome::Below => {
                    format!("More than {loss} of the goodput is lost already at {factor} {}. ", is(&one.high))
                }
                ThresholdOutcome::NotReached => {
                    format!("A loss of {loss} of the goodput is not reached up to {factor} {}. ", is(&one.low))
                }
                ThresholdOutcome::Undetermined => {
                    let known = match (&one.low, &one.high) {
                        (Some(low), _) => format!(": not up to {factor} {low}, and beyond that no trial is sure"),
                        (None, Some(high)) => {
                            format!(": at {factor} {high} at the latest, and before that no trial is sure")
                        }
                        (None, None) => ": no trial is sure".to_owned(),
                    };
                    format!("The trials do not show where the loss of goodput passes {loss}{known}. ")
                }
            };
            if !one.back.is_empty() {
                text += &format!("Not monotone: at {} less than {loss} is lost again. ", one.back.join(", "));
            }
        }
        let is_open = found.iter().any(|one| one.outcome == ThresholdOutcome::Undetermined);
        if is_open && zone.deviation() > NOISY {
            text += &format!("Trials scatter by {:.1}%: longer phases would show more. ", zone.deviation() * 100.0);
        }
        text.trim_end().to_owned()
    }
}
