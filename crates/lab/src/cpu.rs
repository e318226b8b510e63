//! Who used the processors, between two looks.

use std::{collections::BTreeMap, fs, io, sync::OnceLock};

/// CPU time used since the machine or the process began, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Of the whole machine, everything on it, all cores together.
    pub machine: u64,
    /// Taken by the hypervisor for others.
    pub stolen: u64,
    /// Of this process: all of Brownout.
    pub instrument: u64,
    /// Of the emulator's thread.
    pub emulator: u64,
}

impl CpuTimes {
    /// As of now.
    pub fn now() -> io::Result<Self> {
        let (machine, stolen) = machine(&fs::read_to_string("/proc/stat")?).unwrap_or_default();
        Ok(CpuTimes { machine, stolen, instrument: process()?, emulator: threads().remove("emulator").unwrap_or(0) })
    }
}

/// Processors of the machine: what [`CpuTimes::machine`] is to be divided by.
pub fn cores() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cores = stat
        .lines()
        .filter(|line| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    (cores.count() as u64).max(1)
}

/// Processors that this process may use.
pub fn allowed_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The first line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice, in ticks.
/// Guest time is counted in user time already.
fn machine(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    Some(((user + nice + system + irq + softirq) * tick_ns(), steal * tick_ns()))
}

fn process() -> io::Result<u64> {
    // SAFETY: a zeroed rusage is a valid place for the answer.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000;
    Ok(ns(usage.ru_utime) + ns(usage.ru_stime))
}

/// CPU time of this process's threads by name. A thread that ends meanwhile is left out.
fn threads() -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = fs::read_to_string(entry.path().join("comm"));
        let stat = fs::read_to_string(entry.path().join("stat"));
        if let (Ok(name), Some(ns)) = (name, stat.ok().and_then(|stat| task(&stat))) {
            *times.entry(name.trim().to_owned()).or_default() += ns;
        }
    }
    times
}

/// `utime + stime` of a `/proc/…/stat` line, ns. The name in it may contain anything, so counting begins after its `)`.
fn task(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks * tick_ns())
}

fn tick_ns() -> u64 {
    static TICK: OnceLock<u64> = OnceLock::new();
    *TICK.get_or_init(|| {
        // SAFETY: sysconf has no preconditions.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_busy_with_all_but_waiting() {
        let stat = "cpu  10 1 5 1000 50 2 3 7 4 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(machine(stat), Some((21 * tick_ns(), 7 * tick_ns())));
        assert_eq!(machine("nothing"), None);
    }

    #[test]
    fn a_task_may_have_any_name() {
        let stat = "1 (a) b (c)) S 0 1 1 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 1 0 5 0 0";
        assert_eq!(task(stat), Some(42 * tick_ns()));
    }

    #[test]
    fn work_shows() {
        let before = CpuTimes::now().unwrap();
        let mut sum = 0_u64;
        while CpuTimes::now().unwrap().instrument - before.instrument < 20_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = CpuTimes::now().unwrap();
        assert!(after.instrument >= before.instrument + 20_000_000);
        assert!(after.machine >= before.machine);
    }
}
