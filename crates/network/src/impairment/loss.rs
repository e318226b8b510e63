//! Which packets vanish.

use std::fmt;

use brownout_units::Share;

use super::parts::{Chance, correlation};

/// Which packets vanish. A model starts in its stationary state, so that its mean holds from the first packet on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this probability, whatever happened before (Bernoulli).
    Independent(Share),
    /// This share, in runs: see [`Chance`] for what the correlation means.
    Correlated {
        /// The share of packets lost.
        share: Share,
        /// Lag-1 autocorrelation of the losses.
        correlation: Share,
    },
    /// Two states, good and bad, each with its own loss (Gilbert 1960, Elliott 1963; netem's `loss gemodel`).
    GilbertElliott {
        /// Probability of going from good to bad with the next packet.
        p: Share,
        /// Probability of going from bad to good with the next packet.
        r: Share,
        /// Loss in the bad state, 1 − h; 100 % is the simple Gilbert model.
        one_minus_h: Share,
        /// Loss in the good state, 1 − k.
        one_minus_k: Share,
    },
    /// Four states: received in a gap (1), received within a burst (2), lost within a burst (3), lost alone in a gap (4)
    /// (Salsano, Ludovici, Ordine 2012, "GI" general and intuitive; netem's `loss state`). From 4 the next is always 1.
    Markov {
        /// From 1 to 3: a burst begins.
        p13: Share,
        /// From 3 to 1: it ends.
        p31: Share,
        /// From 3 to 2: within the burst, packets come through.
        p32: Share,
        /// From 2 to 3: they no longer do.
        p23: Share,
        /// From 1 to 4: an isolated loss.
        p14: Share,
    },
}

impl Loss {
    /// The long-run share of packets lost.
    ///
    /// Gilbert–Elliott: `π_bad·(1−h) + π_good·(1−k)` with `π_bad = p ÷ (p + r)` (Haßlinger and Hohlfeld, "The
    /// Gilbert-Elliott Model for Packet Loss in Real Time Services on the Internet", 2008).
    /// Markov: `π₃ + π₄`, from the balance of flows `π₁·p13 = π₃·p31`, `π₃·p32 = π₂·p23`, `π₄ = π₁·p14`.
    pub fn mean(&self) -> Share {
        let mean = match *self {
            Loss::None => 0.0,
            Loss::Independent(share) | Loss::Correlated { share, .. } => share.fraction(),
            Loss::GilbertElliott { one_minus_h, one_minus_k, .. } => {
                let bad = self.stationary_bad();
                bad * one_minus_h.fraction() + (1.0 - bad) * one_minus_k.fraction()
            }
            Loss::Markov { .. } => {
                let [_, _, lost, alone] = self.stationary();
                lost + alone
            }
        };
        Share::new(mean.clamp(0.0, 1.0)).unwrap_or(Share::ALL)
    }

    /// The mean number of packets lost in a row, over all runs of losses: the long-run share lost ÷ the share of
    /// packets that are lost and followed by one that is not. `None` if nothing is lost, or a run never ends.
    pub fn mean_burst(&self) -> Option<f64> {
        // The probability that a packet is lost and the next is not.
        let ends = match *self {
            Loss::None => 0.0,
            Loss::Independent(share) => share.fraction() * (1.0 - share.fraction()),
            Loss::Correlated { share, correlation } => {
                share.fraction() * (1.0 - Chance { share, correlation }.after(true))
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                let (p, r, bad) = (p.fraction(), r.fraction(), self.stationary_bad());
                let (in_bad, in_good) = (one_minus_h.fraction(), one_minus_k.fraction());
                let after_bad = r * (1.0 - in_good) + (1.0 - r) * (1.0 - in_bad);
                let after_good = p * (1.0 - in_bad) + (1.0 - p) * (1.0 - in_good);
                bad * in_bad * after_bad + (1.0 - bad) * in_good * after_good
            }
            Loss::Markov { p31, p32, .. } => {
                let [_, _, lost, alone] = self.stationary();
                lost * (p31.fraction() + p32.fraction()).min(1.0) + alone
            }
        };
        (ends > 0.0).then(|| self.mean().fraction() / ends)
    }

