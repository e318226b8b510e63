//! What is wrong with a link: everything that can be asked of one, as plain values.

mod check;
mod distribution;
mod loss;
mod normal;
mod parts;

use std::fmt;

use brownout_units::{Delay, Share};

pub(crate) use self::normal::quantile as normal_quantile;
pub use self::{
    distribution::{Distribution, UnknownDistribution},
    loss::Loss,
    parts::{Chance, Cut, QueueLimit, RateLimit, Reorder},
};

/// What a link does to each wire packet that enters it. All of it is one-way.
///
/// A wire packet is what would travel on a cable: the kernel hands over GSO packets (TCP and UDP segments still in one piece) of
/// up to 64 KiB, and each of their segments counts, is lost, queued and jittered on its own.
///
/// A packet meets the parts in this order: `cut`, `mtu`, `loss`, `duplicate`, `corrupt`, `rate`, `reorder`, `delay`.
/// Of several impairments on one link, it meets each part of all (oldest first) before the next part of any.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairment {
    /// Constant part of the time from leaving the queue of `rate` (without: from entering the link) to leaving the link.
    pub delay: Delay,
    /// How far delays scatter around `delay`: half the width of their range if `distribution` is uniform, else their
    /// standard deviation. No delay is below zero. Packets may overtake one another, as on a path that takes several ways; on a link with a `rate` they keep their order, as in netem.
    pub jitter: Delay,
    /// How delays scatter.
    pub distribution: Distribution,
    /// How much a packet's jitter resembles that of the packet before: the lag-1 autocorrelation. How delays are
    /// distributed does not depend on it.
    pub delay_correlation: Share,
    /// Which packets vanish.
    pub loss: Loss,
    /// Which packets come twice. The copy follows at once, and is corrupted, queued and delayed by itself.
    pub duplicate: Chance,
    /// Which packets get one bit flipped, behind the IP header, where the receiver's checksum must notice it.
    pub corrupt: Chance,
    /// Which packets skip `delay` and `jitter`, and so overtake others.
    pub reorder: Reorder,
    /// The link's rate, and what may wait for it; `None`: packets leave as they come.
    pub rate: Option<RateLimit>,
    /// The largest IP packet in bytes that passes: a larger one is fragmented where IPv4 allows it (DF not set), and
    /// otherwise dropped, its sender told so by ICMP. `None`: whatever the interfaces carry.
    pub mtu: Option<u16>,
    /// Whether anything passes at all. What is on its way when a link is cut still arrives.
    pub cut: Option<Cut>,
}

impl Impairment {
    /// A link with nothing wrong: it adds only what the emulator itself costs.
    pub const NONE: Impairment = Impairment {
        delay: Delay::ZERO,
        jitter: Delay::ZERO,
        distribution: Distribution::Uniform,
        delay_correlation: Share::ZERO,
        loss: Loss::None,
        duplicate: Chance::NEVER,
        corrupt: Chance::NEVER,
        reorder: Reorder::NEVER,
        rate: None,
        mtu: None,
        cut: None,
    };

    /// Only a constant one-way delay.
    pub const fn delay(delay: Delay) -> Self {
        Impairment { delay, ..Impairment::NONE }
    }

    /// The longest that a packet takes from leaving the queue of `rate` to leaving the link, in nanoseconds.
    pub(crate) fn longest_flight_ns(&self) -> u64 {
        let above = self.jitter.ns() as f64 * self.distribution.most();
        self.delay.ns().saturating_add(above as u64)
    }
}

