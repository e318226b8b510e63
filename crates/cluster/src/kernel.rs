//! What the kernel shows of a process's threads.

use std::{fs, io};

/// The state of process `pid` as one letter (proc(5)); `None` when it is not there.
///
/// It is that of its first thread, as in `/proc/PID/stat`; but that file adds up the times of all threads for every reader.
pub fn state(pid: u32) -> Option<char> {
    letter(&fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).ok()?)
}

/// The states of all threads of process `pid`, a letter each (proc(5)). Threads that end meanwhile are left out.
///
/// # Errors
/// When it is not there.
pub fn threads(pid: u32) -> io::Result<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(tasks.flatten().filter_map(|task| letter(&fs::read_to_string(task.path().join("stat")).ok()?)).collect())
}

/// Whether threads in these states can run nothing of their own program any more, because it was stopped.
///
/// The first thread that meets the stop signal tells all others to stop before they return to their program. One that
/// waits inside the kernel without a break (`D`: a disk, say) stays there, but runs nothing before it stops as well.
pub fn stopped(threads: &str) -> bool {
    threads.contains('T') && threads.chars().all(|state| matches!(state, 'T' | 't' | 'D' | 'Z' | 'X'))
}

/// The third field; the second is a name in brackets, which may hold spaces and brackets itself.
fn letter(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_behind_a_name_that_may_hold_anything() {
        assert_eq!(letter("12 (java) S 1 12"), Some('S'));
        assert_eq!(letter("12 (a) R (b) T 1 12"), Some('T'));
        assert_eq!(letter("12 (cut"), None);
    }

    #[test]
    fn this_process_runs_and_one_that_is_not_has_no_state() {
        assert!(threads(std::process::id()).unwrap().contains('R'));
        assert!(state(std::process::id()).is_some());
        assert_eq!(state(1 << 27), None);
        assert!(threads(1 << 27).is_err());
    }

    #[test]
    fn a_process_is_stopped_when_no_thread_can_go_on() {
        for (threads, expected) in
            [("TTT", true), ("TDT", true), ("TTR", false), ("SST", false), ("DD", false), ("", false)]
        {
            assert_eq!(stopped(threads), expected, "{threads}");
        }
    }
}
