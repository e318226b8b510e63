//! The main process of one start of a container, and all that belong to it: held and let go together.

use std::{collections::BTreeMap, fs, io, os::fd::OwnedFd, sync::Arc, time::Duration};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::hands;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    time::{ClockId, clock_gettime},
};

use super::{
    freezer::Freezer,
    groups::Groups,
    healer::{Healer, Thaw},
};

/// Whom a process has started is looked up this often, where no control group lists it: all processes of the machine are
/// looked at for it.
const LOOK_UP_EVERY_NS: u64 = 1_000_000_000;

/// A main process, and what belongs to it.
pub(super) struct Main {
    pub(super) pid: u32,
    pub(super) pidfd: Arc<OwnedFd>,
    groups: Groups,
    /// Those that were sent SIGSTOP since they were last let go.
    held: Vec<u32>,
    /// The process with all that it has started and that they have, and when that was looked up.
    family: (u64, Vec<u32>),
}

impl Main {
    /// That of this number, of the container of this id.
    pub(super) fn open(pid: u32, id: &str) -> io::Result<Main> {
        let number = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
        let pidfd = Arc::new(pidfd_open(number, PidfdFlags::empty())?);
        Ok(Main { pid, pidfd, groups: Groups::of(pid, id), held: Vec::new(), family: (0, Vec::new()) })
    }

    /// Whether it is there, stopped or not.
    pub(super) fn lives(&self) -> bool {
        !has_died(&self.pidfd, Duration::ZERO)
    }

    /// When it began, `CLOCK_MONOTONIC`, ns, to a tick of the kernel (10 ms).
    pub(super) fn begun_ns(&self) -> Option<u64> {
        let stat = stat(self.pid)?;
        // Ticks since the machine started, the 22nd field (proc_pid_stat(5)).
        let ticks: u64 = field(&stat, 22)?.parse().ok()?;
        let begun_ns = ticks.checked_mul(1_000_000_000)? / rustix::param::clock_ticks_per_second().max(1);
        let now = clock_gettime(ClockId::Boottime);
        let since_boot_ns = (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64;
        monotonic_ns().checked_sub(since_boot_ns.saturating_sub(begun_ns))
    }

    /// CPU time of all that belong to it, ns. Where no control group counts it, that of those which have ended is missing.
    pub(super) fn cpu_ns(&mut self) -> u64 {
        let counted = self.groups.cpu_ns();
        counted.unwrap_or_else(|| self.pids(false).into_iter().filter_map(hands::process_cpu_ns).sum())
    }

    /// All that belong to it, itself first. Not `fresh`, those that were started in the last second may be missing.
    pub(super) fn pids(&mut self, fresh: bool) -> Vec<u32> {
        let mut pids = match self.groups.pids() {
            Some(pids) => pids,
            None => {
                let now_ns = monotonic_ns();
                if fresh || now_ns.saturating_sub(self.family.0) >= LOOK_UP_EVERY_NS {
                    self.family = (now_ns, family(self.pid, &parents()));
                }
                self.family.1.clone()
            }
        };
        pids.retain(|pid| *pid != self.pid);
        pids.insert(0, self.pid);
        pids
    }

    /// Whether it is the first process of a PID namespace that is not ours: the kernel kills all others there with it, and it is
    /// the one that is told when they are to end.
    pub(super) fn is_first(&self) -> bool {
        let status = fs::read(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        is_first(&String::from_utf8_lossy(&status))
    }

    /// Whether the processes are listed by a control group of the container's own.
    pub(super) fn has_group(&self) -> bool {
        self.groups.pids().is_some()
    }

    /// What freezes them, where that is ours to use.
    fn freezer(&self) -> Option<&Freezer> {
        self.groups.freezer.as_ref().filter(|freezer| freezer.is_ours)
    }

    /// Whether whatever it starts stands with it, once it is held.
    pub(super) fn has_freezer(&self) -> bool {
        self.freezer().is_some()
    }

    /// What thaws them, where they are frozen.
    pub(super) fn thaw(&self) -> Option<Thaw> {
        self.freezer().map(|freezer| (freezer.file(), freezer.word(false)))
    }

    /// Whether it has to be let go before it can be killed.
    pub(super) fn outlasts_kills(&self) -> bool {
        self.freezer().is_some_and(Freezer::outlasts_kills)
    }

    /// Begins to hold all of them; [`Main::stands`] tells when they stand. The healer is told before.
    pub(super) fn hold(&mut self, healer: &mut Healer, fresh: bool) -> io::Result<()> {
        if let Some(freezer) = self.freezer() {
            healer.freezes()?;
            return freezer.set(true);
        }
        let mut new = self.pids(fresh);
        new.retain(|pid| !self.held.contains(pid));
        if new.is_empty() {
            return Ok(());
        }
        healer.stops(&new)?;
        self.held.extend_from_slice(&new);
        new.into_iter().try_for_each(|pid| send(pid, Signal::STOP))
    }

    /// Lets all of them go on.
    pub(super) fn let_go(&mut self, healer: &mut Healer) -> io::Result<()> {
        match self.freezer() {
            Some(freezer) => freezer.set(false)?,
            None => {
                // Somebody else may have stopped it.
                let all = if self.held.is_empty() { self.pids(true) } else { self.held.clone() };
                // Whoever cannot be let go does not keep the others from it.
                let sent: Vec<io::Result<()>> = all.into_iter().map(|pid| send(pid, Signal::CONT)).collect();
                sent.into_iter().collect::<io::Result<()>>()?;
                self.held.clear();
            }
        }
        healer.forget();
        Ok(())
    }

    /// Whether the kernel shows all of them standing that are held; those that came since are held as well. If not, what it
    /// shows instead.
    pub(super) fn stands(&mut self, healer: &mut Healer) -> io::Result<Result<(), String>> {
        if let Some(freezer) = self.freezer() {
            return Ok(if freezer.is_frozen()? {
                Ok(())
            } else {
                Err("its control group is not frozen yet".to_owned())
            });
        }
        let moves = self.held.iter().find_map(|pid| {
            let threads = hands::threads(*pid).ok()?;
            (!is_stopped(&threads)).then(|| format!("the threads of process {pid} are in the states {threads}"))
        });
        // One that was not yet stopped could have started another. So whoever is new counts only when all stand.
        let before = self.held.len();
        self.hold(healer, true)?;
        Ok(match moves {
            Some(moves) => Err(moves),
            None if self.held.len() > before => Err("it starts processes all the while".to_owned()),
            None => Ok(()),
        })
    }

    /// Whether the kernel shows it standing, whoever did that.
    pub(super) fn is_standing(&self) -> bool {
        self.is_frozen()
            || match hands::state(self.pid) {
                Some('T') => true,
                Some('D') => self.held.contains(&self.pid),
                _ => false,
            }
    }

    /// Whether its control group is frozen, by whomever.
    pub(super) fn is_frozen(&self) -> bool {
        self.groups.freezer.as_ref().is_some_and(|freezer| freezer.is_frozen().unwrap_or(false))
    }
}

/// Whether a process ends within this time.
pub(super) fn has_died(pidfd: &OwnedFd, within: Duration) -> bool {
    let Ok(within) = Timespec::try_from(within) else { return false };
    let mut waiting = [PollFd::new(pidfd, PollFlags::IN)];
    // A signal that interrupts the wait ends it early: then it is as if it had not died yet.
    poll(&mut waiting, Some(&within)).is_ok_and(|ready| ready > 0)
}

/// Sends a signal; nothing to a process that has ended.
pub(super) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else { return Ok(()) };
    match kill_process(number, signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => Ok(sent?),
    }
}

/// Whether the threads of a process that was sent SIGSTOP run nothing any more, being in these states: stopped, or ended, or the
/// only one and inside the kernel, from where it cannot return without stopping. So waits who has started a process by vfork(2)
/// that was stopped before it ran its program.
fn is_stopped(threads: &str) -> bool {
    let living: Vec<char> = threads.chars().filter(|state| !matches!(state, 'Z' | 'X')).collect();
    living.is_empty() || living == ['D'] || hands::stopped(threads)
}

/// `NSpid:` of `/proc/PID/status`: its numbers, ours first and its own last.
fn is_first(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_ascii_whitespace().skip(1).last() == Some("1")
}

/// What `/proc/PID/stat` tells of the first thread: that file itself adds up the times of all threads for every reader. The
/// name in it may be no text.
fn stat(pid: u32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
    Some(String::from_utf8_lossy(&stat).into_owned())
}

/// A field of `/proc/PID/stat`, counted from 1; from the third on. The second is a name, which may hold anything.
fn field(stat: &str, number: usize) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number.checked_sub(3)?)
}

