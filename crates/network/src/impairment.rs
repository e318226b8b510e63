//! What is wrong with a link.

use brownout_units::{Delay, Share};

/// What a link does to each wire packet that enters it. All of it is one-way.
///
/// A wire packet is what would travel on a cable: the kernel hands over TCP and UDP superframes of
/// up to 64 KiB, and each of their segments counts, is lost and is jittered on its own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairment {
    /// Constant part of the time from entering the link to leaving it.
    pub delay: Delay,
    /// Each packet's delay is drawn uniformly from `delay − jitter ..= delay + jitter`, and is never
    /// below zero. Packets may overtake one another, as on a path whose packets take several ways.
    pub jitter: Delay,
    /// The share of packets that vanish, each independently of all others (Bernoulli).
    pub loss: Share,
}

impl Impairment {
    /// A link with nothing wrong: it adds only what the emulator itself costs.
    pub const NONE: Impairment = Impairment { delay: Delay::ZERO, jitter: Delay::ZERO, loss: Share::ZERO };

    /// Only a constant one-way delay.
    pub const fn delay(delay: Delay) -> Self {
        Impairment { delay, ..Impairment::NONE }
    }

    /// Only independent loss.
    pub const fn loss(loss: Share) -> Self {
        Impairment { loss, ..Impairment::NONE }
    }

    /// With this jitter around the delay.
    #[must_use]
    pub const fn with_jitter(self, jitter: Delay) -> Self {
        Impairment { jitter, ..self }
    }

    /// With this independent loss.
    #[must_use]
    pub const fn with_loss(self, loss: Share) -> Self {
        Impairment { loss, ..self }
    }

    /// Both at once: delays add, jitters add (as a bound, so that the range stays the sum of the
    /// ranges), and a packet survives if it survives both losses.
    #[must_use]
    pub fn and(self, other: Impairment) -> Impairment {
        let (a, b) = (self.loss.fraction(), other.loss.fraction());
        let (more, less) = (a.max(b), a.min(b));
        // 1 − (1−a)(1−b), in a form that is exact where one of them is nothing or all.
        let loss = Share::new(more + less * (1.0 - more)).unwrap_or(Share::ALL);
        Impairment { delay: add(self.delay, other.delay), jitter: add(self.jitter, other.jitter), loss }
    }

    /// The longest that this holds a packet, in nanoseconds.
    pub(crate) fn longest_hold_ns(&self) -> u64 {
        self.delay.ns().saturating_add(self.jitter.ns())
    }
}

fn add(a: Delay, b: Delay) -> Delay {
    Delay::from_ns(a.ns().saturating_add(b.ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    #[test]
    fn delays_and_jitters_add_and_independent_losses_combine() {
        let a = Impairment::delay(Delay::from_ms(10)).with_jitter(Delay::from_ms(1)).with_loss(share("10%"));
        let b = Impairment::delay(Delay::from_ms(5)).with_jitter(Delay::from_ms(2)).with_loss(share("50%"));
        let both = a.and(b);
        assert_eq!(both.delay, Delay::from_ms(15));
        assert_eq!(both.jitter, Delay::from_ms(3));
        assert!((both.loss.fraction() - 0.55).abs() < 1e-12);
        assert_eq!(both, b.and(a));
    }

    #[test]
    fn nothing_more_leaves_an_impairment_exactly_as_asked() {
        let asked = Impairment::delay(Delay::from_ns(123_457)).with_loss(share("0.1%"));
        assert_eq!(asked.and(Impairment::NONE), asked);
        assert_eq!(Impairment::NONE.and(asked), asked);
        assert_eq!(Impairment::loss(Share::ALL).and(asked).loss, Share::ALL);
    }

    #[test]
    fn absurd_delays_saturate_instead_of_wrapping() {
        let huge = Impairment::delay(Delay::from_ns(u64::MAX));
        assert_eq!(huge.and(huge).delay.ns(), u64::MAX);
        assert_eq!(huge.with_jitter(Delay::from_ms(1)).longest_hold_ns(), u64::MAX);
    }
}
