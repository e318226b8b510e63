use std::path::PathBuf;

use brownout_lab::machine::{self, Check, CheckState};
use serde::Serialize;

use crate::output::{self, CANNOT};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where runs would be kept.
    #[arg(long, value_name = "DIRECTORY", default_value = "runs")]
    out: PathBuf,
    /// Print the checks as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Examined {
    format: u32,
    state: CheckState,
    checks: Vec<Check>,
}

pub fn doctor(arguments: &Arguments) -> u8 {
    let checks = machine::examine(&arguments.out);
    let state = checks.iter().map(|check| check.state).max().unwrap_or(CheckState::Good);
    let printed = if arguments.json {
        output::print_json(&Examined { format: 1, state, checks })
    } else {
        output::print(&text(state, &checks))
    };
    output::code(printed, if state == CheckState::Lacking { CANNOT } else { 0 })
}

fn text(state: CheckState, checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            CheckState::Good => "good   ",
            CheckState::Limited => "LIMITED",
            CheckState::Lacking => "LACKING",
        };
        text.push_str(&format!("{mark}  {:<13} {}\n", check.name, check.found));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("         {:<13} remedy: {remedy}\n", ""));
        }
    }
    text.push_str(match state {
        CheckState::Good => "This machine can run labs.\n",
        CheckState::Limited => "This machine can run labs, within the limits named above.\n",
        CheckState::Lacking => "This machine cannot run a lab until the missing items above are fixed.\n",
    });
    text
}
