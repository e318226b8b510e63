//! One record of a trial that several machines have made a part of each.
//!
//! Each machine records by its own clock what it did and saw: the links that begin at its hosts, their processes, the operations that
//! it sent. Here all of it comes onto the time line of the run. What lies in intervals lies in those of the run; what several
//! machines did together is added up.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    ClockRow, CpuRow, EncodedTimes, Event, EvidenceRow, FaultRecord, Histogram, HostCounterRow, LatencyRow,
    LinkReading, LoadRow, LostLoad, MachineClockRow, MachineRole, MachineRow, ProbeRow, ProbeSample, RecordError,
    Recorder, Run, Stamp, Subject, WitnessRow, times, times::AddTo,
};

/// What a machine has recorded of a trial.
pub struct TrialPart<'a> {
    /// The machine, and the hosts that run there.
    pub machine: MachineRow,
    /// Its record.
    pub run: &'a Run,
    /// The number of the trial there.
    pub trial: u32,
    /// A time of that record on the time line of the run, and how exactly that is known, ns; none where it cannot be told.
    pub on_run: &'a dyn Fn(u64) -> Option<(u64, u64)>,
    /// Of a load that was lost: the record is what it had told by then.
    pub lost: Option<LostLoad<'a>>,
}

/// The intervals of a trial on the time line of the run.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// The beginning of one of them, ns.
    pub epoch_ns: u64,
    /// How long each is, ns.
    pub length_ns: u64,
}

impl Intervals {
    /// The beginning that is nearest to a time. Machines begin theirs together, as exactly as they know each other's clocks.
    fn nearest(&self, at_ns: u64) -> u64 {
        let half = self.length_ns / 2;
        match at_ns.checked_sub(self.epoch_ns) {
            Some(since) => self.epoch_ns + (since + half) / self.length_ns * self.length_ns,
            None => {
                let before = (self.epoch_ns - at_ns + half) / self.length_ns * self.length_ns;
                self.epoch_ns.saturating_sub(before)
            }
        }
    }
}

