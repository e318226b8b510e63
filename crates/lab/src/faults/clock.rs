//! `clock`: a node's clock is wrong.

use brownout_clock::HostClock;
use brownout_network::Change;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::Delay;

use super::{Fault, Healing, InForce, Needs, Reach, Untouched, join, known_nodes, reach::together};
use crate::{
    LabError,
    experiment::{ClockFault, Complaint},
    hosts::Hosts,
};

/// The least error of an offset: what an exchange on a busy machine cannot tell.
const NOISE: Delay = Delay::from_ms(5);
/// Databases tell their clock in milliseconds.
const LEAST_OFFSET: Delay = Delay::from_ms(20);
/// A drift shows against the noise after seconds only; ns per s.
const LEAST_DRIFT: i64 = 1_000_000;
/// Farther from the truth, certificates end and nothing works any more; a day is more than any zone.
const MOST_OFFSET: Delay = Delay::from_secs(86_400);

/// The nodes' wall clocks are ahead or behind, or too fast or too slow; time-outs and sleeps are not touched.
#[derive(Debug, Clone)]
pub struct Clock {
    nodes: Vec<String>,
    offset_ns: i64,
    drift_ppb: i64,
}

impl Clock {
    pub(super) fn new(entry: &ClockFault, hosts: &Hosts) -> Result<Clock, Complaint> {
        let (offset, drift) = (entry.offset.ns, entry.drift.ppb);
        if offset == 0 && drift == 0 {
            return Err(Complaint::at(
                "",
                "neither an offset nor a drift: this does nothing; write offset: 5s or drift: 1%",
            ));
        }
        let far = Delay::from_ns(offset.unsigned_abs());
        if offset != 0 && !(LEAST_OFFSET..=MOST_OFFSET).contains(&far) {
            let message = format!(
                "{} cannot be put in force and proven; write {LEAST_OFFSET} to {MOST_OFFSET}, or the same with a minus",
                entry.offset
            );
            return Err(Complaint::at("offset", message));
        }
        if drift != 0 && drift.abs() < LEAST_DRIFT {
            let message = format!("{} cannot be proven within a phase; write 1000ppm or more", entry.drift);
            return Err(Complaint::at("drift", message));
        }
        Ok(Clock { nodes: known_nodes(&entry.host, hosts)?, offset_ns: offset, drift_ppb: drift })
    }
}

impl Fault for Clock {
    fn kind(&self) -> &'static str {
        "clock"
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        let whose = if self.nodes.len() == 1 { "the clock of" } else { "the clocks of" };
        let mut parts = Vec::new();
        if self.offset_ns != 0 {
            let side = if self.offset_ns > 0 { "ahead" } else { "behind" };
            parts.push(format!("{} {side}", Delay::from_ns(self.offset_ns.unsigned_abs())));
        }
        if self.drift_ppb != 0 {
            let side = if self.drift_ppb > 0 { "fast" } else { "slow" };
            parts.push(format!("{} ppm too {side}", self.drift_ppb.unsigned_abs() as f64 / 1e3));
        }
        let are = if self.nodes.len() == 1 { "is" } else { "are" };
        format!("{whose} {} {are} {}", join(&self.nodes), parts.join(" and "))
    }

    fn effect(&self) -> String {
        "timestamps that it makes are wrong, so writes may win or lose against others'; time-outs and RTTs stay"
            .to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let mut all = Vec::new();
        for host in hosts.nodes() {
            let hit = self.nodes.contains(&host.name);
            let mut expect = |quantity, asked: f64, tolerance: f64| {
                let asked = if hit { asked } else { 0.0 };
                all.push(Expectation { subject: Subject::host(host.name.clone()), quantity, hit, asked, tolerance });
            };
            if self.drift_ppb != 0 {
                expect(Quantity::ClockDrift, self.drift_ppb as f64, self.drift_ppb.unsigned_abs() as f64 * 0.2);
            } else {
                expect(Quantity::ClockOffset, self.offset_ns as f64, NOISE.ns() as f64);
            }
        }
        all
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(brownout_analysis::SETTLE_NS)
    }

    fn needs(&self) -> Needs {
        Needs { clocks: self.nodes.clone(), clock_witness: true, ..Needs::default() }
    }

    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError> {
        if reach.sabotage {
            return Ok(Untouched::now());
        }
        let mut wrong =
            Wrong { clocks: Vec::new(), offset_ns: self.offset_ns, drift_ppb: self.drift_ppb, changes: Vec::new() };
        for node in &self.nodes {
            let clock = reach.clock(node)?;
            let (asked_ns, done_ns) = clock.shift(self.offset_ns, self.drift_ppb)?;
            wrong.clocks.push(clock.clone());
            wrong.changes.push(Change::between(asked_ns, done_ns));
        }
        Ok(Box::new(wrong))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        let of = |value: i64| (value as f64 * share).round() as i64;
        Some(Box::new(Clock { offset_ns: of(self.offset_ns), drift_ppb: of(self.drift_ppb), ..self.clone() }))
    }
}

/// Takes back in the end what it added, and what its drift has added since.
struct Wrong {
    clocks: Vec<HostClock>,
    offset_ns: i64,
    drift_ppb: i64,
    changes: Vec<Change>,
}

impl Wrong {
    fn undo(&mut self) -> Result<Change, LabError> {
        let mut changes = Vec::new();
        for (clock, since) in std::mem::take(&mut self.clocks).into_iter().zip(&self.changes) {
            let for_ns = brownout_network::monotonic_ns().saturating_sub(since.at_ns) as f64;
            let drifted = (for_ns * self.drift_ppb as f64 / 1e9) as i64;
            let (asked_ns, done_ns) = clock.shift(-self.offset_ns - drifted, -self.drift_ppb)?;
            changes.push(Change::between(asked_ns, done_ns));
        }
        Ok(together(changes))
    }
}

impl InForce for Wrong {
    fn change(&self) -> Change {
        together(self.changes.iter().copied())
    }

    fn heal(mut self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(self.undo()?))
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        // Its file has gone with the lab, if this fails: then there is no clock left to be wrong.
        let _ = self.undo();
    }
}
