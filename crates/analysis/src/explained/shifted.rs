//! Response times of the baseline, each later by what delays add to it.
//!
//! An operation that would have taken y takes y + e, e being added to its way: P(response > x) = Σ w·P₀(response > x − e) over all
//! ways with their shares w. It takes what an operation has without a fault to be independent of its way.

use serde::Serialize;

use super::delayed::{Extra, remainder};
use crate::Latencies;

/// The quantiles that are predicted.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// A percentile of the response times in the fault phase, measured and predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shifted {
    /// Of which operation; none: of all.
    pub operation: Option<String>,
    /// 0.5 or 0.99.
    pub quantile: f64,
    /// In the baseline, ns.
    pub baseline_ns: u64,
    /// In the fault phase, ns.
    pub measured_ns: u64,
    /// In the fault phase if the database chooses the best replicas for every operation, ns.
    pub least_ns: u64,
    /// The same if it chooses the worst.
    pub most_ns: u64,
    /// What the prediction leaves over: measured less its nearer end, 0 between both, ns.
    pub remainder_ns: f64,
}

/// The share that takes longer than `x_ns`.
pub(super) fn share_above(baseline: &Latencies, extras: &[Extra], of: fn(&Extra) -> f64, x_ns: u64) -> f64 {
    let above = |one: &Extra| match x_ns.checked_sub(of(one) as u64) {
        Some(rest) => baseline.share_above(rest),
        None => 1.0,
    };
    extras.iter().map(|one| one.share * above(one)).sum()
}

/// Measured and predicted percentiles of one operation, or of all.
pub(super) fn shifted(
    operation: Option<&str>,
    baseline: &Latencies,
    fault: &Latencies,
    extras: &[Extra],
    timeout_ns: u64,
) -> Vec<Shifted> {
    let row = |quantile: f64| {
        let (before, measured) = (baseline.quantile(quantile)?, fault.quantile(quantile)?);
        let (least_ns, most_ns) = (
            predicted(baseline, extras, |one| one.least_ns, quantile, timeout_ns)?,
            predicted(baseline, extras, |one| one.most_ns, quantile, timeout_ns)?,
        );
        Some(Shifted {
            operation: operation.map(str::to_owned),
            quantile,
            baseline_ns: before.value_ns,
            measured_ns: measured.value_ns,
            least_ns,
            most_ns,
            remainder_ns: remainder(measured.value_ns as f64, least_ns as f64, most_ns as f64),
        })
    };
    QUANTILES.into_iter().filter_map(row).collect()
}

/// The least x that a share `quantile` does not exceed; what the client gives up took its time-out.
fn predicted(
    baseline: &Latencies,
    extras: &[Extra],
    of: fn(&Extra) -> f64,
    quantile: f64,
    timeout_ns: u64,
) -> Option<u64> {
    let largest = baseline.quantile(1.0)?.value_ns;
    let (mut low, mut high) = (0, largest.saturating_add(extras.iter().map(of).fold(0.0, f64::max) as u64));
    while low < high {
        let middle = low + (high - low) / 2;
        // Shares of thirds do not add up to the last bit.
        if share_above(baseline, extras, of, middle) <= 1.0 - quantile + 1e-9 {
            high = middle
        } else {
            low = middle + 1
        }
    }
    Some(low.min(timeout_ns.max(largest)))
}
