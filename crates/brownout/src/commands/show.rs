use std::path::PathBuf;

use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    /// The run: its directory or its run.db.
    run: PathBuf,
    /// Of a design, all of this one cell.
    #[arg(long, value_name = "NUMBER", conflicts_with = "json")]
    cell: Option<u32>,
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
        let style = output::style();
        let text = match arguments.cell {
            None => Some(brownout_report::summary(&shown.findings, style)),
            Some(cell) => brownout_report::cell(&shown.findings, cell, style),
        };
        let Some(text) = text else {
            let cells = shown.findings.cells.len();
            output::fail(format!("there is no cell {}; the run has cells 1 to {cells}", arguments.cell.unwrap_or(0)));
            return output::WRONG;
        };
        output::print(&text)
    };
    output::code(printed, brownout_analysis::exit_code(&shown.findings))
}
