//! Time-varying rates, by their integral: how many operations are due by a time, and the inverse.

use std::{f64::consts::TAU, time::Duration};

use brownout_units::Rate;

use crate::LoadError;

/// How the rate of an open loop changes with the time since its pace came into force.
#[derive(Debug, Clone, PartialEq)]
pub struct RateProfile(Shape);

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Pieces in which the rate is constant or changes linearly, ordered by their start.
    Pieces(Box<[Piece]>),
    Sine(Sine),
}

/// From `start_s` until the next piece begins: `rate + slope · (t − start_s)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    start_s: f64,
    /// Operations due before it.
    before: f64,
    /// Per second.
    rate: f64,
    /// Per second, per second.
    slope: f64,
}

impl Piece {
    fn count(&self, at_s: f64) -> f64 {
        let t = at_s - self.start_s;
        self.before + t * (self.rate + t * self.slope / 2.0)
    }

    /// When `count` operations are due, if that is in this piece; infinite if the rate never gets there.
    fn time(&self, count: f64) -> f64 {
        if self.rate == 0.0 && self.slope == 0.0 {
            // The operation with this number belongs to a later piece, if there is one.
            return f64::INFINITY;
        }
        let more = count - self.before;
        if more <= 0.0 {
            return self.start_s;
        }
        // The root of slope/2 · t² + rate · t = more, in the form that does not subtract nearly equal numbers.
        let discriminant = self.rate * self.rate + 2.0 * self.slope * more;
        let divisor = self.rate + discriminant.max(0.0).sqrt();
        if discriminant < 0.0 || divisor == 0.0 { f64::INFINITY } else { self.start_s + 2.0 * more / divisor }
    }
}

/// `mean + amplitude · sin(2π · t ÷ period)`, per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sine {
    mean: f64,
    amplitude: f64,
    period_s: f64,
}

impl Sine {
    fn count(&self, at_s: f64) -> f64 {
        // Whole periods are taken off first, so that the sine sees a small angle.
        let periods = (at_s / self.period_s).floor();
        self.mean * self.period_s * periods + self.within(at_s - periods * self.period_s)
    }

    /// The integral from 0 to a time within the first period.
    fn within(&self, t: f64) -> f64 {
        let half = (t / self.period_s * TAU / 2.0).sin();
        // 1 − cos x = 2 sin²(x/2), without the loss of digits near 0.
        self.mean * t + self.amplitude * self.period_s / TAU * 2.0 * half * half
    }

    fn time(&self, count: f64) -> f64 {
        let per_period = self.mean * self.period_s;
        let periods = (count / per_period).floor();
        let rest = count - periods * per_period;
        periods * self.period_s + self.time_within(rest)
    }

    /// Newton's method between bounds that always hold the root; a step that leaves them is a bisection instead.
    fn time_within(&self, rest: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.period_s);
        let mut t = rest / self.mean;
        // Bisection alone needs 60 steps for all digits of a f64.
        for _ in 0..100 {
            let missing = rest - self.within(t);
            if missing > 0.0 {
                low = t
            } else {
                high = t
            }
            let rate = self.mean + self.amplitude * (t / self.period_s * TAU).sin();
            let newton = t + missing / rate;
            let next = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
            // A tenth of a nanosecond.
            if (next - t).abs() < 1e-10 {
                return next;
            }
            t = next;
        }
        t
    }
}

impl RateProfile {
    /// The same rate for ever.
    pub fn constant(rate: Rate) -> Self {
        RateProfile(Shape::Pieces([Piece { start_s: 0.0, before: 0.0, rate: rate.get(), slope: 0.0 }].into()))
    }

    /// Changes linearly `from` one rate `to` another in the time `over`, and stays there.
    ///
    /// # Errors
    /// [`LoadError::Config`] if `over` is zero.
    pub fn ramp(from: Rate, to: Rate, over: Duration) -> Result<Self, LoadError> {
        if over.is_zero() {
            return Err(refuse("a ramp takes no time", "give it a length, or write a constant rate"));
        }
        let slope = (to.get() - from.get()) / over.as_secs_f64();
        let up = Piece { start_s: 0.0, before: 0.0, rate: from.get(), slope };
        let start_s = over.as_secs_f64();
        let stay = Piece { start_s, before: up.count(start_s), rate: to.get(), slope: 0.0 };
        Ok(RateProfile(Shape::Pieces([up, stay].into())))
    }

    /// One rate after another, each for its time; the last one stays.
    ///
    /// # Errors
    /// [`LoadError::Config`] if there is none, or one other than the last has no length.
    pub fn steps(steps: &[(Rate, Duration)]) -> Result<Self, LoadError> {
        let Some((_, timed)) = steps.split_last() else {
            return Err(refuse("a profile of steps has none", "write at least one rate"));
        };
        if timed.iter().any(|(_, length)| length.is_zero()) {
            return Err(refuse("a step of a rate profile takes no time", "give every step a length"));
        }
        let mut start = Duration::ZERO;
        let rows = steps.iter().map(|(rate, length)| {
            let row = (start, rate.get());
            start += *length;
            row
        });
        Ok(RateProfile::pieces(&rows.collect::<Vec<_>>()))
    }

