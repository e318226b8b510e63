//! Peer-relative: each coordinator beside the others. What hits all alike (a busy machine, more load) cancels out.
//!
//! The idea is that of IASO (Panda et al., USENIX ATC 2019), which compares counts of time-outs between peers; here it is latencies, so that
//! what is slow shows before anything times out.

use super::{
    Accused, Alarm, Watched,
    change::{Cusum, Usual},
};
use crate::stats;

/// A deviation is at least this, in ln: of a coordinator that becomes slower than its peers by less than a tenth nobody is told.
const FLOOR: f64 = 0.1;
/// A coordinator of which at least so many operations ended in a step, in the mean of those that are learnt from, is missed when none ends.
const MISSED: f64 = 5.0;

/// Where there are peers.
pub(super) fn can_watch(watched: &Watched) -> bool {
    watched.coordinators.len() > 1
}

/// Of each coordinator the mean ln latency in each step (what failed counts as long as the time-out) less the median of its peers', in deviations from
/// what that was in the steps that are learnt from, summed up (CUSUM).
pub(super) fn alarms(watched: &Watched) -> Vec<Alarm> {
    let coordinators = watched.coordinators.len();
    let values: Vec<Vec<Option<f64>>> =
        (0..watched.steps.len()).map(|at| (0..coordinators).map(|one| mean_log(watched, at, one)).collect()).collect();
    let relative = |at: usize, one: usize| -> Option<f64> {
        let others = (0..coordinators).filter(|other| *other != one).filter_map(|other| values[at][other]);
        Some(values[at][one]? - stats::middle(&mut others.collect::<Vec<_>>())?)
    };
    let learnt = watched.learnt.min(watched.steps.len());
    let usual: Vec<Option<Usual>> = (0..coordinators)
        .map(|one| Usual::of(&(0..learnt).filter_map(|at| relative(at, one)).collect::<Vec<_>>(), FLOOR))
        .collect();
    let missed: Vec<bool> = (0..coordinators)
        .map(|one| {
            let ended: f64 = (0..learnt).map(|at| watched.at_coordinator(at, one).count()).sum();
            ended >= MISSED * learnt as f64
        })
        .collect();
    let mut sums = vec![Cusum::default(); coordinators];
    let mut alarms = Vec::new();
    for (at, now) in values.iter().enumerate().skip(learnt) {
        let anything = now.iter().any(Option::is_some);
        for (one, sum) in sums.iter_mut().enumerate() {
            let Some(usual) = usual[one] else { continue };
            let z = match relative(at, one) {
                Some(value) => usual.z(value),
                None if now[one].is_none() && anything && missed[one] => Cusum::MOST,
                None => continue,
            };
            if sum.raises(z) {
                let accused = Some(Accused::node(&watched.coordinators[one]));
                alarms.push(Alarm { at_ns: watched.end_of(at), accused });
            }
        }
    }
    alarms
}

fn mean_log(watched: &Watched, step: usize, coordinator: usize) -> Option<f64> {
    let ended = watched.at_coordinator(step, coordinator);
    let count = ended.count();
    let failed = ended.failed * (watched.timeout_ns.max(1) as f64).ln();
    (count > 0.0).then(|| (ended.ok.sum_of_logs() + ended.timed_out.sum_of_logs() + failed) / count)
}
