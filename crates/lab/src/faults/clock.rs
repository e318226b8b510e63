//! `clock`: a node's clock is wrong.

use std::sync::Arc;

use brownout_base::Change;
use brownout_clock::MAX_DRIFT_PPB;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::Delay;

use super::{
    capabilities::{Capabilities, ShiftClocks, now, together},
    fault::{ActiveFault, Fault, Healing, of_kind},
    names::{join, known_nodes},
    needs::Needs,
};
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
/// What a drift may add to an offset by the time that it is looked at, and from its end to its being taken back: a thread
/// that has to wait for a processor.
const LATE: Delay = Delay::from_ms(20);
/// A drift has to be seen against what a database's own timestamps may be wrong by, in milliseconds: three of them at both
/// ends of a window, by four fifths of the drift, for a slope of least squares before and during.
const DRIFT_EVIDENCE: Delay = Delay::from_ms(12);
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
        let database = hosts.database();
        if let Some(why) = database.fixed_clock() {
            let message = format!("the clock of {database} cannot be made wrong: {why}; leave this fault out");
            return Err(Complaint::at("", message));
        }
        let (offset, drift) = (entry.offset.ns, entry.drift.ppb);
        if offset == 0 && drift == 0 {
            return Err(Complaint::at(
                "",
                "without an offset or a drift this fault does nothing; write offset: 5s or drift: 1%",
            ));
        }
        let far = Delay::from_ns(offset.unsigned_abs());
        if offset != 0 && !(LEAST_OFFSET..=MOST_OFFSET).contains(&far) {
            let message = format!(
                "{} is outside of what can be injected and proven; write {LEAST_OFFSET} to {MOST_OFFSET}, or \
                 the same with a minus",
                entry.offset
            );
            return Err(Complaint::at("offset", message));
        }
        if drift != 0 && drift.abs() < LEAST_DRIFT {
            let message = format!("{} cannot be proven within a phase; write 1000ppm or more", entry.drift);
            return Err(Complaint::at("drift", message));
        }
        if drift.abs() > MAX_DRIFT_PPB {
            let message = format!("{} is more than a clock can drift; write up to 90%", entry.drift);
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
        "its timestamps are wrong, so its writes may win or lose against others'; timeouts and RTTs do not \
         change"
            .to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let mut all = Vec::new();
        for host in hosts.nodes() {
            let hit = self.nodes.contains(&host.name);
            let mut expect = |quantity, asked: f64, tolerance: f64| {
                let asked = if hit { asked } else { 0.0 };
                let subject = Subject::host(host.name.clone());
                all.push(Expectation { subject, quantity, hit, asked, tolerance, burst: None });
            };
            let drift = self.drift_ppb.unsigned_abs() as f64;
            if self.drift_ppb != 0 {
                expect(Quantity::ClockDrift, self.drift_ppb as f64, drift * 0.2);
            }
            // While it drifts, that at the moment in which it began; and none once it is healed.
            let late = drift / 1e9 * LATE.ns() as f64;
            expect(Quantity::ClockOffset, self.offset_ns as f64, NOISE.ns() as f64 + late);
        }
        all
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(brownout_analysis::SETTLE_NS)
    }

    fn evidence(&self) -> Delay {
        let drift = self.drift_ppb.unsigned_abs() as f64 / 1e9;
        if drift == 0.0 { Delay::ZERO } else { Delay::from_secs((DRIFT_EVIDENCE.secs() / drift).ceil() as u64) }
    }

    fn needs(&self) -> Needs {
        Needs { clocks: self.nodes.clone(), clock_witness: true, ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let mut wrong = WrongClocks { control: Arc::clone(&capabilities.clocks), clocks: Vec::new() };
        for node in &self.nodes {
            let since = capabilities.clocks.shift(node, self.offset_ns, self.drift_ppb)?;
            wrong.clocks.push(WrongClock {
                node: node.clone(),
                offset_ns: self.offset_ns,
                drift_ppb: self.drift_ppb,
                since,
            });
        }
        Ok(Box::new(wrong))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        let of = |value: i64| (value as f64 * share).round() as i64;
        let (offset_ns, drift_ppb) = (of(self.offset_ns), of(self.drift_ppb));
        // A step that nobody could prove is none.
        let told = |value: i64, least: u64| value == 0 || value.unsigned_abs() >= least;
        (told(offset_ns, LEAST_OFFSET.ns()) && told(drift_ppb, LEAST_DRIFT.unsigned_abs()))
            .then(|| Box::new(Clock { offset_ns, drift_ppb, ..self.clone() }) as Box<dyn Fault>)
    }
}

/// Takes back in the end what it added, and what its drift has added since.
struct WrongClocks {
    control: Arc<dyn ShiftClocks>,
    clocks: Vec<WrongClock>,
}

/// What was added to one clock, and when.
struct WrongClock {
    node: String,
    offset_ns: i64,
    drift_ppb: i64,
    since: Change,
}

