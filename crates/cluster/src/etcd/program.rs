//! Programs of others: where they are, and what they say.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ProvisionError;
use crate::confine::die_with_us;

/// For a program to tell its version; it takes milliseconds, from a cold disk a second.
pub(super) const TELLS_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks whether somebody interrupts that.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The first program of that name in these directories.
pub(super) fn executable(name: &str, directories: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let is_one =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    directories.into_iter().map(|directory| directory.join(name)).find(is_one)
}

/// What a program has said when it ended, all of which takes no longer than `limit`; or why it has said nothing. Asks
/// `interrupted` several times a second.
///
/// # Errors
/// On interruption alone.
pub(super) fn told(
    command: &mut Command,
    limit: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Result<Output, String>, ProvisionError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: a script may wait for something that it has started.
    command.process_group(0);
    die_with_us(command);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let group = Pid::from_child(&child);
    let (to_us, output) = mpsc::channel();
    thread::spawn(move || to_us.send(child.wait_with_output()));
    let end = Instant::now() + limit;
    let ended = loop {
        match output.recv_timeout(LOOK_EVERY) {
            Ok(output) => return Ok(output.map_err(|error| error.to_string())),
            Err(_) if interrupted() => break Err(ProvisionError::Interrupted),
            Err(_) if Instant::now() >= end => {
                break Ok(Err(format!("it does not report its version within {} s", limit.as_secs())));
            }
            Err(_) => {}
        }
    };
    // Its output has not ended, so nobody has waited for it, and the group is still its own.
    let _ = kill_process_group(group, Signal::KILL);
    ended
}
