//! When each fault comes and goes, and which are in force.

use std::thread::JoinHandle;

use brownout_network::{Change, monotonic_ns};
use brownout_record::{FaultRecord, Period, Severity, Stamp};

use crate::{
    LabError,
    faults::{Fault, Healing, InForce, Reach},
    hosts::Hosts,
    observer::Observer,
    plan::{PlannedFault, PlannedPeriod},
};

/// The faults of one trial.
pub struct Schedule<'a> {
    faults: Vec<Scheduled<'a>>,
    reach: &'a Reach,
}

struct Scheduled<'a> {
    planned: &'a PlannedFault,
    record: FaultRecord,
    /// The start of the phase `fault`; none before it.
    phase_ns: Option<u64>,
    /// The period that is in force, or comes next.
    period: usize,
    state: State,
}

enum State {
    /// Not in force.
    Out,
    InForce(Box<dyn InForce>),
    /// A database is starting again; it was healed when the thread ends.
    Healing(JoinHandle<Result<Change, LabError>>),
}

impl<'a> Schedule<'a> {
    /// Nothing in force yet.
    pub fn new(faults: &'a [PlannedFault], hosts: &Hosts, reach: &'a Reach) -> Self {
        let scheduled = |(index, planned): (usize, &'a PlannedFault)| {
            let asked = planned.fault();
            let steps = planned.severities.len();
            let severity = |(step, fault): (usize, &std::sync::Arc<dyn Fault>)| Severity {
                text: if steps > 1 { format!("step {} of {steps}", step + 1) } else { String::new() },
                expectations: fault.expectations(hosts),
            };
            let period = |period: &PlannedPeriod| Period {
                severity: u32::try_from(period.severity).unwrap_or(u32::MAX),
                injected: None,
                healed: None,
            };
            let record = FaultRecord {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                kind: asked.map_or("", |fault| fault.kind()).to_owned(),
                text: asked.map(|fault| fault.text()).unwrap_or_default(),
                effect: asked.map(|fault| fault.effect()).unwrap_or_default(),
                unsettled_ns: planned.severities.iter().map(|fault| fault.unsettled().ns()).max().unwrap_or(0),
                severities: planned.severities.iter().enumerate().map(severity).collect(),
                periods: planned.periods.iter().map(period).collect(),
            };
            Scheduled { planned, record, phase_ns: None, period: 0, state: State::Out }
        };
        Schedule { faults: faults.iter().enumerate().map(scheduled).collect(), reach }
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
        let in_force = self.faults.iter().filter(|fault| matches!(fault.state, State::InForce(_)));
        in_force.filter_map(|fault| Some(fault.planned.severities.get(fault.severity()?)?.text())).collect()
    }

    /// Makes every change that is due, records it, and tells of it.
    pub fn act(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<Vec<String>, LabError> {
        let now = monotonic_ns();
        let mut told = Vec::new();
        // Healing first: a fault that ends when another begins must not overlap with it.
        for fault in &mut self.faults {
            told.extend(fault.healed(false, trial, observer)?);
            if fault.is_due(now) && matches!(fault.state, State::InForce(_)) {
                told.extend(fault.end_period(self.reach, trial, observer)?);
            }
        }
        for fault in &mut self.faults {
            if fault.is_due(now) && matches!(fault.state, State::Out) {
                told.push(fault.inject(self.reach, trial, observer)?);
            }
        }
        Ok(told)
    }

    /// Heals whatever is in force, and waits for what takes its time; `at_once`: that is left as it is, since all is about
    /// to end.
    pub fn heal_all(&mut self, at_once: bool, trial: u32, observer: &mut Observer<'_>) -> Result<(), LabError> {
        let mut result = Ok(());
        for fault in &mut self.faults {
            let healed = match &fault.state {
                State::Healing(_) if at_once => Ok(()),
                State::InForce(guard) if at_once && guard.takes_long_to_heal() => Ok(()),
                _ => fault.heal(trial, observer).and_then(|_| fault.healed(true, trial, observer)).map(drop),
            };
            // What went wrong first is what a person has to know; the others are healed all the same.
            // One that never came into force is recorded as such.
            let written = observer.recorder().batch(|recorder| recorder.fault(trial, &fault.record));
            result = result.and(healed).and(written.map_err(LabError::from));
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
            State::Out => Some(phase + period.starts.ns()),
            State::InForce(_) => Some(phase + period.ends.ns()),
            State::Healing(_) => None,
        }
    }

    fn is_due(&self, now: u64) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    fn inject(&mut self, reach: &Reach, trial: u32, observer: &mut Observer<'_>) -> Result<String, LabError> {
        let Some(fault) = self.severity().and_then(|severity| self.planned.severities.get(severity)) else {
            return Ok(String::new());
        };
        let guard = fault.inject(reach)?;
        let change = guard.change();
        self.state = State::InForce(guard);
        self.injected(change, observer);
        let text = format!("{}; {}", fault.text(), fault.effect());
        self.write("inject", text, change, trial, observer)
    }

    /// The end of a period: the next step of a ramp follows without a gap, everything else is healed.
    fn end_period(
        &mut self,
        reach: &Reach,
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
            State::InForce(guard) => guard.amend(fault.as_ref())?,
            State::Out | State::Healing(_) => None,
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
        self.inject(reach, trial, observer).map(Some)
    }

    fn heal(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<Option<String>, LabError> {
        match std::mem::replace(&mut self.state, State::Out) {
            State::InForce(guard) => match guard.heal()? {
                Healing::Done(change) => self.told_over(change, trial, observer).map(Some),
                Healing::UnderWay(thread) => {
                    self.state = State::Healing(thread);
                    let text = format!("healing: {}", self.record.text);
                    let now = monotonic_ns();
                    self.write("healing", text, Change::between(now, now), trial, observer).map(Some)
                }
            },
            other => {
                self.state = other;
                Ok(None)
            }
        }
    }

    /// Notices that a healing that took its time is over, or waits for it.
    fn healed(&mut self, wait: bool, trial: u32, observer: &mut Observer<'_>) -> Result<Option<String>, LabError> {
        match std::mem::replace(&mut self.state, State::Out) {
            State::Healing(thread) if wait || thread.is_finished() => {
                let change = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                self.told_over(change, trial, observer).map(Some)
            }
            other => {
                self.state = other;
                Ok(None)
            }
        }
    }

    fn told_over(&mut self, change: Change, trial: u32, observer: &mut Observer<'_>) -> Result<String, LabError> {
        self.over(change, observer);
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

fn stamp(observer: &mut Observer<'_>, change: Change) -> Stamp {
    Stamp { at_ns: observer.recorder().at(change.at_ns), error_ns: change.error_ns }
}
