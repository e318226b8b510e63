//! The static threshold: an alert on the objective, as operators write it. It accuses nobody.

use super::{Alarm, Watched, change::Latch};

/// Steps in a row in which more than the objective allows was bad.
const STEPS: usize = 3;

/// More than the objective's share of the operations that ended in a step were not good (slow, timed out, failed, given up), in each of
/// three steps in a row. A step in which nothing ended, although something did in every step of those that are learnt from, counts as one.
pub(super) fn alarms(watched: &Watched) -> Vec<Alarm> {
    let busy = watched.steps.iter().take(watched.learnt).all(|step| ended(watched, step).0 > 0.0);
    let (mut latch, mut row) = (Latch::default(), 0);
    let mut alarms = Vec::new();
    for (at, step) in watched.steps.iter().enumerate().skip(watched.learnt) {
        let (all, bad) = ended(watched, step);
        let missed = if all > 0.0 { bad / all > watched.limit.bad_share } else { busy };
        row = if missed { row + 1 } else { 0 };
        if latch.raises(row >= STEPS) {
            alarms.push(Alarm { at_ns: watched.end_of(at), accused: None });
        }
    }
    alarms
}

/// All that ended, and the bad ones among them.
fn ended(watched: &Watched, step: &super::Step) -> (f64, f64) {
    let limit = &watched.limit;
    let of_limit = |operation: &str| limit.operation.as_ref().is_none_or(|name| name == operation);
    let mut sums = (step.unsent, step.unsent);
    for (stream, ended) in watched.streams.iter().zip(&step.ended) {
        if of_limit(&stream.operation) {
            sums.0 += ended.count();
            sums.1 += ended.ok.above(limit.response_ns) + ended.timed_out.count() + ended.failed;
        }
    }
    sums
}
