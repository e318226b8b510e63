//! What has to be seen at a subject, with everything that is in force there at the same time.

use brownout_record::{Expectation, Quantity};

use crate::{
    measure::{LEAN, Measure, Source},
    segments::{CUT, Force},
};

/// Trains through a pair without a limit must be at least this much as fast as they were before.
const SPARED_RATE: f64 = 0.5;
/// … unless they are faster than this, bit/s: no limit that can be asked for and proven lets so much pass, and how fast a
/// machine is without one depends on what else it does.
const UNLIMITED: f64 = 600e6;
/// Of the packets that the emulator damaged, this share may escape the receiving kernel or be counted a reading later.
const UNCOUNTED: f64 = 0.1;
/// The witness that says for what share of the time a governor held its node.
pub(crate) const HELD: &str = "held";
/// A node that is held for less than this share of the time is not.
const SELDOM: f64 = 0.005;

/// How much more the share that is asked for varies, if packets are hit in bursts, than if each is hit by itself, as a ratio of
/// variances: (1 + ρ) ÷ (1 − ρ) of a chain of two states with the autocorrelation ρ, whose runs are 1 ÷ ((1 − p) · (1 − ρ))
/// packets long.
pub fn clumping(one: &Expectation) -> f64 {
    one.burst.map_or(1.0, |burst| 2.0 * burst * (1.0 - one.asked.abs().min(1.0)) - 1.0).max(1.0)
}

/// What the faults in force ask of one subject.
pub(crate) struct Asks<'a> {
    by_force: Vec<(Force, &'a Expectation)>,
    /// Probes that a full queue may have dropped do not count.
    without_queued: bool,
}

impl<'a> Asks<'a> {
    pub(crate) fn new(by_force: Vec<(Force, &'a Expectation)>) -> Self {
        Asks { by_force, without_queued: false }
    }

    /// The same of a subject whose probes are [`crate::subject::SubjectSeries::without_queued`].
    pub(crate) fn without_queued(self) -> Self {
        Asks { without_queued: true, ..self }
    }

    /// What is really asked for in it by some forces, but for one fault: a delay of nothing is none.
    fn of<'b>(
        &'b self,
        quantity: Quantity,
        forces: &'b [Force],
        without: Option<usize>,
    ) -> impl Iterator<Item = &'a Expectation> + Clone + 'b {
        let own = self.by_force.iter().filter(move |(force, one)| {
            one.quantity == quantity
                && one.hit
                && one.asked != 0.0
                && Some(force.0) != without
                && forces.contains(force)
        });
        own.map(|(_, one)| *one)
    }

    /// The faults in force that make a clock drift, by their indices.
    pub(crate) fn drifting<'b>(&'b self, forces: &'b [Force]) -> impl Iterator<Item = usize> + 'b {
        let drifts = |one: &Expectation| one.quantity == Quantity::ClockDrift && one.hit && one.asked != 0.0;
        let own = self.by_force.iter().filter(move |(force, one)| forces.contains(force) && drifts(one));
        own.map(|(force, _)| force.0)
    }

    pub(crate) fn any(&self, quantity: Quantity, forces: &[Force], without: Option<usize>) -> bool {
        self.of(quantity, forces, without).next().is_some()
    }

    pub(crate) fn sum(&self, quantity: Quantity, forces: &[Force], without: Option<usize>) -> f64 {
        // Not `sum`: that of nothing is −0.
        self.of(quantity, forces, without).fold(0.0, |sum, one| sum + one.asked)
    }

    /// A packet, or an operation, has to survive each of them.
    pub(crate) fn share(&self, quantity: Quantity, forces: &[Force], without: Option<usize>) -> f64 {
        1.0 - self.of(quantity, forces, without).map(|one| 1.0 - one.asked).product::<f64>()
    }

