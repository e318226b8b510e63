//! Adding up a phase: interval by interval, then trial by trial.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{LatencyRow, Objective};

use crate::{
    Counts, Interval, Latencies, Part, PhaseFindings, Rates, TrialEvidence,
    evidence::{PhaseWindow, phase},
    latency::OperationOutcome,
};

/// Sums of one group of operations.
#[derive(Default)]
struct Group {
    ended: Ended,
    /// Answered ok within the objective's response time.
    good: u64,
    response: Latencies,
    wait: Latencies,
    service: Latencies,
}

impl Group {
    fn add(&mut self, row: &LatencyRow, objective: &Objective) {
        let outcome = OperationOutcome::of(&row.outcome);
        self.ended.add(outcome, row.count);
        if let OperationOutcome::Ok = outcome {
            self.good += row.response.within(objective.response_ns);
        }
        self.response.add_ended(outcome, row.count, &row.response);
        self.service.add_ended(outcome, row.count, &row.service);
        match outcome {
            // The wait of an operation that timed out in flight is known exactly.
            OperationOutcome::Ok | OperationOutcome::TimedOut => self.wait.add_answered(&row.wait),
            OperationOutcome::Late | OperationOutcome::Failed(_) => {}
        }
    }

    fn merge(&mut self, other: &Group) {
        self.ended.merge(other.ended);
        self.good += other.good;
        self.response.add(&other.response);
        self.wait.add(&other.wait);
        self.service.add(&other.service);
    }

    fn part(&self, name: &str, measured_ns: u64) -> Part {
        let rate = |count: u64| (measured_ns > 0).then(|| count as f64 / (measured_ns as f64 / 1e9));
        let ended = self.ended.all();
        Part {
            name: name.to_owned(),
            ok: self.ended.ok,
            good: self.good,
            delivered: rate(self.ended.ok),
            goodput: rate(self.good),
            good_share: (ended > 0).then(|| self.good as f64 / ended as f64),
            failed: self.ended.failed,
            timed_out: self.ended.timed_out,
            late: self.ended.late,
            never_sent: None,
            response: self.response.response(),
            wait: self.wait.short(),
            service: self.service.short(),
        }
    }
}

/// Operations by what became of them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ended {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    /// Part of `timed_out`.
    pub(crate) late: u64,
}

impl Ended {
    /// Those of an interval.
    pub(crate) fn of(interval: &Interval) -> Self {
        Ended::of_operation(interval, None)
    }

    /// Those of one operation in it, by name.
    pub(crate) fn of_operation(interval: &Interval, operation: Option<&str>) -> Self {
        let mut ended = Ended::default();
        for row in interval.latencies.iter().filter(|row| operation.is_none_or(|name| row.statement == name)) {
            ended.add(OperationOutcome::of(&row.outcome), row.count);
        }
        ended
    }

    /// All of them, each once.
    pub(crate) fn all(self) -> u64 {
        self.ok + self.failed + self.timed_out
    }

    fn add(&mut self, outcome: OperationOutcome<'_>, count: u64) {
        match outcome {
            OperationOutcome::Ok => self.ok += count,
            OperationOutcome::TimedOut => self.timed_out += count,
            OperationOutcome::Late => self.late += count,
            OperationOutcome::Failed(_) => self.failed += count,
        }
    }

    fn merge(&mut self, other: Ended) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.late += other.late;
    }
}

/// Good operations of an interval: answered ok within the objective's response time, and of its operation if it has one.
pub(crate) fn good(interval: &Interval, objective: &Objective) -> u64 {
    let of_objective = |row: &&LatencyRow| objective.operation.as_ref().is_none_or(|name| row.statement == *name);
    let answered =
        interval.latencies.iter().filter(|row| matches!(OperationOutcome::of(&row.outcome), OperationOutcome::Ok));
    let answered = answered.filter(of_objective);
    answered.map(|row| row.response.within(objective.response_ns)).sum()
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
    /// But for what became of operations: that is in `all`.
    counts: Counts,
    all: Group,
    coordinators: BTreeMap<String, Group>,
    statements: BTreeMap<String, Group>,
    /// By operation, as far as the record knows.
    never_sent: BTreeMap<String, u64>,
}

impl PhaseSums {
    /// Response times of all of its operations.
    pub(crate) fn response(&self) -> &Latencies {
        &self.all.response
    }

    /// Those of one operation, by name.
    pub(crate) fn response_of(&self, operation: &str) -> Option<&Latencies> {
        self.statements.get(operation).map(|group| &group.response)
    }

    /// Of one phase of one trial.
    pub(crate) fn of(evidence: &TrialEvidence, window: &PhaseWindow, objective: &Objective) -> Self {
        PhaseSums::without(evidence, window, objective, &BTreeSet::new())
    }

