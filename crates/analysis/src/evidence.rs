//! Everything that the run recorded of one trial, read once and put in order.

use std::collections::{BTreeMap, HashMap};

use brownout_record::{
    ClockRow, CpuRow, EncodedTimes, Event, EvidenceRow, FaultRecord, HostCounterRow, LatencyRow, LoadRow,
    MachineClockRow, MachineRow, ProbeRow, Run, Stamp, TrialRow, TrialState, WitnessRow,
};

use crate::{AnalysisError, links::LinkCounters};

/// Names of the phases, as the record writes them.
pub mod phase {
    /// Building the lab; no load.
    pub const SET_UP: &str = "set-up";
    /// Load until latency is stationary.
    pub const WARM_UP: &str = "warm-up";
    /// Load, no fault.
    pub const BASELINE: &str = "baseline";
    /// Load, faults in force.
    pub const FAULT: &str = "fault";
    /// Load, faults healed.
    pub const RECOVERY: &str = "recovery";
    /// The phases that figures are drawn from.
    pub const MEASURED: [&str; 3] = [BASELINE, FAULT, RECOVERY];
}

/// One phase of a trial, with an end even when the run was cut.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseWindow {
    /// `set-up`, `warm-up`, `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Its start, ns since the run's zero.
    pub starts_ns: u64,
    /// Its end; of an unfinished phase the last thing seen.
    pub ends_ns: u64,
    /// Whether the record has its end.
    pub finished: bool,
    /// `time`, `stationary`, `limit`, `interrupt`, `failure`; none if unfinished.
    pub ended_by: Option<String>,
    /// Start of the part that its figures are drawn from; see [`TrialEvidence::phase_of`].
    pub measured_from_ns: u64,
    /// End of that part.
    pub measured_to_ns: u64,
}

impl PhaseWindow {
    /// Whether an interval counts to this phase: it lies wholly in the measured part.
    pub fn holds(&self, starts_ns: u64, length_ns: u64) -> bool {
        starts_ns >= self.measured_from_ns && starts_ns.saturating_add(length_ns) <= self.measured_to_ns
    }
}

/// The load and its latencies in one interval of intended starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its start, ns since the run's zero.
    pub starts_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Whether every operation of it has ended.
    pub settled: bool,
    /// Operations intended to start in it.
    pub scheduled: u64,
    /// Those sent.
    pub sent: u64,
    /// Those given up before they could be sent.
    pub never_sent: u64,
    /// The same by operation, as far as the record knows.
    pub never_sent_by_operation: BTreeMap<String, u64>,
    /// Reads that returned an older version than one acknowledged before they were sent.
    pub stale: u64,
    /// The generator's own lateness, ns.
    pub lateness: EncodedTimes,
    /// How much of its length the generator stood still in, ns.
    pub stood_still_ns: u64,
    /// Operations that were due in it and found no free user: no part of those scheduled.
    pub withheld: u64,
    /// Acknowledged writes that a read of it was the first to look for.
    pub looked_for: u64,
    /// Those of `looked_for` that it did not find.
    pub lost: u64,
    /// Latencies by statement, coordinator and outcome.
    pub latencies: Vec<LatencyRow>,
}

impl Interval {
    fn of(load: LoadRow, latencies: Vec<LatencyRow>) -> Interval {
        Interval {
            starts_ns: load.starts_ns,
            length_ns: load.length_ns,
            settled: load.settled,
            scheduled: load.scheduled,
            sent: load.sent,
            never_sent: load.never_sent,
            never_sent_by_operation: load.never_sent_by_operation,
            stale: load.stale,
            lateness: load.lateness,
            stood_still_ns: load.stood_still_ns,
            withheld: load.withheld,
            looked_for: load.looked_for,
            lost: load.lost,
            latencies,
        }
    }
}

/// One trial.
#[derive(Debug, Clone)]
pub struct TrialEvidence {
    /// Its row.
    pub row: TrialRow,
    /// Its end, or the last thing seen of it, ns since the run's zero.
    pub ends_ns: u64,
    /// Its phases, in order.
    pub phases: Vec<PhaseWindow>,
    /// Its load, interval by interval; one that the record lacks inside a phase is here, without operations.
    pub intervals: Vec<Interval>,
    /// Its link counters.
    pub(crate) links: LinkCounters,
    /// Its probes.
    pub(crate) probes: Vec<ProbeRow>,
    /// Those that went through the overlay.
    pub(crate) overlay_probes: Vec<ProbeRow>,
    /// What the kernels of its hosts counted.
    pub(crate) host_counters: Vec<HostCounterRow>,
    /// What witnesses saw of its faults, in order of time.
    pub witnesses: Vec<WitnessRow>,
    /// What its hosts have learned of each other's clocks, in order of time.
    pub(crate) clocks: Vec<ClockRow>,
    /// The machines that made it; none: one did.
    pub(crate) machines: Vec<MachineRow>,
    /// The machine of each host; empty where one made it.
    machine_of: HashMap<String, String>,
    /// What they knew of each other's clocks, by machine and other one, in order of time.
    pub(crate) machine_clocks: BTreeMap<String, BTreeMap<String, Vec<MachineClockRow>>>,
    /// Its CPU time.
    pub cpu: Vec<CpuRow>,
    /// Its faults.
    pub faults: Vec<FaultRecord>,
    /// Its events.
    pub events: Vec<Event>,
    /// What the database told of itself, in order of time.
    pub database: Vec<EvidenceRow>,
    /// What watches saw of the puts of its intervals.
    pub(crate) watches: Vec<LatencyRow>,
}

