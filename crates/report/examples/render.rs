//! Writes the summary, JSON and report of the run in a directory: for work on their looks. In a directory without a run,
//! one is made up; no lab is needed.
//!
//! `cargo run --release -p brownout-report --example render -- DIRECTORY [faults]`: with `faults`, one with many of them.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;
#[path = "../../analysis/tests/scenario/mod.rs"]
mod scenario;

use std::{error::Error, path::PathBuf};

use brownout_report::{Style, html, summary};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("name a directory to write to")?);
    let run = if directory.join("run.db").exists() {
        brownout_record::Run::open(&directory)?
    } else if std::env::args().nth(2).is_some_and(|what| what == "faults") {
        std::fs::create_dir_all(&directory)?;
        scenario::many().run(&directory)
    } else {
        std::fs::create_dir_all(&directory)?;
        common::Synthetic { seconds: [8, 12, 25, 25, 25], lag: 2, rate: 1200, ..Default::default() }.run(&directory)
    };
    let findings = brownout_analysis::findings(&run)?;
    print!("{}", summary(&findings, Style { color: true, width: 100 }));
    std::fs::write(directory.join("findings.json"), serde_json::to_string_pretty(&findings)?)?;
    std::fs::write(directory.join("report.html"), html(&run, &findings)?)?;
    Ok(())
}
