//! Inside of the lab: the trials of a design, one after the other, until each has been tried enough.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use brownout_analysis::{Judged, Lesson, Validity};
use brownout_base::clock::monotonic_ns;
use brownout_machine::Processors;
use brownout_record::{Environment, Event, Recorder, Run, TrialRow};

use crate::{
    LabError,
    design::{Design, PlannedTrial},
    experiment::{CassandraChoice, Source},
    faults::Needs,
    ground::Interrupts,
    machine,
    made::{Made, judged},
    planner::{Next, Planner, Which},
    progress::{Course, Progress},
    request::RunRequest,
    resume::{SABOTAGE, refuse_other_software},
    stand::Stands,
    testbed::{Testbed, settings},
    timeline::TimeLine,
    trial::Trial,
};

/// Runs every trial that is missing, records everything.
pub(crate) fn run(request: &RunRequest, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<(), LabError> {
    let mut source = Source::from_text(&request.file, request.text.clone())?.with_attached(request.attached.clone());
    request.set.iter().try_for_each(|assignment| source.set(assignment))?;
    let mut design = Design::new(&source)?;
    let path = request.provided.directory.join("run.db");
    if request.resumes {
        cells_made(&path, &mut design)?;
    }
    let cells = design.cell_rows(|choice| system(request, choice));
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
        recorder.set(&request.set)?;
        if request.sabotage {
            recorder.document(SABOTAGE, "faults are acknowledged and not put in force")?;
        }
        request.attached.iter().try_for_each(|(path, text)| recorder.document(&format!("file {path}"), text))
    })?;
    let made = Made::read(&path, design.attempts)?;
    let result = Runner::new(request, &mut design, made, interrupts, progress)
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

/// Makes the cells of a search that its record has, so that they keep their numbers.
fn cells_made(path: &Path, design: &mut Design) -> Result<(), LabError> {
    if design.search.is_some() {
        for level in Run::open(path)?.cells()?.iter().filter_map(|cell| cell.levels.first()) {
            design.cell_of(level)?;
        }
    }
    Ok(())
}

/// What the record calls a database.
fn system(request: &RunRequest, choice: &CassandraChoice) -> String {
    format!("Cassandra {}", request.provided.version_of(choice))
}

struct Runner<'a> {
    request: &'a RunRequest,
    design: &'a mut Design,
    planner: Planner,
    interrupts: Interrupts,
    stands: Stands,
    /// By the number of the layout.
    needs: Vec<Needs>,
    made: Made,
    /// Whether this session has had a stand.
    stood: bool,
    /// How long each trial was expected to take, by its number.
    expected: BTreeMap<u32, Duration>,
    /// What those that were tried have taken, and what was expected of them.
    taken: Duration,
    expected_of_taken: Duration,
}

impl<'a> Runner<'a> {
    fn new(
        request: &'a RunRequest,
        design: &'a mut Design,
        made: Made,
        interrupts: Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Self, LabError> {
        progress.step("making the lab's namespaces");
        let mut specs = request.provided.furnish(&design.layouts())?;
        specs.iter_mut().try_for_each(|spec| request.provided.provide_archive(spec, interrupts, progress))?;
        let needs = (0..specs.len()).map(|layout| design.needs(layout)).collect();
        let planner = Planner::new(design).only(request.only);
        Ok(Runner {
            stands: Stands::new(specs, made.stands, request.keep),
            expected: planner.expected(design),
            planner,
            request,
            design,
            interrupts,
            needs,
            made,
            stood: false,
            taken: Duration::ZERO,
            expected_of_taken: Duration::ZERO,
        })
    }

    fn run(mut self, recorder: &mut Recorder, progress: &mut dyn Progress) -> Result<(), LabError> {
        let trials = self.planner.most_trials() as u32;
        while let Some(next) = self.planner.next(&self.made.settled) {
            let trial = self.planned(next, recorder)?;
            let mut attempts = self.made.attempts.get(&trial.number).copied().unwrap_or_default();
            let mut lesson = self.nothing(trial);
            while attempts < self.design.attempts {
                attempts += 1;
                let course = Course { trial: trial.number, trials, behind: self.left(trial.number) };
                let judged = self.attempt(trial, attempts, course, recorder, progress)?;
                if let Some(judged) = judged.filter(|judged| judged.validity == Validity::Valid) {
                    lesson = judged.lesson;
                    break;
                }
            }
            self.made.settled.insert(trial.number, lesson);
        }
        Ok(())
    }

    /// A trial with its cell, which is recorded if nobody has chosen it before.
    fn planned(&mut self, next: Next, recorder: &mut Recorder) -> Result<PlannedTrial, LabError> {
        let cell = match &next.cell {
            Which::Known(cell) => *cell,
            Which::Of(level) => {
                let known = self.design.cells.len();
                let cell = self.design.cell_of(level)?;
                if cell >= known {
                    let row = self.design.cell_row(cell, |choice| system(self.request, choice));
                    recorder.batch(|recorder| recorder.cell(&row))?;
                }
                cell
            }
        };
        Ok(PlannedTrial { number: next.number, block: next.block, cell, arm: next.arm })
    }

    /// What a search learns from a trial of which no attempt is valid.
    fn nothing(&self, trial: PlannedTrial) -> Option<Lesson> {
        self.design.search.as_ref()?;
        let level = self.design.level(trial.cell).to_owned();
        Some(Lesson { level, arm: trial.arm, log_ratio: None, kept: None })
    }

    /// What the trials after this one will take, by what others took.
    fn left(&self, number: u32) -> Duration {
        let expected: Duration = self.expected.range(number + 1..).map(|(_, expected)| *expected).sum();
        match self.expected_of_taken.is_zero() {
            true => expected,
            false => expected.mul_f64(self.taken.as_secs_f64() / self.expected_of_taken.as_secs_f64()),
        }
    }

    /// Tries a trial once; none if it failed.
    fn attempt(
        &mut self,
        planned: PlannedTrial,
        attempt: u32,
        course: Course,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
    ) -> Result<Option<Judged>, LabError> {
        let (seed, plan) = self.design.drawn(planned, attempt)?;
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
        let (has_environment, stood) = (&mut self.made.environment, &mut self.stood);
        let (request, seed) = (self.request, self.design.seed);
        let privilege = self.stands.spec(cell.layout).privilege.name();
        let mut on_ready = |recorder: &mut Recorder, testbed: &Testbed| -> Result<(), LabError> {
            *stood = true;
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
            // Nothing has stood yet: it is this machine that cannot build a lab now, or the file that asks for what cannot be.
            // To fail all trials that are missing for that would leave nothing to resume.
            Err(error) if !self.stood => return Err(error),
            Err(error) => {
                tell(recorder, Some(number), "failed", &error)?;
                progress.note(&format!("trial {} failed: {error}", planned.number));
                return Ok(None);
            }
        }
        self.taken += Duration::from_nanos(monotonic_ns() - began);
        self.expected_of_taken += self.expected.get(&planned.number).copied().unwrap_or_default();
        let run = Run::open(&self.request.provided.directory.join("run.db"))?;
        let judged = judged(&run, number)?;
        if judged.validity != Validity::Valid {
            // A flood of a busy machine would set the rate of all that come after it here.
            self.stands.forget_capacity(self.design.cells[planned.cell].sharing);
            let again = if attempt < self.design.attempts { "; it is repeated" } else { "" };
            let reason = judged.reasons.first().and_then(|reason| reason.lines().next()).unwrap_or_default();
            progress.note(&format!("trial {} is {}{again}: {reason}", planned.number, judged.validity.name()));
        }
        Ok(Some(judged))
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
