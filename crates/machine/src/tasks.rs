//! How long threads ran, and how long they could have run and did not.

use std::{
    collections::HashMap,
    fs::{self, File},
    os::unix::fs::FileExt,
};

/// One thread, as the scheduler counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Time on a processor, ns.
    pub ran_ns: u64,
    /// Time in which it was ready to run and waited for a processor, ns.
    pub waited_ns: u64,
}

/// The threads of a process (`self`, or a number). One that ends meanwhile is left out; all are where the kernel does not
/// count ([`waits_are_counted`]).
pub fn threads(process: &str) -> impl Iterator<Item = Thread> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| {
        let tid = task.file_name().to_str()?.parse().ok()?;
        let (ran_ns, waited_ns) = schedstat(&fs::read_to_string(task.path().join("schedstat")).ok()?)?;
        Some(Thread { tid, ran_ns, waited_ns })
    })
}

/// Whether the kernel counts how long threads wait for a processor. It does with `CONFIG_SCHED_INFO`, which
/// `CONFIG_SCHEDSTATS` brings along, or `CONFIG_TASK_DELAY_ACCT` where the kernel was started with `delayacct`.
pub fn waits_are_counted() -> bool {
    // Whoever asks has had a turn.
    fs::read_to_string("/proc/thread-self/schedstat").is_ok_and(|text| schedstat(&text).is_some())
}

/// How long one thread has waited for a processor, read by itself.
#[derive(Debug)]
pub struct OwnWaits(File);

impl OwnWaits {
    /// Of the calling thread; none where the kernel does not count.
    pub fn of_this_thread() -> Option<OwnWaits> {
        let own = OwnWaits(File::open("/proc/thread-self/schedstat").ok()?);
        own.ns().is_some().then_some(own)
    }

    /// Since it was started, ns; a system call.
    pub fn ns(&self) -> Option<u64> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Some(schedstat(std::str::from_utf8(text.get(..length)?).ok()?)?.1)
    }
}

/// `schedstat` of a task (Documentation/scheduler/sched-stats.rst): ns on a processor, ns waiting for one, turns.
///
/// A kernel that does not count prints zeros. So does a task that never had a turn; what it waited until then is added
/// when it gets one.
fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse::<u64>);
    let (ran_ns, waited_ns, turns) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    (ran_ns > 0 || turns > 0).then_some((ran_ns, waited_ns))
}

/// Adds up how long a process's threads waited, from reading to reading.
///
/// The kernel keeps no sum for a process, and a thread that ends takes its count with it: what it waited since the last
/// reading is missing then.
#[derive(Debug, Default)]
pub struct Waits {
    process: u32,
    threads: HashMap<u32, u64>,
}

impl Waits {
    /// What the threads of a process waited since the last reading, ns; of another process than before (a node that was
    /// started again), all that they ever did. The first reading counts nothing. None when it is not there.
    pub fn read(&mut self, process: u32) -> Option<u64> {
        let first = self.process == 0;
        if std::mem::replace(&mut self.process, process) != process {
            self.threads.clear();
        }
        let now: HashMap<u32, u64> =
            threads(&process.to_string()).map(|thread| (thread.tid, thread.waited_ns)).collect();
        if now.is_empty() {
            return None;
        }
        let since = |(tid, waited): (&u32, &u64)| waited.saturating_sub(self.threads.get(tid).copied().unwrap_or(0));
        let waited = if first { 0 } else { now.iter().map(since).sum() };
        self.threads = now;
        Some(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_ran_and_waited() {
        assert_eq!(schedstat("899691 1200 2\n"), Some((899_691, 1_200)));
        assert_eq!(schedstat("0 1200 1\n"), Some((0, 1_200)));
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn a_kernel_that_does_not_count_says_nothing_of_waiting() {
        assert_eq!(schedstat("0 0 0\n"), None);
        // What this test's own machine does, both readers say.
        assert_eq!(waits_are_counted(), threads("self").next().is_some());
    }

    #[test]
    fn threads_that_share_too_few_processors_wait() {
        let mut waits = Waits::default();
        let own = std::process::id();
        assert_eq!(waits.read(own), Some(0), "the first reading counts nothing");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let spin = || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let several = 1 + std::thread::available_parallelism().unwrap().get();
        let begun = std::time::Instant::now();
        let waited = std::thread::scope(|scope| {
            for _ in 0..several {
                scope.spawn(spin);
            }
            // However busy the machine is: more threads than processors cannot all run.
            let mut waited = 0;
            while waited < 20_000_000 && begun.elapsed().as_secs() < 60 {
                waited += waits.read(own).unwrap_or(0);
                std::thread::yield_now();
            }
            // Before anything can fail: the scope waits for those that spin.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            waited
        });
        assert!(waited >= 20_000_000, "{waited} ns in a minute");
        assert_eq!(waits.read(1 << 27), None);
    }
}