    /// The largest [`clumping`] of what is asked for by some forces.
    pub(crate) fn clumping(&self, quantity: Quantity, forces: &[Force]) -> f64 {
        let most = |quantity| self.of(quantity, forces, None).map(clumping).fold(1.0, f64::max);
        match quantity {
            // Of the probes it is the same.
            Quantity::Loss | Quantity::Corruption => most(Quantity::Loss).max(most(Quantity::Corruption)),
            _ => most(quantity),
        }
    }

    fn least(&self, quantity: Quantity, forces: &[Force], without: Option<usize>) -> Option<f64> {
        self.of(quantity, forces, without).map(|one| one.asked).reduce(f64::min)
    }
}

/// On which side of what is expected a contradiction lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Both,
    AtLeast,
    AtMost,
}

/// What one who looks has to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Whether `expected` is of the change since before, or of the value itself.
    pub(crate) change: bool,
    pub(crate) expected: f64,
    /// What were to be seen without the fault that is judged; the same, if it asks for nothing here.
    pub(crate) without: f64,
    pub(crate) bound: Bound,
    /// Added to the tolerance.
    pub(crate) slack: f64,
    /// Whether agreeing may say that the fault was there (or, of a spared subject, that it was not).
    pub(crate) tells: bool,
}

impl Target {
    fn change(expected: f64, without: f64) -> Self {
        Target { change: true, expected, without, bound: Bound::Both, slack: 0.0, tells: true }
    }

    fn value(expected: f64, without: f64) -> Self {
        Target { change: false, ..Target::change(expected, without) }
    }

    /// How far a measured value lies on the wrong side; nothing if on the right one.
    pub(crate) fn deviation(&self, measured: f64) -> f64 {
        let off = measured - self.expected;
        match self.bound {
            Bound::Both => off.abs(),
            Bound::AtLeast => (-off).max(0.0),
            Bound::AtMost => off.max(0.0),
        }
    }
}

/// One question: what a source has to see of a quantity while some forces are there.
pub(crate) struct Question<'a> {
    pub(crate) asks: &'a Asks<'a>,
    pub(crate) source: Source<'a>,
    pub(crate) quantity: Quantity,
    pub(crate) forces: &'a [Force],
    /// The fault that is judged (by its index).
    pub(crate) fault: usize,
    pub(crate) before: &'a Measure,
    pub(crate) during: &'a Measure,
}

