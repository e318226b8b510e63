//! The severities at which a degradation passes its thresholds, found with few trials.
//!
//! One trial at each of 13 levels first, in random order; then where a trial tells most. A level is on one side of a threshold only if
//! its trials show that surely, so the answer is an interval, and a response that goes back below a threshold behind its first
//! crossing is noticed instead of being averaged away: bisections and fitted curves hide it.

use crate::order::median;

/// Levels of the first look.
const SCAN: usize = 13;
/// The median of normal values scatters by this much more than their mean (√(π/2)).
const OF_MEDIAN: f64 = 1.2533;
/// Trials never scatter less than this, however alike a few look.
const LEAST_DEVIATION: f64 = 0.005;
/// Standard errors that make a side sure; of a single trial, which may be a spoilt one.
const SURE: f64 = 3.0;
const SURE_OF_ONE: f64 = 5.0;
/// More trials at one level tell little.
const MOST_AT_ONE_LEVEL: usize = 5;
/// What seems to go back below is looked at by as many trials.
const ENOUGH_BEHIND: usize = 3;

/// What is known of a response to severities from one end of a range to the other.
#[derive(Debug, Clone)]
pub struct Zone {
    low: f64,
    high: f64,
    thresholds: Vec<f64>,
    without: Vec<f64>,
    levels: Vec<Level>,
}

#[derive(Debug, Clone)]
struct Level {
    at: f64,
    values: Vec<f64>,
}

/// Where a response first passes a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Crossing {
    /// The largest level surely before it; none: none is.
    pub low: Option<f64>,
    /// The smallest level surely behind it; none: none is.
    pub high: Option<f64>,
    /// Levels behind it at which the response surely is before the threshold again: it is not monotone.
    pub back: Vec<f64>,
}

/// On which side of a threshold a level surely is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Unknown,
    Behind,
}

impl Zone {
    /// Nothing is known but trials without a fault, six or more: ln(fault phase ÷ baseline) of each.
    ///
    /// Levels are the common logarithms of severities, `thresholds` shares of loss: 0.1 and 0.5 of a danger zone.
    pub fn new((low, high): (f64, f64), thresholds: &[f64], without: &[f64]) -> Zone {
        let middle = median(without);
        Zone {
            low,
            high,
            thresholds: thresholds.iter().map(|loss| (1.0 - loss).ln()).collect(),
            without: without.iter().map(|value| value - middle).collect(),
            levels: Vec::new(),
        }
    }

    /// The levels of the first look, ascending; they are to be taken in random order.
    pub fn scan(&self) -> Vec<f64> {
        (0..SCAN).map(|step| self.low + (self.high - self.low) * step as f64 / (SCAN - 1) as f64).collect()
    }

    /// A trial at a level has shown this: ln(fault phase ÷ baseline), less the median of the trials without a fault.
    pub fn learn(&mut self, at: f64, value: f64) {
        match self.levels.iter_mut().find(|level| (level.at - at).abs() < 1e-6) {
            Some(level) => level.values.push(value),
            None => {
                let level = self.levels.partition_point(|level| level.at < at);
                self.levels.insert(level, Level { at, values: vec![value] });
            }
        }
    }

    /// How many trials were learnt from.
    pub fn trials(&self) -> usize {
        self.levels.iter().map(|level| level.values.len()).sum()
    }

    /// The standard deviation of a trial, from levels that have several and from those without a fault: by the median of what
    /// they lie apart, so that spoilt trials do not widen it. A fault that is drawn packet by packet scatters more than nothing
    /// does, so it is not less than that of the levels alone, as soon as one of them has several.
    pub fn deviation(&self) -> f64 {
        let levels = || self.levels.iter().map(|level| &level.values[..]);
        let (all, own) = (scatter(levels().chain([&self.without[..]])), scatter(levels()));
        [all, own].into_iter().flatten().fold(LEAST_DEVIATION, f64::max)
    }

    /// The error of the median of the trials without a fault.
    fn error_without(&self, deviation: f64) -> f64 {
        deviation * OF_MEDIAN / (self.without.len().max(1) as f64).sqrt()
    }

