//! Who else uses the processors: the programs outside of a lab.
//!
//! A lab in a PID namespace of its own sees only itself in its `/proc`. But the `/proc` of the machine, opened before the
//! lab mounts its own over it, goes on to show everything that could be seen from where the lab was started. What runs in
//! the lab are the descendants of its first process, because orphans are adopted by that one (pid_namespaces(7)). Nodes that others
//! have started are of the lab, too, wherever they run.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use crate::tick_ns;

/// `PF_KTHREAD` of a process's flags: a thread of the kernel's own.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What a program outside of the lab used between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its process, as the machine numbers it.
    pub pid: u32,
    /// Its name, as `ps` and `top` show it (15 bytes at most).
    pub name: String,
    /// CPU time that it used, with that of its children that have ended, ns.
    pub used_ns: u64,
}

/// What was used outside of the lab between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// By each program that used anything, those that used most first.
    pub programs: Vec<Program>,
    /// By threads of the kernel's own; 0 where they cannot be seen (in a container).
    pub kernel_ns: u64,
}

impl Others {
    /// By all programs, ns.
    pub fn programs_ns(&self) -> u64 {
        self.programs.iter().map(|program| program.used_ns).sum()
    }
}

/// Watches the programs outside of a lab. The caller is the lab's first process.
pub struct Programs {
    /// The machine's `/proc`. Kept open: the path to it leads elsewhere by now.
    proc: File,
    last: HashMap<u32, Process>,
}

/// A process in `/proc/PID/stat`, times in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    kernel: bool,
    /// Its own time, and that of its children which have ended and been waited for, with theirs.
    used: u64,
    of_children: u64,
    /// When it began: the number of a process comes again, but not with the same beginning.
    begun: u64,
}

impl Programs {
    /// Begins to watch, through the machine's `/proc`, opened while the path still led to it.
    pub fn watch(proc: File) -> io::Result<Self> {
        let mut programs = Programs { proc, last: HashMap::new() };
        programs.read(&[])?;
        Ok(programs)
    }

    /// What was used since the last reading. `nodes`: first processes of nodes that others have started, as the machine numbers
    /// them; with all that comes from them, they are of the lab.
    pub fn read(&mut self, nodes: &[u32]) -> io::Result<Others> {
        let proc = PathBuf::from(format!("/proc/self/fd/{}", self.proc.as_raw_fd()));
        // "self" is the number of whoever asks, in the PID namespace that this /proc is of.
        let own = fs::read_link(proc.join("self"))?;
        let own: u32 = own.to_str().and_then(|own| own.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let now = processes(&proc)?;
        let others = others(&self.last, &now, own, nodes);
        self.last = now;
        Ok(others)
    }
}

fn processes(proc: &Path) -> io::Result<HashMap<u32, Process>> {
    let entries = fs::read_dir(proc)?.flatten();
    let found = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // One that ends meanwhile is none.
        // A name may hold any bytes.
        Some((pid, process(&String::from_utf8_lossy(&fs::read(entry.path().join("stat")).ok()?))?))
    });
    Ok(found.collect())
}

/// proc(5). The second field is a name in brackets, which may hold spaces and brackets itself.
fn process(stat: &str) -> Option<Process> {
    let (front, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        name: front.split_once('(')?.1.replace(char::is_control, "?"),
        parent: u32::try_from(number(1)?).ok()?,
        kernel: number(6)? & KERNEL_THREAD != 0,
        used: number(11)? + number(12)?,
        of_children: number(13)? + number(14)?,
        begun: number(19)?,
    })
}

/// What was used between two readings outside of the lab, whose first process is `lab`, and of `nodes`. The process that started it waits for
/// it, and is of the lab, too.
fn others(before: &HashMap<u32, Process>, now: &HashMap<u32, Process>, lab: u32, nodes: &[u32]) -> Others {
    let inside = descendants(now, nodes.iter().copied().chain([lab]));
    let command = now.get(&lab).map(|process| process.parent);
    let known = |pid: u32, process: &Process| before.get(&pid).filter(|before| before.begun == process.begun);
    // What an ended process had used by the last reading was its own then; now it is in the account of whoever waited for it.
    let mut handed_on: HashMap<u32, u64> = HashMap::new();
    for (pid, ended) in before {
        if now.get(pid).is_some_and(|process| process.begun == ended.begun) {
            continue;
        }
        let mut heir = ended.parent;
        while let Some(gone) = before.get(&heir).filter(|_| !now.contains_key(&heir)) {
            heir = gone.parent;
        }
        *handed_on.entry(heir).or_default() += ended.used + ended.of_children;
    }
    let mut others = Others::default();
    for (pid, process) in now {
        if inside.contains(pid) || command == Some(*pid) {
            continue;
        }
        let (used, of_children) = known(*pid, process).map_or((0, 0), |before| (before.used, before.of_children));
        let children = process.of_children.saturating_sub(of_children);
        let children = children.saturating_sub(handed_on.get(pid).copied().unwrap_or(0));
        let used_ns = (process.used.saturating_sub(used) + children) * tick_ns();
        if process.kernel {
            others.kernel_ns += used_ns;
        } else if used_ns > 0 {
            others.programs.push(Program { pid: *pid, name: process.name.clone(), used_ns });
        }
    }
    others.programs.sort_by_key(|program| (std::cmp::Reverse(program.used_ns), program.pid));
    others
}

