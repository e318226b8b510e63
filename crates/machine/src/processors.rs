//! The processors of a lab: those that this process and its children may run on, and for how much of the time.

use std::{fmt, path::PathBuf, thread};

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::cgroup::{self, Directory, Version};

/// What this process may use of the machine's processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Processors {
    /// Numbers of those that it may run on (affinity; the kernel keeps it within the cpuset).
    cpus: Vec<usize>,
    /// Those that the machine has.
    online: usize,
    /// Processors' worth of time that the cgroup gives, if it limits it.
    quota: Option<Quota>,
}

/// The least quota of the cgroups on the way up.
#[derive(Debug, Clone, PartialEq)]
struct Quota {
    processors: f64,
    directory: Directory,
}

impl Processors {
    /// Those of the calling thread, as they are now.
    pub fn of_this_process() -> Self {
        let online = online().max(1);
        let quota = cgroup::own("cpu").into_iter().filter_map(|directory| {
            let processors = quota(&directory)?;
            Some(Quota { processors, directory })
        });
        let quota = quota.min_by(|a, b| a.processors.total_cmp(&b.processors));
        Processors { cpus: affinity().unwrap_or_else(|| (0..online).collect()), online, quota }
    }

    /// Their numbers, ascending.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// How many threads may run at the same moment.
    pub fn count(&self) -> u32 {
        u32::try_from(self.cpus.len()).unwrap_or(u32::MAX).max(1)
    }

    /// CPU time that there is in a second, s: what a share of "the processors" is a share of. Less than
    /// [`Processors::count`] where a quota is, and then perhaps no whole number.
    pub fn capacity(&self) -> f64 {
        let all = f64::from(self.count());
        self.quota.as_ref().map_or(all, |quota| quota.processors.min(all))
    }

    /// Whole processors' worth of time, at least one.
    pub fn whole(&self) -> u32 {
        (self.capacity() as u32).max(1)
    }

    /// Whether the machine has processors that are not of the lab.
    pub fn are_a_part(&self) -> bool {
        self.cpus.len() < self.online
    }

    /// Whether a processor is one of them.
    pub(crate) fn has(&self, cpu: usize) -> bool {
        self.cpus.contains(&cpu)
    }

    /// CPU time used by all that the quota holds for, ns; none without a quota below the processors' own time.
    pub(crate) fn used_of_quota_ns(&self) -> Option<u64> {
        let quota = self.quota.as_ref().filter(|quota| quota.processors < f64::from(self.count()))?;
        match quota.directory.version {
            Version::Two => quota.directory.keyed("cpu.stat", "usage_usec")?.checked_mul(1_000),
            // `cpu` and `cpuacct` are mostly mounted together.
            Version::One => quota.directory.number("cpuacct.usage"),
        }
    }
}

impl fmt::Display for Processors {
    /// "2"; "1 of 2 (affinity or cpuset)"; "0.5 of 2 (cgroup quota)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.capacity();
        if capacity < f64::from(self.count()) {
            let digits = usize::from(capacity.fract() != 0.0) * 2;
            write!(f, "{capacity:.digits$} of {} (cgroup quota)", self.online)
        } else if self.are_a_part() {
            write!(f, "{} of {} (affinity or cpuset)", self.count(), self.online)
        } else {
            write!(f, "{}", self.count())
        }
    }
}

/// Processors' worth of time that a group gives: `cpu.max` ("max 100000", "50000 100000"), or quota ÷ period in files of
/// their own (−1: none).
fn quota(directory: &Directory) -> Option<f64> {
    let (quota, period) = match directory.version {
        Version::Two => {
            let text = directory.read("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        }
        Version::One => (directory.number("cpu.cfs_quota_us")?, directory.number("cpu.cfs_period_us")?),
    };
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

fn affinity() -> Option<Vec<usize>> {
    let set = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

fn online() -> usize {
    // SAFETY: sysconf has no preconditions. (rustix does not have it.)
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or_else(|_| thread::available_parallelism().map_or(1, |count| count.get()))
}

impl Processors {
    /// Made up: these processors of so many, and a quota in a directory that is not there.
    #[doc(hidden)]
    pub fn made_up(cpus: &[usize], online: usize, quota: Option<f64>) -> Self {
        let directory = Directory { version: Version::Two, path: PathBuf::from("/nonexistent") };
        let quota = quota.map(|processors| Quota { processors, directory });
        Processors { cpus: cpus.to_vec(), online, quota }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_quota_of_a_group_is_read_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let group = |version| Directory { version, path: directory.path().to_owned() };
        assert_eq!(quota(&group(Version::Two)), None, "the root has no such file");
        fs::write(directory.path().join("cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(quota(&group(Version::Two)), Some(1.5));
        fs::write(directory.path().join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(quota(&group(Version::Two)), None);
        fs::write(directory.path().join("cpu.cfs_period_us"), "50000\n").unwrap();
        fs::write(directory.path().join("cpu.cfs_quota_us"), "25000\n").unwrap();
        assert_eq!(quota(&group(Version::One)), Some(0.5));
        fs::write(directory.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        assert_eq!(quota(&group(Version::One)), None);
    }

    #[test]
    fn the_time_that_a_quota_gave_is_counted_where_it_is_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("cpu.stat"), "usage_usec 1234\nuser_usec 1000\n").unwrap();
        let directory = Directory { version: Version::Two, path: directory.path().to_owned() };
        let of = |processors| Processors {
            cpus: vec![0, 1],
            online: 2,
            quota: Some(Quota { processors, directory: directory.clone() }),
        };
        assert_eq!(of(1.0).used_of_quota_ns(), Some(1_234_000));
        assert_eq!(of(2.0).used_of_quota_ns(), None, "no less than the processors themselves");
    }

    #[test]
    fn shares_are_of_the_least_of_affinity_and_quota() {
        let table = [
            (Processors::made_up(&[0, 1], 2, None), 2, 2.0, "2"),
            (Processors::made_up(&[0], 2, None), 1, 1.0, "1 of 2 (affinity or cpuset)"),
            (Processors::made_up(&[0, 1], 2, Some(1.5)), 2, 1.5, "1.50 of 2 (cgroup quota)"),
            (Processors::made_up(&[0, 1, 2, 3], 8, Some(2.0)), 4, 2.0, "2 of 8 (cgroup quota)"),
            (Processors::made_up(&[3], 4, Some(2.0)), 1, 1.0, "1 of 4 (affinity or cpuset)"),
        ];
        for (processors, count, capacity, text) in table {
            assert_eq!((processors.count(), processors.capacity()), (count, capacity), "{text}");
            assert_eq!(processors.to_string(), text);
        }
        assert_eq!(Processors::made_up(&[0, 1], 2, Some(0.5)).whole(), 1);
    }

    #[test]
    fn a_thread_that_is_bound_to_one_processor_has_one() {
        let alone = thread::spawn(|| {
            let first = affinity().unwrap()[0];
            let mut only = CpuSet::new();
            only.set(first);
            rustix::thread::sched_setaffinity(None, &only).unwrap();
            (Processors::of_this_process(), first)
        });
        let (alone, first) = alone.join().unwrap();
        assert_eq!(alone.count(), 1);
        assert!(alone.capacity() <= 1.0 && alone.has(first) && !alone.has(first + 1));
        let all = Processors::of_this_process();
        assert_eq!(alone.are_a_part(), all.online > 1);
    }
}
