//! A whole run, from the settings block to END.

use std::{sync::Arc, time::Duration};

use brownout_load::{Engine, Pace};

use super::{
    RunError, connect,
    disk::TableName,
    logs::{Logs, Telling, both_clocks},
    phase::{End, Finished, How, Phase, Watch},
    plan::{self, Source},
    predefined::Predefined,
    search::{self, Found, SearchWatch},
    setup::{self, Interrupted},
    stage::Stage,
    steps::{self, StepRule},
    threshold::Estimate,
    user::{Profiles, User},
};
use crate::{
    operations::StressWorkload,
    output::{self, Ended, Fold, Measure, RunFacts, RunPlan, Total},
    schema::{Control, Member},
    settings::{CommandKind, Length, Level, Rate, Search, Settings, Truncate},
};

/// A run that is under way.
pub struct Run<'a> {
    settings: &'a Settings,
    source: &'a dyn Source,
    control: Control,
    members: Vec<Member>,
    tables: Vec<TableName>,
    stage: &'a mut Stage,
    interrupted: Interrupted<'a>,
}

/// How a run has ended: its totals by step, and its exit code.
struct Outcome {
    steps: Vec<(String, Total)>,
    how: How,
    /// The search's objective was never kept.
    missed: bool,
}

/// Does what the settings say; returns the exit code.
///
/// # Errors
/// It cannot begin, or cannot go on.
pub fn run(settings: &Settings, stage: &mut Stage, interrupted: Interrupted<'_>) -> Result<u8, RunError> {
    match settings.command.kind {
        CommandKind::VerifySizes => super::verify::verify_sizes(settings, stage, interrupted),
        CommandKind::User => {
            let profiles = Profiles::load(settings)?;
            let settings = &profiles.settings;
            introduce(settings, || profiles.block(), stage);
            if settings.extras.dry_run {
                return profiles.dry_run(stage);
            }
            let control = setup::connect(settings, stage, interrupted)?;
            let members = connect::coordinators(settings, &control)?;
            let user = User::make(&profiles, &control, &members, stage, interrupted)?;
            let tables = user.table_names();
            proceed(settings, &user, control, members, tables, stage, interrupted)
        }
        _ => {
            let predefined = Predefined::new(settings)?;
            introduce(settings, || settings.block(), stage);
            if settings.extras.dry_run {
                return Ok(dry_run(&predefined, settings, stage));
            }
            let control = setup::connect(settings, stage, interrupted)?;
            setup::make_predefined(&predefined, settings, &control, stage, interrupted)?;
            let table = |name: &str| TableName { keyspace: predefined.keyspace().to_owned(), table: name.to_owned() };
            let tables = predefined.tables().iter().map(|known| table(&known.name)).collect();
            let members = connect::coordinators(settings, &control)?;
            proceed(settings, &predefined, control, members, tables, stage, interrupted)
        }
    }
}

/// Notes, and the block of settings.
pub fn introduce(settings: &Settings, block: impl FnOnce() -> String, stage: &mut Stage) {
    for note in &settings.notes {
        stage.aside(note);
    }
    for (given, option) in [
        (settings.mode.max_pending.is_some(), "-mode maxPending="),
        (settings.node.remote_hosts.is_some(), "-node remote-dc="),
        (settings.errors.fail_fast, "-errors fail-fast"),
    ] {
        if given {
            stage.aside(format!("{option} has no effect yet"));
        }
    }
    if settings.log.settings {
        stage.text(&block());
    }
}

/// `--dry-run`: the plan.
fn dry_run(predefined: &Predefined<'_>, settings: &Settings, stage: &mut Stage) -> u8 {
    stage.line("Plan (nothing is done):");
    if predefined.updates() {
        for cql in predefined.definitions(false) {
            stage.line(format!("  define  {cql}"));
        }
    }
    tell_plan(predefined, settings, stage);
    0
}

/// The part of a plan that all commands have.
pub fn tell_plan(source: &dyn Source, settings: &Settings, stage: &mut Stage) {
    for cql in source.statements() {
        stage.line(format!("  prepare {cql}"));
    }
    stage.line(format!("  load    {} by {}", source.description(), plan::words(settings)));
    stage.line(format!("  until   {}", until(settings)));
}

