//! The instrument measures itself: was it punctual, and did the machine have time for all this?

use std::collections::BTreeMap;

use brownout_record::{AddTo, FaultRecord, Histogram, Subject};
use serde::Serialize;

use crate::{
    AnalysisError, TrialEvidence,
    disturbance::{self, Reading, Taker},
    evidence::phase,
    latency::{empty, merge},
    stalls::stalls,
};

/// An interval is late when 1 % of its packets left the emulator later than this, ns. A real-time
/// thread on an idle machine errs by less than 0.1 ms; 5 ms are half a scheduler slice of a starved
/// one, and as much as the smallest latencies of the systems measured.
pub const LATE_RELEASE_NS: u64 = 5_000_000;
/// An interval is late when 1 % of its operations were sent later than this although a connection was free, ns.
pub const LATE_LOAD_NS: u64 = 5_000_000;
/// An interval is late when the load stood still for a larger share of it: owed an operation that could have been sent, and
/// did not send it. Few operations show that, and in a closed loop with a rate only one per user, which no percentile tells.
pub const STOOD_STILL_SHARE: f64 = 0.1;
/// A trial with a larger share of late intervals is invalid, in all of it or in one phase: one in five would reach any p90.
pub const LATE_SHARE: f64 = 0.2;
/// A phase that keeps the machine busier than this is marked saturated: beyond it, queueing for the processors
/// dominates latency (at 85 % an M/M/1 queue takes 6.7 times its service time).
pub const SATURATED_SHARE: f64 = 0.85;
/// From the baseline to the fault phase, what others take of the machine may change by this share of it: of two cores, a
/// fifth of one.
pub const CHANGED_SHARE: f64 = 0.1;

/// Errors of the instrument, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// Packets or operations.
    pub count: u64,
    /// 50th percentile, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// The largest, ns.
    pub max_ns: u64,
}

/// Who used the lab's processors in a phase; shares of all of them, 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpu {
    /// The phase.
    pub phase: String,
    /// Processors there were: those that the lab might use, and no whole number where a quota was.
    pub cores: f64,
    /// Busy with anything at all.
    pub busy: f64,
    /// Taken by the hypervisor for other machines.
    pub stolen: f64,
    /// Each node.
    pub nodes: BTreeMap<String, f64>,
    /// The emulator's thread (part of `instrument`).
    pub emulator: f64,
    /// The load's threads (part of `instrument`).
    pub load: f64,
    /// An overlay's thread and processes (part of `instrument`); 0 without one.
    pub overlay: f64,
    /// All of Brownout.
    pub instrument: f64,
    /// Busy, but neither a node nor Brownout: the kernel's own work and other programs.
    pub other: f64,
    /// Programs outside of the lab (part of `other`); none where the record does not say.
    pub programs: Option<f64>,
    /// The largest of them.
    pub takers: Vec<Taker>,
    /// How long each node's threads waited for a processor, as a share of the CPU time that they used: for each other and for
    /// the rest of the lab, too.
    pub waited: BTreeMap<String, f64>,
    /// By how much longer the nodes' work took because of programs outside of the lab and the hypervisor, as a share of the
    /// CPU time that it took; none where the record does not say.
    pub hindered: Option<f64>,
    /// Share of the time in which something waited for a processor, as the kernel counts it (PSI); none where it does not.
    pub pressure: Option<f64>,
}

/// How punctual the instrument was in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Punctuality {
    /// The phase.
    pub phase: String,
    /// Its intervals.
    pub intervals: u64,
    /// Those in which the instrument was late.
    pub late: u64,
    /// Those of the late ones in which others took processors.
    pub late_by_others: u64,
    /// Those in which others took processors, and the nodes or the instrument had to wait for them.
    pub disturbed: u64,
}

impl Punctuality {
    /// Late in too large a share of the intervals.
    pub fn too_late(&self) -> bool {
        too_many(self.late, self.intervals)
    }

    /// The same without those in which others took processors.
    pub fn too_late_by_itself(&self) -> bool {
        too_many(self.late - self.late_by_others, self.intervals)
    }

    /// Disturbed in too large a share of the intervals.
    pub fn too_disturbed(&self) -> bool {
        too_many(self.disturbed, self.intervals)
    }

    /// All phases together.
    fn sum(phases: &[Punctuality]) -> Punctuality {
        let sum = |of: fn(&Punctuality) -> u64| phases.iter().map(of).sum();
        Punctuality {
            phase: String::new(),
            intervals: sum(|phase| phase.intervals),
            late: sum(|phase| phase.late),
            late_by_others: sum(|phase| phase.late_by_others),
            disturbed: sum(|phase| phase.disturbed),
        }
    }
}

fn too_many(some: u64, intervals: u64) -> bool {
    some as f64 > LATE_SHARE * intervals as f64
}

