//! Waiting in a pod, where parts are started beside the process that waits.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::PART;
use crate::ground::Interrupts;

/// Parts have healed by then; a pod's grace is a little longer.
const HEALED_WITHIN: Duration = Duration::from_secs(12);
const LOOK: Duration = Duration::from_millis(200);

/// Waits until it is asked to end, and then for the parts beside it, which it asks to end, too: whatever is left after the first process
/// of a container is killed with it.
pub fn wait_in_pod(interrupts: Interrupts) {
    while !interrupts.any() {
        thread::sleep(LOOK);
    }
    let until = Instant::now() + HEALED_WITHIN;
    for part in parts() {
        // One that has ended meanwhile has nothing to heal.
        let _ = kill_process(part, Signal::TERM);
    }
    while !parts().is_empty() && Instant::now() < until {
        thread::sleep(LOOK);
    }
}

/// Processes of this program in the control groups of this one that make parts.
fn parts() -> Vec<Pid> {
    let groups = |process: &str| fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let own = groups("self");
    let words = |process: &str| fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let is_part = |process: &str| words(process).split(|byte| *byte == 0).nth(1) == Some(PART.as_bytes());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbers
        .filter(|name| is_part(name) && groups(name) == own)
        .filter_map(|name| Pid::from_raw(name.parse().ok()?))
        .collect()
}