    fn side(&self, level: &Level, threshold: f64) -> Side {
        let (deviation, count) = (self.deviation(), level.values.len());
        let (without, apart) = (self.error_without(deviation), median(&level.values) - threshold);
        if count == 1 {
            return if apart > SURE_OF_ONE * deviation.hypot(without) { Side::Before } else { Side::Unknown };
        }
        let torn = count == 2 && (level.values[0] < threshold) != (level.values[1] < threshold);
        if apart.abs() < SURE * error_of(deviation, count).hypot(without) || torn {
            Side::Unknown
        } else if apart < 0.0 {
            Side::Behind
        } else {
            Side::Before
        }
    }

    /// Where the response first passes the threshold with this number.
    pub fn crossing(&self, threshold: usize) -> Crossing {
        let sides: Vec<(f64, Side)> =
            self.levels.iter().map(|level| (level.at, self.side(level, self.thresholds[threshold]))).collect();
        let high = sides.iter().find(|(_, side)| *side == Side::Behind).map(|(at, _)| *at);
        let before = |from: f64, to: f64| {
            sides.iter().filter(move |(at, side)| *side == Side::Before && *at > from && *at < to).map(|(at, _)| *at)
        };
        Crossing {
            low: before(f64::NEG_INFINITY, high.unwrap_or(f64::INFINITY)).next_back(),
            high,
            back: high.map(|high| before(high, f64::INFINITY).collect()).unwrap_or_default(),
        }
    }

    /// Where to try next, with so many trials left; none: no level is worth one.
    pub fn next(&self, left: usize) -> Option<f64> {
        let mut worth = Vec::new();
        for threshold in 0..self.thresholds.len() {
            self.worth_behind(threshold, &mut worth);
            self.worth_between(threshold, left, &mut worth);
        }
        // What is worth as much to a millionth is worth the same; of such the larger level.
        let rounded = |worth: f64| (worth * 1e6).round();
        let order = |one: &(f64, f64), other: &(f64, f64)| {
            rounded(one.0).total_cmp(&rounded(other.0)).then(one.1.total_cmp(&other.1))
        };
        worth.into_iter().max_by(order).map(|(_, at)| at)
    }

    /// If the response seems to go back: first whether it was behind at all, then whether it is back.
    fn worth_behind(&self, threshold: usize, worth: &mut Vec<(f64, f64)>) {
        /// More than any width, so that these go first.
        const FIRST: f64 = 20.0;
        const SECOND: f64 = 10.0;
        let limit = self.thresholds[threshold];
        let seems: Vec<(&Level, Side, Side)> = self
            .levels
            .iter()
            .map(|level| {
                let sure = self.side(level, limit);
                let seems = match sure {
                    Side::Unknown if median(&level.values) < limit => Side::Behind,
                    Side::Unknown => Side::Before,
                    sure => sure,
                };
                (level, sure, seems)
            })
            .collect();
        let Some(first) = seems.iter().position(|(.., seems)| *seems == Side::Behind) else { return };
        let back: Vec<_> = seems[first + 1..].iter().filter(|(.., seems)| *seems == Side::Before).collect();
        if back.is_empty() {
            return;
        }
        let (level, sure, _) = seems[first];
        if sure == Side::Unknown && level.values.len() < MOST_AT_ONE_LEVEL {
            worth.push((FIRST - level.values.len() as f64, level.at));
        }
        let open = back.iter().filter(|(level, sure, _)| *sure == Side::Unknown && level.values.len() < ENOUGH_BEHIND);
        worth.extend(open.map(|(level, ..)| (SECOND - level.values.len() as f64, level.at)));
    }

