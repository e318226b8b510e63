//! The machine that the load runs on: what it is, and who used its processors between two looks.

use std::fs;

/// CPU time used so far, ns, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// The moment, CLOCK_MONOTONIC.
    pub(super) at_ns: u64,
    /// Processors of the machine.
    cores: u64,
    /// Of the whole machine, all cores together.
    machine: u64,
    /// Taken by the hypervisor for others.
    stolen: u64,
    /// Of this process.
    instrument: u64,
    /// Of the engine's threads.
    load: u64,
}

impl Look {
    /// A look before there is an engine.
    pub(super) fn now(at_ns: u64) -> Self {
        Look::at(at_ns, 0)
    }

    /// A look, with what the engine's threads have used so far. What the kernel does not tell counts as nothing.
    pub(super) fn at(at_ns: u64, load: u64) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (machine, stolen) = busy(&stat).unwrap_or_default();
        Look { at_ns, cores: cores(&stat), machine, stolen, instrument: own_time(), load }
    }

    /// CPU time since an earlier look by the subjects of the run file.
    pub(super) fn since(&self, earlier: &Look) -> [(&'static str, u64); 5] {
        [
            ("machine", self.machine.saturating_sub(earlier.machine)),
            ("stolen", self.stolen.saturating_sub(earlier.stolen)),
            ("cores", self.cores * self.at_ns.saturating_sub(earlier.at_ns)),
            ("load", self.load.saturating_sub(earlier.load)),
            ("instrument", self.instrument.saturating_sub(earlier.instrument)),
        ]
    }
}

/// From `/proc/stat` (proc(5)), ns: busy with anything, and stolen.
fn busy(stat: &str) -> Option<(u64, u64)> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let &[user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks.as_slice() else { return None };
    // SAFETY: asks for a constant of the system.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let tick_ns = 1_000_000_000 / u64::try_from(per_second).ok().filter(|ticks| *ticks > 0)?;
    Some(((user + nice + system + irq + softirq) * tick_ns, steal * tick_ns))
}

fn cores(stat: &str) -> u64 {
    let is_core = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let cores = stat.lines().filter_map(|line| line.strip_prefix("cpu")).filter(|rest| is_core(rest));
    (cores.count() as u64).max(1)
}

/// CPU time of this process, ns.
fn own_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the place it is given.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    if answer != 0 { 0 } else { time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs() }
}

/// Processors that this process may use.
pub(super) fn allowed_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Model of the first processor; empty if the kernel does not tell.
pub(super) fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map(|(_, model)| model.trim().to_owned()).unwrap_or_default()
}

/// Memory, bytes; 0 if the kernel does not tell.
pub(super) fn total_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    total.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 1 20 900 5 2 3 7 0 0\ncpu0 50 1 10 450 2 1 2 4 0 0\ncpu1 50 0 10 450 3 1 1 3 0 0\nintr 5\n";

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        // 100 ticks a second on every Linux of today.
        assert_eq!(busy(STAT), Some((126 * 10_000_000, 7 * 10_000_000)));
        assert_eq!(cores(STAT), 2);
        assert_eq!(busy("cpu 1 2"), None);
    }

    #[test]
    fn the_difference_of_two_looks_is_what_was_used_between_them() {
        let earlier = Look { at_ns: 5, cores: 2, machine: 100, stolen: 1, instrument: 50, load: 40 };
        let later = Look { at_ns: 15, cores: 2, machine: 112, stolen: 1, instrument: 58, load: 47 };
        assert_eq!(
            later.since(&earlier),
            [("machine", 12), ("stolen", 0), ("cores", 20), ("load", 7), ("instrument", 8)]
        );
    }
}