/// The parent of every process that can be seen.
fn parents() -> BTreeMap<u32, u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(parent) = stat(pid).and_then(|stat| field(&stat, 4)?.parse().ok()) {
            parents.insert(pid, parent);
        }
    }
    parents
}

/// A process with all that descend from it, itself first.
fn family(pid: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let children = parents.iter().filter(|(child, of)| **of == parent && **child != parent);
        family.extend(children.map(|(child, _)| *child).filter(|child| !family.contains(child)).collect::<Vec<_>>());
        next += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_behind_a_name_that_may_hold_anything() {
        let stat = "12 (a) R (b c) S 7 12";
        assert_eq!((field(stat, 3), field(stat, 4), field(stat, 9)), (Some("S"), Some("7"), None));
    }

    #[test]
    fn a_family_is_all_that_descend_and_nobody_else() {
        let parents = BTreeMap::from([(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 5), (2, 7)]);
        let mut found = family(5, &parents);
        assert_eq!(found[0], 5);
        found.sort_unstable();
        assert_eq!(found, [2, 5, 6, 7, 9]);
        assert_eq!(family(8, &parents), [8]);
    }

    #[test]
    fn the_first_process_of_a_pid_namespace_is_known_by_its_own_number() {
        assert!(is_first("Name:\tjava\nNSpid:\t4711\t1\n") && is_first("NSpid:\t4711\t12\t1\n"));
        for other in ["NSpid:\t4711\t12\n", "NSpid:\t1\n", "Name:\tjava\n", ""] {
            assert!(!is_first(other), "{other}");
        }
    }

    #[test]
    fn this_process_lives_began_before_now_and_is_its_parents_child() {
        let mut main = Main::open(std::process::id(), "").unwrap();
        assert!(main.lives() && !main.has_group() && !main.is_standing());
        let begun_ns = main.begun_ns().unwrap();
        assert!(begun_ns <= monotonic_ns() && monotonic_ns() - begun_ns < 24 * 3_600 * 1_000_000_000, "{begun_ns}");
        assert_eq!(main.pids(true)[0], std::process::id());
        assert!(main.cpu_ns() > 0);
        let parent = parents()[&std::process::id()];
        assert!(family(parent, &parents()).contains(&std::process::id()));
        assert!(Main::open(1 << 27, "").is_err());
    }

    #[test]
    fn a_process_is_stopped_when_no_thread_runs_or_can() {
        let stopped = ["TT", "TD", "Z", "", "D", "ZD"].map(|threads| (threads, true));
        let others = ["TS", "S", "ZR", "DD"].map(|threads| (threads, false));
        for (threads, expected) in stopped.into_iter().chain(others) {
            assert_eq!(is_stopped(threads), expected, "{threads}");
        }
    }
}
