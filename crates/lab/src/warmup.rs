//! When a warm-up is over: by work done and by looking, not by the clock alone.
//!
//! A JVM is an order of magnitude slower in its first hundred thousand operations, so the warm-up
//! writes every row once, floods (a closed loop, as much as the cluster takes), then settles to the
//! measured load and ends when its latency is stationary.

/// Virtual users of the flood: enough to keep every core busy, few enough not to time out.
pub const FLOOD_THREADS: u32 = 48;
/// Rows being written at once while the table is filled.
pub const POPULATE_IN_FLIGHT: u32 = 64;
/// The share of the warm-up's limit that filling and flooding may take together; the rest is for settling.
pub const FLOOD_SHARE: f64 = 0.5;
/// Seconds that are compared: the older half with the newer half.
const WINDOW: usize = 8;
/// Medians may differ by this share …
const DRIFT: f64 = 0.20;
/// … or by this much, ns: below it, the difference is the machine's noise.
const NOISE_NS: f64 = 500_000.0;
/// Of the operations offered in the window, this share has to have been answered: no queue is growing.
const DELIVERED: f64 = 0.98;

/// One second of settled load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// Operations that were to start.
    pub offered: u64,
    /// Operations answered without error.
    pub delivered: u64,
    /// Median response, ns.
    pub p50_ns: u64,
}

/// Whether the last seconds look like those before them.
pub fn stationary(seconds: &[Second]) -> bool {
    let Some(window) = seconds.len().checked_sub(WINDOW).map(|from| &seconds[from..]) else { return false };
    let offered: u64 = window.iter().map(|second| second.offered).sum();
    let delivered: u64 = window.iter().map(|second| second.delivered).sum();
    if offered == 0 || (delivered as f64) < DELIVERED * offered as f64 {
        return false;
    }
    let (older, newer) = window.split_at(WINDOW / 2);
    let (older, newer) = (median(older), median(newer));
    (older - newer).abs() <= (DRIFT * older).max(NOISE_NS)
}

fn median(seconds: &[Second]) -> f64 {
    let mut medians: Vec<u64> = seconds.iter().map(|second| second.p50_ns).collect();
    medians.sort_unstable();
    let middle = medians.len() / 2;
    (medians[middle - 1] + medians[middle]) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(p50_ms: &[f64]) -> Vec<Second> {
        p50_ms.iter().map(|ms| Second { offered: 400, delivered: 400, p50_ns: (ms * 1e6) as u64 }).collect()
    }

    #[test]
    fn steady_latency_is_stationary_and_falling_latency_is_not() {
        assert!(stationary(&seconds(&[3.0, 3.1, 2.9, 3.0, 3.2, 3.0, 2.8, 3.0])));
        assert!(!stationary(&seconds(&[30.0, 20.0, 15.0, 12.0, 9.0, 7.0, 6.0, 5.0])));
        assert!(
            stationary(&seconds(&[90.0, 30.0, 3.0, 3.1, 2.9, 3.0, 3.2, 3.0, 2.8, 3.0])),
            "only the last seconds count"
        );
    }

    #[test]
    fn one_stalled_second_does_not_decide() {
        assert!(stationary(&seconds(&[3.0, 3.1, 2.9, 3.0, 80.0, 3.0, 2.8, 3.0])));
    }

    #[test]
    fn too_few_seconds_tell_nothing() {
        assert!(!stationary(&seconds(&[3.0; 7])));
        assert!(!stationary(&[]));
    }

    #[test]
    fn a_growing_queue_is_not_stationary() {
        let mut seconds = seconds(&[3.0; 8]);
        seconds.iter_mut().for_each(|second| second.delivered = 380);
        assert!(!stationary(&seconds));
    }
}
