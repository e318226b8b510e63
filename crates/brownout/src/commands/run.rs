use std::{
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use brownout_analysis::Validity;
use brownout_lab::{Design, Ended, LabError, More, Resumed, RunOptions, experiment::Source, planner::Planner};

use crate::{
    load::{RUNS, load, with_ground},
    output::{self, INTERRUPTED, INVALID, WRONG},
    view::{self, View},
};

#[derive(clap::Args)]
pub struct Arguments {
    /// The experiment file; with --resume it may be left out, or else has to ask what the run was begun with.
    #[arg(required_unless_present = "resume")]
    file: Option<PathBuf>,
    /// Replace a value of the file: faults.0.slow.delay=10ms. May be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run on this ground instead of the file's: 'containers: { project: shop }'. What the file says of the lab's own nodes and
    /// network is then not used, and told.
    #[arg(long, value_name = "GROUND")]
    ground: Option<String>,
    /// Keep runs below this directory.
    #[arg(long, value_name = "DIRECTORY", default_value = RUNS)]
    out: PathBuf,
    /// Keep the nodes' data (RUN/scratch) after the run. What a run that is resumed has kept stays.
    #[arg(long)]
    keep: bool,
    /// Print the findings as one JSON object on stdout (docs/json.md); progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// Go on with a run that was interrupted or killed, with what is missing of it; on the machine that began it.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["set", "ground", "out", "trial", "sabotage"])]
    resume: Option<PathBuf>,
    /// Run this one trial of the design alone, with what it draws in the design; `brownout check` counts them.
    #[arg(long, value_name = "NUMBER")]
    trial: Option<u32>,
    /// A test of the proof: faults are accepted and reported, but not put in force. The run has to end as refuted.
    #[arg(long, hide = true)]
    sabotage: bool,
}

pub fn run(arguments: &Arguments) -> u8 {
    let set = with_ground(&arguments.set, arguments.ground.as_deref());
    let asked = match (&arguments.resume, &arguments.file) {
        (Some(run), file) => resumed(run, file.as_deref(), More::default()),
        (None, Some(file)) => load(file, &set).map(|(source, design)| Asked {
            source,
            design,
            options: RunOptions {
                out: arguments.out.clone(),
                set,
                only: arguments.trial,
                sabotage: arguments.sabotage,
                ..RunOptions::default()
            },
            is_complete: false,
        }),
        (None, None) => return WRONG,
    };
    let mut asked = match asked {
        Ok(asked) => asked,
        Err(code) => return code,
    };
    if let Some(trial) = arguments.trial {
        if asked.design.search.is_some() {
            output::fail("--trial: which trials a search has follows from those before; run it without --trial");
            return WRONG;
        }
        let trials = Planner::new(&asked.design).most_trials();
        if trial == 0 || trial as usize > trials {
            output::fail(format!("there is no trial {trial}; the design has trials 1 to {trials}"));
            return WRONG;
        }
    }
    asked.options.keep = arguments.keep;
    go(asked, arguments.json)
}

/// What a run is asked.
pub struct Asked {
    source: Source,
    design: Design,
    options: RunOptions,
    /// It is a run of which nothing is missing.
    is_complete: bool,
}

impl Asked {
    /// It has faults, and nothing that says what would have been without them.
    pub fn has_nothing_to_compare_with(&self) -> bool {
        let cells = &self.design.cells;
        self.design.without_fault == 0 && cells.iter().all(|cell| !cell.plan.faults.is_empty())
    }
}

/// What a run that goes on is asked, and what is added to that. The error is already printed.
pub fn resumed(run: &Path, file: Option<&Path>, more: More) -> Result<Asked, u8> {
    let resumed = brownout_lab::resume(run, file, more).map_err(|error| {
        output::fail(&error);
        match error {
            LabError::Record(_) => WRONG,
            error => error.exit_code(),
        }
    })?;
    let Resumed { directory, source, design, set, only, sabotage, labs, missing } = resumed;
    let options = RunOptions {
        out: directory.parent().unwrap_or(&directory).to_owned(),
        set,
        only,
        sabotage,
        labs,
        resumes: Some(directory),
        ..RunOptions::default()
    };
    Ok(Asked { source, design, options, is_complete: missing == 0 })
}

/// Runs it, and says what it shows.
pub fn go(asked: Asked, json: bool) -> u8 {
    let Asked { source, design, mut options, is_complete } = asked;
    if let Some(directory) = options.resumes.as_ref().filter(|_| is_complete) {
        eprintln!(
            "nothing is missing of this run: each of its trials is valid, or was tried as often as its design says; brownout \
             extend RUN --attempts +3 tries those again that are not valid"
        );
        return show(json, directory, None);
    }
    let interrupts = brownout_lab::catch_interrupts();
    let kind = View::suitable(json);
    let mut progress = view::new(kind);
    let mut told: Vec<&String> = Vec::new();
    for warning in design.cells.iter().flat_map(|cell| &cell.plan.warnings) {
        if !told.contains(&warning) {
            progress.note(&format!("WARNING: {warning}"));
            told.push(warning);
        }
    }
    kind.text().clone_into(&mut options.view);
    let ended = brownout_lab::launch(&source, &design, &options, interrupts, progress.as_mut());
    drop(progress);
    match ended {
        Ok(ended) => finish(json, &ended, interrupts.any()),
        Err(error) => {
            if matches!(error, LabError::Interrupted) {
                output::fail("interrupted before the run began; nothing was started");
            } else {
                output::fail(&error);
            }
            if interrupts.any() { INTERRUPTED } else { error.exit_code() }
        }
    }
}

/// Says what the run shows, whichever way it ended; a run that ended badly keeps its own exit code.
fn finish(json: bool, ended: &Ended, interrupted: bool) -> u8 {
    let lab = lab_code(ended.status, interrupted);
    if let Some(signal) = ended.status.signal() {
        output::fail(format!(
            "the lab was ended by signal {signal}; nothing of it is left running, and what it recorded is in \
             {}",
            ended.directory.display()
        ));
    }
    show(json, &ended.directory, lab)
}

/// Says what a run shows; `lab` is the exit code of a lab that ended badly.
fn show(json: bool, directory: &Path, lab: Option<u8>) -> u8 {
    let shown = match output::open(directory) {
        Ok(shown) => shown,
        // The lab has said why it ended before there was anything to show.
        Err(code) => return lab.unwrap_or(code),
    };
    let report = output::write_report(&shown, None);
    let printed = if json {
        output::print_json(&shown.findings)
    } else {
        let mut text = brownout_report::summary(&shown.findings, output::style());
        text.push_str(&format!("\nrun     {}\n", directory.display()));
        if let Ok(report) = &report {
            text.push_str(&format!("report  {}\n", report.display()));
        }
        output::print(&text)
    };
    // Also if the lab failed: what is missing can be made once there is room, or memory, again.
    if shown.findings.verdict.validity == Validity::Interrupted || lab.is_some_and(|code| code != WRONG) {
        eprintln!("to go on with what is missing: brownout run --resume {}", directory.display());
    }
    // What the run itself came to matters more than what could not be said of it.
    match lab.unwrap_or_else(|| brownout_analysis::exit_code(&shown.findings)) {
        0 => output::code(printed.and(report.map(drop)), 0),
        code => code,
    }
}

/// The lab's own exit code; none if it ended well.
fn lab_code(status: ExitStatus, interrupted: bool) -> Option<u8> {
    match status.code() {
        Some(0) => None,
        Some(code) => Some(u8::try_from(code).unwrap_or(INVALID)),
        // Somebody who would not wait for the lab to heal.
        None if interrupted => Some(INTERRUPTED),
        None => Some(INVALID),
    }
}
