//! The schedule of the faults: when each is injected and healed, and which are in force.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use brownout_base::{Change, clock::monotonic_ns, random::derive};
use brownout_cluster::ClusterError;
use brownout_record::{FaultRecord, Stamp};

use crate::{
    LabError,
    faults::{ActiveFault, Capabilities, Fault, Healing, Role, Roles},
    hosts::Hosts,
    observer::Observer,
    plan::{BRIEF, PlannedFault, PlannedPeriod},
};

/// A fault that would begin later than this is left out, ns: in force at another time it were another experiment.
const LATE_NS: u64 = 1_000_000_000;
/// A busy machine does not end a period in time. One that is longer or shorter by more than this share, and [`UNTIMELY_NS`], is told.
const UNTIMELY: f64 = 0.1;
/// What a change of a fault may take on a busy machine, ns.
const UNTIMELY_NS: u64 = 20_000_000;
/// Between two looks at whether a database has started.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The faults of one trial.
pub struct Schedule<'a> {
    faults: Vec<Scheduled<'a>>,
    hosts: &'a Hosts,
    capabilities: &'a Capabilities,
    roles: Roles,
}

struct Scheduled<'a> {
    planned: &'a PlannedFault,
    record: FaultRecord,
    /// The start of the phase `fault`; none before it.
    phase_ns: Option<u64>,
    /// The period that is in force, or comes next.
    period: usize,
    state: FaultState,
    /// It was asked for, but is not in force everywhere yet: the record knows only that.
    settling: bool,
    /// Of a fault that follows a role, the node that had it when it was last drawn.
    struck: Option<String>,
    /// Of such a fault, which of the record's severities are of which planned one on which node.
    cast: Vec<(usize, String, usize)>,
}

enum FaultState {
    /// Not in force.
    Out,
    ActiveFault(Box<dyn ActiveFault>),
    /// A database is starting again; it was healed when the thread ends.
    Healing(JoinHandle<Result<Change, LabError>>),
}

impl<'a> Schedule<'a> {
    /// Nothing in force yet. `seed` is the trial's: which of several nodes with a role a fault strikes is drawn from it.
    pub fn new(faults: &'a [PlannedFault], hosts: &'a Hosts, capabilities: &'a Capabilities, seed: u64) -> Self {
        Schedule::of(faults, &|_| true, hosts, capabilities, seed)
    }

    /// The same of some of the faults alone, which keep their numbers.
    pub fn of(
        faults: &'a [PlannedFault],
        is_meant: &dyn Fn(&PlannedFault) -> bool,
        hosts: &'a Hosts,
        capabilities: &'a Capabilities,
        seed: u64,
    ) -> Self {
        let scheduled = |(index, planned): (usize, &'a PlannedFault)| {
            let record = planned.record(index, hosts);
            let (struck, cast) = (None, Vec::new());
            Scheduled {
                planned,
                record,
                phase_ns: None,
                period: 0,
                state: FaultState::Out,
                settling: false,
                struck,
                cast,
            }
        };
        let roles = Roles::new(derive(seed, u64::from_be_bytes(*b"   roles")));
        let meant = faults.iter().enumerate().filter(|(_, planned)| is_meant(planned));
        Schedule { faults: meant.map(scheduled).collect(), hosts, capabilities, roles }
    }

    /// The phase `fault` begins at this moment.
    pub fn begin(&mut self, phase_ns: u64) {
        self.faults.iter_mut().for_each(|fault| fault.phase_ns = Some(phase_ns));
    }

    /// The moment of the next change.
    pub fn next_action(&self) -> Option<u64> {
        self.faults.iter().filter_map(Scheduled::next).min()
    }

    /// What is in force, in words.
    pub fn in_force(&self) -> Vec<String> {
        let in_force = self.faults.iter().filter(|fault| matches!(fault.state, FaultState::ActiveFault(_)));
        in_force.filter_map(|fault| Some(fault.concrete(fault.severity()?)?.text())).collect()
    }

