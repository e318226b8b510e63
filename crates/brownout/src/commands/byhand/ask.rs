//! How every command finds its lab and asks it.

use brownout_lab::byhand::{Ask, Client, Failure, LabDirectory, LabRegistry, Reply};

use crate::output::{self, WRONG};

/// Which lab is meant.
#[derive(clap::Args)]
pub struct LabName {
    /// The lab. Default: the only one that is running.
    #[arg(short = 'n', long, value_name = "LAB")]
    pub(super) name: Option<String>,
}

/// The command line as it was typed, for the lab's event log.
pub(super) fn who() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("brownout".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

pub(super) fn find(name: &LabName) -> Result<(LabRegistry, LabDirectory), Failure> {
    let registry = LabRegistry::mine()?;
    let lab = registry.find(name.name.as_deref())?;
    Ok((registry, lab))
}

/// Asks a lab, and prints the lines of its answer.
pub(super) fn ask(name: &LabName, ask: Ask) -> Result<u8, Failure> {
    let (_, lab) = find(name)?;
    let client = Client::ask(&lab, ask, &who(), false)?;
    loop {
        match client.reply()? {
            Reply::Line(line) => {
                if let Err(code) = output::print(&(line + "\n")) {
                    return Ok(code);
                }
            }
            Reply::Done(code) => return Ok(code),
            _ => {}
        }
    }
}

/// What was typed is wrong.
pub(super) fn wrong<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { message: message.into(), code: WRONG })
}