impl WrongClock {
    fn undo(self, control: &dyn ShiftClocks) -> Result<Change, LabError> {
        // First the drift, so that it is known for how long it was there, to what one call takes.
        let ended = control.shift(&self.node, 0, -self.drift_ppb)?;
        let back = control.shift(&self.node, -self.offset_ns - drifted(self.drift_ppb, self.since, ended), 0)?;
        Ok(together([ended, back]))
    }

    /// In one step from where it is.
    fn amend(&mut self, to: &Clock, control: &dyn ShiftClocks) -> Result<(), LabError> {
        let gained = drifted(self.drift_ppb, self.since, now());
        let by_ns = to.offset_ns - self.offset_ns - gained;
        self.since = control.shift(&self.node, by_ns, to.drift_ppb - self.drift_ppb)?;
        (self.offset_ns, self.drift_ppb) = (to.offset_ns, to.drift_ppb);
        Ok(())
    }
}

impl WrongClocks {
    /// Takes all of it back, whatever becomes of one; says what went wrong first.
    fn undo(&mut self) -> Result<Change, LabError> {
        let undone: Vec<_> =
            std::mem::take(&mut self.clocks).into_iter().map(|clock| clock.undo(&*self.control)).collect();
        Ok(together(undone.into_iter().collect::<Result<Vec<_>, _>>()?))
    }
}

impl ActiveFault for WrongClocks {
    fn change(&self) -> Change {
        together(self.clocks.iter().map(|clock| clock.since))
    }

    fn heal(mut self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(self.undo()?))
    }

    fn amend(&mut self, to: &dyn Fault) -> Result<Option<Change>, LabError> {
        let same = |to: &&Clock| to.nodes.iter().eq(self.clocks.iter().map(|clock| &clock.node));
        let Some(to) = of_kind::<Clock>(to).filter(same) else { return Ok(None) };
        self.clocks.iter_mut().try_for_each(|clock| clock.amend(to, &*self.control))?;
        Ok(Some(self.change()))
    }
}

/// What a drift has gained between two changes, ns.
fn drifted(drift_ppb: i64, from: Change, to: Change) -> i64 {
    (to.at_ns.saturating_sub(from.at_ns) as f64 * drift_ppb as f64 / 1e9) as i64
}

impl Drop for WrongClocks {
    fn drop(&mut self) {
        // Its file has gone with the lab, if this fails: then there is no clock left to be wrong.
        let _ = self.undo();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> Result<Clock, Complaint> {
        Clock::new(&serde_json::from_str(&format!(r#"{{"host":"n2",{body}}}"#)).unwrap(), &Hosts::new(3))
    }

    #[test]
    fn a_clock_that_is_read_past_the_lab_is_refused() {
        let hosts = Hosts::new(3).running(brownout_cluster::DatabaseKind::Etcd);
        let entry: ClockFault = serde_json::from_str(r#"{"host":"n2","offset":"5s"}"#).unwrap();
        let said = Clock::new(&entry, &hosts).unwrap_err().message;
        assert!(said.contains("the clock of etcd") && said.contains("C library"), "{said}");
    }

    #[test]
    fn a_drift_that_no_clock_can_have_is_refused() {
        for drift in ["95%", "-95%", "100%"] {
            assert_eq!(fault(&format!(r#""drift":"{drift}""#)).unwrap_err().key, "drift");
        }
        assert!(fault(r#""drift":"90%""#).is_ok());
    }

    #[test]
    fn a_drift_has_an_offset_when_it_begins_and_none_when_it_is_healed() {
        for (body, offset) in [(r#""drift":"1%""#, 0.0), (r#""drift":"1%","offset":"2s""#, 2e9)] {
            let asked = fault(body).unwrap().expectations(&Hosts::new(3));
            let of = |quantity| asked.iter().find(|one| one.hit && one.quantity == quantity).unwrap().asked;
            assert_eq!((of(Quantity::ClockDrift), of(Quantity::ClockOffset)), (10_000_000.0, offset));
            assert_eq!(asked.iter().filter(|one| !one.hit && one.asked == 0.0).count(), 4);
        }
    }

    #[test]
    fn a_ramp_does_not_go_below_what_can_be_proven() {
        let of = |body: &str, share| fault(body).unwrap().scaled(share).is_some();
        assert!(of(r#""offset":"50ms""#, 0.5) && !of(r#""offset":"50ms""#, 0.2));
        assert!(of(r#""drift":"2000ppm""#, 0.5) && !of(r#""drift":"2000ppm""#, 0.2));
    }

    #[test]
    fn a_small_drift_takes_longer_to_prove() {
        assert_eq!(fault(r#""drift":"1000ppm""#).unwrap().evidence(), Delay::from_secs(12));
        assert_eq!(fault(r#""offset":"1s""#).unwrap().evidence(), Delay::ZERO);
    }
}
