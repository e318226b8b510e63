//! Outside of the lab: provides what it needs, starts it, and waits for its end.

use std::{
    path::PathBuf,
    process::ExitStatus,
    time::{SystemTime, UNIX_EPOCH},
};

use brownout_record::wait_for_readers;

use crate::{
    LabError, byhand,
    design::Design,
    experiment::Source,
    ground::{self, Interrupts, Walls},
    labs::{self, Room},
    machine,
    machines::{self, LoadPods},
    progress::Progress,
    provided::Found,
    request::{Asked, INSIDE, Request, RunRequest},
    run_directory::{self, RunDirectory},
    selftest,
    software::Software,
};

/// What a user asked for beside the experiment.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Runs are kept below this directory.
    pub out: PathBuf,
    /// `--set` assignments, already applied to the source.
    pub set: Vec<String>,
    /// Keep the nodes' data.
    pub keep: bool,
    /// Faults are accepted but not put in force: a test of the proof.
    pub sabotage: bool,
    /// The directory of the run that is to go on; none: a new one.
    pub resumes: Option<PathBuf>,
    /// The number of the one trial that is to be run; none: all.
    pub only: Option<u32>,
    /// How many labs at once earlier sessions of the run had; none: it is new.
    pub labs: Option<u32>,
    /// Handed to the progress view inside.
    pub view: String,
}

/// A run that has ended, whichever way.
#[derive(Debug)]
pub struct Ended {
    /// Its directory.
    pub directory: PathBuf,
    /// Of the lab's first process.
    pub status: ExitStatus,
}

/// Provides what the lab needs, runs it, and waits for its end.
pub fn launch(
    source: &Source,
    design: &Design,
    options: &RunOptions,
    interrupts: Interrupts,
    progress: &mut dyn Progress,
) -> Result<Ended, LabError> {
    for swept in run_directory::sweep(&options.out) {
        progress.note(&format!("removed what a killed run had left: {}", swept.display()));
    }
    let is_over_machines = design.first().layout.is_over_machines();
    if !is_over_machines {
        design.cells.iter().try_for_each(|cell| machine::refuse(&cell.plan, &options.out))?;
    }
    let labs = labs::of(design, &Room::of_this_machine(&options.out), options.labs)?;
    labs.warning().iter().for_each(|warning| progress.note(&format!("WARNING: {warning}")));
    let software = match is_over_machines {
        true => Some(surveyed(source, design, options)?),
        false => None,
    };
    let found = match &software {
        Some(_) => None,
        None => Some(Found::find(&design.clusters(), source.file(), interrupts, progress)?),
    };
    let started_unix_ms =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    let directory = match &options.resumes {
        None => RunDirectory::create(&options.out, &design.first().name, started_unix_ms, options.keep)?,
        Some(directory) => {
            let directory = RunDirectory::open(directory, options.keep)?;
            // Inside of the lab nobody could say who reads.
            wait_for_readers(&directory.path().join("run.db"))?;
            directory
        }
    };
    let request = Request::Run(Box::new(RunRequest {
        asked: Asked::of(source, &options.set),
        provided: match found {
            Some(found) => found.in_directory(directory.path()),
            None => machines::provided(directory.path(), software.unwrap_or_default()),
        },
        started_unix_ms,
        keep: options.keep,
        sabotage: options.sabotage,
        resumes: options.resumes.is_some(),
        only: options.only,
        labs,
        view: options.view.clone(),
    }));
    let request = serde_json::to_vec(&request).map_err(|error| LabError::Machine(error.to_string()))?;
    let load_pods = design.first().layout.pods.as_ref().map(|pods| {
        progress.step("making the pods that send operations");
        LoadPods::make(pods, directory.path()).map_err(LabError::Machine)
    });
    let _load_pods = load_pods.transpose()?;
    progress.hand_over();
    // What works on hosts that are not ours has nothing to keep in.
    let walls = if design.first().layout.is_external() { Walls::None } else { Walls::Own };
    let enclosed = ground::enclose(&[INSIDE], &request, interrupts, walls)?;
    let status = enclosed.wait().map_err(|source| LabError::Ground { doing: "wait for the lab", source })?;
    Ok(Ended { directory: directory.path().to_owned(), status })
}

/// What the nodes of a cluster run that only other machines reach.
fn surveyed(source: &Source, design: &Design, options: &RunOptions) -> Result<Vec<Software>, LabError> {
    let layout = &design.first().layout;
    let reach = machines::reach(layout, &options.out)?;
    machines::survey(&*reach, &layout.machines, Asked::of(source, &options.set))
}

/// In the lab's first process: does what it was asked, and returns its exit code. `view` makes the
/// progress view from the text in [`RunOptions::view`]; `fail` tells of an error.
pub fn inside(view: impl FnOnce(&str) -> Box<dyn Progress>, fail: impl FnOnce(&LabError)) -> u8 {
    let interrupts = ground::catch_interrupts();
    let request = match ground::request() {
        Ok(request) => request,
        Err(source) => {
            fail(&LabError::Ground { doing: "read the request (this command is internal)", source });
            return 2;
        }
    };
    if ground::parent_is_gone() {
        return 1;
    }
    match serde_json::from_slice(&request) {
        Ok(Request::SelfTest) => {
            let answer = selftest::measure().map_err(|error| error.to_string());
            let answer = serde_json::to_vec(&answer).unwrap_or_default();
            u8::from(ground::answer(&answer).is_err())
        }
        Ok(Request::ByHand(request)) => byhand::inside(*request, interrupts),
        Ok(Request::Run(request)) => {
            let mut progress = view(&request.view);
            match crate::run::run(&request, interrupts, progress.as_mut()) {
                Ok(()) => 0,
                Err(error) => {
                    drop(progress);
                    if !matches!(error, LabError::Interrupted) {
                        fail(&error);
                    }
                    error.exit_code()
                }
            }
        }
        Err(error) => {
            fail(&LabError::Machine(format!("the request cannot be read: {error}")));
            2
        }
    }
}