impl TrialPart<'_> {
    fn on_run(&self, at_ns: u64) -> Result<(u64, u64), RecordError> {
        (self.on_run)(at_ns).ok_or_else(|| RecordError::Apart { machine: self.machine.machine.clone() })
    }

    fn at(&self, at_ns: u64) -> Result<u64, RecordError> {
        Ok(self.on_run(at_ns)?.0)
    }

    /// Whether it is this machine that puts in force what a subject shows.
    fn acts_on(&self, subject: &Subject, all: &[TrialPart<'_>]) -> bool {
        let has = |host: &String| self.machine.hosts.contains(host);
        match subject {
            Subject::Host { host } | Subject::Directory { host, .. } => has(host),
            Subject::Pair { from, to } | Subject::Overlay { from, to } => {
                // What comes from outside is impaired where it arrives.
                let is_outside = !all.iter().any(|part| part.machine.hosts.contains(from));
                has(from) || (is_outside && has(to))
            }
        }
    }

    fn has_acted(&self, fault: &FaultRecord, all: &[TrialPart<'_>]) -> bool {
        let hit = fault.severities.iter().flat_map(|severity| &severity.expectations).filter(|one| one.hit);
        hit.into_iter().any(|one| self.acts_on(&one.subject, all))
    }
}

/// Writes all parts of a trial into the record of the run, as one batch. Trials and phases are the run's own, and are there.
///
/// # Errors
/// A part that cannot be read; [`RecordError::Apart`] where a time cannot be told on the run's time line; as of
/// [`Recorder::batch`].
pub fn merge(
    recorder: &mut Recorder,
    trial: u32,
    intervals: Intervals,
    parts: &[TrialPart<'_>],
) -> Result<(), RecordError> {
    let mut load = BTreeMap::new();
    let (mut cpu, mut boots, mut faults) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for part in parts {
        add_load(part, intervals, &mut load)?;
        add_cpu(part, intervals, &mut boots, &mut cpu)?;
        add_faults(part, parts, &mut faults)?;
    }
    recorder.batch(|recorder| {
        for part in parts {
            recorder.machine(trial, &part.machine)?;
            copy(part, intervals, trial, recorder)?;
        }
        load.into_values().try_for_each(|row| recorder.load(trial, &row.row()))?;
        merge_latencies(intervals, parts, Run::latencies, |row| recorder.latency(trial, row))?;
        merge_latencies(intervals, parts, Run::watches, |row| recorder.watch(trial, row))?;
        cpu.into_values().try_for_each(|row| recorder.cpu(trial, &row))?;
        faults.into_values().try_for_each(|fault| recorder.fault(trial, &fault))
    })
}

/// What belongs to one machine alone.
fn copy(part: &TrialPart<'_>, intervals: Intervals, trial: u32, recorder: &Recorder) -> Result<(), RecordError> {
    let run = part.run;
    for row in run.events_of(part.trial)? {
        let (at_ns, error_ns) = part.on_run(row.at_ns)?;
        let error_ns = row.error_ns + error_ns;
        recorder.event(&Event { trial: Some(trial), at_ns, error_ns, ..row })?;
    }
    run.each_link(part.trial, 0..u64::MAX, |row| {
        recorder.link_as_read(trial, &LinkReading { starts_ns: part.at(row.starts_ns)?, ..row })
    })?;
    for row in run.probes(part.trial)? {
        let sample = |sample: ProbeSample| Ok(ProbeSample { sent_ns: part.at(sample.sent_ns)?, ..sample });
        let samples = row.samples.into_iter().map(sample).collect::<Result<_, RecordError>>()?;
        let starts_ns = intervals.nearest(part.at(row.starts_ns)?);
        recorder.probe(trial, &ProbeRow { starts_ns, samples, ..row })?;
    }
    for row in run.witnesses(part.trial)? {
        recorder.witness(trial, &WitnessRow { at_ns: part.at(row.at_ns)?, ..row })?;
    }
    for row in run.clocks(part.trial)? {
        recorder.clock(trial, &ClockRow { at_ns: part.at(row.at_ns)?, ..row })?;
    }
    for row in run.host_counters(part.trial)? {
        recorder.host_counters(trial, &HostCounterRow { starts_ns: part.at(row.starts_ns)?, ..row })?;
    }
    for row in run.evidence(part.trial)? {
        let (at_ns, error_ns) = part.on_run(row.at_ns)?;
        recorder.evidence(trial, &EvidenceRow { at_ns, error_ns: row.error_ns + error_ns, ..row })?;
    }
    for row in run.machine_clocks(part.trial)? {
        recorder.machine_clock(trial, &MachineClockRow { at_ns: part.at(row.at_ns)?, ..row })?;
    }
    Ok(())
}

/// The load of an interval, of several machines together.
struct LoadSum {
    row: LoadRow,
    lateness: Histogram,
}

impl LoadSum {
    fn row(self) -> LoadRow {
        LoadRow { lateness: (&self.lateness).into(), ..self.row }
    }
}

fn add_load(part: &TrialPart<'_>, intervals: Intervals, sums: &mut BTreeMap<u64, LoadSum>) -> Result<(), RecordError> {
    // Hosts' machines send nothing, and have rows of nothing.
    if part.machine.role != MachineRole::Load {
        return Ok(());
    }
    let mut rows = part.run.load(part.trial)?;
    if let Some(lost) = &part.lost {
        rows = lost.account(rows, &part.run.latencies(part.trial, 0..u64::MAX)?);
    }
    for row in rows {
        let starts_ns = intervals.nearest(part.at(row.starts_ns)?);
        let Some(sum) = sums.get_mut(&starts_ns) else {
            let mut lateness = times::empty();
            row.lateness.add_to(&mut lateness);
            sums.insert(starts_ns, LoadSum { row: LoadRow { starts_ns, ..row }, lateness });
            continue;
        };
        row.lateness.add_to(&mut sum.lateness);
        let all = &mut sum.row;
        all.settled &= row.settled;
        for (sum, of_this) in [
            (&mut all.scheduled, row.scheduled),
            (&mut all.sent, row.sent),
            (&mut all.never_sent, row.never_sent),
            (&mut all.stale, row.stale),
            (&mut all.withheld, row.withheld),
            (&mut all.looked_for, row.looked_for),
            (&mut all.lost, row.lost),
        ] {
            *sum += of_this;
        }
        for (operation, count) in row.never_sent_by_operation {
            *all.never_sent_by_operation.entry(operation).or_default() += count;
        }
        // Of the interval, not of the machines' time.
        all.stood_still_ns = all.stood_still_ns.max(row.stood_still_ns);
    }
    Ok(())
}

/// Start of the interval, operation, coordinator, outcome.
type LatencyKey = (u64, String, String, String);

/// So many intervals are merged at once: all of a long trial with many coordinators would fit into no memory.
const AT_ONCE: u64 = 30;

/// Merges the latencies that `read` reads of an interval of a record, and has `write` write them.
fn merge_latencies(
    intervals: Intervals,
    parts: &[TrialPart<'_>],
    read: impl Fn(&Run, u32, Range<u64>) -> Result<Vec<LatencyRow>, RecordError>,
    mut write: impl FnMut(&LatencyRow) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let senders = || parts.iter().filter(|part| part.machine.role == MachineRole::Load);
    let mut ends_ns = 0;
    for part in senders() {
        // Where there are latencies, there is a row of the load.
        ends_ns = part.run.load(part.trial)?.iter().map(|row| row.starts_ns + 1).fold(ends_ns, u64::max);
    }
    let mut pending: BTreeMap<LatencyKey, Vec<LatencyRow>> = BTreeMap::new();
    let mut from_ns = 0;
    while from_ns < ends_ns {
        let to_ns = from_ns + AT_ONCE * intervals.length_ns;
        // No row of any record that is read later can lie before this.
        let mut whole_ns = u64::MAX;
        for part in senders() {
            for row in read(part.run, part.trial, from_ns..to_ns)? {
                let starts_ns = intervals.nearest(part.at(row.starts_ns)?);
                let key = (starts_ns, row.statement.clone(), row.coordinator.clone(), row.outcome.clone());
                pending.entry(key).or_default().push(row);
            }
            if to_ns < ends_ns {
                whole_ns = whole_ns.min(part.at(to_ns)?.saturating_sub(intervals.length_ns));
            }
        }
        let later = pending.split_off(&(whole_ns, String::new(), String::new(), String::new()));
        for (key, rows) in std::mem::replace(&mut pending, later) {
            write(&together(key, rows))?;
        }
        from_ns = to_ns;
    }
    Ok(())
}

/// Those of several machines as one.
fn together((starts_ns, statement, coordinator, outcome): LatencyKey, mut rows: Vec<LatencyRow>) -> LatencyRow {
    if let [_] = rows[..]
        && let Some(only) = rows.pop()
    {
        return LatencyRow { starts_ns, ..only };
    }
    let sum = |times: fn(&LatencyRow) -> &EncodedTimes| {
        let mut sum = times::empty();
        rows.iter().for_each(|row| times(row).add_to(&mut sum));
        EncodedTimes::from(&sum)
    };
    let (wait, service, response) = (sum(|row| &row.wait), sum(|row| &row.service), sum(|row| &row.response));
    let count = rows.iter().map(|row| row.count).sum();
    LatencyRow { starts_ns, statement, coordinator, outcome, count, wait, service, response }
}

/// CPU time of all machines together, each of which is counted once, however many parts it makes. A part of which only operations are
/// sent knows of no machine: what it used itself is of the instrument, and of the load.
fn add_cpu(
    part: &TrialPart<'_>,
    intervals: Intervals,
    seen: &mut BTreeMap<String, String>,
    sums: &mut BTreeMap<(u64, String), CpuRow>,
) -> Result<(), RecordError> {
    const OF_PARTS: [&str; 5] = ["instrument", "load", "load-waited", "emulator", "emulator-waited"];
    let boot = part.run.sessions()?.into_iter().next().map(|session| session.boot_id).unwrap_or_default();
    let own = &part.machine.machine;
    let is_agent = part.machine.role == MachineRole::Agent;
    // One that does not know which machine it is on is on one of its own.
    let boot = if boot.is_empty() { own.clone() } else { boot };
    let is_first = is_agent && seen.entry(boot).or_insert_with(|| own.clone()) == own;
    let is_taken = |subject: &str| match OF_PARTS.contains(&subject) {
        true => is_agent || subject != "emulator",
        false if subject.starts_with("node:") || subject.starts_with("waited:") => is_agent,
        false => is_first,
    };
    for row in part.run.cpu(part.trial)?.into_iter().filter(|row| is_taken(&row.subject)) {
        let starts_ns = intervals.nearest(part.at(row.starts_ns)?);
        let key = (starts_ns, row.subject.clone());
        match sums.get_mut(&key) {
            // Time in which anything waited, of whichever machine had most.
            Some(sum) if row.subject == "pressure" => sum.busy_ns = sum.busy_ns.max(row.busy_ns),
            Some(sum) => {
                sum.busy_ns += row.busy_ns;
                sum.length_ns = sum.length_ns.max(row.length_ns);
            }
            None => drop(sums.insert(key, CpuRow { starts_ns, ..row })),
        }
    }
    Ok(())
}

/// A fault came into force when the first machine began to put it in force and the last one had: all who had to.
fn add_faults(
    part: &TrialPart<'_>,
    parts: &[TrialPart<'_>],
    faults: &mut BTreeMap<u32, FaultRecord>,
) -> Result<(), RecordError> {
    for mut fault in part.run.faults(part.trial)? {
        let acts = part.has_acted(&fault, parts);
        for period in &mut fault.periods {
            for stamp in [&mut period.injected, &mut period.healed] {
                *stamp = match *stamp {
                    Some(Stamp { at_ns, error_ns }) if acts => {
                        let (at_ns, doubt_ns) = part.on_run(at_ns)?;
                        Some(Stamp { at_ns, error_ns: error_ns + doubt_ns })
                    }
                    _ => None,
                };
            }
        }
        let Some(known) = faults.get_mut(&fault.index) else {
            faults.insert(fault.index, fault);
            continue;
        };
        // Whoever was drawn for a role is in the record of those who acted.
        if acts && known.periods.iter().all(|period| period.injected.is_none()) {
            *known = fault;
            continue;
        }
        for (known, own) in known.periods.iter_mut().zip(&fault.periods) {
            known.healed = match (known.injected, own.injected) {
                // As long as it is in force anywhere, it is not healed.
                (Some(_), Some(_)) => known.healed.zip(own.healed).map(|(one, other)| one.together(other)),
                _ => known.healed.or(own.healed),
            };
            known.injected = match (known.injected, own.injected) {
                (Some(one), Some(other)) => Some(one.together(other)),
                (one, other) => one.or(other),
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_an_interval_lies_in_the_runs() {
        let intervals = Intervals { epoch_ns: 2_500, length_ns: 1_000 };
        for (at_ns, nearest) in
            [(2_500, 2_500), (2_999, 2_500), (3_000, 3_500), (3_499, 3_500), (2_400, 2_500), (1_900, 1_500), (0, 0)]
        {
            assert_eq!(intervals.nearest(at_ns), nearest, "{at_ns}");
        }
    }
}
