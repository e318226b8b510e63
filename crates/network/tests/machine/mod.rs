//! What the machine does while something is measured: whether what came late was late by its doing or by ours.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::run_urgently;

use super::common::{PATIENCE, quantile};

/// Above the emulator's: who waits for the emulator would take its slowness for the machine's.
const FIFO_PRIORITY: u8 = 30;
const MS: u64 = 1_000_000;

/// When one was to wake, and how many ms too late it did.
type Wakes = Arc<Mutex<Vec<(u64, f64)>>>;

/// By how much the machine delays whatever waits for a time, in ms. A packet that is held pays twice: when it enters and
/// when it leaves.
#[derive(Debug, Clone, Copy)]
pub struct Lateness {
    pub usual: f64,
    /// Of 99 in 100.
    pub tail: f64,
    pub worst: f64,
}

/// A thread on each processor that does nothing but wake once a millisecond.
pub struct Sleepers {
    is_over: Arc<AtomicBool>,
    wakes: Vec<Wakes>,
    threads: Vec<JoinHandle<()>>,
}

impl Sleepers {
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |processor| {
            let (wakes, ends) = (Wakes::default(), Arc::clone(&is_over));
            let into = Arc::clone(&wakes);
            (wakes, thread::spawn(move || sleep_on(processor, &into, &ends)))
        };
        let (wakes, threads) = processors().into_iter().map(start).unzip();
        Self { is_over, wakes, threads }
    }

    /// The worse of all processors, since a time: nobody knows on which the emulator ran.
    pub fn since(&self, since_ns: u64) -> Lateness {
        let mut worse = Lateness { usual: 0.0, tail: 0.0, worst: 0.0 };
        for wakes in self.all() {
            let mut late: Vec<f64> = wakes.into_iter().filter(|(due, _)| *due >= since_ns).map(|(_, ms)| ms).collect();
            late.sort_by(f64::total_cmp);
            let [usual, tail, worst] =
                [0.5, 0.99, 1.0].map(|share| if late.is_empty() { 0.0 } else { quantile(&late, share) });
            worse =
                Lateness { usual: usual.max(worse.usual), tail: tail.max(worse.tail), worst: worst.max(worse.worst) };
        }
        worse
    }

    /// The times in which a processor stood still for more than `ms`.
    pub fn stalls(&self, ms: f64) -> Vec<Range<u64>> {
        let late = |(due, late): (u64, f64)| (late > ms).then(|| due..due + (late * 1e6) as u64);
        self.all().into_iter().flatten().filter_map(late).collect()
    }

    /// What all of them have noted until now: one that cannot run at this moment is waited for.
    fn all(&self) -> Vec<Vec<(u64, f64)>> {
        let now = monotonic_ns();
        let end = Instant::now() + PATIENCE;
        let until_now = |wakes: &Wakes| loop {
            assert!(Instant::now() < end, "a sleeping thread did not wake for {PATIENCE:?}");
            let noted = wakes.lock().unwrap();
            if noted.last().is_some_and(|(due, _)| *due >= now) {
                return noted.clone();
            }
            drop(noted);
            thread::sleep(Duration::from_millis(1));
        };
        self.wakes.iter().map(until_now).collect()
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Notes every millisecond by how much it woke too late; those that it slept through altogether, too.
fn sleep_on(processor: usize, wakes: &Wakes, is_over: &AtomicBool) {
    // SAFETY: a zeroed set is valid and empty, and as long as stated.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0, "{}", std::io::Error::last_os_error());
    }
    run_urgently(FIFO_PRIORITY);
    let mut due = monotonic_ns() + MS;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic_ns())));
        let now = monotonic_ns();
        let mut wakes = wakes.lock().unwrap();
        while due <= now {
            wakes.push((due, (now - due) as f64 / 1e6));
            due += MS;
        }
    }
}

/// Those on which this process may run.
fn processors() -> Vec<usize> {
    // SAFETY: a zeroed set is valid, and as long as stated.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0, "{}", std::io::Error::last_os_error());
        (0..libc::CPU_SETSIZE as usize).filter(|processor| libc::CPU_ISSET(*processor, &set)).collect()
    }
}

/// Seconds, summed over all processors, in which others ran: other processes, or other machines on the same hardware. What
/// interrupts took is among them, though some of it may be ours: that costs time at worst, as more tries are made.
fn taken_by_others() -> f64 {
    let seconds = |ticks: &str| ticks.parse::<f64>().unwrap() / 100.0;
    let all = fs::read_to_string("/proc/stat").unwrap();
    // user, nice, system, idle, iowait, irq, softirq, steal: proc(5).
    let fields: Vec<f64> = all.lines().next().unwrap().split_whitespace().skip(1).map(seconds).collect();
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    // Its name, in brackets, may hold anything; the twelfth and thirteenth behind it are utime and stime.
    let own = own.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2).map(seconds).sum::<f64>();
    fields[..8].iter().sum::<f64>() - fields[3] - fields[4] - own
}

/// Why a measurement was out of tolerance.
pub enum Failed {
    /// The machine was quiet: by our doing.
    Quiet,
    /// It may be the machine's doing, so that nothing was learned.
    Disturbed,
}

/// Repeats a measurement that a busy machine can spoil, but not improve. It fails as soon as it is out of tolerance
/// while the machine is quiet: no processor stands still for more than `limit_ms`, and others take hardly any of their
/// time. As long as it is not, it goes on for a while, since one disturbance outlasts several tries.
pub fn until_quiet(what: &str, limit_ms: f64, measure: impl Fn(&Sleepers) -> Result<(), String>) {
    repeat_if_disturbed(what, |attempt| {
        let (sleepers, taken, began) = (Sleepers::start(), taken_by_others(), Instant::now());
        let Err(wrong) = measure(&sleepers) else { return Ok(()) };
        let processors = sleepers.wakes.len() as f64;
        let others = (taken_by_others() - taken) / began.elapsed().as_secs_f64() / processors * 100.0;
        let late = sleepers.since(0);
        println!("{what}, attempt {attempt}: {wrong}; others took {others:.1} % of the machine, {late:.3?}");
        if late.worst <= limit_ms && others <= 5.0 {
            return Err(Failed::Quiet);
        }
        thread::sleep(Duration::from_secs(1));
        Err(Failed::Disturbed)
    });
}

/// Tries again only after what was disturbed: a defect that shows in one run of two must not need luck to be found.
pub fn repeat_if_disturbed(what: &str, mut attempt: impl FnMut(usize) -> Result<(), Failed>) {
    const ATTEMPTS: usize = 14;
    for number in 1..=ATTEMPTS {
        match attempt(number) {
            Ok(()) => return,
            Err(Failed::Quiet) => panic!("{what}: out of tolerance on a quiet machine, see above"),
            Err(Failed::Disturbed) => {}
        }
    }
    panic!("{what}: out of tolerance, and never on a quiet machine, see above");
}
