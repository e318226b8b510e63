use std::{os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus};

use brownout_lab::{Ended, LabError, RunOptions};

use crate::{
    load::{RUNS, load},
    output::{self, INTERRUPTED, INVALID},
    view::{self, View},
};

#[derive(clap::Args)]
pub struct Arguments {
    /// The experiment file.
    file: PathBuf,
    /// Replace a value of the file: faults.0.slow.delay=10ms. May be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Keep runs below this directory.
    #[arg(long, value_name = "DIRECTORY", default_value = RUNS)]
    out: PathBuf,
    /// Keep the nodes' data (RUN/scratch) after the run.
    #[arg(long)]
    keep: bool,
    /// Print the findings as one JSON object on stdout (docs/json.md); progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// A test of the proof: faults are accepted and reported, but not put in force. The run has to end as refuted.
    #[arg(long, hide = true)]
    sabotage: bool,
}

pub fn run(arguments: &Arguments) -> u8 {
    let interrupts = brownout_lab::catch_interrupts();
    let (source, plan) = match load(&arguments.file, &arguments.set) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let kind = View::suitable(arguments.json);
    let mut progress = view::new(kind);
    for warning in &plan.warnings {
        progress.note(&format!("WARNING: {warning}"));
    }
    let options = RunOptions {
        out: arguments.out.clone(),
        set: arguments.set.clone(),
        keep: arguments.keep,
        sabotage: arguments.sabotage,
        view: kind.text().to_owned(),
    };
    let ended = brownout_lab::launch(&source, &plan, &options, interrupts, progress.as_mut());
    drop(progress);
    match ended {
        Ok(ended) => finish(arguments, &ended, interrupts.any()),
        Err(error) => {
            if matches!(error, LabError::Interrupted) {
                output::fail("interrupted before the run began; nothing was started");
            } else {
                output::fail(&error);
            }
            error.exit_code()
        }
    }
}

/// Says what the run shows, whichever way it ended; a run that ended badly keeps its own exit code.
fn finish(arguments: &Arguments, ended: &Ended, interrupted: bool) -> u8 {
    let lab = lab_code(ended.status, interrupted);
    if let Some(signal) = ended.status.signal() {
        output::fail(format!(
            "the lab was ended by signal {signal}; nothing of it is left running, and what it recorded is in \
             {}",
            ended.directory.display()
        ));
    }
    let shown = match output::open(&ended.directory) {
        Ok(shown) => shown,
        // The lab has said why it ended before there was anything to show.
        Err(code) => return lab.unwrap_or(code),
    };
    let report = output::write_report(&shown, None);
    let printed = if arguments.json {
        output::print_json(&shown.findings)
    } else {
        let mut text = brownout_report::summary(&shown.findings, output::style());
        text.push_str(&format!("\nrun     {}\n", ended.directory.display()));
        if let Ok(report) = &report {
            text.push_str(&format!("report  {}\n", report.display()));
        }
        output::print(&text)
    };
    // What the run itself came to matters more than what could not be told of it.
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
