//! When each fault comes and goes, and which are in force.

use brownout_network::{Change, ImpairmentGuard};
use brownout_record::{FaultRecord, Stamp};

use crate::{LabError, faults::Links, hosts::Hosts, observer::Observer, plan::PlannedFault};

/// The faults of one trial.
pub struct Schedule<'a> {
    faults: Vec<Scheduled<'a>>,
    hosts: &'a Hosts,
    links: &'a dyn Links,
}

struct Scheduled<'a> {
    planned: &'a PlannedFault,
    record: FaultRecord,
    state: State,
}

enum State {
    /// Its phase has not begun.
    Waiting,
    /// To be injected at this moment, `CLOCK_MONOTONIC`.
    Due { injects_ns: u64, heals_ns: u64 },
    /// To be healed at this moment.
    InForce { guard: ImpairmentGuard, heals_ns: u64 },
    /// Over.
    Healed,
}

impl<'a> Schedule<'a> {
    /// Nothing in force yet.
    pub fn new(faults: &'a [PlannedFault], hosts: &'a Hosts, links: &'a dyn Links) -> Self {
        let scheduled = |(index, planned): (usize, &'a PlannedFault)| Scheduled {
            planned,
            record: FaultRecord {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                kind: planned.fault.kind().to_owned(),
                text: planned.fault.text(),
                effect: planned.fault.effect(),
                expectations: planned.fault.expectations(hosts),
                injected: None,
                healed: None,
            },
            state: State::Waiting,
        };
        Schedule { faults: faults.iter().enumerate().map(scheduled).collect(), hosts, links }
    }

    /// The phase `fault` begins at this moment.
    pub fn begin(&mut self, phase_ns: u64) {
        for fault in &mut self.faults {
            fault.state = State::Due {
                injects_ns: phase_ns + fault.planned.starts.ns(),
                heals_ns: phase_ns + fault.planned.ends.ns(),
            };
        }
    }

    /// The moment of the next change.
    pub fn next_action(&self) -> Option<u64> {
        let at = |fault: &Scheduled<'_>| match &fault.state {
            State::Due { injects_ns, .. } => Some(*injects_ns),
            State::InForce { heals_ns, .. } => Some(*heals_ns),
            State::Waiting | State::Healed => None,
        };
        self.faults.iter().filter_map(at).min()
    }

    /// What is in force, in words.
    pub fn in_force(&self) -> Vec<String> {
        let in_force = self.faults.iter().filter(|fault| matches!(fault.state, State::InForce { .. }));
        in_force.map(|fault| fault.record.text.clone()).collect()
    }

    /// Makes every change that is due, records it, and tells of it.
    pub fn act(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<Vec<String>, LabError> {
        let now = brownout_network::monotonic_ns();
        let mut told = Vec::new();
        // Healing first: a fault that ends when another begins must not overlap with it.
        for fault in &mut self.faults {
            if matches!(fault.state, State::InForce { heals_ns, .. } if heals_ns <= now) {
                told.push(fault.heal(trial, observer)?);
            }
        }
        for fault in &mut self.faults {
            if let State::Due { injects_ns, heals_ns } = fault.state
                && injects_ns <= now
            {
                let guard = fault.planned.fault.inject(self.hosts, self.links)?;
                let change = guard.change();
                fault.state = State::InForce { guard, heals_ns };
                fault.record.injected = Some(stamp(observer, change));
                told.push(fault.write(trial, observer, "inject", change)?);
            }
        }
        Ok(told)
    }

    /// Heals whatever is in force.
    pub fn heal_all(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<(), LabError> {
        for fault in &mut self.faults {
            match fault.state {
                State::InForce { .. } => {
                    fault.heal(trial, observer)?;
                }
                // Never came into force: the record says so.
                State::Waiting | State::Due { .. } => {
                    observer.recorder().batch(|recorder| recorder.fault(trial, &fault.record))?;
                }
                State::Healed => {}
            }
        }
        Ok(())
    }
}

impl Scheduled<'_> {
    fn heal(&mut self, trial: u32, observer: &mut Observer<'_>) -> Result<String, LabError> {
        let State::InForce { guard, .. } = std::mem::replace(&mut self.state, State::Healed) else {
            return Ok(String::new());
        };
        let change = guard.heal()?;
        self.record.healed = Some(stamp(observer, change));
        self.write(trial, observer, "heal", change)
    }

    fn write(&self, trial: u32, observer: &mut Observer<'_>, kind: &str, change: Change) -> Result<String, LabError> {
        let text = match kind {
            "inject" => format!("{}; {}", self.record.text, self.record.effect),
            _ => format!("over: {}", self.record.text),
        };
        observer.event(kind, self.planned.fault.subject(), &text, change.at_ns, change.error_ns)?;
        observer.recorder().batch(|recorder| recorder.fault(trial, &self.record))?;
        Ok(text)
    }
}

fn stamp(observer: &mut Observer<'_>, change: Change) -> Stamp {
    Stamp { at_ns: observer.recorder().at(change.at_ns), error_ns: change.error_ns }
}
