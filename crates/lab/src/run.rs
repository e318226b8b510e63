//! Inside of the lab: all trials of a run, one after the other.

use std::fs;

use brownout_base::random::derive;
use brownout_machine::Processors;
use brownout_record::{Environment, Event, Recorder};

use crate::{
    LabError, experiment::Source, ground::Interrupts, machine, plan::Plan, progress::Progress, request::RunRequest,
    spec::LabSpec, testbed::TestbedSettings, timeline::TimeLine, trial::Trial,
};

/// Runs every trial, records everything.
pub(crate) fn run(request: &RunRequest, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<(), LabError> {
    let mut source = Source::from_text(&request.file, request.text.clone())?.with_attached(request.attached.clone());
    request.set.iter().try_for_each(|assignment| source.set(assignment))?;
    let plan = Plan::new(&source)?;
    let zero_ns = brownout_base::clock::monotonic_ns();
    let mut recorder = Recorder::create(&request.provided.directory.join("run.db"), zero_ns, request.started_unix_ms)?;
    let system = format!("Cassandra {}", request.provided.distribution.version);
    recorder.batch(|recorder| {
        recorder.json("description", &plan.description(&system))?;
        recorder.document("experiment", source.text())?;
        recorder.document("set", &request.set.join("\n"))?;
        request.attached.iter().try_for_each(|(path, text)| recorder.document(&format!("file {path}"), text))
    })?;
    let result = trials(request, plan, interrupts, &mut recorder, progress);
    if let Err(error) = &result {
        let event = Event {
            trial: None,
            at_ns: recorder.at(brownout_base::clock::monotonic_ns()),
            error_ns: 0,
            kind: if matches!(error, LabError::Interrupted) { "interrupted" } else { "failed" }.to_owned(),
            subject: "run".to_owned(),
            text: error.to_string(),
        };
        // A full disk may be why it failed; then the error is told on the terminal alone.
        let _ = recorder.batch(|recorder| recorder.event(&event));
    }
    let finished = recorder.finish();
    result.and(finished.map_err(LabError::from))
}

fn trials(
    request: &RunRequest,
    plan: Plan,
    interrupts: Interrupts,
    recorder: &mut Recorder,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    progress.step("making the lab's namespaces");
    let mut spec = request.provided.furnish(&plan.layout)?;
    request.provided.provide_archive(&mut spec, interrupts, progress)?;
    let run_seed = plan.experiment.seed.0;
    for number in 1..=plan.trials {
        let time_line = TimeLine::begin(interrupts);
        let mut on_ready = |recorder: &mut Recorder, settings: TestbedSettings| -> Result<(), LabError> {
            // All trials stand alike; the first one tells.
            if number > 1 {
                return Ok(());
            }
            let environment = environment(request, &spec, settings, run_seed);
            Ok(recorder.batch(|recorder| recorder.json("environment", &environment))?)
        };
        let seed = derive(run_seed, u64::from(number));
        let trial = Trial { spec: &spec, plan: &plan, number, seed, sabotage: request.sabotage, time_line };
        trial.run(recorder, progress, &mut on_ready)?;
        if !request.keep {
            // Only to save space: the end of the run removes all.
            let _ = fs::remove_dir_all(spec.paths(number).scratch);
        }
    }
    Ok(())
}

fn environment(request: &RunRequest, spec: &LabSpec, settings: TestbedSettings, seed: u64) -> Environment {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: release.trim().to_owned(),
        cpu: machine::cpu_model(),
        cores: Processors::of_this_process().whole(),
        memory: brownout_machine::total_memory(),
        clock_source: machine::clock_source_name(),
        privilege: spec.privilege.name().to_owned(),
        emulator_scheduling: settings.emulator_scheduling,
        congestion_control: settings.congestion_control,
        java: format!("{}, {}", request.provided.java.version, request.provided.java.home.display()),
        system_settings: settings.system_settings,
        seed,
    }
}
