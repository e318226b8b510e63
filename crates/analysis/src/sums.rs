//! Adding up a phase: interval by interval, then trial by trial.

use std::collections::{BTreeMap, btree_map::Entry};

use brownout_record::{Histogram, LatencyRow, Objective};

use crate::{
    AnalysisError, Counts, Interval, Latencies, Part, PhaseFindings, Rates, TrialEvidence,
    evidence::{PhaseWindow, phase},
};

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