/// What a run line says after the threads.
pub fn until(settings: &Settings) -> String {
    match settings.command.length {
        Length::Time(time) => format!("{} seconds", time.as_secs_f64()),
        Length::Count(count) => format!("for {count} iteration"),
        Length::Uncertainty(uncertainty) => format!("until stderr of mean < {}", uncertainty.target),
    }
}

/// Everything after the schema stands.
fn proceed(
    settings: &Settings,
    source: &dyn Source,
    control: Control,
    members: Vec<Member>,
    tables: Vec<TableName>,
    stage: &mut Stage,
    interrupted: Interrupted<'_>,
) -> Result<u8, RunError> {
    if settings.command.length == Length::Count(0) {
        stage.line("N=0: SCHEMA CREATED, NOTHING ELSE DONE.");
        return Ok(0);
    }
    let mut run = Run { settings, source, control, members, tables, stage, interrupted };
    run.everything()
}

impl Run<'_> {
    fn everything(&mut self) -> Result<u8, RunError> {
        let settings = self.settings;
        self.stage.line("Sleeping 2s...");
        // Checked before anything is loaded, so that a trace that cannot be read costs no warm-up.
        let (_, measure) = plan::paces(self.source, settings, None)?;
        let plan = self.run_plan();
        let mut logs = Logs::open(settings, &plan, plan::is_open(settings))?;
        let (_, started_unix_ms) = both_clocks();
        if settings.command.warmup {
            self.warm_up()?;
        }
        let stepwise = matches!(settings.rate, Rate::Steps { .. });
        if settings.command.truncate == Truncate::Once || settings.command.truncate == Truncate::Always && !stepwise {
            self.truncate()?;
        }
        setup::disks(&self.tables, settings, &self.control, self.stage, self.interrupted)?;
        let outcome = match &settings.rate {
            Rate::Steps { least, most, until_saturated } => {
                self.stage.line("Thread count was not specified");
                self.steps(&mut logs, *least, *most, *until_saturated)
            }
            Rate::Search(search) => self.search(&mut logs, search),
            _ => self.single(&mut logs, measure),
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let text = error.to_string();
                logs.close(Ended::Failed(&text), &brownout_load::Balance::default());
                return Err(error);
            }
        };
        self.finish(logs, &outcome, started_unix_ms)
    }

    /// Writes what is written at the end; prints END or FAILURE; returns the exit code.
    fn finish(&mut self, logs: Logs, outcome: &Outcome, started_unix_ms: u64) -> Result<u8, RunError> {
        let settings = self.settings;
        let success = outcome.how == How::Done && !outcome.missed;
        let last = outcome.steps.last().map(|(_, total)| total);
        let ended = match outcome.how {
            How::Done => Ended::Done,
            How::Interrupted => Ended::Interrupted,
            How::Failed => Ended::Failed("an operation failed"),
        };
        let balance = last.map(|total| total.balance.clone()).unwrap_or_default();
        let (tests, broken) = logs.close(ended, &balance);
        for text in broken {
            self.stage.aside(text);
        }
        if let Some(file) = &settings.graph.file {
            output::write_graph(file, settings.graph.title.as_deref(), chrono_now(), &tests)?;
        }
        if let (Some(path), Some(total)) = (&settings.log.json, last) {
            let facts = RunFacts {
                command: settings.words.join(" "),
                started_unix_ms,
                success,
                seed: Some(plan::seed(settings) as u64),
            };
            let several = outcome.steps.len() > 1;
            let steps: Vec<(String, &Total)> =
                outcome.steps.iter().filter(|_| several).map(|(name, total)| (name.clone(), total)).collect();
            let object = output::to_json(&facts, total, &steps);
            std::fs::write(path, format!("{object:#}\n"))
                .map_err(|source| RunError::File { path: path.clone(), source })?;
        }
        self.stage.line(if success { output::END } else { output::FAILURE });
        let invalid = outcome.steps.iter().any(|(_, total)| {
            !total.balance.balances()
                || plan::is_open(settings) && total.late_intervals.len() as u64 * 2 > total.intervals
        });
        Ok(match outcome.how {
            How::Interrupted => 130,
            How::Failed => 1,
            How::Done if outcome.missed => 1,
            How::Done if invalid => {
                self.stage.aside(
                    "the client itself was late in most intervals, or its account does not balance: this is no \
                     evidence about the database; use a machine with a free processor, or a lower rate",
                );
                3
            }
            How::Done => 0,
        })
    }

    fn phase(
        &self,
        only: Option<usize>,
        partitions: Option<u64>,
        paces: Vec<Pace>,
        users: Option<u32>,
    ) -> Result<Phase, RunError> {
        let settings = self.settings;
        let mut operations = plan::operations(self.source, settings, only, partitions)?;
        if let Some(host) = &settings.node.pin {
            let pin = connect::place("-node pin=", host, settings, &self.members)?;
            for named in &mut operations.kinds {
                named.pin.get_or_insert(pin);
            }
        }
        let workload = Arc::new(StressWorkload::new(operations)?);
        let (_, measure) = plan::paces(self.source, settings, None)?;
        Ok(Phase {
            workload,
            config: connect::engine(settings, &self.members, plan::seed(settings), users),
            paces,
            end: match settings.command.length {
                Length::Count(_) => End::Dry,
                Length::Time(time) => End::After(time),
                Length::Uncertainty(uncertainty) => {
                    End::Sure { target: uncertainty.target, least: uncertainty.least, most: uncertainty.most }
                }
            },
            measure,
            interval: settings.log.interval,
            stop_on_error: !settings.errors.ignore,
        })
    }

    /// As cassandra-stress: of every operation a quarter of the run, at most 50,000, for each node of `-node`; at most
    /// 100 threads, as fast as they can; the first partitions of the run.
    fn warm_up(&mut self) -> Result<(), RunError> {
        let settings = self.settings;
        let quarter = match settings.command.length {
            Length::Count(count) => count / 4,
            Length::Time(_) | Length::Uncertainty(_) => u64::MAX,
        };
        let iterations = quarter.min(50_000) * settings.node.hosts.len() as u64;
        if iterations == 0 {
            return Ok(());
        }
        let threads = plan::users(settings).unwrap_or(100).min(100);
        for (place, (name, _)) in self.source.operations().into_iter().enumerate() {
            self.stage.line(format!("Warming up {name} with {iterations} iterations..."));
            let mut phase = self.phase(Some(place), Some(iterations), vec![Pace::Closed { threads }], Some(threads))?;
            phase.end = End::Dry;
            match phase.run(&mut Complaints(&mut *self.stage), self.interrupted)?.how {
                How::Done => {}
                How::Failed => return Err(RunError::Warmup),
                How::Interrupted => return Err(RunError::Interrupted),
            }
        }
        Ok(())
    }

    fn truncate(&mut self) -> Result<(), RunError> {
        setup::truncate(&self.tables, self.settings, &self.control, self.stage, self.interrupted)
    }

    /// One run, and what there is to say of it before END.
    fn step(
        &mut self,
        logs: &mut Logs,
        paces: Vec<Pace>,
        users: Option<u32>,
        test: &str,
    ) -> Result<Finished, RunError> {
        let settings = self.settings;
        let phase = self.phase(None, plan::partitions(settings), paces, users)?;
        logs.begin(test, self.stage);
        self.stage.aside(output::NO_JMX);
        let mut finished = phase.run(&mut Telling { logs: &mut *logs, stage: &mut *self.stage }, self.interrupted)?;
        if self.source.operations().iter().any(|(name, _)| self.reads(name)) {
            let (lines, warnings) = setup::memtable_reads(&self.tables, settings, &self.control, self.interrupted);
            for line in lines {
                self.stage.aside(line);
            }
            finished.total.warnings.extend(warnings);
        }
        logs.end(&finished.total);
        self.summary(&finished);
        Ok(finished)
    }

    /// Whether an operation of this name reads what is on disk.
    fn reads(&self, name: &str) -> bool {
        !matches!(name, "WRITE" | "COUNTER_WRITE") && !name.ends_with("insert")
    }

    fn summary(&mut self, finished: &Finished) {
        let total = &finished.total;
        if finished.how == How::Interrupted {
            let seconds = total.interval.length_ns as f64 / 1e9;
            self.stage.line(format!("Interrupted after {seconds:.1} s; what was done until then:"));
        }
        if self.settings.log.level != Level::Minimal {
            for line in output::account(total) {
                self.stage.line(line);
            }
        }
        if self.settings.log.summary {
            self.stage.text(&output::results(total));
        }
    }

    fn single(&mut self, logs: &mut Logs, _: Measure) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let (paces, _) = plan::paces(self.source, settings, None)?;
        let users = plan::users(settings);
        let by = match users {
            Some(threads) => format!("{threads} threads"),
            None => plan::words(settings),
        };
        self.stage.line(format!("Running {} with {by} {}", self.source.description(), until(settings)));
        let test = self.test();
        let finished = self.step(logs, paces, users, &test)?;
        let steps = vec![(self.source.description(), finished.total)];
        Ok(Outcome { steps, how: finished.how, missed: false })
    }

    fn test(&self) -> String {
        self.settings.graph.operation.clone()
    }

    /// More and more threads, one run each.
    fn steps(&mut self, logs: &mut Logs, least: u32, most: u32, until_saturated: bool) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let target = match settings.command.length {
            Length::Uncertainty(uncertainty) => {
                self.stage.line(
                    "WARNING: uncertainty mode (err<) results in uneven workload between thread runs, so should be \
                     used for high level analysis only",
                );
                uncertainty.target
            }
            _ => -1.0,
        };
        let rule = if settings.extras.apache { StepRule::Apache } else { StepRule::Scylla };
        let mut steps: Vec<(String, Total)> = Vec::new();
        let mut rates: Vec<f64> = Vec::new();
        let mut threads = least;
        let how = loop {
            self.stage.line("");
            self.stage.line(format!("Running with {threads} threadCount"));
            if settings.command.truncate == Truncate::Always {
                self.truncate()?;
            }
            self.stage.line(format!(
                "Running {} with {threads} threads {}",
                self.source.description(),
                until(settings)
            ));
            let test = self.test();
            let paces = vec![Pace::Closed { threads }];
            let finished = self.step(logs, paces, Some(threads), &test)?;
            rates.push(finished.total.rate());
            let before = steps.last().map(|(name, _)| name.clone());
            steps.push((format!("{threads} threadCount"), finished.total));
            if finished.how != How::Done {
                break finished.how;
            }
            if let (Some(before), Some(better)) = (before, steps::improvement(&rates, 1)) {
                self.stage.line(format!("Improvement over {before}: {:.0}%", 100.0 * better));
            }
            threads = rule.next(threads);
            if threads > most || until_saturated && !steps::goes_on(&rates, target) {
                break How::Done;
            }
            if self.source.updates() && self.rest() {
                break How::Interrupted;
            }
        };
        let table: Vec<(String, &Total)> = steps.iter().map(|(name, total)| (name.clone(), total)).collect();
        for line in output::steps(logs.rows(), &table) {
            self.stage.line(line);
        }
        Ok(Outcome { steps, how, missed: false })
    }

    /// Between two steps of a run that writes; whether the user asked for an end.
    fn rest(&mut self) -> bool {
        self.stage.line("Sleeping for 15s");
        for _ in 0..150 {
            if (self.interrupted)() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    /// The highest rate that keeps the objectives.
    fn search(&mut self, logs: &mut Logs, asked: &Search) -> Result<Outcome, RunError> {
        let settings = self.settings;
        let mut phase = self.phase(None, None, Vec::new(), None)?;
        // Fine enough that the settling quarter of a step is cut off well.
        phase.config.bucket = (asked.step / 40).clamp(Duration::from_millis(20), Duration::from_secs(1));
        self.stage.line(format!("Running {} with {}", self.source.description(), plan::words(settings)));
        let engine = Engine::launch_unless(phase.config.clone(), Arc::clone(&phase.workload) as _, self.interrupted)?;
        let mut told = SearchTelling {
            fold: Fold::new(brownout_load::now_ns(), Measure::Response),
            workload: &phase.workload,
            stage: &mut *self.stage,
            logs: &mut *logs,
        };
        let found = search::search(asked, &engine, &mut told, self.interrupted)?;
        let mut total = told.fold.into_total();
        let (_, balance) = engine.stop(Duration::from_secs(1));
        total.balance = balance;
        let objectives: Vec<String> = asked.objectives.iter().map(ToString::to_string).collect();
        let objectives = objectives.join(", ");
        let (how, missed, text) = match found {
            Found::Threshold(estimate) => (How::Done, false, told_estimate(&objectives, &estimate)),
            Found::Always { highest } => (
                How::Done,
                false,
                format!("{objectives} was kept up to the highest rate tried, {highest:.0}/s; set to= higher"),
            ),
            Found::Never { lowest } => {
                (How::Done, true, format!("{objectives} was missed even at the lowest rate tried, {lowest:.1}/s"))
            }
            Found::Interrupted(known) => {
                let known = known.map_or_else(
                    || "nothing is known yet".to_owned(),
                    |estimate| told_estimate(&objectives, &estimate),
                );
                (How::Interrupted, false, format!("Interrupted; {known}"))
            }
        };
        if settings.log.level != Level::Minimal {
            for line in output::account(&total) {
                self.stage.line(line);
            }
        }
        self.stage.line(text);
        Ok(Outcome { steps: vec![("search".to_owned(), total)], how, missed })
    }

    fn run_plan(&self) -> RunPlan {
        let settings = self.settings;
        let (warm_up_ns, length_ns) = match settings.command.length {
            Length::Time(time) => (settings.command.warmup.then_some(0), time.as_nanos() as u64),
            _ => (settings.command.warmup.then_some(0), 0),
        };
        RunPlan {
            name: settings.command.kind.name().to_owned(),
            command: settings.words.join(" "),
            nodes: connect::named(&self.members)
                .into_iter()
                .map(|node| (node.name, node.address.to_string()))
                .collect(),
            system: self.control.cluster_name(),
            load: plan::words(settings),
            rate: match &settings.rate {
                Rate::Open(open) => open.shape.base().map(|rate| rate.get()),
                _ => None,
            },
            threads: plan::users(settings),
            consistency: settings.command.consistency.to_string(),
            timeout_ns: settings.mode.request_timeout.as_nanos() as u64,
            warm_up_ns,
            length_ns,
            interval_ns: settings.log.interval.as_nanos() as u64,
            seed: plan::seed(settings) as u64,
            ..RunPlan::default()
        }
    }
}

fn told_estimate(objectives: &str, estimate: &Estimate) -> String {
    let (low, high) = estimate.interval;
    format!(
        "Highest rate that keeps {objectives}: {:.0}/s (95 % interval {low:.0}/s to {high:.0}/s; at that rate half of the \
         steps keep it, up to {:.0}/s 19 of 20 do)",
        estimate.rate, estimate.safe
    )
}

/// Of a warm-up only the failures are told.
struct Complaints<'a>(&'a mut Stage);

