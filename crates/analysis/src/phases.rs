//! What the load met in each phase.

use std::collections::{BTreeMap, btree_map::Entry};

use brownout_record::{Histogram, LatencyRow, Objective};
use serde::Serialize;

use crate::{
    AnalysisError, Interval, Latencies, Response, Short, TrialEvidence,
    evidence::{PhaseWindow, phase},
};

/// Operations of a phase by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Intended to start in the phase.
    pub scheduled: u64,
    /// Sent.
    pub sent: u64,
    /// Given up before they could be sent.
    pub never_sent: u64,
    /// Answered without error within the client's time-out.
    pub ok: u64,
    /// Answered ok within the objective's response time.
    pub good: u64,
    /// Answered with an error.
    pub failed: u64,
    /// The same by class of error.
    pub failed_by_class: BTreeMap<String, u64>,
    /// Not answered within the client's time-out.
    pub timed_out: u64,
    /// Those of the timed out that were answered later.
    pub late: u64,
    /// Reads that returned an older version than one acknowledged before they were sent.
    pub stale: u64,
    /// Not ended when the run was cut.
    pub open: u64,
}

/// Counts per second of intended time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Scheduled operations per second.
    pub offered: f64,
    /// Operations answered ok per second.
    pub delivered: f64,
    /// Operations answered ok within the objective per second: the goodput.
    pub good: f64,
    /// Failed operations per second.
    pub failed: f64,
    /// Timed-out operations per second.
    pub timed_out: f64,
    /// Operations never sent per second.
    pub never_sent: f64,
}

/// The operations of one coordinator or of one kind of statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The coordinator or the statement.
    pub name: String,
    /// Answered ok.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Timed out.
    pub timed_out: u64,
    /// Of these, answered later.
    pub late: u64,
    /// Response times.
    pub response: Option<Response>,
    /// Sent − intended.
    pub wait: Option<Short>,
    /// Ended − sent.
    pub service: Option<Short>,
}

/// How far trials lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The smallest of all trials.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The spread of a phase over the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Trials that have the phase.
    pub trials: u32,
    /// Operations answered ok per second.
    pub delivered: Option<Range>,
    /// Goodput, operations per second.
    pub good: Option<Range>,
    /// Response p50, ns.
    pub p50_ns: Option<Range>,
    /// Response p99, ns.
    pub p99_ns: Option<Range>,
    /// Response p99.9, ns.
    pub p999_ns: Option<Range>,
}

/// One phase of one trial, or of all trials together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseFindings {
    /// `set-up`, `warm-up`, `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Its start, ns since the run's zero; none over all trials.
    pub starts_ns: Option<u64>,
    /// From its start to its end, ns; over all trials the sum.
    pub duration_ns: u64,
    /// `time`, `stationary`, `limit`, `interrupt`; none if it did not end, or if trials differ.
    pub ended_by: Option<String>,
    /// Whether it came to its end (in every trial).
    pub finished: bool,
    /// Intervals that lie wholly inside: the ones all figures here are drawn from.
    pub intervals: u64,
    /// Their length together, ns.
    pub measured_ns: u64,
    /// Operations.
    pub counts: Counts,
    /// Operations per second; none without intervals.
    pub rates: Option<Rates>,
    /// Response times from the intended start.
    pub response: Option<Response>,
    /// Sent − intended.
    pub wait: Option<Short>,
    /// Ended − sent.
    pub service: Option<Short>,
    /// By the node that was asked.
    pub coordinators: Vec<Part>,
    /// By kind of operation.
    pub statements: Vec<Part>,
    /// Good ÷ scheduled, 0 to 1; none without operations.
    pub objective_share: Option<f64>,
    /// Whether that reaches the objective.
    pub objective_met: Option<bool>,
    /// Over all trials: how far they lie apart.
    pub spread: Option<Spread>,
}

/// Sums of one group of operations.
struct Group {
    ok: u64,
    failed: u64,
    timed_out: u64,
    late: u64,
    response: Latencies,
    wait: Latencies,
    service: Latencies,
}

impl Group {
    fn new() -> Result<Self, AnalysisError> {
        Ok(Group {
            ok: 0,
            failed: 0,
            timed_out: 0,
            late: 0,
            response: Latencies::new()?,
            wait: Latencies::new()?,
            service: Latencies::new()?,
        })
    }