    /// How much more the number of packets lost of many varies than if each was lost by itself, as a ratio of variances:
    /// 1 + 2·Σρₖ over the autocorrelations ρₖ of the losses.
    ///
    /// Of two states ρₖ falls by a constant factor: `c` of [`Loss::Correlated`], `1 − p − r` of Gilbert–Elliott, where it begins at
    /// `π_bad·π_good·(h − k)² ÷ (P·(1 − P))` of the mean P.
    pub fn clumping(&self) -> f64 {
        let mean = self.mean().fraction();
        let own = mean * (1.0 - mean);
        if own <= 0.0 {
            return 1.0;
        }
        // Σ of a geometric series from its second member on.
        let after = |ratio: f64| ratio / (1.0 - ratio).max(f64::EPSILON);
        match *self {
            Loss::None | Loss::Independent(_) => 1.0,
            Loss::Correlated { correlation, .. } => 1.0 + 2.0 * after(correlation.fraction()),
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                let (bad, apart) = (self.stationary_bad(), one_minus_h.fraction() - one_minus_k.fraction());
                let from_states = bad * (1.0 - bad) * apart * apart / own;
                1.0 + 2.0 * from_states * after(1.0 - p.fraction() - r.fraction())
            }
            Loss::Markov { .. } => 1.0 + 2.0 * self.correlations() / own,
        }
    }

    /// Sum of the autocovariances of the Markov model's losses, from a distance of one packet on.
    fn correlations(&self) -> f64 {
        /// A chain that has forgotten nothing after so many packets has states that it never leaves.
        const PACKETS: u32 = 1_000_000;
        let Loss::Markov { p13, p31, p32, p23, p14 } = self else { return 0.0 };
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(|share| share.fraction());
        let ([_, _, lost, alone], mean) = (self.stationary(), self.mean().fraction());
        // The chance that a packet is lost, by the state so many packets before it.
        let (mut then, mut sum) = ([0.0, 0.0, 1.0, 1.0], 0.0);
        for _ in 0..PACKETS {
            let [in_gap, in_burst, in_loss, in_alone]: [f64; 4] = then;
            then = [
                (1.0 - p13 - p14) * in_gap + p13 * in_loss + p14 * in_alone,
                (1.0 - p23) * in_burst + p23 * in_loss,
                (1.0 - p31 - p32) * in_loss + p31 * in_gap + p32 * in_burst,
                in_gap,
            ];
            let covariance = lost * then[2] + alone * then[3] - mean * mean;
            sum += covariance;
            if then.iter().all(|chance| (chance - mean).abs() < 1e-9) {
                break;
            }
        }
        sum
    }

    /// The long-run share of packets in the bad state; it stays good if it never changes.
    pub(crate) fn stationary_bad(&self) -> f64 {
        let Loss::GilbertElliott { p, r, .. } = self else { return 0.0 };
        let (p, r) = (p.fraction(), r.fraction());
        if p > 0.0 { p / (p + r) } else { 0.0 }
    }

    /// The long-run shares of packets in the states 1 to 4 of the Markov model, begun in 1.
    pub(crate) fn stationary(&self) -> [f64; 4] {
        let Loss::Markov { p13, p31, p32, p23, p14 } = self else { return [1.0, 0.0, 0.0, 0.0] };
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(|share| share.fraction());
        // As weights, without dividing by what may be zero. A state that is left for ever gets none.
        let weights = if p13 == 0.0 {
            [1.0, 0.0, 0.0, p14]
        } else if p32 == 0.0 {
            [p31, 0.0, p13, p14 * p31]
        } else {
            [p31 * p23, p13 * p32, p13 * p23, p14 * p31 * p23]
        };
        let sum: f64 = weights.iter().sum();
        weights.map(|weight| weight / sum)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::None => write!(f, "{}", Share::ZERO),
            Loss::Independent(share) => write!(f, "{share}"),
            Loss::Correlated { share, correlation: of } => {
                write!(f, "{share}")?;
                correlation(*of, f)
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                write!(f, "gemodel {p} {r} {one_minus_h} {one_minus_k}")
            }
            Loss::Markov { p13, p31, p32, p23, p14 } => write!(f, "state {p13} {p31} {p32} {p23} {p14}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(percent: f64) -> Share {
        Share::new(percent / 100.0).unwrap()
    }

    fn gilbert_elliott(p: f64, r: f64, bad: f64, good: f64) -> Loss {
        Loss::GilbertElliott { p: share(p), r: share(r), one_minus_h: share(bad), one_minus_k: share(good) }
    }

    fn markov(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> Loss {
        Loss::Markov { p13: share(p13), p31: share(p31), p32: share(p32), p23: share(p23), p14: share(p14) }
    }

    #[test]
    fn losses_that_clump_vary_as_the_correlations_of_their_states_say() {
        let gilbert = (2.0 - 0.11) / 0.11;
        // π_bad = 2 ÷ 27, mean 0.0685: 0.671 of the variance is that of the states, which keep 0.73 from packet to packet.
        let elliott = 1.0 + 2.0 * 0.671_03 * 0.73 / 0.27;
        for (loss, clumping) in [
            (Loss::None, 1.0),
            (Loss::Independent(share(20.0)), 1.0),
            (Loss::Correlated { share: share(20.0), correlation: share(50.0) }, 3.0),
            (gilbert_elliott(1.0, 10.0, 100.0, 0.0), gilbert),
            (gilbert_elliott(2.0, 25.0, 80.0, 1.0), elliott),
            (gilbert_elliott(0.0, 0.0, 100.0, 2.0), 1.0),
            (markov(1.0, 10.0, 0.0, 100.0, 0.0), gilbert),
        ] {
            let found = loss.clumping();
            assert!((found / clumping - 1.0).abs() < 1e-3, "{loss}: {found} is not {clumping}");
        }
    }

    #[test]
    fn means_and_bursts_are_those_of_the_literature() {
        for (loss, mean, burst) in [
            (Loss::None, 0.0, None),
            (Loss::Independent(share(20.0)), 0.2, Some(1.25)),
            (Loss::Independent(Share::ALL), 1.0, None),
            // After a loss the next is lost with 0.2 + 0.5·0.8 = 0.6.
            (Loss::Correlated { share: share(20.0), correlation: share(50.0) }, 0.2, Some(2.5)),
            // The simple Gilbert model: loss p ÷ (p + r), bursts of 1 ÷ r.
            (gilbert_elliott(1.0, 10.0, 100.0, 0.0), 1.0 / 11.0, Some(10.0)),
            // Gilbert: π_bad = 0.2; loss 0.1; a lost packet (bad) is followed by a loss with 0.6·0.5 + … = 0.3.
            (gilbert_elliott(10.0, 40.0, 50.0, 0.0), 0.1, Some(1.0 / 0.7)),
            (gilbert_elliott(0.0, 0.0, 100.0, 0.0), 0.0, None),
            (gilbert_elliott(0.0, 0.0, 100.0, 2.0), 0.02, Some(1.0 / 0.98)),
            (gilbert_elliott(1.0, 0.0, 100.0, 0.0), 1.0, None),
            // Two of the four states: the simple Gilbert model again.
            (markov(1.0, 10.0, 0.0, 100.0, 0.0), 1.0 / 11.0, Some(10.0)),
            // Only isolated losses: each is followed by a packet that is received.
            (markov(0.0, 100.0, 0.0, 100.0, 10.0), 0.1 / 1.1, Some(1.0)),
            // π ∝ (0.06, 0.015, 0.02, 0.0006)·… : p31·p23, p13·p32, p13·p23, p14·p31·p23.
            (markov(10.0, 30.0, 15.0, 20.0, 1.0), 0.0206 / 0.0956, Some(0.0206 / (0.02 * 0.45 + 0.0006))),
            (markov(10.0, 0.0, 0.0, 0.0, 0.0), 1.0, None),
            (markov(10.0, 0.0, 50.0, 0.0, 0.0), 0.0, None),
        ] {
            assert!((loss.mean().fraction() - mean).abs() < 1e-12, "{loss}: {} is not {mean}", loss.mean());
            match (loss.mean_burst(), burst) {
                (Some(found), Some(burst)) => assert!((found - burst).abs() < 1e-9, "{loss}: {found} is not {burst}"),
                (found, burst) => assert_eq!(found, burst, "{loss}"),
            }
        }
    }
}