impl TrialEvidence {
    /// Reads one trial, but for what only the network's side has to say: enough to draw it.
    pub fn read(run: &Run, row: &TrialRow) -> Result<Self, AnalysisError> {
        TrialEvidence::of(run, row, LinkCounters::default(), [Vec::new(), Vec::new()], Vec::new())
    }

    /// Reads all of one trial.
    pub(crate) fn read_all(run: &Run, row: &TrialRow) -> Result<Self, AnalysisError> {
        let trial = row.trial;
        let probes = [run.probes(trial)?, run.overlay_probes(trial)?];
        TrialEvidence::of(run, row, LinkCounters::read(run, trial)?, probes, run.host_counters(trial)?)
    }

    fn of(
        run: &Run,
        row: &TrialRow,
        links: LinkCounters,
        [probes, overlay_probes]: [Vec<ProbeRow>; 2],
        host_counters: Vec<HostCounterRow>,
    ) -> Result<Self, AnalysisError> {
        let trial = row.trial;
        let mut latencies = run.latencies(trial, 0..u64::MAX)?.into_iter().peekable();
        let mut intervals = Vec::new();
        for load in run.load(trial)? {
            // Both lists are in order of time. A latency row without its load row cannot be written
            // by the recorder (one batch holds both); should one be there, the balance sheet shows it.
            let mut own = Vec::new();
            while let Some(latency) = latencies.next_if(|latency| latency.starts_ns <= load.starts_ns) {
                own.push(latency);
            }
            intervals.push(Interval::of(load, own));
        }
        let mut machine_clocks: BTreeMap<String, BTreeMap<String, Vec<MachineClockRow>>> = BTreeMap::new();
        for row in run.machine_clocks(trial)? {
            let known = machine_clocks.entry(row.machine.clone()).or_default();
            known.entry(row.other.clone()).or_default().push(row);
        }
        let machines = run.machines(trial)?;
        let machine_of = |machine: &MachineRow| {
            machine.hosts.clone().into_iter().map(|host| (host, machine.machine.clone())).collect::<Vec<_>>()
        };
        let mut evidence = TrialEvidence {
            row: row.clone(),
            ends_ns: row.starts_ns,
            phases: Vec::new(),
            intervals,
            links,
            probes,
            overlay_probes,
            host_counters,
            witnesses: run.witnesses(trial)?,
            clocks: run.clocks(trial)?,
            machine_of: machines.iter().flat_map(machine_of).collect(),
            machines,
            machine_clocks,
            cpu: run.cpu(trial)?,
            faults: run.faults(trial)?,
            database: run.evidence(trial)?,
            watches: run.watches(trial, 0..u64::MAX)?,
            events: run.events_of(trial)?,
        };
        evidence.ends_ns = row.ends_ns.unwrap_or_else(|| evidence.last_seen());
        evidence.phases = evidence.windows(run)?;
        evidence.fill(run.description()?.interval_ns);
        Ok(evidence)
    }

    /// How exactly the clocks of the machines of two hosts were known to the one that measures the link between them, at the worst, ns:
    /// 0 where both are on one, infinite where nothing is known. What comes from outside is measured where it arrives.
    pub(crate) fn clock_doubt_ns(&self, from: &str, to: &str) -> f64 {
        let (Some(one), Some(other)) = (self.machine_of.get(from), self.machine_of.get(to)) else { return 0.0 };
        if one == other {
            return 0.0;
        }
        let known = self.machine_clocks.get(one).and_then(|known| known.get(other)).into_iter().flatten();
        known.map(|row| row.error_ns as f64).reduce(f64::max).unwrap_or(f64::INFINITY)
    }

    /// Puts an empty interval wherever a phase under load has none: a load that stands still schedules nothing, and
    /// what left no row must not pass for what never was. Of a trial without an end the last interval is
    /// spared: it may only not have been written yet.
    fn fill(&mut self, length_ns: u64) {
        if length_ns == 0 {
            return;
        }
        let spared = if self.row.ends_ns.is_none() { length_ns } else { 0 };
        let alive_to = self.ends_ns.saturating_sub(spared);
        // Intervals begin at the trial's start plus whole multiples of their length.
        let grid = self.intervals.first().map_or(self.row.starts_ns, |interval| interval.starts_ns) % length_ns;
        let mut missing = Vec::new();
        for phase in self.phases.iter().filter(|phase| phase.name != phase::SET_UP) {
            let mut at = phase.starts_ns + (length_ns + grid - phase.starts_ns % length_ns) % length_ns;
            while at + length_ns <= phase.ends_ns.min(alive_to) {
                let next = self.intervals.partition_point(|one| one.starts_ns + one.length_ns <= at);
                if self.intervals.get(next).is_none_or(|one| one.starts_ns >= at + length_ns) {
                    missing.push(Interval::of(LoadRow::empty(at, length_ns), Vec::new()));
                }
                at += length_ns;
            }
        }
        self.intervals.extend(missing);
        self.intervals.sort_by_key(|interval| interval.starts_ns);
    }

