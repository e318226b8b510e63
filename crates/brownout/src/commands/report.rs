use std::path::PathBuf;

use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    /// The run: its directory or its run.db.
    run: PathBuf,
    /// The file to write; default: report.html beside the run's file.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub fn report(arguments: &Arguments) -> u8 {
    let written = output::open(&arguments.run).and_then(|shown| output::write_report(&shown, arguments.to.as_deref()));
    match written {
        Ok(path) => output::code(output::print(&format!("{}\n", path.display())), 0),
        Err(code) => code,
    }
}
