//! The largest rate that keeps an objective, found with few steps whose verdicts are noisy.
//!
//! A step offers one rate, and its verdict says whether the objective was kept. First the climb: from a rate to begin with up
//! by doubling, so that nothing is offered far more than it takes, until a rate has missed; down by halving, if that one
//! misses. A miss is believed when the same rate has missed again, so that one pause of the machine does not end the climb.
//! From then on what is known is a probability distribution, which places the steps, until its interval is narrow enough.
//!
//! Who offers the rate may be the one who is late. A step in which it was is unusable: it is repeated, and
//! where that goes on there is no answer but the rates that were kept.
//!
//! What is found is the limit during the search: of one that moves, where it was in most of the steps.

mod belief;

pub use belief::Estimate;

use belief::Belief;

/// The threshold is looked for so many times beyond what the climb found, on either side, and beyond that again where the
/// interval comes near to an end: a step of the climb may have kept the objective, or missed it, by accident.
const BEYOND: f64 = 4.0;
/// So near.
const NEAR: f64 = 2.0;
/// So many misses at one rate end the climb.
const BELIEVED: usize = 2;

/// What is searched, in rates per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The first rate.
    pub from: f64,
    /// No lower one is tried, unless the first is.
    pub lowest: f64,
    /// No higher one is tried, unless the first is.
    pub highest: f64,
    /// How narrow the interval has to be, as a share of the rate.
    pub precision: f64,
    /// The most steps after the climb.
    pub most_steps: usize,
    /// How often a rate is tried in all where the steps are unusable.
    pub attempts: usize,
}

/// What a step has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The objective was kept.
    Kept,
    /// It was missed.
    Missed,
    /// Who offered the rate was late, or the step is not valid.
    Unusable,
}

/// Where a search goes on, or what it has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// A step at this rate, to a millionth of it.
    Try(f64),
    /// No step: the search is over.
    End(Answer),
}

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The threshold.
    Threshold(Estimate),
    /// Even the lowest rate misses.
    Never {
        /// The lowest rate tried.
        lowest: f64,
    },
    /// Even the highest rate keeps it.
    Always {
        /// The highest rate tried.
        highest: f64,
    },
    /// The steps at a rate were unusable, however often it was tried.
    Undetermined {
        /// The highest rate that kept the objective, if any did.
        at_least: Option<f64>,
        /// The rate that they were at.
        tried: f64,
    },
}

/// A search: what it has learnt, and where it goes on.
#[derive(Debug, Clone)]
pub struct Capacity {
    search: Search,
    /// The usable steps: rate, and whether it was kept.
    usable: Vec<(f64, bool)>,
    /// The rate of the last steps and how many they are, if they were unusable.
    unusable: Option<(f64, usize)>,
    /// How many of the usable steps were the climb.
    climbed: usize,
    /// From the end of the climb on.
    belief: Option<(Belief, Estimate)>,
}

impl Capacity {
    /// Nothing is known.
    pub fn new(search: Search) -> Capacity {
        let (lowest, highest) = (search.lowest.min(search.from), search.highest.max(search.from));
        let search = Search { lowest, highest, ..search };
        Capacity { search, usable: Vec::new(), unusable: None, climbed: 0, belief: None }
    }

    /// A step at this rate has shown this.
    ///
    /// What comes next follows from these alone: a search is taken up again by learning its steps again, in their order. Steps
    /// that nobody asked for are as welcome.
    pub fn learn(&mut self, rate: f64, verdict: StepOutcome) {
        let kept = match verdict {
            StepOutcome::Unusable => {
                let before = self.unusable.filter(|(at, _)| is_same(*at, rate)).map_or(0, |(_, count)| count);
                self.unusable = Some((rate, before + 1));
                return;
            }
            StepOutcome::Kept => true,
            StepOutcome::Missed => false,
        };
        self.unusable = None;
        self.usable.push((rate, kept));
        let belief = match self.belief.take() {
            Some((mut belief, _)) => {
                belief.learn(rate, kept);
                Some(belief)
            }
            None => {
                self.climbed += 1;
                self.climbed_to().map(|(low, high)| self.believed(low / BEYOND, high * BEYOND))
            }
        };
        self.belief = belief.map(|belief| self.wide_enough(belief));
    }