    fn add(&mut self, row: &LatencyRow) -> Result<(), AnalysisError> {
        match Outcome::of(&row.outcome) {
            Outcome::Ok => {
                self.ok += row.count;
                self.response.add_answered(&row.response)?;
                self.wait.add_answered(&row.wait)?;
                self.service.add_answered(&row.service)
            }
            Outcome::TimedOut => {
                self.timed_out += row.count;
                self.response.add_timed_out(&row.response)?;
                // The wait of an operation that timed out in flight is known exactly.
                self.wait.add_answered(&row.wait)?;
                self.service.add_timed_out(&row.service)
            }
            Outcome::Late => {
                self.late += row.count;
                Ok(())
            }
            Outcome::Failed(_) => {
                self.failed += row.count;
                Ok(())
            }
        }
    }

    fn merge(&mut self, other: &Group) -> Result<(), AnalysisError> {
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.late += other.late;
        self.response.add(&other.response)?;
        self.wait.add(&other.wait)?;
        self.service.add(&other.service)
    }

    fn part(&self, name: &str) -> Part {
        Part {
            name: name.to_owned(),
            ok: self.ok,
            failed: self.failed,
            timed_out: self.timed_out,
            late: self.late,
            response: self.response.response(),
            wait: self.wait.short(),
            service: self.service.short(),
        }
    }
}

/// What a row of the record says became of its operations.
pub(crate) enum Outcome<'a> {
    Ok,
    TimedOut,
    Late,
    Failed(&'a str),
}

impl<'a> Outcome<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        match text {
            "ok" => Outcome::Ok,
            "timed-out" => Outcome::TimedOut,
            "late" => Outcome::Late,
            other => Outcome::Failed(other.strip_prefix("failed:").unwrap_or(other)),
        }
    }
}

/// Operations of a histogram that took at most `limit_ns`, to the histogram's resolution.
pub(crate) fn within(histogram: &Histogram, limit_ns: u64) -> u64 {
    histogram.count_between(0, limit_ns)
}

/// Good operations of an interval: answered ok within the objective's response time.
pub(crate) fn good(interval: &Interval, objective: &Objective) -> u64 {
    let answered = interval.latencies.iter().filter(|row| matches!(Outcome::of(&row.outcome), Outcome::Ok));
    answered.map(|row| within(&row.response, objective.response_ns)).sum()
}

/// The sums of one phase, in a form that can be added over trials.
pub(crate) struct PhaseSums {
    name: String,
    starts_ns: Option<u64>,
    duration_ns: u64,
    ended_by: Option<String>,
    finished: bool,
    intervals: u64,
    measured_ns: u64,
    counts: Counts,
    all: Group,
    coordinators: BTreeMap<String, Group>,
    statements: BTreeMap<String, Group>,
}

impl PhaseSums {
    /// Of one phase of one trial.
    pub(crate) fn of(
        evidence: &TrialEvidence,
        window: &PhaseWindow,
        objective: &Objective,
    ) -> Result<Self, AnalysisError> {
        let mut sums = PhaseSums {
            name: window.name.clone(),
            starts_ns: Some(window.starts_ns),
            duration_ns: window.ends_ns - window.starts_ns,
            ended_by: window.ended_by.clone(),
            finished: window.finished,
            intervals: 0,
            measured_ns: 0,
            counts: Counts::default(),
            all: Group::new()?,
            coordinators: BTreeMap::new(),
            statements: BTreeMap::new(),
        };
        if window.name != phase::SET_UP {
            for interval in evidence.intervals_of(window) {
                sums.add_interval(interval, objective)?;
            }
        }
        Ok(sums)
    }

    fn add_interval(&mut self, interval: &Interval, objective: &Objective) -> Result<(), AnalysisError> {
        self.intervals += 1;
        self.measured_ns += interval.length_ns;
        let counts = &mut self.counts;
        let mut ended = 0;
        for row in &interval.latencies {
            match Outcome::of(&row.outcome) {
                Outcome::Ok => counts.ok += row.count,
                Outcome::TimedOut => counts.timed_out += row.count,
                Outcome::Late => counts.late += row.count,
                Outcome::Failed(class) => {
                    counts.failed += row.count;
                    *counts.failed_by_class.entry(class.to_owned()).or_default() += row.count;
                }
            }
            if !matches!(Outcome::of(&row.outcome), Outcome::Late) {
                ended += row.count;
            }
            self.all.add(row)?;
            group(&mut self.coordinators, &row.coordinator)?.add(row)?;
            group(&mut self.statements, &row.statement)?.add(row)?;
        }
        counts.scheduled += interval.scheduled;
        counts.sent += interval.sent;
        counts.never_sent += interval.never_sent;
        counts.stale += interval.stale;
        counts.good += good(interval, objective);
        counts.open += interval.scheduled.saturating_sub(interval.never_sent).saturating_sub(ended);
        Ok(())
    }

