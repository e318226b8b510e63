//! What a delay costs, by arithmetic: throughput of a closed loop, and operations within an objective.

use brownout_record::Objective;
use serde::Serialize;

use super::{
    delayed::{Delayed, Extra, remainder},
    shifted::share_above,
};
use crate::Latencies;

/// A loss, measured and predicted. Shares of the baseline; negative: more than in the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// `throughput` (of a closed loop: answered ok or timed out) or `goodput`.
    pub figure: String,
    /// As measured.
    pub measured: Option<f64>,
    /// If the database chooses the best replicas for every operation.
    pub least: f64,
    /// If it chooses the worst.
    pub most: f64,
    /// By Little's law from the mean responses that were measured: 1 − L₀ ÷ L₁. Of throughput alone.
    pub by_latency: Option<f64>,
    /// What the prediction leaves over: measured less its nearer end, 0 between both.
    pub remainder: Option<f64>,
}

impl Loss {
    pub(super) fn new(figure: &str, measured: Option<f64>, ends: (f64, f64), by_latency: Option<f64>) -> Self {
        let (least, most) = (ends.0.min(ends.1), ends.0.max(ends.1));
        let remainder = measured.map(|measured| remainder(measured, least, most));
        Loss { figure: figure.to_owned(), measured, least, most, by_latency, remainder }
    }
}

/// The share of its throughput that a closed loop loses when a share k of its operations meets an extra delay D, with a mean response
/// of L₀ before: D ÷ (L₀/k + D) = kD ÷ (L₀ + kD), whatever the number of users (Little's law before and after).
pub fn throughput_loss(before_ns: f64, delayed: &Delayed) -> f64 {
    if delayed.mean_ns > 0.0 { delayed.mean_ns / (before_ns + delayed.mean_ns) } else { 0.0 }
}

/// The share of the operations within the objective that is no longer, each of them later by what is added to it.
pub(super) fn goodput_loss(
    baseline: &Latencies,
    objective: &Objective,
    extras: &[Extra],
    of: fn(&Extra) -> f64,
) -> Option<f64> {
    let before = 1.0 - baseline.share_above(objective.response_ns);
    (baseline.count() > 0 && before > 0.0).then(|| {
        let within = 1.0 - share_above(baseline, extras, of, objective.response_ns);
        1.0 - within / before
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published closed loop: 64 threads, one of three nodes delayed, one copy of each row, QUORUM, L₀ = 1.53 ms; throughput was
    /// 41,765 op/s without a delay. It fell to 64.4 %, 20.6 % and 4.5 % with what was meant to be 2, 20 and 100 ms.
    #[test]
    fn one_third_of_the_operations_explains_a_published_closed_loop() {
        let loss = |delay_ns: f64| {
            let delayed = Delayed { share: 1.0 / 3.0, delay_ns, mean_ns: delay_ns / 3.0 };
            throughput_loss(1.53e6, &delayed)
        };
        for (delay_ns, throughput, within) in [(2e6, 26_911.0, 0.055), (20e6, 8_598.0, 0.02), (100e6, 1_870.0, 0.001)] {
            let (predicted, published) = (1.0 - loss(delay_ns), throughput / 41_765.0);
            assert!((predicted - published).abs() < within, "{delay_ns}: {predicted} for {published}");
        }
        // The same in the other form: D ÷ (L₀/k + D).
        assert!((loss(20e6) - 20e6 / (1.53e6 * 3.0 + 20e6)).abs() < 1e-12);
        assert_eq!(loss(0.0), 0.0);
    }

    #[test]
    fn what_lies_between_both_ends_leaves_nothing_over() {
        assert_eq!(remainder(0.5, 0.4, 0.6), 0.0);
        assert!((remainder(0.3, 0.4, 0.6) + 0.1).abs() < 1e-12);
        assert!((remainder(0.9, 0.4, 0.6) - 0.3).abs() < 1e-12);
    }
}
