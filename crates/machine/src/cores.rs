//! Cores: processors that share one slow each other down, so they are given out together.

use std::{fs, io};

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::Processors;

/// A core, as far as it may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// The numbers of its processors (hardware threads), ascending; without those that may not be used.
    pub cpus: Vec<usize>,
    /// How much work it does, as the kernel compares them (`cpu_capacity`; the strongest has 1,024). 1,024 where it
    /// does not.
    pub strength: u32,
    /// Cores with the same numbers share a package, and its last cache.
    pub near: (usize, usize),
}

impl Processors {
    /// Their cores, neighbours beside each other.
    pub fn cores(&self) -> Vec<Core> {
        cores(self.cpus(), &|cpu, file| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{file}")).ok())
    }
}

/// `read` has the files of a processor (Documentation/ABI/stable/sysfs-devices-system-cpu). One of which nothing is
/// known is a core of its own.
fn cores(cpus: &[usize], read: &dyn Fn(usize, &str) -> Option<String>) -> Vec<Core> {
    let list =
        |cpu: usize, file: &str| read(cpu, file).map(|text| parse_cpu_list(&text)).filter(|list| !list.is_empty());
    let number = |cpu: usize, file: &str| read(cpu, file)?.trim().parse::<usize>().ok();
    let mut cores: Vec<Core> = Vec::new();
    for cpu in cpus {
        // The older name of the same is the only one before Linux 5.3.
        let siblings = list(*cpu, "topology/core_cpus_list").or_else(|| list(*cpu, "topology/thread_siblings_list"));
        let siblings = siblings.unwrap_or_else(|| vec![*cpu]);
        if let Some(core) = cores.iter_mut().find(|core| core.cpus.iter().any(|other| siblings.contains(other))) {
            core.cpus.push(*cpu);
            continue;
        }
        let cache = list(*cpu, "cache/index3/shared_cpu_list").or_else(|| list(*cpu, "cache/index2/shared_cpu_list"));
        let package = number(*cpu, "topology/physical_package_id").unwrap_or(0);
        cores.push(Core {
            cpus: vec![*cpu],
            strength: number(*cpu, "cpu_capacity").and_then(|strength| u32::try_from(strength).ok()).unwrap_or(1_024),
            near: (package, cache.and_then(|all| all.first().copied()).unwrap_or(0)),
        });
    }
    cores.sort_by_key(|core| (core.near, core.cpus.first().copied()));
    cores
}

/// "0-3,8", as the kernel writes it.
pub fn cpu_list(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let part =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// What is not a list of numbers is none.
fn parse_cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last < CpuSet::MAX_CPU).then_some(first..=last)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Lets the calling thread, and whatever it starts from now on, run on these processors alone.
///
/// # Errors
/// None of them may be used.
pub fn bind_this_thread(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Whether a thread may run on no other than these processors. One that is gone may not.
pub fn is_bound_to(tid: u32, cpus: &[usize]) -> bool {
    let Some(set) = Pid::from_raw(tid.cast_signed()).and_then(|tid| sched_getaffinity(Some(tid)).ok()) else {
        return false;
    };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).all(|cpu| cpus.contains(&cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up machine: of each processor the files that it has.
    fn of<'a>(files: &'a [(usize, &'a str, &'a str)]) -> impl Fn(usize, &str) -> Option<String> + 'a {
        |cpu, file| {
            let found = files.iter().find(|(number, name, _)| *number == cpu && *name == file);
            found.map(|(.., text)| format!("{text}\n"))
        }
    }

    fn cpus(cores: &[Core]) -> Vec<Vec<usize>> {
        cores.iter().map(|core| core.cpus.clone()).collect()
    }

    #[test]
    fn processors_that_share_a_core_are_one_and_only_those_that_may_be_used_count() {
        let files = [
            (0, "topology/core_cpus_list", "0,2"),
            (1, "topology/thread_siblings_list", "1,3"),
            (2, "topology/core_cpus_list", "0,2"),
            (3, "topology/thread_siblings_list", "1,3"),
        ];
        assert_eq!(cpus(&cores(&[0, 1, 2, 3], &of(&files))), [vec![0, 2], vec![1, 3]]);
        assert_eq!(cpus(&cores(&[1, 2, 3], &of(&files))), [vec![1, 3], vec![2]]);
        assert_eq!(cpus(&cores(&[0, 1, 2], &of(&[]))), [vec![0], vec![1], vec![2]], "nobody tells");
    }

    #[test]
    fn cores_of_one_cache_and_package_are_neighbours() {
        let files = [
            (0, "cache/index3/shared_cpu_list", "0,2"),
            (1, "cache/index3/shared_cpu_list", "1,3"),
            (2, "cache/index3/shared_cpu_list", "0,2"),
            (3, "cache/index3/shared_cpu_list", "1,3"),
            (4, "topology/physical_package_id", "1"),
            (3, "cpu_capacity", "512"),
        ];
        let found = cores(&[0, 1, 2, 3, 4], &of(&files));
        assert_eq!(cpus(&found), [vec![0], vec![2], vec![1], vec![3], vec![4]]);
        assert_eq!(found.iter().map(|core| core.strength).collect::<Vec<_>>(), [1_024, 1_024, 1_024, 512, 1_024]);
    }

    #[test]
    fn lists_of_processors_are_read_as_they_are_written() {
        for (list, text) in [(vec![0, 1, 2, 3, 8], "0-3,8"), (vec![5], "5"), (vec![1, 3], "1,3"), (vec![], "")] {
            assert_eq!(cpu_list(&list), text);
            assert_eq!(parse_cpu_list(&format!("{text}\n")), list);
        }
        assert_eq!(parse_cpu_list("0-99999999999,x"), Vec::<usize>::new());
    }

    #[test]
    fn every_processor_of_this_machine_is_in_one_core() {
        let processors = Processors::of_this_process();
        let mut all: Vec<usize> = processors.cores().into_iter().flat_map(|core| core.cpus).collect();
        all.sort_unstable();
        assert_eq!(all, processors.cpus());
    }

    #[test]
    fn what_a_bound_thread_starts_is_bound_to_the_same_processors() {
        let (first, all) = (Processors::of_this_process().cpus()[0], Processors::of_this_process());
        let (bound, child) = std::thread::spawn(move || {
            bind_this_thread(&[first]).unwrap();
            let inner = std::thread::spawn(Processors::of_this_process).join().unwrap();
            let tid = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            assert!(is_bound_to(tid, &[first]) && !is_bound_to(tid, &[first + 1]));
            let child = std::process::Command::new("grep").args(["Cpus_allowed_list", "/proc/self/status"]).output();
            (inner, String::from_utf8(child.unwrap().stdout).unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(bound.cpus(), [first]);
        assert_eq!(child.split_whitespace().last(), Some(first.to_string().as_str()));
        let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        assert_eq!(is_bound_to(own, &[first]), all.count() == 1);
    }
}
