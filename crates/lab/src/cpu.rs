//! Who used the processors, between two looks.

use std::{fs, io, sync::OnceLock};

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
    /// How long the load's threads could have run and did not: answers waited, and look like the database's time.
    pub load_waited: u64,
}

impl CpuTimes {
    /// As of now.
    pub fn now() -> io::Result<Self> {
        let (machine, stolen) = machine(&fs::read_to_string("/proc/stat")?).unwrap_or_default();
        let threads = threads();
        let of = |begins: &str| {
            let named = threads.iter().filter(|thread| thread.name.starts_with(begins));
            named.fold((0, 0), |sum, thread| (sum.0 + thread.ran_ns, sum.1 + thread.waited_ns))
        };
        let ((emulator, _), (_, load_waited)) = (of("emulator"), of("load-"));
        Ok(CpuTimes { machine, stolen, instrument: process()?, emulator, load_waited })
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

/// One thread of this process.
struct Thread {
    name: String,
    ran_ns: u64,
    waited_ns: u64,
}

/// This process's threads. One that ends meanwhile is left out.
fn threads() -> Vec<Thread> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
            let (ran_ns, waited_ns) = schedstat(&fs::read_to_string(task.path().join("schedstat")).ok()?)?;
            Some(Thread { name, ran_ns, waited_ns })
        })
        .collect()
}

/// `schedstat` of a task (Documentation/scheduler/sched-stats.rst): ns on a processor, ns waiting for one, turns.
fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
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
    fn a_task_ran_and_waited() {
        assert_eq!(schedstat("899691 1200 2\n"), Some((899_691, 1_200)));
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn threads_are_found_by_their_name() {
        let body = || {
            let mut sum = 0_u64;
            while !threads().iter().any(|thread| thread.name == "emulator" && thread.ran_ns > 5_000_000) {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        };
        std::thread::Builder::new().name("emulator".to_owned()).spawn(body).unwrap().join().unwrap();
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