    /// The phase.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the same phase of another trial.
    pub(crate) fn add(&mut self, other: &PhaseSums) -> Result<(), AnalysisError> {
        self.starts_ns = None;
        self.duration_ns += other.duration_ns;
        if self.ended_by != other.ended_by {
            self.ended_by = None;
        }
        self.finished &= other.finished;
        self.intervals += other.intervals;
        self.measured_ns += other.measured_ns;
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.scheduled += more.scheduled;
        counts.sent += more.sent;
        counts.never_sent += more.never_sent;
        counts.ok += more.ok;
        counts.good += more.good;
        counts.failed += more.failed;
        counts.timed_out += more.timed_out;
        counts.late += more.late;
        counts.stale += more.stale;
        counts.open += more.open;
        for (class, count) in &more.failed_by_class {
            *counts.failed_by_class.entry(class.clone()).or_default() += count;
        }
        self.all.merge(&other.all)?;
        for (name, part) in &other.coordinators {
            group(&mut self.coordinators, name)?.merge(part)?;
        }
        for (name, part) in &other.statements {
            group(&mut self.statements, name)?.merge(part)?;
        }
        Ok(())
    }

    /// The figures of the sums.
    pub(crate) fn findings(&self, objective: &Objective) -> PhaseFindings {
        let counts = self.counts.clone();
        let rate = |count: u64| count as f64 / (self.measured_ns as f64 / 1e9);
        let rates = (self.measured_ns > 0).then(|| Rates {
            offered: rate(counts.scheduled),
            delivered: rate(counts.ok),
            good: rate(counts.good),
            failed: rate(counts.failed),
            timed_out: rate(counts.timed_out),
            never_sent: rate(counts.never_sent),
        });
        // Operations still open when a run was cut are neither good nor bad.
        let judged = counts.scheduled.saturating_sub(counts.open);
        let share = (judged > 0).then(|| counts.good as f64 / judged as f64);
        PhaseFindings {
            name: self.name.clone(),
            starts_ns: self.starts_ns,
            duration_ns: self.duration_ns,
            ended_by: self.ended_by.clone(),
            finished: self.finished,
            intervals: self.intervals,
            measured_ns: self.measured_ns,
            rates,
            response: self.all.response.response(),
            wait: self.all.wait.short(),
            service: self.all.service.short(),
            coordinators: self.coordinators.iter().map(|(name, part)| part.part(name)).collect(),
            statements: self.statements.iter().map(|(name, part)| part.part(name)).collect(),
            objective_share: share,
            objective_met: share.map(|share| share >= objective.share),
            spread: None,
            counts,
        }
    }
}

fn group<'a>(groups: &'a mut BTreeMap<String, Group>, name: &str) -> Result<&'a mut Group, AnalysisError> {
    Ok(match groups.entry(name.to_owned()) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Group::new()?),
    })
}

/// How far the trials lie apart in a phase.
pub(crate) fn spread(trials: &[PhaseFindings]) -> Spread {
    let range = |value: &dyn Fn(&PhaseFindings) -> Option<f64>| {
        trials.iter().filter_map(value).fold(None, |range: Option<Range>, value| {
            let range = range.unwrap_or(Range { min: value, max: value });
            Some(Range { min: range.min.min(value), max: range.max.max(value) })
        })
    };
    Spread {
        trials: trials.len() as u32,
        delivered: range(&|phase| phase.rates.map(|rates| rates.delivered)),
        good: range(&|phase| phase.rates.map(|rates| rates.good)),
        p50_ns: range(&|phase| phase.response.map(|response| response.p50.value_ns as f64)),
        p99_ns: range(&|phase| phase.response.map(|response| response.p99.value_ns as f64)),
        p999_ns: range(&|phase| phase.response.map(|response| response.p999.value_ns as f64)),
    }
}
