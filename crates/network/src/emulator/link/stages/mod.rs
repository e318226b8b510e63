//! What can happen to wire packets on a link, one file each.
//!
//! A new impairment is a file with a [`Stage`] and a [`Kind`], a line in [`ORDER`], and whatever it needs to say about a
//! packet in [`Fate`].

mod chance;
mod corrupt;
mod delay;
mod duplicate;
mod loss;
mod reorder;

use brownout_base::random::Random;

use crate::impairment::Impairment;

/// What becomes of one wire packet that has passed the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::emulator) struct Fate {
    /// Which packet of the frame.
    pub(in crate::emulator) segment: u32,
    /// Its bytes, IP header included.
    pub(in crate::emulator) bytes: u32,
    /// Why it goes no further; what comes after such a fate is void.
    pub(in crate::emulator) end: Option<End>,
    /// It is the second of two.
    pub(in crate::emulator) copy: bool,
    /// A bit of it is flipped; this draw says which.
    pub(in crate::emulator) flip: Option<u64>,
    /// It skipped a delay that others did not.
    pub(in crate::emulator) overtakes: bool,
    /// The next delay is not for it.
    pub(in crate::emulator::link) skips: bool,
    /// When it leaves the last queue for a bottleneck, in monotonic nanoseconds; without one, when it came.
    pub(in crate::emulator) departs_ns: u64,
    /// How long it is under way from then on, in nanoseconds.
    pub(in crate::emulator) flight_ns: u64,
}

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::emulator) enum End {
    /// A loss model said so.
    Lost,
    /// A bottleneck's queue was full.
    QueueFull,
}

impl Fate {
    /// A packet of `bytes` that comes at `arrival_ns` and leaves at once.
    pub(in crate::emulator) fn new(segment: u32, bytes: u32, arrival_ns: u64) -> Fate {
        Fate {
            segment,
            bytes,
            end: None,
            copy: false,
            flip: None,
            overtakes: false,
            skips: false,
            departs_ns: arrival_ns,
            flight_ns: 0,
        }
    }

    /// When it leaves the link.
    pub(in crate::emulator) fn release_ns(&self) -> u64 {
        self.departs_ns.saturating_add(self.flight_ns)
    }

    /// How many of `fates`, which begin with this one, are neighbours on the wire that share its fate, so that one frame
    /// can stand for all. It leaves with the last of them.
    pub(in crate::emulator) fn joins(&self, fates: &[Fate]) -> usize {
        let is_like = |(n, next): (u32, &Fate)| {
            let Fate { bytes, departs_ns, .. } = *next;
            let alike = Fate { segment: self.segment + n, bytes, departs_ns, ..*self };
            *next == alike && departs_ns.abs_diff(self.departs_ns) <= TOGETHER_NS
        };
        // Each has a bit of its own flipped.
        let most = if self.flip.is_some() { 1 } else { fates.len() };
        (0..).zip(&fates[..most]).take_while(|numbered| is_like(*numbered)).count()
    }
}

/// Packets of one GSO packet that leave a bottleneck within this time are handed over together, when the last one leaves:
/// at rates of Gbit/s handing over each by itself would be too slow. (Network cards wait as long before they interrupt.)
const TOGETHER_NS: u64 = 40_000;

/// One kind of thing that happens to packets by chance, with its own randomness and memory.
pub(in crate::emulator) trait Stage: Send {
    /// Does its part of what is asked to packets that enter together, in their order. What an earlier stage has ended stays
    /// ended; randomness is spent on it all the same where that keeps the fates of others independent of it.
    fn decide(&mut self, asked: &Impairment, fates: &mut Vec<Fate>);
}

/// How to come by a stage.
pub(in crate::emulator) struct Kind {
    /// Whether an impairment says anything of this kind, so that there has to be a stage.
    pub(in crate::emulator) is_asked: fn(&Impairment) -> bool,
    /// A stage that does nothing yet.
    pub(in crate::emulator) make: fn(Random) -> Box<dyn Stage>,
}

/// The order in which packets meet the kinds, on both sides of the bottleneck; it is part of what an impairment means. A
/// packet meets a group's stages of all impairments on a link before it meets the next group. Within a group, it meets
/// those of one impairment together.
pub(in crate::emulator) const ORDER: [&[Kind]; 4] =
    [&[loss::KIND], &[duplicate::KIND], &[corrupt::KIND], &[reorder::KIND, delay::KIND]];

/// The group that packets meet behind the bottleneck.
pub(in crate::emulator) const FLIGHT: u8 = 3;

#[cfg(test)]
mod testing {
    //! What the stages' tests share.

    use brownout_base::{HostId, Link};

    use super::*;

    /// A stage of its own, with what it has to do.
    pub(in crate::emulator) struct Asked {
        pub(in crate::emulator) stage: Box<dyn Stage>,
        pub(in crate::emulator) asked: Impairment,
    }

    pub(in crate::emulator) fn stage(kind: &Kind, asked: Impairment) -> Asked {
        assert!((kind.is_asked)(&asked) && !(kind.is_asked)(&Impairment::NONE));
        let stage =
            (kind.make)(crate::emulator::link::random::stream(1, Link { from: HostId(0), to: HostId(1) }, 0, 0));
        Asked { stage, asked }
    }

    impl Asked {
        pub(in crate::emulator) fn decide(&mut self, fates: &mut Vec<Fate>) {
            self.stage.decide(&self.asked, fates);
        }
    }

    /// What the stage makes of packets of 1,000 bytes that come together at time 0.
    pub(in crate::emulator) fn decide(stage: &mut Asked, packets: u32) -> Vec<Fate> {
        let mut fates = (0..packets).map(|n| Fate::new(n, 1_000, 0)).collect();
        stage.decide(&mut fates);
        fates
    }

    /// Fails unless `hits` of `packets` is within 3.29 standard deviations (99.9 %) of the share, where each hit makes
    /// `spread` times the variance of independent ones.
    pub(in crate::emulator) fn assert_share(hits: usize, packets: usize, share: f64, spread: f64) {
        let mean = packets as f64 * share;
        let deviation = (mean * (1.0 - share) * spread).sqrt();
        assert!((hits as f64 - mean).abs() <= 3.29 * deviation, "{hits} of {packets}, expected {mean} ± {deviation}");
    }

    /// The lag-1 autocorrelation of values.
    pub(in crate::emulator) fn autocorrelation(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_with_one_fate_join_and_no_others() {
        let fate = Fate::new(3, 1_000, 77);
        let next = Fate { segment: 4, bytes: 10, ..fate };
        assert_eq!(fate.joins(&[fate, next, Fate { segment: 5, ..fate }, Fate { segment: 7, ..fate }]), 3);
        for other in [
            Fate { segment: 5, ..next },
            Fate { segment: 3, copy: true, ..next },
            Fate { end: Some(End::Lost), ..next },
            Fate { flip: Some(1), ..next },
            Fate { departs_ns: 78 + TOGETHER_NS, ..next },
            Fate { flight_ns: 1, ..next },
            Fate { overtakes: true, ..next },
        ] {
            assert_eq!(fate.joins(&[fate, other]), 1, "{other:?}");
        }
        let flipped = Fate { flip: Some(1), ..fate };
        assert_eq!(flipped.joins(&[flipped, Fate { segment: 4, ..flipped }]), 1);
        // The time counts from the first of them.
        let later = |n: u32| Fate { segment: 3 + n, departs_ns: 77 + u64::from(n) * TOGETHER_NS / 4, ..fate };
        assert_eq!(fate.joins(&[fate, later(1), later(2), later(3), later(4), later(5)]), 5);
    }
}
