use std::path::PathBuf;

use crate::{
    commands::run::{go, resumed},
    output::{self, WRONG},
};

#[derive(clap::Args)]
pub struct Arguments {
    /// The run: its directory or its run.db.
    run: PathBuf,
    /// Blocks that are added to its design: each is one trial more of each cell, and as many without a fault as before.
    #[arg(long, value_name = "+N", allow_hyphen_values = true)]
    trials: String,
    /// Print the findings as one JSON object on stdout (docs/json.md); progress goes to stderr.
    #[arg(long)]
    json: bool,
}

/// Exits as `run` does.
pub fn extend(arguments: &Arguments) -> u8 {
    let blocks = arguments.trials.trim_start_matches('+').parse().ok().filter(|blocks| (1..=10_000).contains(blocks));
    let Some(blocks) = blocks else {
        output::fail(format!("--trials {}: write how many are added, such as --trials +5", arguments.trials));
        return WRONG;
    };
    match resumed(&arguments.run, None, blocks) {
        Ok(asked) => {
            if asked.has_nothing_to_compare_with() {
                eprintln!(
                    "note: this design has no trials without a fault, and trials that are added have none either: nothing is \
                     judged. For a verdict begin a new run with trials: 2 or more"
                );
            }
            go(asked, arguments.json)
        }
        Err(code) => code,
    }
}