    /// Makes every change that is due, records it, and tells of it.
    pub fn act(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<Vec<String>, LabError> {
        let now = monotonic_ns();
        let mut told = Vec::new();
        // Healing first: a fault that ends when another begins must not overlap with it.
        for fault in &mut self.faults {
            fault.settled(trial, observer)?;
            told.extend(fault.healed(false, trial, observer)?);
            if fault.is_due(now) && matches!(fault.state, FaultState::ActiveFault(_)) {
                told.extend(fault.end_period(self.hosts, self.capabilities, trial, observer)?);
            }
        }
        // All roles are drawn before anything is injected that may take them from those who have them.
        let stilled: Vec<String> = self.faults.iter().flat_map(Scheduled::stills).collect();
        for fault in &mut self.faults {
            if fault.is_due(now) && matches!(fault.state, FaultState::Out) {
                let drawn = fault.draw(&mut self.roles, self.hosts, &stilled, self.capabilities);
                told.extend(fault.drawn(drawn, trial, observer)?);
            }
        }
        for fault in &mut self.faults {
            if fault.is_due(now) && matches!(fault.state, FaultState::Out) {
                told.push(fault.inject(self.hosts, self.capabilities, trial, observer)?);
            }
        }
        Ok(told)
    }

    /// Heals whatever is in force, and waits for what takes its time, unless `interrupted` says that all is about to end:
    /// then that is left as it is.
    pub fn heal_all(
        &mut self,
        interrupted: &dyn Fn() -> bool,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<(), LabError> {
        // What went wrong first is what a person has to know; the others are healed all the same.
        let mut result = Ok(());
        for fault in &mut self.faults {
            let left =
                matches!(&fault.state, FaultState::ActiveFault(guard) if guard.takes_long_to_heal()) && interrupted();
            if !left {
                result = result.and(fault.heal(trial, observer).map(drop));
            }
        }
        for fault in &mut self.faults {
            while matches!(&fault.state, FaultState::Healing(thread) if !thread.is_finished()) && !interrupted() {
                std::thread::sleep(LOOK_EVERY);
            }
            let healed = fault.healed(false, trial, observer).map(drop);
            let left = if matches!(fault.state, FaultState::Out) { Ok(()) } else { Err(LabError::Interrupted) };
            // One that never came into force is recorded as such.
            let written = observer.recorder().batch(|recorder| recorder.fault(trial, &fault.record));
            result = result.and(healed).and(left).and(written.map_err(LabError::from));
        }
        result
    }
}

impl Scheduled<'_> {
    fn current(&self) -> Option<&PlannedPeriod> {
        self.planned.periods.get(self.period)
    }

    fn severity(&self) -> Option<usize> {
        Some(self.current()?.severity)
    }

    /// That severity of the fault, on the node that was drawn if it follows a role; none if no node was.
    fn concrete(&self, severity: usize) -> Option<Arc<dyn Fault>> {
        let fault = self.planned.severities.get(severity)?;
        match fault.role() {
            Some(_) => fault.on_node(self.struck.as_deref()?),
            None => Some(Arc::clone(fault)),
        }
    }

    /// The role that it follows, if it does.
    fn role(&self) -> Option<Role> {
        self.planned.fault()?.role()
    }

    /// The nodes that it has stopped or ended, until they are back.
    fn stills(&self) -> Vec<String> {
        let is_over = match &self.state {
            FaultState::Out => true,
            FaultState::ActiveFault(_) => false,
            FaultState::Healing(thread) => thread.is_finished(),
        };
        let fault = self.severity().and_then(|severity| self.concrete(severity)).filter(|_| !is_over);
        fault.map(|fault| fault.stills().to_vec()).unwrap_or_default()
    }

    /// What it does in this period, in words. The record's tell whom earlier periods have struck, if that is drawn.
    fn text(&self) -> String {
        if self.role().is_none() {
            return self.record.text.clone();
        }
        let drawn = self.severity().and_then(|severity| self.concrete(severity)).map(|fault| fault.text());
        drawn.or_else(|| self.planned.fault().map(Fault::text)).unwrap_or_default()
    }

    fn next(&self) -> Option<u64> {
        let (phase, period) = (self.phase_ns?, self.current()?);
        match self.state {
            FaultState::Out => Some(phase + period.starts.ns()),
            FaultState::ActiveFault(_) => Some(phase + period.ends.ns()),
            FaultState::Healing(_) => None,
        }
    }

    fn is_due(&self, now: u64) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// Draws the node that this period is to strike, if that is open, and notes when it was asked who it is.
    fn draw(
        &mut self,
        roles: &mut Roles,
        hosts: &Hosts,
        stilled: &[String],
        capabilities: &Capabilities,
    ) -> Option<Result<Change, LabError>> {
        let role = self.role()?;
        let nodes: Vec<String> = hosts.nodes().map(|node| node.name.clone()).collect();
        let asked_ns = monotonic_ns();
        let due_ns = self.phase_ns.zip(self.current()).map_or(asked_ns, |(at, period)| at + period.starts.ns());
        self.struck = None;
        loop {
            match roles.draw(role, &nodes, stilled, capabilities) {
                Ok(node) => {
                    self.struck = Some(node);
                    return Some(Ok(Change::between(asked_ns, monotonic_ns())));
                }
                // An election may be under way.
                Err(LabError::Cluster(ClusterError::NoLeader { .. })) if monotonic_ns() < due_ns + LATE_NS => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Tells of what was drawn. If nothing was, this period is left out.
    fn drawn(
        &mut self,
        drawn: Option<Result<Change, LabError>>,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<Option<String>, LabError> {
        let change = match drawn {
            None => return Ok(None),
            Some(Ok(change)) => change,
            Some(Err(error)) => return self.never_injected(&error.to_string(), trial, observer).map(Some),
        };
        let Some((role, node)) = self.role().zip(self.struck.clone()) else { return Ok(None) };
        self.write("draw", format!("{role} is {node}"), change, trial, observer).map(Some)
    }

    /// Has the record say what is to be seen now that a node was drawn.
    fn note_struck(&mut self, severity: usize, fault: &dyn Fault, hosts: &Hosts) {
        let Some((role, node)) = self.role().zip(self.struck.clone()) else { return };
        let known = self.cast.iter().find(|(of, on, _)| (*of, on) == (severity, &node)).map(|(.., at)| *at);
        let at = known.unwrap_or_else(|| {
            let told = self.planned.severity(severity, fault, Some(&node), hosts);
            // The place of a severity that has not been on any node yet is its own.
            let is_first = !self.cast.iter().any(|(of, ..)| *of == severity);
            let at = if is_first { severity } else { self.record.severities.len() };
            match self.record.severities.get_mut(at) {
                Some(place) => *place = told,
                None => self.record.severities.push(told),
            }
            self.cast.push((severity, node, at));
            at
        });
        if let Some(period) = self.record.periods.get_mut(self.period) {
            period.severity = u32::try_from(at).unwrap_or(u32::MAX);
        }
        let mut nodes: Vec<&str> = Vec::new();
        for (_, node, _) in &self.cast {
            if !nodes.contains(&node.as_str()) {
                nodes.push(node);
            }
        }
        let (whose, who) = (role.to_string(), format!("{role} ({})", nodes.join(", then ")));
        if let Some(asked) = self.planned.fault() {
            self.record.text = asked.text().replace(&whose, &who);
            self.record.effect = asked.effect().replace(&whose, &who);
        }
    }

    fn inject(
        &mut self,
        hosts: &Hosts,
        capabilities: &Capabilities,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<String, LabError> {
        let severity = self.severity();
        let Some((severity, fault)) = severity.and_then(|severity| Some((severity, self.concrete(severity)?))) else {
            return Ok(String::new());
        };
        let now = monotonic_ns();
        let span =
            self.phase_ns.zip(self.current()).map(|(at, period)| (at + period.starts.ns(), at + period.ends.ns()));
        if let Some(why) = span.and_then(|span| missed(span, now)) {
            return self.never_injected(&why, trial, observer);
        }
        self.note_struck(severity, fault.as_ref(), hosts);
        let brief = self.is_brief_on_links();
        if brief {
            observer.read_links()?;
        }
        let guard = match fault.inject(capabilities) {
            Err(error) if is_about_a_node(&error) => return self.never_injected(&error.to_string(), trial, observer),
            guard => guard?,
        };
        if brief {
            observer.read_links()?;
        }
        let change = guard.change();
        self.settling = guard.is_settling();
        self.state = FaultState::ActiveFault(guard);
        self.injected(change, observer);
        let text = format!("{}; {}", fault.text(), fault.effect());
        self.write("inject", text, change, trial, observer)
    }

    /// This period is over before it began. The trial goes on: that the fault is not proven says the rest.
    fn never_injected(&mut self, why: &str, trial: u32, observer: &mut Observer<'_>) -> Result<String, LabError> {
        let text = format!("not injected: {}: {why}", self.text());
        self.period += 1;
        let now = monotonic_ns();
        self.write("warning", text, Change::between(now, now), trial, observer)
    }

    /// Notices that what took its time to come into force is there.
    fn settled(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<(), LabError> {
        let FaultState::ActiveFault(guard) = &mut self.state else { return Ok(()) };
        if !self.settling || guard.is_settling() {
            return Ok(());
        }
        self.settling = false;
        guard.outcome()?;
        let change = guard.change();
        self.injected(change, observer);
        let text = format!("in force: {}", self.record.text);
        self.write("settled", text, change, trial, observer).map(drop)
    }

    /// The end of a period: the next step of a ramp follows without a gap, everything else is healed.
    fn end_period(
        &mut self,
        hosts: &Hosts,
        capabilities: &Capabilities,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<Option<String>, LabError> {
        let next = self.planned.periods.get(self.period + 1);
        let goes_on = next.zip(self.current()).is_some_and(|(next, current)| next.starts == current.ends);
        if !goes_on {
            return self.heal(trial, observer);
        }
        let Some((severity, fault)) = next.and_then(|next| Some((next.severity, self.concrete(next.severity)?))) else {
            return Ok(None);
        };
        let amended = match &mut self.state {
            FaultState::ActiveFault(guard) => guard.amend(fault.as_ref())?,
            FaultState::Out | FaultState::Healing(_) => None,
        };
        if let Some(change) = amended {
            self.over(change, observer);
            self.note_struck(severity, fault.as_ref(), hosts);
            self.injected(change, observer);
            let text = format!("{}; {}", fault.text(), fault.effect());
            return self.write("amend", text, change, trial, observer).map(Some);
        }
        // What cannot be changed in place goes for a moment.
        self.heal(trial, observer)?;
        self.healed(true, trial, observer)?;
        self.inject(hosts, capabilities, trial, observer).map(Some)
    }

    fn heal(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<Option<String>, LabError> {
        self.settled(trial, observer)?;
        if let (FaultState::ActiveFault(guard), true) = (&self.state, self.settling) {
            // It was coming all the time: then there is no moment of which one could say that it was there.
            let change = guard.change();
            self.settling = false;
            self.injected(change, observer);
        }
        match std::mem::replace(&mut self.state, FaultState::Out) {
            FaultState::ActiveFault(guard) => {
                let brief = self.is_brief_on_links();
                if brief {
                    observer.read_links()?;
                }
                let healing = guard.heal()?;
                if brief {
                    observer.read_links()?;
                }
                match healing {
                    Healing::Done(change) => self.told_over(change, trial, observer).map(Some),
                    Healing::UnderWay(thread) => {
                        self.state = FaultState::Healing(thread);
                        let text = format!("healing: {}", self.record.text);
                        let now = monotonic_ns();
                        self.write("healing", text, Change::between(now, now), trial, observer).map(Some)
                    }
                }
            }
            other => {
                self.state = other;
                Ok(None)
            }
        }
    }

    /// Notices that a healing that took its time is over, or waits for it.
    fn healed(&mut self, wait: bool, trial: u32, observer: &mut Observer<'_>) -> Result<Option<String>, LabError> {
        match std::mem::replace(&mut self.state, FaultState::Out) {
            FaultState::Healing(thread) if wait || thread.is_finished() => {
                let change = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                self.told_over(change, trial, observer).map(Some)
            }
            other => {
                self.state = other;
                Ok(None)
            }
        }
    }

    /// Whether it is one of links, in a period in which no reading of their counters may lie.
    fn is_brief_on_links(&self) -> bool {
        let brief = self.current().is_some_and(|period| period.ends.ns() - period.starts.ns() < BRIEF.ns());
        let fault = self.severity().and_then(|severity| self.concrete(severity));
        brief && fault.is_some_and(|fault| !fault.links().is_empty())
    }

    fn told_over(&mut self, change: Change, trial: u32, observer: &mut Observer<'_>) -> Result<String, LabError> {
        let planned = self.current().map(|period| period.ends.ns() - period.starts.ns());
        self.over(change, observer);
        let period = self.period.checked_sub(1).and_then(|last| self.record.periods.get(last));
        let lasted = period.and_then(|period| Some(period.healed?.at_ns.saturating_sub(period.injected?.at_ns)));
        let untimely = planned.zip(lasted).and_then(|(planned, lasted)| untimely(planned, lasted));
        // One whose healing takes its time lasts as long as that takes.
        if let Some(why) = untimely.filter(|_| self.planned.fault().is_some_and(|fault| fault.heals_within().ns() == 0))
        {
            let now = monotonic_ns();
            self.write("warning", format!("{}: {why}", self.record.text), Change::between(now, now), trial, observer)?;
        }
        let text = format!("over: {}", self.record.text);
        self.write("heal", text, change, trial, observer)
    }

    fn injected(&mut self, change: Change, observer: &mut Observer<'_>) {
        if let Some(period) = self.record.periods.get_mut(self.period) {
            period.injected = Some(stamp(observer, change));
        }
    }

    fn over(&mut self, change: Change, observer: &mut Observer<'_>) {
        if let Some(period) = self.record.periods.get_mut(self.period) {
            period.healed = Some(stamp(observer, change));
        }
        self.period += 1;
    }

    fn write(
        &self,
        kind: &str,
        text: String,
        change: Change,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<String, LabError> {
        let concrete = self.concrete(self.planned.severities.len().saturating_sub(1));
        let asked = || self.planned.fault().map(Fault::subject);
        let subject = concrete.map(|fault| fault.subject()).or_else(asked).unwrap_or_default();
        observer.event(kind, &subject, &text, change.at_ns, change.error_ns)?;
        observer.recorder().batch(|recorder| recorder.fault(trial, &self.record))?;
        Ok(text)
    }
}

/// Why a period cannot begin now, if it cannot: it was to be from the one moment to the other, ns.
fn missed((starts, ends): (u64, u64), now: u64) -> Option<String> {
    let late = brownout_units::Delay::from_ns(now.saturating_sub(starts) / 1_000_000 * 1_000_000);
    if now >= ends {
        Some(format!("it was over before it could be injected, {late} after it was due"))
    } else if now > starts + LATE_NS {
        Some(format!("it could have been injected only {late} late"))
    } else {
        None
    }
}

/// How long a period lasted, if that is not what was planned.
fn untimely(planned: u64, lasted: u64) -> Option<String> {
    let off = planned.abs_diff(lasted);
    let time = |ns: u64| brownout_units::Delay::from_ns(ns / 1_000_000 * 1_000_000);
    (off > UNTIMELY_NS && off as f64 > UNTIMELY * planned as f64)
        .then(|| format!("it lasted {} instead of {}", time(lasted), time(planned)))
}

/// Whether a node was not as a fault needs it: that is something to be told, and no reason to end the trial.
fn is_about_a_node(error: &LabError) -> bool {
    use ClusterError::{NodeDied, NotNow, NotShown};
    matches!(error, LabError::Cluster(NotNow { .. } | NodeDied(_) | NotShown { .. }))
}

fn stamp(observer: &mut Observer<'_>, change: Change) -> Stamp {
    Stamp { at_ns: observer.recorder().at(change.at_ns), error_ns: change.error_ns }
}

#[cfg(test)]
mod tests {
    use brownout_cluster::DatabaseKind;
    use brownout_record::Subject;
    use brownout_units::Delay;

    use super::*;
    use crate::faults::from_entry;

    /// A fault that begins every two seconds for one.
    fn planned(written: &str, hosts: &Hosts) -> PlannedFault {
        let fault = from_entry(&serde_json::from_str(written).unwrap(), hosts, 1).unwrap();
        let period = |at| PlannedPeriod { severity: 0, starts: Delay::from_secs(at), ends: Delay::from_secs(at + 1) };
        PlannedFault { severities: vec![Arc::from(fault)], periods: [0, 2, 4].map(period).to_vec() }
    }

    fn scheduled<'a>(planned: &'a PlannedFault, hosts: &Hosts) -> Scheduled<'a> {
        let record = planned.record(0, hosts);
        let (phase_ns, state, struck, cast) = (None, FaultState::Out, None, Vec::new());
        Scheduled { planned, record, phase_ns, period: 0, state, settling: false, struck, cast }
    }

    #[test]
    fn the_record_says_whom_a_role_was_drawn_for_and_keeps_all_who_had_it() {
        fn strike(scheduled: &mut Scheduled<'_>, hosts: &Hosts, period: usize, node: &str) {
            scheduled.period = period;
            scheduled.struck = Some(node.to_owned());
            let fault = scheduled.concrete(0).unwrap();
            scheduled.note_struck(0, fault.as_ref(), hosts);
        }
        let hosts = Hosts::new(3).running(DatabaseKind::Etcd);
        let planned = planned(r#"{"slow":{"host":"leader","delay":"100ms"}}"#, &hosts);
        let mut scheduled = scheduled(&planned, &hosts);
        let record = &scheduled.record;
        assert!(record.severities[0].expectations.iter().all(|one| !one.hit), "nobody is hit before somebody is drawn");

        strike(&mut scheduled, &hosts, 0, "n2");
        let record = &scheduled.record;
        assert_eq!((record.severities.len(), record.severities[0].text.as_str()), (1, "n2"));
        assert_eq!(record.text, "everything the leader (n2) sends is delayed by 100ms (direction: out)");
        let hit = record.severities[0].expectations.iter().filter(|one| one.hit);
        assert!(hit.clone().all(|one| matches!(&one.subject, Subject::Pair { from, .. } if from == "n2")));
        assert_eq!(hit.count(), 3);

        strike(&mut scheduled, &hosts, 1, "n3");
        strike(&mut scheduled, &hosts, 2, "n2");
        let record = &scheduled.record;
        let severities: Vec<&str> = record.severities.iter().map(|severity| severity.text.as_str()).collect();
        assert_eq!(severities, ["n2", "n3"]);
        let periods: Vec<u32> = record.periods.iter().map(|period| period.severity).collect();
        assert_eq!(periods, [0, 1, 0]);
        assert!(record.effect.contains("the leader (n2, then n3)"), "{}", record.effect);

        assert!(scheduled.text().starts_with("everything n2 sends"), "{}", scheduled.text());
        scheduled.struck = None;
        assert!(scheduled.text().starts_with("everything the leader sends"), "nobody is: {}", scheduled.text());
    }

    #[test]
    fn a_node_that_a_fault_is_starting_again_is_stilled_until_it_is_back() {
        let hosts = Hosts::new(3).running(DatabaseKind::Etcd);
        let planned = planned(r#"{"kill":{"host":"follower"}}"#, &hosts);
        let mut killed = scheduled(&planned, &hosts);
        killed.struck = Some("n3".to_owned());
        assert!(killed.stills().is_empty(), "it was drawn, and is not struck yet");
        let (back, comes_back) = std::sync::mpsc::channel::<()>();
        killed.state = FaultState::Healing(std::thread::spawn(move || {
            let _ = comes_back.recv();
            Ok(Change::between(1, 2))
        }));
        assert_eq!(killed.stills(), ["n3"]);
        drop(back);
        while matches!(&killed.state, FaultState::Healing(thread) if !thread.is_finished()) {
            std::thread::sleep(LOOK_EVERY);
        }
        assert!(killed.stills().is_empty());
    }

    #[test]
    fn a_period_that_is_late_or_over_is_left_out() {
        const S: u64 = 1_000_000_000;
        assert_eq!(missed((10 * S, 20 * S), 10 * S + S / 2), None);
        assert!(missed((10 * S, 20 * S), 13 * S).unwrap().contains("3s late"));
        assert!(missed((10 * S, 10 * S + S / 2), 10 * S + S / 2).unwrap().contains("over before"));
    }

    #[test]
    fn a_period_that_lasts_other_than_planned_is_told() {
        const MS: u64 = 1_000_000;
        assert_eq!(untimely(200 * MS, 215 * MS), None);
        assert_eq!(untimely(10_000 * MS, 10_500 * MS), None);
        assert!(untimely(200 * MS, 260 * MS).unwrap().contains("260ms instead of 200ms"));
        assert!(untimely(200 * MS, 120 * MS).is_some());
    }

    #[test]
    fn a_node_in_the_wrong_state_does_not_end_a_trial_but_a_lab_that_ended_does() {
        let node = || "n1".to_owned();
        let (state, remedy) = ("is down already".to_owned(), "start it".to_owned());
        assert!(is_about_a_node(&ClusterError::NotNow { node: node(), doing: "kill", state, remedy }.into()));
        assert!(!is_about_a_node(&ClusterError::Ended { node: node() }.into()));
    }
}