/// The instrument in one trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instrument {
    /// Actual − intended release of packets by the emulator, over baseline, fault and recovery.
    pub release_error: Option<Errors>,
    /// The generator's own lateness: sent − intended when a connection was free, over the same.
    pub lateness: Option<Errors>,
    /// Intervals of baseline, fault and recovery.
    pub intervals: u64,
    /// Starts of those in which the instrument was late, ns since the run's zero.
    pub late_intervals: Vec<u64>,
    /// Those of the late ones of which nobody can say whether packets had to wait for the emulator: the record does not tell how
    /// long it waited for a processor, and on pairs that no fault hits there were too few probes.
    pub unwitnessed: u64,
    /// The share of the late ones, 0 to 1.
    pub late_share: f64,
    /// The same for each of these phases.
    pub punctuality: Vec<Punctuality>,
    /// Late in too many intervals, of all or of one phase: the trial is not valid.
    pub too_late: bool,
    /// The same without the intervals in which others took processors.
    pub too_late_by_itself: bool,
    /// Starts of the intervals in which others took processors, and the nodes or the instrument had to wait for them, ns
    /// since the run's zero.
    pub disturbed_intervals: Vec<u64>,
    /// Those of them of which nobody knows how long the nodes waited.
    pub waits_unknown: u64,
    /// By how much longer the nodes' work took because of others in the interval in which that was most, as a share of the CPU
    /// time that it took; none where the record does not say it of any.
    pub most_hindered: Option<f64>,
    /// Disturbed in too many intervals, of all or of one phase, or late in too many because of others.
    pub disturbed: bool,
    /// Who disturbed, most first; what they took is of the disturbed intervals.
    pub disturbed_by: Vec<Taker>,
    /// Those of these phases that kept the machine too busy: latency is then the queue for the processors, not the system.
    pub saturated: Vec<String>,
    /// CPU time by phase.
    pub cpu: Vec<Cpu>,
}

/// Judges the instrument in a trial.
pub(crate) fn instrument(evidence: &TrialEvidence) -> Result<Instrument, AnalysisError> {
    let measured = |starts_ns: u64, length_ns: u64| {
        let phase = evidence.phase_of(starts_ns, length_ns)?;
        phase::MEASURED.into_iter().find(|name| phase.name == *name)
    };
    // The emulator's counters are read around the borders of the load's intervals, not at them.
    let by_reading = &evidence.links.release;
    let (mut lateness, mut release) = (empty()?, empty()?);
    for (starts_ns, (length_ns, errors)) in by_reading {
        if measured(*starts_ns, *length_ns).is_some() {
            merge(&mut release, errors, "release error")?;
        }
    }
    let late_readings: Vec<(u64, u64)> = by_reading
        .iter()
        .filter(|(_, (_, errors))| p99(errors) > LATE_RELEASE_NS)
        .map(|(starts_ns, (length_ns, _))| (*starts_ns, starts_ns + length_ns))
        .collect();
    // What it drops because it ran out itself, no link of the experiment would have dropped.
    let unread = evidence.host_counters.iter().filter(|row| row.interface_dropped > 0);
    let unread = unread.map(|row| (row.starts_ns, row.starts_ns + row.length_ns));
    let dropping: Vec<(u64, u64)> = evidence.links.dropping.iter().copied().chain(unread).collect();
    let stalls = stalls(evidence)?;
    let mut punctuality: Vec<Punctuality> = Vec::new();
    let readings = Reading::all(evidence);
    let tells_of_others = readings.values().any(Reading::tells_of_others);
    // Records of before there were programs in them do not tell how long the emulator waited, either.
    let emulates = tells_of_others && hits_links(&evidence.faults);
    let (mut late, mut disturbed, mut disturbing) = (Vec::new(), Vec::new(), Vec::new());
    let (mut unwitnessed, mut unknown) = (0, 0);
    let mut hindered: Vec<f64> = Vec::new();
    for interval in &evidence.intervals {
        let Some(phase) = measured(interval.starts_ns, interval.length_ns) else { continue };
        // Phases follow each other in time: the last one begun is the one that goes on.
        if punctuality.last().is_none_or(|last| last.phase != phase) {
            punctuality.push(Punctuality {
                phase: phase.to_owned(),
                intervals: 0,
                late: 0,
                late_by_others: 0,
                disturbed: 0,
            });
        }
        let Some(own) = punctuality.last_mut() else { continue };
        own.intervals += 1;
        let mut own_lateness = empty()?;
        interval.lateness.add_to(&mut own_lateness);
        merge(&mut lateness, &own_lateness, "lateness")?;
        let middle = interval.starts_ns + interval.length_ns / 2;
        let emulator_late =
            late_readings.iter().chain(&stalls.spans).chain(&dropping).any(|(from, to)| (*from..*to).contains(&middle));
        let stood_still = interval.stood_still_ns as f64 > STOOD_STILL_SHARE * interval.length_ns as f64;
        let reading = readings.range(..=middle).next_back();
        let reading = reading.filter(|(starts_ns, one)| one.holds(**starts_ns, middle)).map(|(_, one)| one);
        hindered.extend(disturbance::hindered(reading.into_iter()));
        // Where nobody looked, nobody knows whether it was quiet.
        let unread = tells_of_others && reading.is_none();
        // A fault that hits every pair may be feigned by an emulator that has to wait.
        let is_unwitnessed = emulates && !stalls.is_witnessed(middle);
        unwitnessed += u64::from(is_unwitnessed);
        let is_late = emulator_late || stood_still || unread || is_unwitnessed || p99(&own_lateness) > LATE_LOAD_NS;
        if is_late {
            own.late += 1;
            late.push(interval.starts_ns);
        }
        let Some(reading) = reading.filter(|reading| reading.crowded()) else { continue };
        own.late_by_others += u64::from(is_late);
        if is_late || reading.disturbed() {
            own.disturbed += 1;
            disturbed.push(interval.starts_ns);
            unknown += u64::from(reading.is_unknown());
            disturbing.push(reading);
        }
    }
    let all = Punctuality::sum(&punctuality);
    let any = |too_many: fn(&Punctuality) -> bool| too_many(&all) || punctuality.iter().any(too_many);
    let too_late = any(Punctuality::too_late);
    let too_late_by_itself = any(Punctuality::too_late_by_itself);
    let cpu = cpu(evidence, &readings);
    let measured = cpu.iter().filter(|row| phase::MEASURED.contains(&row.phase.as_str()));
    let saturated = measured.filter(|row| row.busy > SATURATED_SHARE);
    Ok(Instrument {
        release_error: errors(&release),
        lateness: errors(&lateness),
        intervals: all.intervals,
        late_intervals: late,
        unwitnessed,
        late_share: all.late as f64 / all.intervals.max(1) as f64,
        too_late,
        too_late_by_itself,
        disturbed_intervals: disturbed,
        waits_unknown: unknown,
        most_hindered: hindered.into_iter().reduce(f64::max),
        disturbed: any(Punctuality::too_disturbed) || (too_late && !too_late_by_itself),
        disturbed_by: disturbance::takers(disturbing.into_iter()),
        punctuality,
        saturated: saturated.map(|row| row.phase.clone()).collect(),
        cpu,
    })
}

