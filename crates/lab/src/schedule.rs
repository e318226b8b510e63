//! The schedule of the faults: when each is injected and healed, and which are in force.

use std::{thread::JoinHandle, time::Duration};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_cluster::ClusterError;
use brownout_record::{FaultRecord, Stamp};

use crate::{
    LabError,
    faults::{ActiveFault, Capabilities, Healing},
    hosts::Hosts,
    observer::Observer,
    plan::{PlannedFault, PlannedPeriod},
};

/// A fault that would begin later than this is left out, ns: in force at another time it were another experiment.
const LATE_NS: u64 = 1_000_000_000;
/// The counters of links are read once a second. In periods shorter than this no such reading may lie, so they are read around
/// each change as well.
const BRIEF_NS: u64 = 1_000_000_000;
/// A busy machine does not end a period in time. One that is longer or shorter by more than this share, and [`UNTIMELY_NS`], is told.
const UNTIMELY: f64 = 0.1;
/// What a change of a fault may take on a busy machine, ns.
const UNTIMELY_NS: u64 = 20_000_000;
/// Between two looks at whether a database has started.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The faults of one trial.
pub struct Schedule<'a> {
    faults: Vec<Scheduled<'a>>,
    capabilities: &'a Capabilities,
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
}

enum FaultState {
    /// Not in force.
    Out,
    ActiveFault(Box<dyn ActiveFault>),
    /// A database is starting again; it was healed when the thread ends.
    Healing(JoinHandle<Result<Change, LabError>>),
}

impl<'a> Schedule<'a> {
    /// Nothing in force yet.
    pub fn new(faults: &'a [PlannedFault], hosts: &Hosts, capabilities: &'a Capabilities) -> Self {
        let scheduled = |(index, planned): (usize, &'a PlannedFault)| {
            let record = planned.record(index, hosts);
            Scheduled { planned, record, phase_ns: None, period: 0, state: FaultState::Out, settling: false }
        };
        Schedule { faults: faults.iter().enumerate().map(scheduled).collect(), capabilities }
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
        in_force.filter_map(|fault| Some(fault.planned.severities.get(fault.severity()?)?.text())).collect()
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
                told.extend(fault.end_period(self.capabilities, trial, observer)?);
            }
        }
        for fault in &mut self.faults {
            if fault.is_due(now) && matches!(fault.state, FaultState::Out) {
                told.push(fault.inject(self.capabilities, trial, observer)?);
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

    fn inject(
        &mut self,
        capabilities: &Capabilities,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<String, LabError> {
        let Some(fault) = self.severity().and_then(|severity| self.planned.severities.get(severity)) else {
            return Ok(String::new());
        };
        let now = monotonic_ns();
        let span =
            self.phase_ns.zip(self.current()).map(|(at, period)| (at + period.starts.ns(), at + period.ends.ns()));
        if let Some(why) = span.and_then(|span| missed(span, now)) {
            return self.never_injected(&why, trial, observer);
        }
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
        let text = format!("not injected: {}: {why}", self.record.text);
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
        capabilities: &Capabilities,
        trial: u32,
        observer: &mut Observer<'_>,
    ) -> Result<Option<String>, LabError> {
        let next = self.planned.periods.get(self.period + 1);
        let goes_on = next.zip(self.current()).is_some_and(|(next, current)| next.starts == current.ends);
        if !goes_on {
            return self.heal(trial, observer);
        }
        let Some(fault) = next.and_then(|next| self.planned.severities.get(next.severity)) else { return Ok(None) };
        let amended = match &mut self.state {
            FaultState::ActiveFault(guard) => guard.amend(fault.as_ref())?,
            FaultState::Out | FaultState::Healing(_) => None,
        };
        if let Some(change) = amended {
            self.over(change, observer);
            self.injected(change, observer);
            let text = format!("{}; {}", fault.text(), fault.effect());
            return self.write("amend", text, change, trial, observer).map(Some);
        }
        // What cannot be changed in place goes for a moment.
        self.heal(trial, observer)?;
        self.healed(true, trial, observer)?;
        self.inject(capabilities, trial, observer).map(Some)
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
        let brief = self.current().is_some_and(|period| period.ends.ns() - period.starts.ns() < BRIEF_NS);
        brief && self.planned.fault().is_some_and(|fault| !fault.links().is_empty())
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
        let subject = self.planned.fault().map(|fault| fault.subject()).unwrap_or_default();
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
    use super::*;

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