impl Question<'_> {
    fn any(&self, quantity: Quantity) -> bool {
        self.asks.any(quantity, self.forces, None)
    }

    /// The tolerances of the other faults that ask something of this subject: what they may do too much, this one is not
    /// blamed for.
    pub(crate) fn others_tolerance(&self) -> f64 {
        self.asks.of(self.quantity, self.forces, Some(self.fault)).map(|one| one.tolerance).sum()
    }

    /// What is to be seen; none where these sources cannot say.
    pub(crate) fn target(&self) -> Option<Target> {
        let target = self.plain()?;
        // What a reading has from beyond a change may be all or nothing of what any fault does here; packets may come in bursts.
        let all = self.asks.by_force.iter().filter(|(_, one)| one.quantity == self.quantity && one.hit);
        let most = all.map(|(_, one)| one.asked.abs()).fold(0.0, f64::max);
        let leaning = if self.during.leans { 2.0 * LEAN * most } else { 0.0 };
        Some(Target { slack: target.slack + leaning, ..target })
    }

    fn plain(&self) -> Option<Target> {
        let (with, without) = (None, Some(self.fault));
        let before = self.before.value.unwrap_or(0.0);
        // What was lost before cannot be lost again.
        let share =
            |quantity, without| self.asks.share(quantity, self.forces, without) * (1.0 - before.clamp(0.0, 1.0));
        let shares = |quantity| Target::change(share(quantity, with), share(quantity, without));
        let sums = |quantity| {
            let sum = |without| self.asks.sum(quantity, self.forces, without);
            Target::change(sum(with), sum(without))
        };
        let limit = |without| self.asks.least(self.quantity, self.forces, without);
        let cut = self.asks.share(Quantity::Loss, self.forces, None) >= CUT;
        if cut && !matches!(self.quantity, Quantity::Loss) {
            // Nothing passes that could show anything else.
            return None;
        }
        Some(match self.quantity {
            Quantity::OneWayDelay => self.queued(sums(self.quantity)),
            Quantity::DelaySpread => self.spread(before)?,
            Quantity::Loss if self.source == Source::Probes => self.queued(self.vanished(before)),
            Quantity::Loss => shares(self.quantity),
            Quantity::Corruption => match self.source {
                Source::Probes => self.queued(self.vanished(before)),
                Source::Checksums => self.counted()?,
                _ => self.staged(shares(self.quantity)),
            },
            Quantity::Duplicates => self.staged(shares(self.quantity)),
            Quantity::Reordered => self.reordered()?,
            Quantity::Rate => self.rate(limit(with), limit(without), before)?,
            Quantity::LargestPacket => {
                let limit =
                    |without| self.asks.least(self.quantity, self.forces, without).unwrap_or(before).min(before);
                Target::value(limit(with), limit(without))
            }
            Quantity::ProcessorShare => self.processor(limit(with), limit(without), before)?,
            Quantity::Answers | Quantity::Running => {
                // It cannot stop twice, and what did not run before cannot stop.
                let stop = |without| limit(without).map_or(0.0, |asked| asked.max(-before));
                Target::change(stop(with), stop(without))
            }
            // It only says when the answers came.
            Quantity::AnswerTime => return None,
            Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime | Quantity::MetadataTime => {
                sums(self.quantity)
            }
            Quantity::ReadErrors
            | Quantity::WriteErrors
            | Quantity::SyncErrors
            | Quantity::MetadataErrors
            | Quantity::ReadDelayed
            | Quantity::WriteDelayed
            | Quantity::MetadataDelayed => shares(self.quantity),
            // An fsync waits for what was written through mappings and has to wait itself.
            Quantity::SyncDelayed if self.any(Quantity::WriteDelayed) || self.any(Quantity::WriteTime) => {
                Target { bound: Bound::AtLeast, ..shares(self.quantity) }
            }
            Quantity::SyncDelayed => shares(self.quantity),
            // While two drifts run that began at different times, there is no moment at which the offsets add up.
            Quantity::ClockOffset if self.asks.drifting(self.forces).count() > 1 => return None,
            Quantity::ClockOffset | Quantity::ClockDrift => sums(self.quantity),
        })
    }

    /// Behind a limit of rate a queue may stand: packets come later, and fewer, than is asked for.
    fn queued(&self, target: Target) -> Target {
        let counted = self.asks.without_queued && self.quantity == Quantity::Loss;
        let bound = if self.any(Quantity::Rate) && !counted { Bound::AtLeast } else { target.bound };
        Target { bound, ..target }
    }

    /// What loss and damage together take from the probes.
    fn vanished(&self, before: f64) -> Target {
        let gone = |without| {
            let stays = |quantity| 1.0 - self.asks.share(quantity, self.forces, without);
            (1.0 - stays(Quantity::Loss) * stays(Quantity::Corruption)) * (1.0 - before.clamp(0.0, 1.0))
        };
        Target::change(gone(None), gone(Some(self.fault)))
    }

    /// Whether a packet is lost before or after it is doubled or damaged depends on which fault was there first.
    fn staged(&self, target: Target) -> Target {
        let lost = self.asks.share(Quantity::Loss, self.forces, None);
        let damaged = if self.quantity == Quantity::Corruption {
            self.asks.share(Quantity::Duplicates, self.forces, None)
        } else {
            self.asks.share(Quantity::Corruption, self.forces, None)
        };
        Target { slack: target.expected * (1.0 - (1.0 - lost) * (1.0 - damaged)), ..target }
    }

    fn spread(&self, before: f64) -> Option<Target> {
        // What others do to the spread cannot be told from what this fault does.
        let disturbing = [Quantity::DelaySpread, Quantity::Rate, Quantity::Reordered].into_iter();
        if disturbing.clone().any(|quantity| self.asks.any(quantity, self.forces, Some(self.fault))) {
            return None;
        }
        let own = self.asks.of(Quantity::DelaySpread, self.forces, None).next();
        Some(match own {
            // Independent spreads add as squares.
            Some(own) => Target::value(own.asked.hypot(before), before),
            None => Target::change(0.0, 0.0),
        })
    }

    fn reordered(&self) -> Option<Target> {
        let own = self.asks.of(Quantity::Reordered, self.forces, None);
        if own.clone().count() > 1 || self.during.blind && self.source == Source::Probes {
            return None;
        }
        let asked = own.map(|one| one.asked).sum::<f64>();
        let without = self.asks.share(Quantity::Reordered, self.forces, Some(self.fault));
        let target = self.staged(Target::change(asked, without));
        // Where delays vary, packets overtake each other without having been chosen to.
        let varies = self.source == Source::Probes && self.any(Quantity::DelaySpread);
        Some(Target { bound: if varies { Bound::AtLeast } else { Bound::Both }, tells: !varies, ..target })
    }

    /// The receiving kernel has to have noticed what the emulator says that it damaged.
    fn counted(&self) -> Option<Target> {
        let told = self.during.told;
        let target = Target { slack: UNCOUNTED * told, tells: false, ..Target::value(told, 0.0) };
        (told > 0.0).then_some(target)
    }

    fn rate(&self, limit: Option<f64>, without: Option<f64>, before: f64) -> Option<Target> {
        let free = (SPARED_RATE * before).min(UNLIMITED);
        match (limit, self.source) {
            (Some(limit), Source::Counters) => {
                // Readings and the limiter do not begin with the same packet.
                const PACKETS: f64 = 2.0 * 1500.0 * 8.0;
                Some(Target { bound: Bound::AtMost, slack: PACKETS, tells: false, ..Target::value(limit, limit) })
            }
            (None, Source::Counters) => None,
            (Some(limit), _) => Some(Target::value(limit, without.unwrap_or(before).min(before))),
            (None, _) => Some(Target { bound: Bound::AtLeast, ..Target::value(free, free) }),
        }
    }

    fn processor(&self, limit: Option<f64>, without: Option<f64>, before: f64) -> Option<Target> {
        // In each period in which it held the node at all, the limit had let it use what it allows: less says that it allows less.
        let owed = |limit: f64| limit * self.during.told;
        let share = self.during.value.unwrap_or(f64::INFINITY);
        match (limit, self.source) {
            (Some(limit), Source::Cpu) if share < (1.0 - UNCOUNTED) * owed(limit) => Some(Target {
                bound: Bound::AtLeast,
                slack: UNCOUNTED * owed(limit),
                tells: false,
                ..Target::value(owed(limit), owed(limit))
            }),
            (Some(limit), Source::Cpu) => Some(Target {
                bound: Bound::AtMost,
                // It tells only a node that wanted more before, and takes all that it may now.
                tells: self.during.value.is_some_and(|share| share >= (1.0 - UNCOUNTED) * limit),
                ..Target::value(limit, without.unwrap_or(before).min(before))
            }),
            (None, Source::Cpu) => None,
            // Being held at all tells, however long.
            (Some(_), Source::Witness(HELD)) => {
                let held = self.during.value.is_some_and(|share| share > SELDOM);
                Some(Target { bound: Bound::AtLeast, tells: held, ..Target::value(0.0, f64::NEG_INFINITY) })
            }
            (None, Source::Witness(HELD)) => {
                Some(Target { bound: Bound::AtMost, slack: SELDOM, ..Target::value(0.0, 0.0) })
            }
            // A governor says what it allows, not whether the node ever wanted more.
            (Some(limit), _) => Some(Target { tells: false, ..Target::value(limit, limit) }),
            (None, _) => Some(Target { bound: Bound::AtLeast, ..Target::value(1.0, 1.0) }),
        }
    }
}