    /// What a trial at each level within the crossing takes from its width, a trial, on the isotonic fit.
    fn worth_between(&self, threshold: usize, left: usize, worth: &mut Vec<(f64, f64)>) {
        let limit = self.thresholds[threshold];
        // All widths are parts of the range: a quarter of it is a decade of one from 0.1 to 1,000.
        let decade = (self.high - self.low) / 4.0;
        let Crossing { low, high, .. } = self.crossing(threshold);
        let low = low.unwrap_or(self.low - 0.33 * decade);
        let high = high.unwrap_or(self.high + 0.33 * decade);
        if high - low <= 0.17 * decade {
            return;
        }
        let (deviation, fit) = (self.deviation(), self.isotonic());
        let without = self.error_without(deviation);
        let within = |at: f64| at > low && at < high;
        // A level, what is to be expected there, and how many trials it has.
        let mut levels: Vec<(f64, f64, usize)> = self
            .levels
            .iter()
            .zip(&fit)
            .filter(|(level, _)| within(level.at))
            .map(|(level, fit)| {
                let (middle, count) = (median(&level.values), level.values.len());
                (level.at, if count > 1 { middle } else { f64::midpoint(*fit, middle) }, count)
            })
            .collect();
        let step = decade / 12.0;
        let new = (1..).map(|number| low + f64::from(number) * step).take_while(|at| *at < high - step / 2.0);
        let is_new = |at: &f64| self.levels.iter().all(|level| (level.at - at).abs() > 0.04 * decade);
        let inside = |at: &f64| *at > self.low && *at < self.high;
        levels.extend(new.filter(inside).filter(is_new).map(|at| (at, self.interpolated(at, &fit), 0)));
        for (at, expected, have) in levels.into_iter().filter(|(.., have)| *have < MOST_AT_ONE_LEVEL) {
            let apart = (expected - limit).abs();
            let tells = |count: &usize| SURE * error_of(deviation, *count).hypot(without) <= 0.9 * apart;
            let Some(mut need) = (2..=MOST_AT_ONE_LEVEL).find(tells) else { continue };
            if expected > limit && have == 0 && apart > 6.0 * deviation.hypot(without) {
                need = 1;
            }
            let cost = need.saturating_sub(have).max(1);
            let gain = if expected > limit { at - low } else { high - at };
            if cost <= left {
                worth.push((gain / cost as f64, at));
            }
        }
    }

    /// The best fit that never rises, weighted by trials: pool adjacent violators (Barlow, Bartholomew, Bremner and Brunk,
    /// "Statistical Inference under Order Restrictions", 1972).
    fn isotonic(&self) -> Vec<f64> {
        let mut pools: Vec<(f64, f64, usize)> = Vec::new();
        for level in &self.levels {
            pools.push((median(&level.values), level.values.len() as f64, 1));
            while let [.., before, last] = pools[..]
                && before.0 < last.0
            {
                pools.truncate(pools.len() - 2);
                let weight = before.1 + last.1;
                pools.push(((before.0 * before.1 + last.0 * last.1) / weight, weight, before.2 + last.2));
            }
        }
        pools.into_iter().flat_map(|(value, _, levels)| std::iter::repeat_n(value, levels)).collect()
    }

    fn interpolated(&self, at: f64, fit: &[f64]) -> f64 {
        let next = self.levels.partition_point(|level| level.at < at);
        match (next.checked_sub(1), self.levels.get(next)) {
            (None, _) => fit.first().copied().unwrap_or(0.0),
            (Some(before), None) => fit[before],
            (Some(before), Some(after)) => {
                let from = self.levels[before].at;
                fit[before] + (fit[next] - fit[before]) * (at - from) / (after.at - from)
            }
        }
    }
}

/// By how much values of groups scatter within their groups; none where no group has several.
fn scatter<'a>(groups: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    let apart = groups.filter(|values| values.len() > 1).flat_map(|values| {
        let (middle, count) = (median(values), values.len() as f64);
        values.iter().map(move |value| (value - middle).abs() * (count / (count - 1.0)).sqrt())
    });
    let apart: Vec<f64> = apart.collect();
    (!apart.is_empty()).then(|| 1.4826 * median(&apart))
}

/// The error of the median of so many trials.
fn error_of(deviation: f64, count: usize) -> f64 {
    deviation * if count == 2 { 1.0 } else { OF_MEDIAN } / (count as f64).sqrt()
}