    /// Whether the trial did not come to its end.
    pub fn cut(&self) -> bool {
        matches!(self.row.state, TrialState::Running | TrialState::Interrupted)
    }

    /// The phase of that name, if the trial came to it.
    pub fn phase(&self, name: &str) -> Option<&PhaseWindow> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The phase an interval counts to.
    ///
    /// Only an interval that lies wholly inside a phase counts to it: one that straddles a border
    /// holds operations of both sides, and a percentile over it would be a percentile over mixed
    /// phases. The baseline ends at the first injection at the latest, the fault phase is measured
    /// from the first injection to the last healing, and recovery begins with the last healing,
    /// whatever the phases' own borders say. (Faults may come one after the other: what the fault phase
    /// shows is what their whole schedule does.) One exception: an interval of which injection or healing
    /// took less than the first 2 % counts, because the first second after a change tells the most.
    pub fn phase_of(&self, starts_ns: u64, length_ns: u64) -> Option<&PhaseWindow> {
        self.phases.iter().find(|phase| phase.holds(starts_ns, length_ns))
    }

    /// The intervals that count to a phase.
    pub fn intervals_of<'a>(&'a self, phase: &'a PhaseWindow) -> impl Iterator<Item = &'a Interval> {
        self.intervals.iter().filter(|interval| phase.holds(interval.starts_ns, interval.length_ns))
    }

    /// Start of the intervals that count as begun after a moment; see [`TrialEvidence::phase_of`].
    pub(crate) fn begun_after(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.intervals.first().map_or(0, |interval| interval.length_ns / 50))
    }

    /// When the first fault came into force and when the last was healed for good, ns since the run's zero, each on that
    /// side of its stamp's error that leaves all of the change out of the fault phase.
    pub(crate) fn in_force(&self) -> (Option<u64>, Option<u64>) {
        let early = |stamp: Stamp| stamp.at_ns.saturating_sub(stamp.error_ns);
        let late = |stamp: Stamp| stamp.at_ns.saturating_add(stamp.error_ns);
        let injected = self.faults.iter().filter_map(FaultRecord::injected).map(late).min();
        let healed = self.faults.iter().filter_map(FaultRecord::healed).map(early).max();
        (injected, healed.filter(|_| self.all_healed()))
    }

    /// Whether nothing is in force any more.
    fn all_healed(&self) -> bool {
        self.faults.iter().all(|fault| fault.injected().is_none() || fault.healed().is_some())
    }

    /// When the network was whole before the first injection, and from when on after the last healing, each on the safe
    /// side of its stamp.
    pub(crate) fn without_faults(&self) -> (Option<u64>, Option<u64>) {
        let injected = self.faults.iter().filter_map(FaultRecord::injected);
        let healed = self.faults.iter().filter_map(FaultRecord::healed);
        (
            injected.map(|stamp| stamp.at_ns.saturating_sub(stamp.error_ns)).min(),
            healed.map(|stamp| stamp.at_ns.saturating_add(stamp.error_ns)).max().filter(|_| self.all_healed()),
        )
    }

    fn last_seen(&self) -> u64 {
        let intervals = self.intervals.iter().map(|interval| interval.starts_ns + interval.length_ns);
        let cpu = self.cpu.iter().map(|row| row.starts_ns + row.length_ns);
        let events = self.events.iter().map(|event| event.at_ns);
        intervals.chain(cpu).chain(events).fold(self.row.starts_ns, u64::max)
    }

    fn windows(&self, run: &Run) -> Result<Vec<PhaseWindow>, AnalysisError> {
        let ((injected, healed), (first_injected, last_healed)) = (self.in_force(), self.without_faults());
        let after = |change: Option<u64>, starts_ns: u64| self.begun_after(starts_ns.max(change.unwrap_or(0)));
        let rows = run.phases(self.row.trial)?;
        let windows = rows.into_iter().map(|row| {
            let ends_ns = row.ends_ns.unwrap_or(self.ends_ns).max(row.starts_ns);
            let (mut from, mut to) = (row.starts_ns, ends_ns);
            match row.name.as_str() {
                phase::BASELINE => to = to.min(first_injected.unwrap_or(u64::MAX)),
                phase::FAULT => {
                    from = after(injected, from);
                    to = to.min(healed.unwrap_or(u64::MAX));
                }
                phase::RECOVERY => from = after(last_healed, from),
                _ => {}
            }
            PhaseWindow {
                name: row.name,
                starts_ns: row.starts_ns,
                ends_ns,
                finished: row.ends_ns.is_some(),
                ended_by: row.ended_by,
                measured_from_ns: from,
                measured_to_ns: to.max(from),
            }
        });
        Ok(windows.collect())
    }
}