    /// What all steps show of a threshold between two rates.
    fn believed(&self, low: f64, high: f64) -> Belief {
        let mut belief = Belief::between(low, high);
        self.usable.iter().for_each(|(rate, kept)| belief.learn(*rate, *kept));
        belief
    }

    /// Where the interval comes near to an end of the range, a wider one, as far as the ends of the search.
    fn wide_enough(&self, mut belief: Belief) -> (Belief, Estimate) {
        loop {
            let ((low, high), estimate) = (belief.range(), belief.estimate());
            let is_low = estimate.interval.0 < low * NEAR && low > self.search.lowest;
            let is_high = estimate.interval.1 > high / NEAR && high < self.search.highest;
            if !is_low && !is_high {
                return (belief, estimate);
            }
            let further = |is: bool| if is { BEYOND } else { 1.0 };
            belief = self.believed(low / further(is_low), high * further(is_high));
        }
    }

    /// What comes next.
    pub fn next(&self) -> Next {
        if let Some((tried, count)) = self.unusable
            && count >= self.search.attempts
        {
            return Next::End(Answer::Undetermined { at_least: self.highest_kept(), tried });
        }
        match &self.belief {
            None => self.climb(),
            Some((belief, estimate)) => self.narrow(belief, *estimate),
        }
    }

    /// Where the threshold is, from the end of the climb on.
    pub fn estimate(&self) -> Option<Estimate> {
        self.belief.as_ref().map(|(_, estimate)| *estimate)
    }

    /// The highest rate that kept the objective, if any did.
    pub fn highest_kept(&self) -> Option<f64> {
        self.usable.iter().filter(|(_, kept)| *kept).map(|(rate, _)| *rate).max_by(f64::total_cmp)
    }

    fn climb(&self) -> Next {
        let Search { from, lowest, highest, .. } = self.search;
        let Some((last, kept)) = self.usable.last().copied() else { return Next::Try(from) };
        if !kept && !self.is_believed(last) {
            return Next::Try(last);
        }
        match self.highest_kept() {
            Some(rate) if rate >= highest => Next::End(Answer::Always { highest: rate }),
            Some(rate) => Next::Try((rate * 2.0).min(highest)),
            None if last <= lowest => Next::End(Answer::Never { lowest: last }),
            None => Next::Try((last / 2.0).max(lowest)),
        }
    }

    fn narrow(&self, belief: &Belief, estimate: Estimate) -> Next {
        let Search { lowest, highest, precision, most_steps, .. } = self.search;
        let (low, high) = estimate.interval;
        let is_known = estimate.width() <= precision || low >= highest || high <= lowest;
        if !is_known && self.usable.len() - self.climbed < most_steps {
            return Next::Try(belief.next().clamp(lowest, highest));
        }
        // Nobody has looked beyond the ends of the search.
        Next::End(if estimate.rate >= highest {
            Answer::Always { highest }
        } else if estimate.rate <= lowest {
            Answer::Never { lowest }
        } else {
            Answer::Threshold(estimate)
        })
    }

    /// The rates between which the climb has ended: one was kept, at the other misses are believed.
    fn climbed_to(&self) -> Option<(f64, f64)> {
        let rates = self.usable.iter().map(|(rate, _)| *rate);
        let missed = rates.filter(|rate| self.is_believed(*rate)).min_by(f64::total_cmp)?;
        self.highest_kept().map(|kept| (kept.min(missed), kept.max(missed)))
    }

    fn is_believed(&self, rate: f64) -> bool {
        self.usable.iter().filter(|(at, kept)| is_same(*at, rate) && !*kept).count() >= BELIEVED
    }
}

/// A rate that is tried again may have been rounded.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs()
}
