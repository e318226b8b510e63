use std::path::PathBuf;

use brownout_record::Run;

use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    /// Runs (directories, or files of a run or of `stress --record`): A and B; or, before --with, all those of A.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The runs of B.
    #[arg(long, num_args = 1.., value_name = "RUN")]
    with: Vec<PathBuf>,
    /// Print the comparison as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

/// Exits with 0 if both sides have valid trials, whatever they say; else with 3.
pub fn compare(arguments: &Arguments) -> u8 {
    let (a, b) = match (&arguments.runs[..], &arguments.with[..]) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        (_, []) => {
            let count = arguments.runs.len();
            output::fail(format!("{count} runs where two are compared; name the runs of B after --with"));
            return output::WRONG;
        }
        (a, b) => (a, b),
    };
    let read = |paths: &[PathBuf]| paths.iter().map(|path| Run::open(path)).collect::<Result<Vec<Run>, _>>();
    let (a, b) = match (read(a), read(b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => {
            output::fail(error);
            return output::WRONG;
        }
    };
    let comparison = match brownout_analysis::compare(&a, &b) {
        Ok(comparison) => comparison,
        Err(error) => {
            output::fail(error);
            return output::INVALID;
        }
    };
    let printed = if arguments.json {
        output::print_json(&comparison)
    } else {
        output::print(&brownout_report::comparison(&comparison, output::style()))
    };
    output::code(printed, if comparison.is_evidence() { 0 } else { output::INVALID })
}
