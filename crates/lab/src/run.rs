//! Inside of the lab: all trials of a design that are missing, by one lab after the other or by several at once.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, atomic::AtomicU32},
    thread,
};

use brownout_machine::{Awake, Processors, available_memory, bind_this_thread, cpu_list};
use brownout_record::{RecordError, Recorder, Run};

use crate::{
    LabError,
    design::Design,
    faults::Needs,
    ground::Interrupts,
    labs::{Labelled, Shared},
    machines::{self, Machines},
    made::Made,
    planner::{self, Planner},
    progress::Progress,
    request::{Asked, RunRequest},
    resume::{SABOTAGE, refuse_other_software},
    spec::LabSpec,
    stand::Stands,
    testbed::idle_name,
    worker::{Ground, Worker, tell},
};

/// Runs every trial that is missing, records everything.
pub(crate) fn run(request: &RunRequest, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<(), LabError> {
    let Asked { file, set, attached, .. } = &request.asked;
    let source = request.asked.source()?;
    let mut design = Design::new(&source)?;
    let path = request.provided.directory.join("run.db");
    if request.resumes {
        cells_made(&path, &mut design)?;
    }
    let cells = design.cell_rows(|cluster| request.provided.database_of(cluster));
    if request.resumes {
        let javas: Vec<String> =
            design.clusters().into_iter().map(|cluster| request.provided.java_of(cluster)).collect();
        refuse_other_software(&path, &cells, &javas)?;
    }
    let zero_ns = brownout_base::clock::monotonic_ns();
    let mut recorder = match request.resumes {
        false => Recorder::create(&path, zero_ns, request.started_unix_ms)?,
        true => Recorder::resume(&path, zero_ns, request.started_unix_ms)?,
    };
    recorder.batch(|recorder| {
        recorder.json("design", &planner::description(&design, request.only, request.labs.count()))?;
        cells.iter().try_for_each(|row| recorder.cell(row))?;
        recorder.document("experiment", source.text())?;
        recorder.document("experiment path", &file.display().to_string())?;
        recorder.set(set)?;
        if request.sabotage {
            recorder.document(SABOTAGE, "faults are acknowledged and not put in force")?;
        }
        write_attached(recorder, attached)
    })?;
    let made = Made::read(&path, design.attempts)?;
    let result = trials(request, design, made, interrupts, &mut recorder, progress);
    if let Err(error) = &result {
        let kind = if matches!(error, LabError::Interrupted) { "interrupted" } else { "failed" };
        // A full disk may be why it failed; then the error is told on the terminal alone.
        let _ = tell(&mut recorder, None, kind, error);
    }
    let finished = recorder.finish();
    result.and(finished.map_err(LabError::from))
}

/// Writes what the experiment names, as [`crate::resume`] reads it.
pub(crate) fn write_attached(recorder: &Recorder, attached: &BTreeMap<String, String>) -> Result<(), RecordError> {
    attached.iter().try_for_each(|(path, text)| recorder.document(&format!("file {path}"), text))
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

/// Makes the namespaces, and has the labs work.
fn trials(
    request: &RunRequest,
    design: Design,
    made: Made,
    interrupts: Interrupts,
    recorder: &mut Recorder,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    if design.first().layout.is_over_machines() {
        return over_machines(request, design, made, interrupts, recorder, progress);
    }
    progress.step("making the lab's namespaces");
    let mut specs = request.provided.furnish(&design.layouts())?;
    specs.iter_mut().try_for_each(|spec| request.provided.provide_archive(spec, interrupts, progress))?;
    if request.labs.are_several() {
        let share = available_memory().map(|memory| memory / u64::from(request.labs.count()));
        specs.iter_mut().for_each(|spec| spec.memory = share);
    }
    let needs: Vec<Needs> = (0..specs.len()).map(|layout| design.needs(layout)).collect();
    let built = AtomicU32::new(made.stands);
    let missing = Planner::new(&design).only(request.only).missing(&made.settled).max(1);
    let working = request.labs.processors.len().min(missing);
    let shared = Shared::new(design, request.only, made, request.labs.clone(), working, interrupts);
    let awake = Awake::hold();
    let idle = idle_name(&awake);
    let common = Common { request, specs: &specs, needs: &needs, built: &built, shared: &shared, idle: &idle };
    let processors = Processors::of_this_process();
    if request.labs.are_several() {
        progress.note(&format!("labs: {}", request.labs.words()));
        common.beside_each_other(working, processors.whole(), recorder, progress)
    } else {
        common.worker(0, cpu_list(processors.cpus()), processors.whole(), recorder, progress).run()
    }
}

/// Has several machines make each trial together.
fn over_machines(
    request: &RunRequest,
    design: Design,
    made: Made,
    interrupts: Interrupts,
    recorder: &mut Recorder,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let layout = &design.first().layout;
    let reach = machines::reach(layout, &request.provided.directory)?;
    let machines = Machines::new(request, &*reach, layout);
    let shared = Shared::new(design, request.only, made, request.labs.clone(), 1, interrupts);
    let processors = Processors::of_this_process();
    let worker = Worker {
        request,
        shared: &shared,
        lab: 0,
        processors: cpu_list(processors.cpus()),
        cores: processors.whole(),
        idle: "",
        ground: Ground::Machines(Box::new(machines)),
        needs: &[],
        recorder,
        progress,
    };
    worker.run()
}

/// What all labs have in common.
#[derive(Clone, Copy)]
struct Common<'a> {
    request: &'a RunRequest,
    /// By the number of the layout.
    specs: &'a [LabSpec],
    needs: &'a [Needs],
    /// How many stands were built.
    built: &'a AtomicU32,
    shared: &'a Shared,
    /// What idle processors do.
    idle: &'a str,
}

impl<'a> Common<'a> {
    fn worker(
        self,
        lab: usize,
        processors: String,
        cores: u32,
        recorder: &'a mut Recorder,
        progress: &'a mut dyn Progress,
    ) -> Worker<'a> {
        let Common { request, specs, needs, built, shared, idle } = self;
        let stands = Stands::new(specs, built, request.keep);
        let ground = Ground::Stands(Box::new(stands));
        Worker { request, shared, lab, processors, cores, idle, ground, needs, recorder, progress }
    }

    /// Each lab in a thread that is bound to its processors, as will be all that it starts.
    fn beside_each_other(
        self,
        working: usize,
        cores: u32,
        recorder: &Recorder,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        // Their connections cannot be shared, and have to be gone before the run's own one finishes.
        let recorders: Vec<Recorder> = (0..working).map(|_| recorder.beside()).collect::<Result<_, _>>()?;
        let progress = Mutex::new(progress);
        let results = thread::scope(|scope| {
            let mut threads = Vec::new();
            for ((lab, own), mut recorder) in self.request.labs.processors.iter().enumerate().zip(recorders) {
                let (progress, common) = (&progress, self);
                let mut work = move || -> Result<(), LabError> {
                    let failed = |source| LabError::Ground { doing: "give a lab its processors", source };
                    bind_this_thread(own).map_err(failed)?;
                    let mut labelled = Labelled::new(lab as u32 + 1, progress);
                    common.worker(lab, cpu_list(own), cores, &mut recorder, &mut labelled).run()
                };
                let work = move || {
                    let _end = EndWithThis(common.shared);
                    let result = work();
                    if result.is_err() {
                        common.shared.stop();
                    }
                    result
                };
                match thread::Builder::new().name(format!("lab-{}", lab + 1)).spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        self.shared.stop();
                        return vec![Err(LabError::Ground { doing: "start a lab's thread", source })];
                    }
                }
            }
            let ended = |thread: thread::ScopedJoinHandle<'_, Result<(), LabError>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(ended).collect()
        });
        first_reason(results)
    }
}

/// A lab that panics is the end of the others, too.
struct EndWithThis<'a>(&'a Shared);

impl Drop for EndWithThis<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// Why labs ended, if not well. Where one could not go on, the others were interrupted for it.
fn first_reason(results: Vec<Result<(), LabError>>) -> Result<(), LabError> {
    let errors: Vec<LabError> = results.into_iter().filter_map(Result::err).collect();
    let is_own = |error: &LabError| !matches!(error, LabError::Interrupted);
    let at = errors.iter().position(is_own).unwrap_or(0);
    errors.into_iter().nth(at).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_labs_that_ended_the_one_that_could_not_go_on_says_why() {
        let failed = || Err(LabError::Trial("the reason".to_owned()));
        let interrupted = || Err(LabError::Interrupted);
        assert!(first_reason(vec![Ok(()), Ok(())]).is_ok());
        let said = first_reason(vec![Ok(()), interrupted(), failed(), interrupted()]).unwrap_err();
        assert_eq!(said.to_string(), "the reason");
        assert_eq!(first_reason(vec![Ok(()), interrupted()]).unwrap_err().exit_code(), 130);
    }
}