/// In netem's words: `delay 100ms ± 10ms normal, loss 1%, rate 10mbit queue 100ms`; `nothing` if there is nothing.
impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(cut) = self.cut {
            parts.push(format!("cut {cut}"));
        }
        if self.delay != Delay::ZERO || self.jitter != Delay::ZERO {
            let mut delay = format!("delay {}", self.delay);
            if self.jitter != Delay::ZERO {
                delay += &format!(" ± {} {}", self.jitter, self.distribution);
                if self.delay_correlation != Share::ZERO {
                    delay += &format!(" correlation {}", self.delay_correlation);
                }
            }
            parts.push(delay);
        }
        if self.loss != Loss::None {
            parts.push(format!("loss {}", self.loss));
        }
        for (name, chance) in [("duplicate", self.duplicate), ("corrupt", self.corrupt)] {
            if chance.share != Share::ZERO {
                parts.push(format!("{name} {chance}"));
            }
        }
        if self.reorder.share != Share::ZERO {
            parts.push(format!("reorder {}", self.reorder));
        }
        if let Some(limit) = self.rate {
            parts.push(format!("rate {limit}"));
        }
        if let Some(mtu) = self.mtu {
            parts.push(format!("mtu {mtu}"));
        }
        f.pad(&if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    #[test]
    fn nothing_is_the_default() {
        assert_eq!(Impairment::default(), Impairment::NONE);
        assert_eq!(Impairment::NONE.to_string(), "nothing");
    }

    #[test]
    fn an_impairment_reads_as_netem_would_have_it() {
        let delay = Impairment { delay: Delay::from_ms(100), jitter: Delay::from_ms(10), ..Impairment::NONE };
        let limit = RateLimit {
            rate: "10mbit".parse().unwrap(),
            queue: QueueLimit::Time(Delay::from_ms(50)),
            overhead_bytes: 38,
        };
        for (impairment, text) in [
            (delay, "delay 100ms ± 10ms uniform"),
            (
                Impairment { distribution: Distribution::Normal, delay_correlation: share("25%"), ..delay },
                "delay 100ms ± 10ms normal correlation 25%",
            ),
            (
                Impairment { delay: Delay::from_ms(1), loss: Loss::Independent(share("1%")), ..Impairment::NONE },
                "delay 1ms, loss 1%",
            ),
            (
                Impairment {
                    loss: Loss::Correlated { share: share("5%"), correlation: share("50%") },
                    ..Impairment::NONE
                },
                "loss 5% correlation 50%",
            ),
            (
                Impairment {
                    loss: Loss::GilbertElliott {
                        p: share("1%"),
                        r: share("10%"),
                        one_minus_h: share("100%"),
                        one_minus_k: share("0%"),
                    },
                    ..Impairment::NONE
                },
                "loss gemodel 1% 10% 100% 0%",
            ),
            (
                Impairment {
                    loss: Loss::Markov {
                        p13: share("1%"),
                        p31: share("20%"),
                        p32: share("5%"),
                        p23: share("30%"),
                        p14: share("0.1%"),
                    },
                    ..Impairment::NONE
                },
                "loss state 1% 20% 5% 30% 0.1%",
            ),
            (
                Impairment { reorder: Reorder { share: share("25%"), correlation: Share::ZERO, gap: 5 }, ..delay },
                "delay 100ms ± 10ms uniform, reorder 25% gap 5",
            ),
            (
                Impairment {
                    rate: Some(limit),
                    mtu: Some(1_280),
                    duplicate: Chance::of(share("1%")),
                    ..Impairment::NONE
                },
                "duplicate 1%, rate 10mbit queue 50ms overhead 38, mtu 1280",
            ),
            (
                Impairment {
                    cut: Some(Cut::Reject),
                    corrupt: Chance { share: share("1%"), correlation: share("30%") },
                    ..Impairment::NONE
                },
                "cut reject, corrupt 1% correlation 30%",
            ),
        ] {
            assert_eq!(impairment.to_string(), text);
        }
    }

    #[test]
    fn absurd_delays_saturate_instead_of_wrapping() {
        let huge = Impairment::delay(Delay::from_ns(u64::MAX));
        assert_eq!(Impairment { jitter: Delay::from_ms(1), ..huge }.longest_flight_ns(), u64::MAX);
        assert_eq!(Impairment { jitter: Delay::from_ns(u64::MAX), ..huge }.longest_flight_ns(), u64::MAX);
    }
}
