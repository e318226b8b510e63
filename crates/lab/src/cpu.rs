//! CPU time of the lab's processors, of this process and of its threads.

use std::{fs, io};

use brownout_machine::{Processors, Thread, Usage, threads};
use rustix::time::{ClockId, clock_gettime};

/// CPU time used since the machine or the process began, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Of the lab's processors, by anything, all of them together.
    pub machine: Usage,
    /// Of this process: all of Brownout.
    pub instrument: u64,
    /// Of the emulator's thread.
    pub emulator: u64,
    /// How long the load's threads could have run and did not: answers waited, and look like the database's time.
    pub load_waited: u64,
}

impl CpuTimes {
    /// As of now.
    pub fn now(processors: &Processors) -> io::Result<Self> {
        let machine = Usage::now(processors)?;
        let mut times = CpuTimes { machine, instrument: process_ns(), ..CpuTimes::default() };
        for (name, thread) in named_threads() {
            if name.starts_with("emulator") {
                times.emulator += thread.ran_ns;
            } else if name.starts_with("load-") {
                times.load_waited += thread.waited_ns;
            }
        }
        Ok(times)
    }
}

/// This process's threads.
fn named_threads() -> impl Iterator<Item = (String, Thread)> {
    threads("self").filter_map(|thread| {
        let name = fs::read_to_string(format!("/proc/self/task/{}/comm", thread.tid)).ok()?;
        Some((name.trim().to_owned(), thread))
    })
}

/// User and system time of all threads of this process, dead ones too.
fn process_ns() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Works until it is so; none of it takes a minute.
    fn work_until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut sum = 0_u64;
        while !is_so() {
            assert!(Instant::now() < deadline, "not after a minute of work");
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    #[test]
    fn threads_are_found_by_their_name() {
        let seen = || named_threads().any(|(name, thread)| name == "emulator" && thread.ran_ns > 5_000_000);
        let thread = std::thread::Builder::new().name("emulator".to_owned());
        thread.spawn(move || work_until(seen)).unwrap().join().unwrap();
    }

    #[test]
    fn work_shows() {
        let processors = Processors::of_this_process();
        let before = CpuTimes::now(&processors).unwrap();
        work_until(|| CpuTimes::now(&processors).unwrap().instrument - before.instrument >= 20_000_000);
        let after = CpuTimes::now(&processors).unwrap();
        assert!(after.instrument >= before.instrument + 20_000_000);
        assert!(after.machine.all_ns >= before.machine.all_ns);
    }
}
