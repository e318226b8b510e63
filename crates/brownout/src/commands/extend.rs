use std::path::PathBuf;

use brownout_lab::More;

use crate::{
    commands::run::{go, resumed},
    output::{self, WRONG},
};

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("more").required(true).multiple(true).args(["trials", "attempts"]))]
pub struct Arguments {
    /// The run: its directory or its run.db.
    run: PathBuf,
    /// Blocks that are added to its design: each is one trial more of each cell, and as many without a fault as before.
    #[arg(long, value_name = "+N", allow_hyphen_values = true)]
    trials: Option<String>,
    /// So often more each trial is tried of which no attempt was valid, when the machine has become quiet.
    #[arg(long, value_name = "+N", allow_hyphen_values = true)]
    attempts: Option<String>,
    /// Print the findings as one JSON object on stdout (docs/json.md); progress goes to stderr.
    #[arg(long)]
    json: bool,
}

/// Exits as `run` does.
pub fn extend(arguments: &Arguments) -> u8 {
    let (blocks, attempts) = match (added("trials", &arguments.trials), added("attempts", &arguments.attempts)) {
        (Ok(blocks), Ok(attempts)) => (blocks, attempts),
        (Err(why), _) | (_, Err(why)) => {
            output::fail(why);
            return WRONG;
        }
    };
    match resumed(&arguments.run, None, More { blocks, attempts }) {
        Ok(asked) => {
            if blocks > 0 && asked.has_nothing_to_compare_with() {
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

/// How many are added; none, if nobody asks for it.
fn added(name: &str, asked: &Option<String>) -> Result<u32, String> {
    let Some(asked) = asked else { return Ok(0) };
    let count = asked.trim_start_matches('+').parse().ok().filter(|count| (1..=10_000).contains(count));
    count.ok_or_else(|| format!("--{name} {asked}: write how many are added, such as --{name} +5"))
}
