//! Inside of the lab: the trials of a design, one after the other, until each has been tried enough.

use std::{fs, time::Duration};

use brownout_analysis::Validity;
use brownout_base::clock::monotonic_ns;
use brownout_machine::Processors;
use brownout_record::{Environment, Event, Recorder, Run, TrialRow};

use crate::{
    LabError,
    design::{Design, PlannedTrial},
    experiment::Source,
    faults::Needs,
    ground::Interrupts,
    machine,
    made::{Made, validity},
    progress::{Course, Progress},
    request::RunRequest,
    resume::refuse_other_software,
    stand::Stands,
    testbed::{Testbed, settings},
    timeline::TimeLine,
    trial::Trial,
};

/// Runs every trial that is missing, records everything.
pub(crate) fn run(request: &RunRequest, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<(), LabError> {
    let mut source = Source::from_text(&request.file, request.text.clone())?.with_attached(request.attached.clone());
    request.set.iter().try_for_each(|assignment| source.set(assignment))?;
    let design = Design::new(&source)?;
    let path = request.provided.directory.join("run.db");
    let system = |choice: &_| format!("Cassandra {}", request.provided.version_of(choice));
    let cells = design.cell_rows(system);
    if request.resumes {
        let javas: Vec<String> = design.cassandras().iter().map(|choice| request.provided.java_of(choice)).collect();
        refuse_other_software(&path, &cells, &javas)?;
    }
    let zero_ns = monotonic_ns();
    let mut recorder = match request.resumes {
        false => Recorder::create(&path, zero_ns, request.started_unix_ms)?,
        true => Recorder::resume(&path, zero_ns, request.started_unix_ms)?,
    };
    recorder.batch(|recorder| {
        recorder.json("design", &design.description(request.only))?;
        cells.iter().try_for_each(|row| recorder.cell(row))?;
        recorder.document("experiment", source.text())?;
        recorder.document("experiment path", &request.file.display().to_string())?;
        recorder.document("set", &request.set.join("\n"))?;
        request.attached.iter().try_for_each(|(path, text)| recorder.document(&format!("file {path}"), text))
    })?;
    let made = Made::read(&path)?;
    let result = Runner::new(request, &design, made, interrupts, progress)
        .and_then(|runner| runner.run(&mut recorder, progress));
    if let Err(error) = &result {
        let kind = if matches!(error, LabError::Interrupted) { "interrupted" } else { "failed" };
        // A full disk may be why it failed; then the error is told on the terminal alone.
        let _ = tell(&mut recorder, None, kind, error);
    }
    let finished = recorder.finish();
    result.and(finished.map_err(LabError::from))
}

/// Records what ended a trial, or the run.
fn tell(recorder: &mut Recorder, trial: Option<u32>, kind: &str, error: &LabError) -> Result<(), LabError> {
    let event = Event {
        trial,
        at_ns: recorder.at(monotonic_ns()),
        error_ns: 0,
        kind: kind.to_owned(),
        subject: if trial.is_some() { "trial" } else { "run" }.to_owned(),
        text: error.to_string(),
    };
    Ok(recorder.batch(|recorder| recorder.event(&event))?)
}

struct Runner<'a> {
    request: &'a RunRequest,
    design: &'a Design,
    interrupts: Interrupts,
    stands: Stands,
    /// By the number of the layout.
    needs: Vec<Needs>,
    made: Made,
    /// What trials have really taken, beside what was expected: the sum of both.
    taken: Duration,
    expected: Duration,
}

