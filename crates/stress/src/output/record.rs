//! `--record run.db`: the run as a file that `brownout show`, `report` and `compare` read.
//!
//! It is recorded as the run of an experiment without a lab, network or faults: one trial that consists of warm-up and
//! baseline. In a run in steps, one step is the baseline, and the others are phases under their own names.

use std::{
    fs,
    path::{Path, PathBuf},
};

use brownout_load::{Balance, Bucket, ConnectionEvent, Outcome, Series};
use brownout_record::{
    Arm, CpuRow, Description, Environment, HostDescription, LatencyRow, LoadDescription, LoadRow, Objective,
    OperationRows, PhaseDescription, PhaseRow, RecordError, Recorder, TrialRow, TrialState,
};

use super::{OutputError, machine, words::without_passwords};

const TRIAL: u32 = 1;
/// The measured phase; analysis compares others with it, and a run without faults consists of it.
const BASELINE: &str = "baseline";
const WARM_UP: &str = "warm-up";

/// The plan of the run.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// Its name: of the profile, or the command's.
    pub name: String,
    /// The words of the command.
    pub command: String,
    /// Texts of profiles, by name of their file.
    pub profiles: Vec<(String, String)>,
    /// The coordinators: name and address.
    pub nodes: Vec<(String, String)>,
    /// "Cassandra 5.0.4".
    pub system: String,
    /// Whether connections to it are encrypted.
    pub encrypted: bool,
    /// The load in words: "open, 2000/s, constant arrivals".
    pub load: String,
    /// Operations per second of an open loop.
    pub rate: Option<f64>,
    /// Virtual users of a closed one.
    pub threads: Option<u32>,
    /// "quorum".
    pub consistency: String,
    /// Copies of each row; 0: not known.
    pub replication: u32,
    /// Client time-out, ns.
    pub timeout_ns: u64,
    /// What counts as good: within this many ns, for this share of the operations. None: whatever is answered in time.
    pub objective: Option<(u64, f64)>,
    /// Planned length of the warm-up; none: there is none.
    pub warm_up_ns: Option<u64>,
    /// Planned length of the run; 0: not known.
    pub length_ns: u64,
    /// Length of an interval of the series, ns: that of the engine's buckets.
    pub interval_ns: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// What to check before trusting the result.
    pub warnings: Vec<String>,
}

/// The file of a run in progress.
pub struct RunFile {
    recorder: Recorder,
    trial: TrialRow,
    phase: PhaseRow,
    /// Whether measuring has begun.
    measured: bool,
    /// The steps before the current one.
    steps: Vec<PhaseRow>,
    /// Distinguishes the current step from others: "40/s".
    label: String,
    looked: machine::Look,
}

impl RunFile {
    /// Creates the file. `now_ns` (CLOCK_MONOTONIC) and `now_unix_ms` are one moment on both clocks, before the start
    /// of any bucket: the zero of the run.
    ///
    /// # Errors
    /// A file of this name exists, or none can be created.
    pub fn begin(path: &Path, plan: &RunPlan, now_ns: u64, now_unix_ms: u64) -> Result<Self, OutputError> {
        if path.exists() {
            return Err(OutputError::Exists { path: path.to_owned() });
        }
        let mut recorder = Recorder::create(path, now_ns, now_unix_ms)?;
        let first = if plan.warm_up_ns.is_some() { WARM_UP } else { BASELINE };
        let trial = TrialRow::single(plan.seed, 0, Arm::None);
        let phase = PhaseRow { trial: TRIAL, name: first.to_owned(), starts_ns: 0, ends_ns: None, ended_by: None };
        recorder.batch(|recorder| {
            recorder.single_cell(&description(plan))?;
            recorder.json("environment", &environment(plan.seed))?;
            recorder.document("experiment", &experiment(plan))?;
            recorder.trial(&trial)?;
            recorder.phase(&phase)
        })?;
        let looked = machine::Look::now(now_ns);
        Ok(RunFile { recorder, trial, phase, measured: false, steps: Vec::new(), label: String::new(), looked })
    }

    /// Measuring begins, with an operation that is due at this time. If something has been measured already, that was a
    /// step, which ended at `before_ns`: it gets a phase of its own, because figures over several steps would describe
    /// none of them. The current step is the baseline; `label` distinguishes it from others, "40/s".
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn measure(&mut self, start_ns: u64, before_ns: u64, label: &str) -> Result<(), OutputError> {
        let at_ns = self.recorder.at(start_ns);
        if std::mem::replace(&mut self.measured, true) {
            let ends_ns = Some(self.recorder.at(before_ns));
            let next = PhaseRow { starts_ns: at_ns, ..self.phase.clone() };
            let before = std::mem::replace(&mut self.phase, next);
            let step = PhaseRow { name: self.step_name(), ends_ns, ended_by: Some("time".to_owned()), ..before };
            self.recorder.batch(|recorder| recorder.phase(&step).and_then(|()| recorder.phase(&self.phase)))?;
            self.steps.push(step);
            label.clone_into(&mut self.label);
            return Ok(());
        }
        label.clone_into(&mut self.label);
        if self.phase.name == BASELINE {
            // The baseline existed in case nothing is ever measured; it does not begin with the set-up.
            self.phase.starts_ns = at_ns;
            return Ok(self.recorder.batch(|recorder| recorder.phase(&self.phase))?);
        }
        self.phase.ends_ns = Some(at_ns);
        self.phase.ended_by = Some("time".to_owned());
        let next =
            PhaseRow { trial: TRIAL, name: BASELINE.to_owned(), starts_ns: at_ns, ends_ns: None, ended_by: None };
        self.recorder.batch(|recorder| recorder.phase(&self.phase).and_then(|()| recorder.phase(&next)))?;
        self.phase = next;
        Ok(())
    }