impl Watch for Complaints<'_> {
    fn complaint(&mut self, line: &str) {
        self.0.aside(line);
    }
}

/// How a search is told.
struct SearchTelling<'a> {
    fold: Fold,
    workload: &'a StressWorkload,
    stage: &'a mut Stage,
    logs: &'a mut Logs,
}

impl SearchWatch for SearchTelling<'_> {
    fn step(&mut self, step: &search::Step, known: Option<&Estimate>) {
        for line in self.workload.complaints().take() {
            self.stage.aside(line);
        }
        let latency =
            step.at_quantile_ns.map_or_else(|| "never".to_owned(), |ns| format!("{:.2} ms", output::ms(ns as f64)));
        let so_far = known.map_or_else(String::new, |known| {
            format!("; threshold {:.0}/s ({:.0} to {:.0})", known.rate, known.interval.0, known.interval.1)
        });
        self.stage.line(format!(
            "search: {:.0}/s {}: {} operations, {:.0}/s answered, {latency} at the quantile{}{so_far}",
            step.rate,
            if step.kept { "keeps it" } else { "misses it" },
            step.operations,
            step.goodput,
            if step.late { " (the client was late)" } else { "" },
        ));
    }

    fn buckets(&mut self, buckets: &[brownout_load::Bucket]) {
        Telling { logs: &mut *self.logs, stage: &mut *self.stage }.buckets(buckets, 0, &[]);
        self.fold.interval(brownout_load::now_ns(), buckets);
    }
}

fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    let (_, unix_ms) = both_clocks();
    chrono::DateTime::from_timestamp_millis(unix_ms as i64).unwrap_or_default()
}