impl<'a> Runner<'a> {
    fn new(
        request: &'a RunRequest,
        design: &'a Design,
        made: Made,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Self, LabError> {
        progress.step("making the lab's namespaces");
        let mut specs = request.provided.furnish(&design.layouts())?;
        specs.iter_mut().try_for_each(|spec| request.provided.provide_archive(spec, interrupts, progress))?;
        let needs = (0..specs.len()).map(|layout| design.needs(layout)).collect();
        Ok(Runner {
            stands: Stands::new(specs, made.stands, request.keep),
            request,
            design,
            interrupts,
            needs,
            made,
            taken: Duration::ZERO,
            expected: Duration::ZERO,
        })
    }

    fn run(mut self, recorder: &mut Recorder, progress: &mut dyn Progress) -> Result<(), LabError> {
        let trials = self.design.trials();
        for (at, trial) in trials.iter().enumerate() {
            if self.request.only.is_some_and(|only| only != trial.number) || !self.made.lacks(self.design, *trial) {
                continue;
            }
            let (mut attempts, mut is_valid) = self.made.attempts(*trial);
            while !is_valid && attempts < self.design.attempts {
                attempts += 1;
                let course =
                    Course { trial: trial.number, trials: trials.len() as u32, behind: self.left(&trials[at + 1..]) };
                is_valid = self.attempt(*trial, attempts, course, recorder, progress)?;
            }
        }
        Ok(())
    }

    /// What these trials will take, by what others took.
    fn left(&self, trials: &[PlannedTrial]) -> Duration {
        let expected: Duration = trials.iter().map(|trial| self.design.expected_of(*trial)).sum();
        match self.expected.is_zero() {
            true => expected,
            false => expected.mul_f64(self.taken.as_secs_f64() / self.expected.as_secs_f64()),
        }
    }

    /// Tries a trial once; true if it is valid.
    fn attempt(
        &mut self,
        planned: PlannedTrial,
        attempt: u32,
        course: Course,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
    ) -> Result<bool, LabError> {
        let seed = self.design.seed_of(planned, attempt);
        let plan = self.design.plan_of(planned, seed)?;
        let cell = &self.design.cells[planned.cell];
        let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
        let title = format!("{}{again}", self.design.title(planned, course.trials as usize));
        self.made.trials += 1;
        let number = self.made.trials;
        let row = TrialRow {
            planned: planned.number,
            cell: planned.cell as u32 + 1,
            block: planned.block,
            arm: planned.arm,
            attempt,
            stand: 0,
            session: recorder.session(),
            trial: number,
            ..TrialRow::single(seed, 0, planned.arm)
        };
        let needs = self.needs[cell.layout].clone().and(plan.needs());
        let began = monotonic_ns();
        let trial = Trial {
            plan: &plan,
            needs: &needs,
            row,
            layout: cell.layout,
            load: cell.sharing,
            title,
            course,
            sabotage: self.request.sabotage,
            time_line: TimeLine::begin(self.interrupts),
        };
        let (has_environment, request, seed) = (&mut self.made.environment, self.request, self.design.seed);
        let had_environment = *has_environment;
        let privilege = self.stands.spec(cell.layout).privilege.name();
        let mut on_ready = |recorder: &mut Recorder, testbed: &Testbed| -> Result<(), LabError> {
            if !std::mem::replace(has_environment, true) {
                let java = request.provided.java_of(&plan.layout.cluster.cassandra);
                let environment = environment(privilege, java, testbed, seed);
                recorder.batch(|recorder| recorder.json("environment", &environment))?;
            }
            Ok(())
        };
        let result = trial.run(&mut self.stands, recorder, progress, &mut on_ready);
        match result {
            Ok(()) => {}
            // The run cannot go on, or nobody wants it to.
            Err(error @ (LabError::Interrupted | LabError::Record(_))) => return Err(error),
            // Nothing has ever stood: it is this machine that cannot build a lab, or the file that asks for what cannot be.
            Err(error) if !had_environment && !self.made.environment => return Err(error),
            Err(error) => {
                tell(recorder, Some(number), "failed", &error)?;
                progress.note(&format!("trial {} failed: {error}", planned.number));
                return Ok(false);
            }
        }
        self.taken += Duration::from_nanos(monotonic_ns() - began);
        self.expected += self.design.expected_of(planned);
        let run = Run::open(&self.request.provided.directory.join("run.db"))?;
        let (validity, reason) = validity(&run, number)?;
        if validity != Validity::Valid {
            let again = if attempt < self.design.attempts { "; it is repeated" } else { "" };
            let reason = reason.unwrap_or_default();
            let reason = reason.lines().next().unwrap_or_default();
            progress.note(&format!("trial {} is {}{again}: {reason}", planned.number, validity.name()));
        }
        Ok(validity == Validity::Valid)
    }
}

fn environment(privilege: &str, java: String, testbed: &Testbed, seed: u64) -> Environment {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let settings = settings(testbed);
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: release.trim().to_owned(),
        cpu: machine::cpu_model(),
        cores: Processors::of_this_process().whole(),
        memory: brownout_machine::total_memory(),
        clock_source: machine::clock_source_name(),
        privilege: privilege.to_owned(),
        emulator_scheduling: settings.emulator_scheduling,
        congestion_control: settings.congestion_control,
        java,
        system_settings: settings.system_settings,
        seed,
    }
}
