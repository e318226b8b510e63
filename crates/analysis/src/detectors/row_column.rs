//! Rows and columns: heartbeats between all hosts tell a slow node from a slow link.
//!
//! A slow node makes all round trips to and from it longer, a row and a column of the table of all pairs; a slow link makes one cell of it longer. So each
//! is tried as the only cause. Growth is in ns, not in ln: a delay adds the same to near and far pairs.

use std::collections::VecDeque;

use super::{
    Accused, Alarm, HEARTBEAT_TIMEOUT_NS, Heartbeats, Watched,
    change::{Cusum, Usual},
};
use crate::stats;

/// A deviation is at least this, ns, and this share of the usual round trip.
const FLOOR_NS: f64 = 100_000.0;
const FLOOR_SHARE: f64 = 0.1;
/// A share that is lost deviates by at least this.
const LEAST_LOSS: f64 = 0.01;
/// The accusation is drawn from so many steps, up to the alarm.
const LOOKS_BACK: usize = 5;
/// Where there were heartbeats to learn from.
pub(super) fn can_watch(watched: &Watched) -> bool {
    let learnt = watched.learnt.min(watched.steps.len());
    (0..watched.pairs.len()).any(|pair| Pair::learnt(watched, pair, learnt).usual.is_some())
}

/// When the growth of any pair's round trip, or of the share of its heartbeats that is lost, has added up (CUSUM), a cause is looked for. An alarm is
/// raised if it is none of those that are known since a time when nothing had added up: a slow node shows in several pairs, one after the other.
pub(super) fn alarms(watched: &Watched) -> Vec<Alarm> {
    let learnt = watched.learnt.min(watched.steps.len());
    let mut pairs: Vec<Pair> = (0..watched.pairs.len()).map(|pair| Pair::learnt(watched, pair, learnt)).collect();
    let mut known: Vec<Option<Accused>> = Vec::new();
    let mut alarms = Vec::new();
    for at in learnt..watched.steps.len() {
        let mut raised = false;
        for (pair, heartbeats) in pairs.iter_mut().zip(&watched.steps[at].heartbeats) {
            raised |= pair.take(heartbeats);
        }
        if raised {
            let growth: Vec<Option<f64>> = pairs.iter().map(Pair::growth).collect();
            let accused = accuse(watched, &growth);
            if !known.contains(&accused) {
                known.push(accused.clone());
                alarms.push(Alarm { at_ns: watched.end_of(at), accused });
            }
        }
        if !pairs.iter().any(|pair| pair.delay.up() || pair.loss.up()) {
            known.clear();
        }
    }
    alarms
}

/// One pair of hosts.
struct Pair {
    /// Of the median round trip, ns, and of the share that is lost; none where there was nothing to learn from.
    usual: Option<(Usual, Usual)>,
    delay: Cusum,
    loss: Cusum,
    /// By how much longer heartbeats took than usual in the latest steps, ns; lost ones count as the time-out.
    grown: VecDeque<f64>,
}

impl Pair {
    fn learnt(watched: &Watched, pair: usize, learnt: usize) -> Pair {
        let steps = watched.steps.iter().take(learnt).filter_map(|step| step.heartbeats.get(pair));
        let usual = || {
            let (mut medians, mut shares, mut lost, mut sent) = (Vec::new(), Vec::new(), 0.0, 0.0);
            for heartbeats in steps {
                medians.extend(heartbeats.median_ns());
                shares.extend(heartbeats.lost_share());
                lost += heartbeats.lost as f64;
                sent += heartbeats.count();
            }
            let floor = FLOOR_NS.max(FLOOR_SHARE * stats::mean(&medians)?);
            // What was never seen to be lost may be: three more are counted, which is the 95 % bound of none.
            let (share, a_step) = (((lost + 3.0) / sent.max(1.0)).min(1.0), sent / shares.len().max(1) as f64);
            let deviation = (share * (1.0 - share) / a_step.max(1.0)).sqrt().max(LEAST_LOSS);
            Some((Usual::of(&medians, floor)?, Usual::of(&shares, deviation)?))
        };
        Pair { usual: usual(), delay: Cusum::default(), loss: Cusum::default(), grown: VecDeque::new() }
    }

    /// Takes a step's heartbeats; true if they raise an alarm of this pair.
    fn take(&mut self, heartbeats: &Heartbeats) -> bool {
        let (Some((delay, loss)), Some(lost)) = (self.usual, heartbeats.lost_share()) else { return false };
        let median = heartbeats.median_ns();
        let slower = median.is_some_and(|median| self.delay.raises(delay.z(median)));
        let lossier = self.loss.raises(loss.z(lost));
        let longer = median.map_or(0.0, |median| delay.above(median));
        self.grown.push_back((1.0 - lost) * longer + loss.above(lost) * HEARTBEAT_TIMEOUT_NS as f64);
        if self.grown.len() > LOOKS_BACK {
            self.grown.pop_front();
        }
        slower || lossier
    }

    fn growth(&self) -> Option<f64> {
        stats::mean(&self.grown.iter().copied().collect::<Vec<_>>())
    }
}

/// Whoever explains the growth best: a node, a link, or all of them together, that is nobody. What is left over is summed up as it is and not squared
/// (least absolute deviations), so that one pair that is far off does not decide.
fn accuse(watched: &Watched, growth: &[Option<f64>]) -> Option<Accused> {
    let known: Vec<([usize; 2], f64)> =
        watched.pairs.iter().zip(growth).filter_map(|(pair, growth)| Some((*pair, (*growth)?))).collect();
    let left_over = |explained: &dyn Fn(&[usize; 2]) -> bool| {
        let mut own: Vec<f64> = known.iter().filter(|(pair, _)| explained(pair)).map(|(_, growth)| *growth).collect();
        let common = stats::middle(&mut own).unwrap_or(0.0).max(0.0);
        known.iter().map(|(pair, growth)| (growth - if explained(pair) { common } else { 0.0 }).abs()).sum::<f64>()
    };
    let hosts = watched.hosts.len();
    // Of two hosts nobody can tell the one from the other, nor from what lies between.
    let mut causes = vec![(left_over(&|_| true), None)];
    if hosts > 2 {
        causes.extend(known.iter().map(|(link, _)| {
            let [one, other] = *link;
            let accused = Accused::link(&watched.hosts[one], &watched.hosts[other]);
            (left_over(&|pair| pair == link), Some(accused))
        }));
        causes.extend(
            (0..hosts).map(|host| (left_over(&|pair| pair.contains(&host)), Some(Accused::node(&watched.hosts[host])))),
        );
    }
    causes.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).and_then(|(_, accused)| accused)
}