/// Processes and all that come from them.
fn descendants(all: &HashMap<u32, Process>, first: impl Iterator<Item = u32>) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, process) in all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let (mut found, mut next) = (HashSet::new(), first.collect::<Vec<_>>());
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal};

    use super::*;

    /// Number, parent, own time, children's time, beginning; names are "pNUMBER", and kernel threads have number 2.
    fn machine(rows: &[(u32, u32, u64, u64, u64)]) -> HashMap<u32, Process> {
        let process = |&(pid, parent, used, of_children, begun): &(u32, u32, u64, u64, u64)| {
            (pid, Process { name: format!("p{pid}"), parent, kernel: pid == 2, used, of_children, begun })
        };
        rows.iter().map(process).collect()
    }

    /// Program and ticks, most first.
    fn used(before: &[(u32, u32, u64, u64, u64)], now: &[(u32, u32, u64, u64, u64)]) -> Vec<(u32, u64)> {
        let others = others(&machine(before), &machine(now), 50, &[]);
        others.programs.iter().map(|program| (program.pid, program.used_ns / tick_ns())).collect()
    }

    #[test]
    fn what_runs_in_the_lab_and_the_kernel_are_no_other_programs() {
        let before = [(1, 0, 5, 0, 0), (2, 0, 7, 0, 0), (40, 1, 0, 0, 1), (50, 40, 0, 0, 2), (51, 50, 0, 0, 3)];
        let now = [
            (1, 0, 6, 0, 0),
            (2, 0, 17, 0, 0),
            (40, 1, 9, 0, 1),
            (50, 40, 30, 4, 2),
            (51, 50, 80, 0, 3),
            // Orphans of the lab are its first process's.
            (52, 50, 90, 0, 4),
            (60, 1, 20, 0, 5),
        ];
        assert_eq!(used(&before, &now), [(60, 20), (1, 1)]);
        assert_eq!(others(&machine(&before), &machine(&now), 50, &[]).kernel_ns, 10 * tick_ns());
    }

    #[test]
    fn nodes_that_others_have_started_are_no_other_programs() {
        let before = [(1, 0, 0, 0, 0), (60, 1, 0, 0, 1), (70, 60, 0, 0, 2), (71, 70, 0, 0, 3)];
        let now = [(1, 0, 0, 0, 0), (60, 1, 3, 0, 1), (70, 60, 40, 0, 2), (71, 70, 50, 0, 3), (50, 1, 0, 0, 0)];
        let programs = |nodes: &[u32]| {
            let others = others(&machine(&before), &machine(&now), 50, nodes);
            others.programs.iter().map(|program| program.pid).collect::<Vec<u32>>()
        };
        assert_eq!(programs(&[]), [71, 70, 60]);
        // Whoever has started them is another program.
        assert_eq!(programs(&[70]), [60]);
    }

    #[test]
    fn programs_that_come_and_go_between_two_looks_are_their_parents() {
        let before = [(1, 0, 0, 0, 0), (60, 1, 3, 100, 1), (61, 60, 40, 0, 2)];
        // 61 used 10 more and ended; two others began, used 25 each, and ended.
        let now = [(1, 0, 0, 0, 0), (60, 1, 4, 200, 1), (50, 1, 0, 0, 0)];
        assert_eq!(used(&before, &now), [(60, 61)]);
        // Waited for by one who does not count (SIGCHLD ignored): nothing is made up.
        assert_eq!(used(&before, &[(1, 0, 0, 0, 0), (60, 1, 4, 100, 1)]), [(60, 1)]);
        // Parent and child ended: what both had used before comes to the grandparent with what they used since.
        assert_eq!(used(&before, &[(1, 0, 0, 150, 0)]), [(1, 7)]);
    }

    #[test]
    fn a_number_that_comes_again_is_another_program() {
        let before = [(1, 0, 0, 0, 0), (60, 1, 500, 0, 1)];
        assert_eq!(used(&before, &[(1, 0, 0, 500, 0), (60, 1, 8, 0, 9)]), [(60, 8)]);
    }

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let line = "4711 (a) R (b c) S 12 1 1 0 -1 4194304 1 2 3 4 100 20 7 3 20 0 5 0 9876 1 1";
        let expected =
            Process { name: "a) R (b c".into(), parent: 12, kernel: false, used: 120, of_children: 10, begun: 9876 };
        assert_eq!(process(line), Some(expected));
        assert_eq!(process("4711 (cut) S 12"), None);
    }

    #[test]
    fn a_program_that_spins_is_seen_and_named() {
        let mut programs = Programs::watch(File::open("/proc").unwrap()).unwrap();
        // A sibling of this process: a descendant of it would be of "the lab". Should this be killed, it ends by itself,
        // when it has used a minute.
        let script = "sh -c 'ulimit -t 60; while :; do :; done' >/dev/null 2>&1 & echo $!";
        let spinner = std::process::Command::new("setsid").args(["--fork", "sh", "-c", script]).output().unwrap();
        let pid: u32 = String::from_utf8(spinner.stdout).unwrap().trim().parse().unwrap();
        let mut seen = 0;
        for _ in 0..600 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let others = programs.read(&[]).unwrap();
            for spinner in others.programs.iter().filter(|program| program.pid == pid) {
                assert_eq!(spinner.name, "sh");
                seen += spinner.used_ns;
            }
            if seen > 100_000_000 {
                break;
            }
        }
        rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
        assert!(seen > 100_000_000, "{seen} ns");
    }
}
