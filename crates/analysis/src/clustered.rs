//! Whether single packets escaped a jitter.
//!
//! A spread of p90 − p10 does not tell a jitter that half of the packets have from a smaller one that all have. But packets that
//! escape it all take the same time, and of those that do not, few do.

use brownout_record::Quantity;

use crate::{
    AnalysisError,
    judgement::Row,
    measure::Source,
    observe::SubjectEvidence,
    segments::{Force, Segment},
    stats,
    words::{said, show},
};

/// The densest of the distributions that can be asked for is Pareto's, of α = 3, at its lower edge: of density 3 where p90 − p10 is
/// 10^(1/3) − (10/9)^(1/3) = 1.1187. (Uniform: 0.8 ÷ spread; normal: 1.02 ÷ spread.)
const DENSEST: f64 = 3.0 / 1.1187;
/// Where packets of the honest jitter alone may lie as dense as that, nothing is told.
const DENSE: f64 = 0.5;
/// Where each delay is nearly that of the packet before it, too few are left that say anything by themselves.
const CORRELATED: f64 = 0.98;

impl<'a> SubjectEvidence<'a> {
    /// What too many probes of some segments have in common that were to scatter, in words, if the share `lacking` of all may lack
    /// the jitter.
    pub(crate) fn clustered(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        (segments, forces): (&[Segment], &[Force]),
        lacking: f64,
    ) -> Result<Option<String>, AnalysisError> {
        let quantity = row.asked.quantity;
        let jitter = row.asked.hit && row.asked.asked > 0.0 && quantity == Quantity::DelaySpread;
        // What waits before a limit leaves together.
        let hidden = [Quantity::Rate, Quantity::Reordered].iter().any(|other| self.asks.any(*other, forces, None));
        if !jitter || hidden || source != Source::Probes {
            return Ok(None);
        }
        let before = self.series.distribution(source, Quantity::OneWayDelay, &self.before.segments, &[])?;
        let Some((low, high)) = before.and_then(|before| Some((before.quantile(0.05)?, before.quantile(0.95)?))) else {
            return Ok(None);
        };
        let width = high - low;
        let dense = DENSEST * width / row.asked.asked;
        let mut delays = self.series.delays(segments);
        let correlation = autocorrelation(&delays);
        if dense > DENSE || delays.len() < stats::ENOUGH as usize || correlation > CORRELATED {
            return Ok(None);
        }
        delays.sort_unstable_by(f64::total_cmp);
        let (count, from) = fullest(&delays, width);
        let may = (dense + lacking).min(1.0);
        // Packets that are alike because those before them were count for fewer.
        let alone = (delays.len() as f64 * (1.0 - correlation) / (1.0 + correlation)) as u64;
        let doubt = stats::share_half_width((may * alone as f64) as u64, alone);
        let share = count as f64 / delays.len() as f64;
        let (who, verb) = said(source, quantity);
        Ok((share > may + doubt).then(|| {
            format!(
                "{who} {verb} {count} of {} delays within {} of each other, from {} on, and of a spread of {} at most {:.0}% may be",
                delays.len(),
                show(quantity, width),
                show(quantity, from),
                show(quantity, row.asked.asked),
                (may + doubt) * 100.0
            )
        }))
    }
}

/// The largest number of sorted values in any range of a width, and where it begins.
fn fullest(sorted: &[f64], width: f64) -> (usize, f64) {
    let (mut most, mut at, mut first) = (0, 0.0, 0);
    for (last, value) in sorted.iter().enumerate() {
        while value - sorted[first] > width {
            first += 1;
        }
        if last + 1 - first > most {
            (most, at) = (last + 1 - first, sorted[first]);
        }
    }
    (most, at)
}

/// The correlation of each value with the next; 0 where they rather differ.
fn autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let common: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { (common / variance).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_range_is_found_wherever_it_begins() {
        assert_eq!(fullest(&[0.0, 5.0, 5.5, 6.0, 9.0, 9.1], 1.0), (3, 5.0));
        assert_eq!(fullest(&[], 1.0), (0, 0.0));
    }

    #[test]
    fn values_that_follow_each_other_are_correlated() {
        let slow: Vec<f64> = (0..100).map(|at| f64::from(at / 25 % 2)).collect();
        assert!(autocorrelation(&slow) > 0.9);
        let alternating: Vec<f64> = (0..100).map(|at| f64::from(at % 2)).collect();
        assert_eq!(autocorrelation(&alternating), 0.0);
        assert_eq!(autocorrelation(&[3.0; 9]), 0.0);
    }
}