    /// The name of the current step once it is no longer the baseline.
    fn step_name(&self) -> String {
        let number = self.steps.len() + 1;
        if self.label.is_empty() { format!("step {number}") } else { format!("step {number}, {}", self.label) }
    }

    /// The current step counts from this time on.
    pub fn narrow(&mut self, from_ns: u64) {
        self.phase.starts_ns = self.recorder.at(from_ns);
    }

    /// Makes an earlier step, counted from 0, the baseline; the current one becomes a step like others.
    fn show(&mut self, shown: usize) -> Result<(), RecordError> {
        let Some(step) = self.steps.get(shown).cloned() else { return Ok(()) };
        let last = PhaseRow { name: self.step_name(), ..self.phase.clone() };
        self.phase = PhaseRow { name: BASELINE.to_owned(), ..step.clone() };
        self.recorder.batch(|recorder| {
            recorder.phase(&last)?;
            recorder.no_phase(TRIAL, &step.name)?;
            recorder.phase(&self.phase)
        })
    }

    /// Records the buckets of a drain, and the CPU usage since the last call; `load_cpu_ns` is the CPU time that the
    /// engine's threads have used so far.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn buckets(&mut self, now_ns: u64, buckets: &[Bucket], load_cpu_ns: u64) -> Result<(), OutputError> {
        let look = machine::Look::at(now_ns, load_cpu_ns);
        let rows = look.since(&self.looked);
        let starts_ns = self.recorder.at(self.looked.at_ns);
        let length_ns = now_ns.saturating_sub(self.looked.at_ns);
        self.recorder.batch(|recorder| {
            for (subject, busy_ns) in rows.iter().filter(|_| length_ns > 0) {
                let subject = (*subject).to_owned();
                recorder.cpu(TRIAL, &CpuRow { starts_ns, length_ns, subject, busy_ns: *busy_ns })?;
            }
            buckets.iter().try_for_each(|bucket| write_bucket(recorder, TRIAL, bucket))
        })?;
        self.looked = look;
        Ok(())
    }

    /// Records connection events.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn connections(&mut self, events: &[ConnectionEvent]) -> Result<(), OutputError> {
        for event in events {
            let text = match &event.lost {
                Some(why) => format!("a connection to {} was lost: {why}", event.coordinator),
                None => format!("connected to {}", event.coordinator),
            };
            self.recorder.seen(TRIAL, event.at_ns, "connection", &event.coordinator, &text)?;
        }
        Ok(())
    }

    /// Records something to check before trusting the result.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn warning(&mut self, text: &str, now_ns: u64) -> Result<(), OutputError> {
        Ok(self.recorder.seen(TRIAL, now_ns, "warning", "load", text)?)
    }

    /// Ends the run. Nothing was due from `over_ns` on; that is the end of what was measured. Of several steps, `shown`
    /// (counted from 0) or else the last is the baseline.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(
        mut self,
        over_ns: u64,
        now_ns: u64,
        ended: Ended<'_>,
        balance: &Balance,
        shown: Option<usize>,
    ) -> Result<(), OutputError> {
        let (state, by) = match ended {
            Ended::Done => (TrialState::Done, "time"),
            Ended::Interrupted => (TrialState::Interrupted, "interrupt"),
            Ended::Failed(_) => (TrialState::Failed, "failure"),
        };
        if let Ended::Failed(why) = ended {
            self.recorder.seen(TRIAL, now_ns, "failed", "load", why)?;
        }
        if !balance.balances() {
            let lost = balance.lost_threads.join("; ");
            self.recorder.seen(
                TRIAL,
                now_ns,
                "balance",
                "load",
                &format!("the load's account does not balance {lost}"),
            )?;
        }
        self.phase.ends_ns = Some(self.recorder.at(over_ns));
        self.phase.ended_by = Some(by.to_owned());
        self.trial.ends_ns = Some(self.recorder.at(now_ns));
        self.trial.state = state;
        self.recorder.batch(|recorder| recorder.phase(&self.phase).and_then(|()| recorder.trial(&self.trial)))?;
        if let Some(shown) = shown {
            self.show(shown)?;
        }
        Ok(self.recorder.finish()?)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<'a> {
    /// It completed as instructed.
    Done,
    /// Its user ended it.
    Interrupted,
    /// It did not, for this reason.
    Failed(&'a str),
}

/// Writes an interval of the load, and the results of its operations.
///
/// # Errors
/// The run file cannot be written.
pub fn write_bucket(recorder: &Recorder, trial: u32, bucket: &Bucket) -> Result<(), RecordError> {
    recorder.operations(trial, &rows_of(bucket, recorder.at(bucket.start_ns)))
}

/// An interval of the load, and the results of its operations, as the record has them; it begins then, ns since the record's zero.
pub fn rows_of(bucket: &Bucket, starts_ns: u64) -> OperationRows {
    let never_sent = bucket.operations.iter().filter(|counts| counts.never_sent > 0);
    let load = LoadRow {
        starts_ns,
        length_ns: bucket.length_ns,
        settled: bucket.settled,
        scheduled: bucket.scheduled,
        sent: bucket.sent,
        never_sent: bucket.never_sent,
        never_sent_by_operation: never_sent.map(|counts| (counts.operation.clone(), counts.never_sent)).collect(),
        stale: bucket.stale,
        lateness: (&bucket.lateness).into(),
        stood_still_ns: bucket.stood_still_ns,
        withheld: bucket.withheld,
        looked_for: bucket.looked_for,
        lost: bucket.lost,
    };
    let latencies = |of: &[Series]| of.iter().map(|series| latency(starts_ns, series)).collect();
    OperationRows { load, latencies: latencies(&bucket.series), watches: latencies(&bucket.watches) }
}

fn latency(starts_ns: u64, series: &Series) -> LatencyRow {
    LatencyRow {
        starts_ns,
        statement: series.statement.clone(),
        coordinator: series.coordinator.clone(),
        outcome: match series.outcome {
            Outcome::Failed(class) => format!("failed:{}", class.name()),
            ended => ended.name().to_owned(),
        },
        count: series.count,
        wait: (&series.wait).into(),
        service: (&series.service).into(),
        response: (&series.response).into(),
    }
}

fn description(plan: &RunPlan) -> Description {
    let host = |name: &str, address: &str, role: &str| HostDescription {
        name: name.to_owned(),
        address: address.to_owned(),
        role: role.to_owned(),
    };
    let mut hosts: Vec<HostDescription> =
        plan.nodes.iter().map(|(name, address)| host(name, address, "node")).collect();
    hosts.push(host("load", "", "load"));
    let phase = |name: &str, length_ns| PhaseDescription { name: name.to_owned(), length_ns };
    let mut phases: Vec<PhaseDescription> = plan.warm_up_ns.map(|length| phase(WARM_UP, length)).into_iter().collect();
    phases.push(phase(BASELINE, plan.length_ns));
    let (response_ns, share) = plan.objective.unwrap_or((plan.timeout_ns, 0.0));
    let must_hold = plan.objective.map(|_| BASELINE.to_owned());
    Description {
        name: plan.name.clone(),
        question: None,
        hosts,
        database: plan.system.clone(),
        external: true,
        ground: String::new(),
        load: LoadDescription {
            text: plan.load.clone(),
            rate: plan.rate,
            threads: plan.threads,
            parts: Vec::new(),
            consistency: plan.consistency.clone(),
            replication: plan.replication,
            timeout_ns: plan.timeout_ns,
        },
        phases,
        faults: Vec::new(),
        network: Vec::new(),
        overlay: String::new(),
        encryption: plan.encrypted.then(|| "to clients".to_owned()).into_iter().collect(),
        bottlenecks: Some(Vec::new()),
        placement: None,
        trials: 1,
        objective: Objective { response_ns, share, phases: must_hold.into_iter().collect(), operation: None },
        interval_ns: plan.interval_ns,
        warnings: plan.warnings.clone(),
    }
}

/// The machine of the load. Nothing is known about those of the database.
fn environment(seed: u64) -> Environment {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: read("/proc/sys/kernel/osrelease"),
        cpu: machine::cpu_model(),
        cores: brownout_machine::Processors::of_this_process().whole(),
        memory: brownout_machine::total_memory(),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        privilege: "none needed".to_owned(),
        emulator_scheduling: "no emulator".to_owned(),
        idle: "as the machine does".to_owned(),
        congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        java: "not ours".to_owned(),
        system_settings: "not ours: the cluster was there".to_owned(),
        seed,
    }
}

/// What was requested, as it was given.
fn experiment(plan: &RunPlan) -> String {
    let mut text = format!("brownout stress {}\n", without_passwords(&plan.command));
    for (name, profile) in &plan.profiles {
        text.push_str(&format!("\n# {name}\n{profile}\n"));
    }
    text
}

/// The directory's or file's path as the file to be made.
pub fn run_path(text: &str) -> PathBuf {
    let path = PathBuf::from(text);
    if path.is_dir() { path.join("run.db") } else { path }
}