/// Whether any fault does something to packets.
fn hits_links(faults: &[FaultRecord]) -> bool {
    let mut asked = faults.iter().flat_map(|fault| &fault.severities).flat_map(|severity| &severity.expectations);
    asked.any(|one| one.hit && one.asked != 0.0 && matches!(one.subject, Subject::Pair { .. }))
}

fn p99(histogram: &Histogram) -> u64 {
    if histogram.is_empty() { 0 } else { histogram.value_at_quantile(0.99) }
}

fn errors(histogram: &Histogram) -> Option<Errors> {
    (!histogram.is_empty()).then(|| Errors {
        count: histogram.len(),
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        p999_ns: histogram.value_at_quantile(0.999),
        max_ns: histogram.max(),
    })
}

fn cpu(evidence: &TrialEvidence, readings: &BTreeMap<u64, Reading<'_>>) -> Vec<Cpu> {
    let of_phase = |window: &crate::PhaseWindow| {
        let mut busy: BTreeMap<&str, u64> = BTreeMap::new();
        let mut starts = BTreeMap::new();
        for row in evidence.cpu.iter().filter(|row| window.holds(row.starts_ns, row.length_ns)) {
            *busy.entry(&row.subject).or_default() += row.busy_ns;
            starts.insert(row.starts_ns, row.length_ns);
        }
        let there_was = *busy.get("cores")? as f64;
        let length: u64 = starts.values().sum();
        if there_was <= 0.0 || length == 0 {
            return None;
        }
        let share = |subject: &str| busy.get(subject).copied().unwrap_or(0) as f64 / there_was;
        let nodes: BTreeMap<String, f64> = busy
            .keys()
            .filter_map(|subject| subject.strip_prefix("node:").map(|name| (name.to_owned(), share(subject))))
            .collect();
        let waited = nodes.keys().filter_map(|node| {
            let (waited, ran) =
                (busy.get(format!("waited:{node}").as_str())?, busy.get(format!("node:{node}").as_str())?);
            (*ran > 0).then(|| (node.clone(), *waited as f64 / *ran as f64))
        });
        let of_phase = || readings.iter().filter(|(starts_ns, _)| starts.contains_key(starts_ns)).map(|(_, one)| one);
        let known = nodes.values().sum::<f64>() + share("instrument");
        Some(Cpu {
            phase: window.name.clone(),
            cores: there_was / length as f64,
            busy: share("machine"),
            stolen: share("stolen"),
            emulator: share("emulator"),
            load: share("load"),
            overlay: share("overlay"),
            instrument: share("instrument"),
            // Two clocks of the kernel, read one after the other, may differ by a tick.
            other: (share("machine") - known).max(0.0),
            programs: busy.contains_key("programs").then(|| share("programs")),
            takers: disturbance::takers(of_phase()),
            waited: waited.collect(),
            hindered: disturbance::hindered(of_phase()),
            pressure: busy.get("pressure").map(|waited| *waited as f64 / length as f64),
            nodes,
        })
    };
    evidence.phases.iter().filter_map(of_phase).collect()
}
