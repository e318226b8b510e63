//! `brownout`: what does a bad network do to my database?
//!
//! One file per command under `commands/`; each returns the process's exit code:
//! 0 done and valid · 1 an objective was missed · 2 the file or the arguments are wrong · 3 done, but the
//! evidence is disturbed, invalid or inconclusive · 4 this machine cannot build the lab · 130 interrupted.

mod commands;
mod load;
mod output;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A lab on one machine: a real database cluster on an emulated network, proven faults, honest load.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an experiment file: its trials, their summary, the report.
    Run(commands::run::Arguments),
    /// Add trials to a run that has ended.
    Extend(commands::extend::Arguments),
    /// Print the summary of a run again, from its file alone.
    Show(commands::show::Arguments),
    /// Write the HTML report of a run again.
    Report(commands::report::Arguments),
    /// Put runs beside each other: is B better or worse than A?
    Compare(commands::compare::Arguments),
    /// Check an experiment file and print its plan, without running it.
    Check(commands::check::Arguments),
    /// Show containers that run already, and what can be done to each: ground --project shop.
    Ground(commands::ground::Arguments),
    /// Print a Compose override that starts containers with what clocks of their own need.
    Wrap(commands::wrap::Arguments),
    /// Print what Kubernetes needs to know for experiments on its pods, for kubectl apply.
    Manifests(commands::manifests::Arguments),
    /// Say what this machine can do, with a remedy for each lack.
    Doctor(commands::doctor::Arguments),
    /// Put load on any cluster, in cassandra-stress's language: brownout stress help.
    Stress(commands::stress::Arguments),
    #[command(flatten)]
    ByHand(commands::byhand::Command),
    /// The first process of a lab; not for people.
    #[command(name = brownout_lab::INSIDE, hide = true)]
    Inside,
    /// Waits in a pod of Kubernetes until it is ended; not for people.
    #[command(name = brownout_lab::machines::manifests::IDLE, hide = true)]
    Agent,
    /// A part of a run over several machines; not for people.
    #[command(name = brownout_lab::machines::PART, hide = true)]
    Part,
}

fn main() -> ExitCode {
    let words = commands::stress::by_other_name(std::env::args_os().collect());
    let code = match Arguments::parse_from(commands::byhand::with_signs(words.into_iter())).command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Extend(arguments) => commands::extend::extend(&arguments),
        Command::Show(arguments) => commands::show::show(&arguments),
        Command::Report(arguments) => commands::report::report(&arguments),
        Command::Compare(arguments) => commands::compare::compare(&arguments),
        Command::Check(arguments) => commands::check::check(&arguments),
        Command::Ground(arguments) => commands::ground::ground(&arguments),
        Command::Wrap(arguments) => commands::wrap::wrap(&arguments),
        Command::Manifests(arguments) => commands::manifests::manifests(&arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(&arguments),
        Command::Stress(arguments) => commands::stress::run(&arguments),
        Command::ByHand(command) => commands::byhand::run(command),
        Command::Inside => commands::inside::inside(),
        Command::Agent => commands::agent::agent(),
        Command::Part => commands::part::part(),
    };
    if let Some(left) = brownout_lab::machines::leave_nothing() {
        output::fail(left);
    }
    ExitCode::from(code)
}