    /// A rate in operations per second from each offset on, as recorded elsewhere; 0 is allowed, and nothing is due
    /// before the first offset. The last rate stays.
    ///
    /// # Errors
    /// [`LoadError::Config`] if it is empty, the offsets do not rise, or a rate is negative or no number.
    pub fn trace(rows: &[(Duration, f64)]) -> Result<Self, LoadError> {
        if rows.is_empty() {
            return Err(refuse("a trace of rates is empty", "give it at least one row"));
        }
        if rows.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(refuse("the offsets of a trace of rates do not rise", "sort its rows, each offset once"));
        }
        if rows.iter().any(|(_, rate)| !rate.is_finite() || *rate < 0.0) {
            return Err(refuse("a trace has a rate that is negative or no number", "write operations per second"));
        }
        Ok(RateProfile::pieces(rows))
    }

    fn pieces(rows: &[(Duration, f64)]) -> Self {
        let mut pieces = vec![Piece { start_s: 0.0, before: 0.0, rate: 0.0, slope: 0.0 }];
        for (start, rate) in rows {
            let start_s = start.as_secs_f64();
            // The list is never empty.
            let before = pieces.last().map_or(0.0, |last| last.count(start_s));
            if start.is_zero() {
                pieces.clear();
            }
            pieces.push(Piece { start_s, before, rate: *rate, slope: 0.0 });
        }
        RateProfile(Shape::Pieces(pieces.into()))
    }

    /// `mean + amplitude · sin(2π · t ÷ period)`: begins at the mean, rising.
    ///
    /// # Errors
    /// [`LoadError::Config`] if the amplitude exceeds the mean (a rate below zero), or the period is zero.
    pub fn sine(mean: Rate, amplitude: Rate, period: Duration) -> Result<Self, LoadError> {
        if amplitude > mean {
            return Err(refuse("the amplitude of a sine exceeds its mean", "a rate cannot fall below 0: lower it"));
        }
        if period.is_zero() {
            return Err(refuse("the period of a sine is zero", "give it a length"));
        }
        let (mean, amplitude, period_s) = (mean.get(), amplitude.get(), period.as_secs_f64());
        Ok(RateProfile(Shape::Sine(Sine { mean, amplitude, period_s })))
    }

    /// The rate `at` this time, per second.
    #[cfg(test)]
    pub(super) fn rate(&self, at: Duration) -> f64 {
        let at_s = at.as_secs_f64();
        match &self.0 {
            Shape::Pieces(pieces) => {
                let place = pieces.partition_point(|piece| piece.start_s <= at_s).max(1) - 1;
                pieces[place].rate + pieces[place].slope * (at_s - pieces[place].start_s)
            }
            Shape::Sine(sine) => sine.mean + sine.amplitude * (at_s / sine.period_s * TAU).sin(),
        }
    }

    /// The highest rate it ever has, per second.
    pub fn highest(&self) -> f64 {
        match &self.0 {
            Shape::Pieces(pieces) => pieces.iter().map(|piece| piece.rate).fold(0.0, f64::max),
            Shape::Sine(sine) => sine.mean + sine.amplitude,
        }
    }

    /// How many operations are due by `at`: the integral of the rate, in closed form.
    pub fn count(&self, at: Duration) -> f64 {
        let at_s = at.as_secs_f64();
        match &self.0 {
            Shape::Pieces(pieces) => {
                let place = pieces.partition_point(|piece| piece.start_s <= at_s).max(1) - 1;
                pieces[place].count(at_s)
            }
            Shape::Sine(sine) => sine.count(at_s),
        }
    }

    /// The inverse of [`RateProfile::count`], in ns; infinite if that many are never due.
    pub(super) fn time_ns(&self, count: f64) -> f64 {
        let seconds = match &self.0 {
            Shape::Pieces(pieces) => match &**pieces {
                // Divided in one step, this is exact where a product of rounded parts would not be.
                [only] if only.slope == 0.0 && only.start_s == 0.0 && only.rate > 0.0 => {
                    return count * 1e9 / only.rate;
                }
                _ => {
                    // The last piece before which no more are due. After a rate of 0 the next piece begins with the
                    // same count.
                    let place = pieces.partition_point(|piece| piece.before <= count).max(1) - 1;
                    pieces[place].time(count)
                }
            },
            Shape::Sine(sine) => sine.time(count),
        };
        seconds * 1e9
    }
}

fn refuse(what: &str, remedy: &'static str) -> LoadError {
    LoadError::Config { what: what.to_owned(), remedy }
}
