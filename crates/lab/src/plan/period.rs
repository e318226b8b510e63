//! A fault of a plan, and the periods in which it is in force.

use std::sync::Arc;

use brownout_record::{FaultRecord, Period, Severity};
use brownout_units::Delay;

use crate::{
    faults::{Fault, Needs},
    hosts::Hosts,
};

/// One fault, with the stretches of time in which it is in force.
#[derive(Debug, Clone)]
pub struct PlannedFault {
    /// What it does: once, or in the growing steps of a ramp, of which the last is what was asked.
    pub severities: Vec<Arc<dyn Fault>>,
    /// When it is in force, in order.
    pub periods: Vec<PlannedPeriod>,
}

/// A stretch of time in which a fault is in force, from the start of the phase `fault`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPeriod {
    /// Which of the fault's severities.
    pub severity: usize,
    /// Its beginning.
    pub starts: Delay,
    /// Its end; the next one may begin there.
    pub ends: Delay,
}

impl PlannedFault {
    /// What was asked: its highest severity.
    pub fn fault(&self) -> Option<&dyn Fault> {
        self.severities.last().map(AsRef::as_ref)
    }

    /// As the record has it before anything of it happens; `index`: which of the faults.
    pub fn record(&self, index: usize, hosts: &Hosts) -> FaultRecord {
        let asked = self.fault();
        let severity = |(step, fault): (usize, &Arc<dyn Fault>)| self.severity(step, fault.as_ref(), None, hosts);
        let period = |period: &PlannedPeriod| Period {
            severity: u32::try_from(period.severity).unwrap_or(u32::MAX),
            injected: None,
            healed: None,
        };
        FaultRecord {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            kind: asked.map_or("", |fault| fault.kind()).to_owned(),
            text: asked.map(|fault| fault.text()).unwrap_or_default(),
            effect: asked.map(|fault| fault.effect()).unwrap_or_default(),
            unsettled_ns: self.severities.iter().map(|fault| fault.unsettled().ns()).max().unwrap_or(0),
            severities: self.severities.iter().enumerate().map(severity).collect(),
            periods: self.periods.iter().map(period).collect(),
        }
    }

    /// One of its severities as the record has it: `fault` is that, or, where it follows a role, that on the node that was drawn.
    pub(crate) fn severity(&self, step: usize, fault: &dyn Fault, drawn: Option<&str>, hosts: &Hosts) -> Severity {
        let steps = self.severities.len();
        let step = (steps > 1).then(|| format!("step {} of {steps}", step + 1));
        let words: Vec<String> = step.into_iter().chain(drawn.map(str::to_owned)).collect();
        Severity { text: words.join(", "), expectations: hosts.with_overlay(fault.expectations(hosts)) }
    }

    /// As [`PlannedFault::record`], as if this node had been drawn for the role that the fault follows; none if it follows none.
    pub fn record_on(&self, index: usize, hosts: &Hosts, node: &str) -> Option<FaultRecord> {
        let severities = self.severities.iter().map(|fault| fault.on_node(node)).collect::<Option<Vec<_>>>()?;
        Some(PlannedFault { severities, periods: self.periods.clone() }.record(index, hosts))
    }

    /// What it needs of the lab from its start.
    pub fn needs(&self) -> Needs {
        let all = self.severities.iter().map(|fault| fault.needs());
        let needs = all.fold(Needs::default(), Needs::and);
        Needs { shortest_stall: self.shortest_stall(), ..needs }
    }

    /// The shortest of its periods, if processes are stopped in them.
    pub(super) fn shortest_stall(&self) -> Option<Delay> {
        let lengths = self.periods.iter().map(|period| Delay::from_ns(period.ends.ns() - period.starts.ns()));
        lengths.min().filter(|_| self.fault().is_some_and(Fault::is_stall))
    }

    /// What of it nobody judges, in words.
    pub(super) fn unjudged(&self) -> Option<String> {
        let fault = self.fault()?;
        let parts = fault.unjudged();
        (!parts.is_empty()).then(|| format!("the proof of '{}' does not cover {}", fault.text(), parts.join(", ")))
    }

    /// When it first comes into force.
    pub fn starts(&self) -> Delay {
        self.periods.first().map_or(Delay::ZERO, |period| period.starts)
    }

    /// When it is healed for good.
    pub fn ends(&self) -> Delay {
        self.periods.last().map_or(Delay::ZERO, |period| period.ends)
    }

    /// When, in words: "from 0s to 30s", "from 0s to 30s, 2s of every 5s", "from 0s to 30s, in 5 steps".
    pub fn when(&self) -> String {
        let span = format!("from {} to {} of the phase 'fault'", self.starts(), self.ends());
        match (self.severities.len(), &self.periods[..]) {
            (steps @ 2.., _) => format!("{span}, in {steps} steps"),
            (_, [first, second, ..]) => {
                let (on, every) = (first.ends.ns() - first.starts.ns(), second.starts.ns() - first.starts.ns());
                format!("{span}, {} of every {}", Delay::from_ns(on), Delay::from_ns(every))
            }
            _ => span,
        }
    }
}