    /// The same without the intervals that start at these moments.
    pub(crate) fn without(
        evidence: &TrialEvidence,
        window: &PhaseWindow,
        objective: &Objective,
        starts: &BTreeSet<u64>,
    ) -> Self {
        let mut sums = PhaseSums {
            name: window.name.clone(),
            starts_ns: Some(window.starts_ns),
            duration_ns: window.ends_ns - window.starts_ns,
            ended_by: window.ended_by.clone(),
            finished: window.finished,
            intervals: 0,
            measured_ns: 0,
            counts: Counts::default(),
            all: Group::default(),
            coordinators: BTreeMap::new(),
            statements: BTreeMap::new(),
            never_sent: BTreeMap::new(),
        };
        let intervals = evidence.intervals_of(window).filter(|_| window.name != phase::SET_UP);
        for interval in intervals.filter(|interval| !starts.contains(&interval.starts_ns)) {
            sums.add_interval(interval, objective);
        }
        sums
    }

    fn add_interval(&mut self, interval: &Interval, objective: &Objective) {
        self.intervals += 1;
        self.measured_ns += interval.length_ns;
        let counts = &mut self.counts;
        for row in &interval.latencies {
            if let OperationOutcome::Failed(class) = OperationOutcome::of(&row.outcome) {
                *counts.failed_by_class.entry(class.to_owned()).or_default() += row.count;
            }
            self.all.add(row, objective);
            group(&mut self.coordinators, &row.coordinator).add(row, objective);
            group(&mut self.statements, &row.statement).add(row, objective);
        }
        counts.scheduled += interval.scheduled;
        counts.sent += interval.sent;
        counts.never_sent += interval.never_sent;
        counts.withheld += interval.withheld;
        self.all.response.add_never_sent(interval.never_sent + interval.withheld);
        for (name, count) in &interval.never_sent_by_operation {
            // An operation of which nothing was sent is one of the load all the same.
            group(&mut self.statements, name);
            *self.never_sent.entry(name.clone()).or_default() += count;
        }
        counts.stale += interval.stale;
        counts.looked_for += interval.looked_for;
        counts.lost += interval.lost;
        counts.good += good(interval, objective);
        counts.open += interval.scheduled.saturating_sub(interval.never_sent).saturating_sub(Ended::of(interval).all());
    }

    /// The phase.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the same phase of another trial.
    pub(crate) fn add(&mut self, other: &PhaseSums) {
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
        counts.withheld += more.withheld;
        counts.good += more.good;
        counts.stale += more.stale;
        counts.looked_for += more.looked_for;
        counts.lost += more.lost;
        counts.open += more.open;
        for (class, count) in &more.failed_by_class {
            *counts.failed_by_class.entry(class.clone()).or_default() += count;
        }
        self.all.merge(&other.all);
        for (name, part) in &other.coordinators {
            group(&mut self.coordinators, name).merge(part);
        }
        for (name, part) in &other.statements {
            group(&mut self.statements, name).merge(part);
        }
        for (name, count) in &other.never_sent {
            *self.never_sent.entry(name.clone()).or_default() += count;
        }
    }

    /// How many of an operation were never sent, if the record tells.
    fn never_sent_of(&self, operation: &str) -> Option<u64> {
        let known: u64 = self.never_sent.values().sum();
        (known == self.counts.never_sent).then(|| self.never_sent.get(operation).copied().unwrap_or(0))
    }

    /// The figures of the sums.
    pub(crate) fn findings(&self, objective: &Objective) -> PhaseFindings {
        let Ended { ok, failed, timed_out, late } = self.all.ended;
        let counts = Counts { ok, failed, timed_out, late, ..self.counts.clone() };
        let rate = |count: u64| count as f64 / (self.measured_ns as f64 / 1e9);
        let rates = (self.measured_ns > 0).then(|| Rates {
            offered: rate(counts.scheduled + counts.withheld),
            delivered: rate(counts.ok),
            good: rate(counts.good),
            failed: rate(counts.failed),
            timed_out: rate(counts.timed_out),
            never_sent: rate(counts.never_sent),
        });
        // Operations still open when a run was cut are neither good nor bad.
        let judged = match &objective.operation {
            None => counts.scheduled.saturating_sub(counts.open) + counts.withheld,
            // Where nobody knows whose it was, all that was not sent counts against the one that is judged.
            Some(name) => {
                let never_sent = self.never_sent_of(name).unwrap_or(counts.never_sent);
                self.statements.get(name).map_or(0, |part| part.ended.all()) + never_sent + counts.withheld
            }
        };
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
            due: self.all.response.due(),
            wait: self.all.wait.short(),
            service: self.all.service.short(),
            coordinators: self.coordinators.iter().map(|(name, part)| part.part(name, self.measured_ns)).collect(),
            statements: self
                .statements
                .iter()
                .map(|(name, part)| Part { never_sent: self.never_sent_of(name), ..part.part(name, self.measured_ns) })
                .collect(),
            objective_share: share,
            objective_met: share.map(|share| share >= objective.share),
            spread: None,
            counts,
        }
    }
}

fn group<'a>(groups: &'a mut BTreeMap<String, Group>, name: &str) -> &'a mut Group {
    groups.entry(name.to_owned()).or_default()
}
