//! Runs: which operations, in which phases, how fast, until when, and what is reported.

mod auto;
mod check;
mod connect;
mod console;
pub mod disk;
mod dry_run;
mod ending;
mod entry;
mod error;
mod execution;
pub mod experiment;
mod facts;
mod files;
mod fitting;
mod logs;
pub mod nodetool;
mod outcome;
pub mod phase;
mod plan;
mod predefined;
mod profiles;
pub mod search;
mod setup;
pub mod steps;
mod table;
mod tables;
mod tls;
mod user;
mod verify;
mod warmup;

pub use console::Console;
pub use error::RunError;

use crate::settings::{Invocation, Settings};

/// The command line or a file is wrong.
const WRONG: u8 = 2;

/// Executes the arguments of `brownout stress`, prints as cassandra-stress does, and returns the exit code: 0 done, 1
/// failed or an objective was missed, 2 wrong arguments or files, 3 done without valid evidence, 130 interrupted.
///
/// `interrupted` is polled several times a second; once it returns true, the run ends with a summary of what was done.
pub fn main(words: &[String], interrupted: &(dyn Fn() -> bool + Sync)) -> u8 {
    let mut console = Console::new();
    match Invocation::parse(words) {
        Err(error) => {
            if let Some(usage) = error.usage() {
                console.text(usage);
            }
            console.aside(format!("brownout: {error}"));
            WRONG
        }
        Ok(Invocation::Answer(text)) => {
            console.text(&text);
            0
        }
        Ok(Invocation::Run(settings)) => run(&settings, &mut console, interrupted),
    }
}

/// Runs with these settings, from the block that shows them to END.
pub fn run(settings: &Settings, console: &mut Console, interrupted: &(dyn Fn() -> bool + Sync)) -> u8 {
    entry::run(settings, console, interrupted).unwrap_or_else(|error| {
        console.aside(format!("brownout: {error}"));
        let code = error.exit_code();
        if code != WRONG {
            // cassandra-stress prints this whenever it ends without END.
            console.line(crate::output::FAILURE);
        }
        code
    })
}
