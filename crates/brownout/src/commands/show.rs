use std::path::PathBuf;

use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    /// The run: its directory or its run.db.
    run: PathBuf,
    /// Print the findings as one JSON object (docs/json.md).
    #[arg(long)]
    json: bool,
}

/// Exits as the run itself did.
pub fn show(arguments: &Arguments) -> u8 {
    let shown = match output::open(&arguments.run) {
        Ok(shown) => shown,
        Err(code) => return code,
    };
    let printed = if arguments.json {
        output::print_json(&shown.findings)
    } else {
        output::print(&brownout_report::summary(&shown.findings, output::style()))
    };
    output::code(printed, brownout_analysis::exit_code(&shown.findings))
}
