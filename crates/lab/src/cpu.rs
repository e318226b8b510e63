//! CPU time of the lab's processors, of its part of this process and of its threads.

use std::{collections::HashMap, fs, io};

use brownout_base::clock::monotonic_ns;
use brownout_machine::{Processors, Thread, Usage, is_bound_to, threads, waits_are_counted};
use rustix::time::{ClockId, clock_gettime};

/// CPU time used since the machine or the process began, or since the first look, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Of the lab's processors, by anything, all of them together.
    pub machine: Usage,
    /// Of this process, all of Brownout; where several labs are in it, of the lab's own threads.
    pub instrument: u64,
    /// Of the emulator's thread.
    pub emulator: u64,
    /// Of the thread of an overlay.
    pub overlay: u64,
    /// How long the load's threads could have run and did not: answers waited, and look like the database's time. None:
    /// the kernel does not tell.
    pub load_waited: Option<u64>,
    /// The same of the thread of an overlay: packets waited. None without one, too.
    pub overlay_waited: Option<u64>,
}

/// Reads them, from look to look.
pub struct CpuClock {
    processors: Processors,
    /// None: all of this process is one lab's.
    own: Option<OwnThreads>,
}

/// The threads of one lab of several in this process: those that are bound to its processors. The process has one
/// account for all of them, so theirs are added up. What a thread ran between the last look at it and its end is
/// missing.
#[derive(Debug, Default)]
struct OwnThreads {
    /// What each had run at the last look, ns.
    ran: HashMap<u32, u64>,
    /// All of them together, ns.
    sum: u64,
}

impl CpuClock {
    /// For a lab on these processors; `has_neighbours`: there are others in this process, on others.
    pub fn new(processors: Processors, has_neighbours: bool) -> Self {
        CpuClock { processors, own: has_neighbours.then(OwnThreads::default) }
    }

    /// As of now.
    pub fn read(&mut self) -> io::Result<CpuTimes> {
        let machine = Usage::now(&self.processors, monotonic_ns())?;
        let mut times = CpuTimes { machine, ..CpuTimes::default() };
        let cpus = self.processors.cpus();
        let is_own = |thread: &Thread| self.own.is_none() || is_bound_to(thread.tid, cpus);
        let mut ran = HashMap::new();
        let (mut load_waited, mut overlay_waited) = (0, None);
        for thread in threads("self").filter(is_own) {
            ran.insert(thread.tid, thread.ran_ns);
            let Ok(name) = fs::read_to_string(format!("/proc/self/task/{}/comm", thread.tid)) else { continue };
            if name.starts_with("emulator") {
                times.emulator += thread.ran_ns;
            } else if name.starts_with("wireguard") {
                times.overlay += thread.ran_ns;
                overlay_waited = Some(overlay_waited.unwrap_or(0) + thread.waited_ns);
            } else if name.starts_with("load-") {
                load_waited += thread.waited_ns;
            }
        }
        times.load_waited = waits_are_counted().then_some(load_waited);
        times.overlay_waited = overlay_waited.filter(|_| waits_are_counted());
        times.instrument = match &mut self.own {
            Some(own) => own.add(ran),
            None => process_ns(),
        };
        Ok(times)
    }
}

impl OwnThreads {
    /// Adds what threads ran since the last look; a number that comes again is another thread's if it has run for less.
    fn add(&mut self, now: HashMap<u32, u64>) -> u64 {
        for (tid, ran) in &now {
            let before = self.ran.get(tid).copied().filter(|before| before <= ran);
            self.sum += ran - before.unwrap_or(0);
        }
        self.ran = now;
        self.sum
    }
}

/// User and system time of all threads of this process, dead ones too.
fn process_ns() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc,
        time::{Duration, Instant},
    };

    use brownout_machine::bind_this_thread;

    use super::*;

    /// Works until it is so; none of it takes a minute.
    fn work_until(mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut sum = 0_u64;
        while !is_so() {
            assert!(Instant::now() < deadline, "not after a minute of work");
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    #[test]
    fn threads_are_found_by_their_name() {
        let mut clock = CpuClock::new(Processors::of_this_process(), false);
        let seen = move || clock.read().unwrap().emulator > 5_000_000;
        let thread = std::thread::Builder::new().name("emulator".to_owned());
        thread.spawn(move || work_until(seen)).unwrap().join().unwrap();
    }

    #[test]
    fn work_shows() {
        let mut clock = CpuClock::new(Processors::of_this_process(), false);
        let before = clock.read().unwrap();
        work_until(|| clock.read().unwrap().instrument - before.instrument >= 20_000_000);
        let after = clock.read().unwrap();
        assert!(after.instrument >= before.instrument + 20_000_000);
        assert!(after.machine.all_ns >= before.machine.all_ns);
    }

    #[test]
    fn of_several_labs_in_a_process_each_counts_its_own_threads() {
        let cpus = Processors::of_this_process().cpus().to_vec();
        let [first, second, ..] = cpus[..] else { return };
        let lab = |cpu: usize| {
            bind_this_thread(&[cpu]).unwrap();
            CpuClock::new(Processors::of_this_process(), true)
        };
        let (tell, told) = mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            let mut clock = lab(first);
            let before = clock.read().unwrap();
            let helper = std::thread::Builder::new().name("emulator".to_owned());
            let (stop, stopped) = mpsc::channel::<()>();
            let helper = helper.spawn(move || work_until(|| stopped.try_recv().is_ok())).unwrap();
            work_until(|| {
                std::thread::yield_now();
                clock.read().unwrap().emulator > 30_000_000
            });
            let after = clock.read().unwrap();
            stop.send(()).unwrap();
            helper.join().unwrap();
            tell.send(()).unwrap();
            after.instrument - before.instrument
        });
        let idle = std::thread::spawn(move || {
            let mut clock = lab(second);
            let before = clock.read().unwrap();
            told.recv().unwrap();
            let after = clock.read().unwrap();
            (after.instrument - before.instrument, after.emulator)
        });
        let worked = worker.join().unwrap();
        let (idled, emulator) = idle.join().unwrap();
        assert!(worked > 30_000_000, "{worked}");
        assert!(idled < worked / 2 && emulator == 0, "{idled} of {worked}, {emulator}");
    }

    #[test]
    fn what_threads_ran_is_added_up_though_they_end_and_numbers_come_again() {
        let mut own = OwnThreads::default();
        assert_eq!(own.add(HashMap::from([(1, 100), (2, 50)])), 150);
        assert_eq!(own.add(HashMap::from([(1, 130)])), 180, "the second has ended");
        assert_eq!(own.add(HashMap::from([(1, 130), (2, 20)])), 200, "another second");
        assert_eq!(own.add(HashMap::from([(1, 140), (2, 5)])), 215, "and another");
    }
}
