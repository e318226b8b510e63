//! When a warm-up is over: by work done and by looking, not by the clock alone.
//!
//! A JVM is an order of magnitude slower in its first hundred thousand operations, so the warm-up
//! writes every row once, floods (a closed loop, as much as the cluster takes), then settles to the
//! measured load and ends when its latency no longer falls.

use brownout_analysis::words::SHOWN;
use brownout_statistics::{SETTLED_HALF, fall, has_settled};

/// Virtual users of the flood: enough to keep every core busy, few enough not to time out.
pub const FLOOD_THREADS: u32 = 48;
/// Rows being written at once while the table is filled.
pub const POPULATE_IN_FLIGHT: u32 = 64;
/// The share of the warm-up's limit that filling and flooding may take together; the rest is for settling.
pub const FLOOD_SHARE: f64 = 0.5;
/// Fewer seconds are not compared.
const LEAST_SECONDS: usize = 8;
/// Of the operations offered in the seconds that are compared, this share has to have been answered: no queue is growing.
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

/// The settled load of a warm-up, second by second.
pub struct Settling {
    seconds: Vec<Second>,
    /// How many of the last seconds are compared, the older half with the newer.
    window: usize,
}

impl Settling {
    /// With so much time left until the warm-up's limit: 40 s are compared, or all that is left if that is less.
    pub fn within(left_ns: u64) -> Self {
        let left = usize::try_from(left_ns / 1_000_000_000).unwrap_or(usize::MAX);
        Settling { seconds: Vec::new(), window: (left / 2 * 2).clamp(LEAST_SECONDS, 2 * SETTLED_HALF) }
    }

    /// Of a cluster that has served trials before: it is warm, and only has to come to rest.
    pub fn of_warm_cluster() -> Self {
        Settling { seconds: Vec::new(), window: LEAST_SECONDS }
    }

    /// One more second.
    pub fn add(&mut self, second: Second) {
        self.seconds.push(second);
    }

    /// Whether latency no longer falls, and what is offered is answered.
    pub fn is_over(&self) -> bool {
        self.seconds.len() >= self.window && is_stationary(&self.seconds[self.seconds.len() - self.window..])
    }

    /// Why it is not over at the limit, if so. A second that was missed does not leave it undecided: what there is is
    /// compared.
    pub fn doubt(&self) -> Option<String> {
        let compared = self.window.min(self.seconds.len() / 2 * 2);
        if compared < LEAST_SECONDS {
            return Some(format!("{} s of the settled load are too few to tell", self.seconds.len()));
        }
        let last = &self.seconds[self.seconds.len() - compared..];
        if is_stationary(last) {
            return None;
        }
        let (offered, delivered) = totals(last);
        let half = compared / 2;
        Some(match is_answered(last) {
            true => format!(
                "in its last {half} s p50 of those {SHOWN} was {:.0}% below that of the {half} s before",
                percent_below(last)
            ),
            false => format!("in its last {compared} s {delivered} of {offered} operations were answered"),
        })
    }
}

fn is_stationary(seconds: &[Second]) -> bool {
    is_answered(seconds) && has_settled(&medians(seconds))
}

fn is_answered(seconds: &[Second]) -> bool {
    let (offered, delivered) = totals(seconds);
    offered > 0 && delivered as f64 >= DELIVERED * offered as f64
}

fn totals(seconds: &[Second]) -> (u64, u64) {
    let offered = seconds.iter().map(|second| second.offered).sum();
    (offered, seconds.iter().map(|second| second.delivered).sum())
}

fn medians(seconds: &[Second]) -> Vec<f64> {
    seconds.iter().map(|second| second.p50_ns.max(1) as f64).collect()
}

fn percent_below(seconds: &[Second]) -> f64 {
    -(-fall(&medians(seconds))).exp_m1() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn settling(left_s: u64, p50_ms: impl IntoIterator<Item = f64>) -> Settling {
        let mut settling = Settling::within(left_s * SECOND);
        let second = |ms: f64| Second { offered: 400, delivered: 400, p50_ns: (ms * 1e6) as u64 };
        p50_ms.into_iter().for_each(|ms| settling.add(second(ms)));
        settling
    }

    /// The second by whose end it is over.
    fn ends(left_s: u64, p50_ms: &[f64]) -> Option<usize> {
        (1..=p50_ms.len()).find(|end| settling(left_s, p50_ms[..*end].iter().copied()).is_over())
    }

    /// Falls by e in 20 s, from twice as slow.
    fn falling() -> Vec<f64> {
        (0..100).map(|second| 3.0 * (1.0 + (-f64::from(second) / 20.0).exp())).collect()
    }

    #[test]
    fn with_time_enough_forty_seconds_are_compared() {
        assert_eq!(ends(60, &[3.0; 60]), Some(40));
        let end = ends(120, &falling()).unwrap();
        let left = (-(end as f64) / 20.0).exp();
        assert!(end < 90 && left < 0.04, "after {end} s {left} of what fell is left");
        // Getting slower is no warming up.
        assert_eq!(ends(60, &(0..60).map(|second| 3.0 + f64::from(second)).collect::<Vec<_>>()), Some(40));
    }

    #[test]
    fn with_less_time_all_that_is_left_is_compared() {
        for left in [10, 16, 20, 39] {
            assert_eq!(ends(left, &[3.0; 60]), Some(left as usize / 2 * 2), "{left}");
        }
        assert_eq!(ends(16, &falling()[..16]), None);
        let doubt = settling(16, falling()[..16].to_vec()).doubt().unwrap();
        assert_eq!(doubt, "in its last 8 s p50 of those ok and timed out was 15% below that of the 8 s before");
    }

    #[test]
    fn stalled_seconds_do_not_decide() {
        let mut p50 = vec![3.0; 16];
        (p50[2], p50[4], p50[13]) = (80.0, 90.0, 80.0);
        assert_eq!(ends(16, &p50), Some(16));
    }

    #[test]
    fn a_second_that_was_missed_leaves_it_decided_at_the_limit() {
        let missed = settling(16, [3.0; 15]);
        assert!(!missed.is_over());
        assert_eq!(missed.doubt(), None);
    }

    #[test]
    fn too_few_seconds_tell_nothing() {
        for (left, seen) in [(16, 7), (3, 3), (0, 0)] {
            let few = settling(left, vec![3.0; seen]);
            assert!(!few.is_over());
            assert_eq!(few.doubt(), Some(format!("{seen} s of the settled load are too few to tell")));
        }
    }

    #[test]
    fn a_growing_queue_is_not_stationary() {
        let mut settling = settling(16, [3.0; 16]);
        settling.seconds.iter_mut().for_each(|second| second.delivered = 380);
        assert!(!settling.is_over());
        assert_eq!(settling.doubt().unwrap(), "in its last 16 s 6080 of 6400 operations were answered");
    }
}
