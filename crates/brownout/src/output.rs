//! What all commands share: errors on stderr, JSON alone on stdout, and when to use colour.

use std::{
    fmt::Display,
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use brownout_analysis::Findings;
use brownout_record::Run;
use brownout_report::Style;
use serde::Serialize;

/// The arguments or the file are wrong.
pub const WRONG: u8 = 2;
/// Done, but there is no valid evidence.
pub const INVALID: u8 = 3;
/// This machine cannot do it.
pub const CANNOT: u8 = 4;
/// Ended by the user.
pub const INTERRUPTED: u8 = 130;

/// Prints an error for people.
pub fn fail(error: impl Display) {
    eprintln!("brownout: {error}");
}

/// Prints to stdout. A reader that went away (`brownout show | head`) is no error of ours; output that is lost is one,
/// already printed.
pub fn print(text: &str) -> Result<(), u8> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(format!("cannot write to stdout: {error}"));
            Err(CANNOT)
        }
        _ => Ok(()),
    }
}

/// Prints one JSON object on stdout. The error is already printed.
pub fn print_json(value: &impl Serialize) -> Result<(), u8> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        fail(error);
        INVALID
    })?;
    print(&(text + "\n"))
}

/// An exit code, unless the output was lost.
pub fn code(printed: Result<(), u8>, code: u8) -> u8 {
    printed.err().unwrap_or(code)
}

/// Colour and width that suit stdout. <https://no-color.org> is respected.
pub fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Style { color, width: if terminal { terminal_width().unwrap_or(100) } else { 100 } }
}

/// Columns of the terminal that stdout is; none if it is no terminal.
pub fn terminal_width() -> Option<usize> {
    // SAFETY: a zeroed winsize is a valid place for the answer.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
    };
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns >= 40)
}

/// A run with what it shows.
pub struct Shown {
    /// The run.
    pub run: Run,
    /// What it shows.
    pub findings: Findings,
}

/// Opens a run, by its directory or file, and analyses it. The error is already printed.
pub fn open(path: &Path) -> Result<Shown, u8> {
    let run = Run::open(path).map_err(|error| {
        fail(error);
        WRONG
    })?;
    let findings = brownout_analysis::findings(&run).map_err(|error| {
        fail(error);
        INVALID
    })?;
    Ok(Shown { run, findings })
}

/// Writes the HTML report beside the run's file, or where it is told to. The error is already printed.
pub fn write_report(shown: &Shown, to: Option<&Path>) -> Result<PathBuf, u8> {
    let path = to.map_or_else(|| shown.run.path().with_file_name("report.html"), Path::to_owned);
    let html = brownout_report::html(&shown.run, &shown.findings).map_err(|error| {
        fail(error);
        INVALID
    })?;
    // In one step: a reader never sees half of a report, and a full disk does not cost the old one.
    let unfinished = path.with_extension("html.unfinished");
    fs::write(&unfinished, html).and_then(|()| fs::rename(&unfinished, &path)).map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        fail(format!(
            "cannot write {}: {error}; check the space and the rights there, or name another file with --to",
            path.display()
        ));
        CANNOT
    })?;
    Ok(path)
}
