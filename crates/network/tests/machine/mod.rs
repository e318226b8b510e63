//! What the machine does while something is measured: whether what came late was late by its doing or by ours.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod not_judged;

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

use self::not_judged::not_judged;
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

/// Seconds, summed over all processors, in which others ran. What interrupts took is not among them: packets are moved
/// in these, and most packets are ours.
struct Taken {
    /// Other programs.
    programs: f64,
    /// Other machines on the same hardware.
    stolen: f64,
}

impl Taken {
    fn until_now() -> Self {
        let seconds = |ticks: &str| ticks.parse::<f64>().unwrap() / 100.0;
        let all = fs::read_to_string("/proc/stat").unwrap();
        // user, nice, system, idle, iowait, irq, softirq, steal: proc(5).
        let fields: Vec<f64> = all.lines().next().unwrap().split_whitespace().skip(1).map(seconds).collect();
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        // Its name, in brackets, may hold anything; the twelfth and thirteenth behind it are utime and stime.
        let own = own.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2).map(seconds).sum::<f64>();
        Taken { programs: fields[..3].iter().sum::<f64>() - own, stolen: fields[7] }
    }
}

/// How the machine was while something was tried, by what it says of itself: nothing of what came of the try is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// No processor stood still for long, and others took hardly any of their time.
    Quiet,
    /// A processor stood still. Nobody says why: it may be by our doing.
    Late,
    /// Others took the processors: other programs, or other machines.
    Busy,
}

/// Who looks at it.
struct Watch {
    sleepers: Sleepers,
    taken: Taken,
    began: Instant,
}

impl Watch {
    fn begin() -> Self {
        Watch { sleepers: Sleepers::start(), taken: Taken::until_now(), began: Instant::now() }
    }

    /// How it was since then; it is quiet if no processor stood still for more than `limit_ms`.
    fn machine(&self, limit_ms: f64) -> Machine {
        let (taken, processors) = (Taken::until_now(), self.sleepers.wakes.len() as f64);
        let per_cent = |seconds: f64| seconds / self.began.elapsed().as_secs_f64() / processors * 100.0;
        let programs = per_cent(taken.programs - self.taken.programs);
        let stolen = per_cent(taken.stolen - self.taken.stolen);
        let late = self.sleepers.since(0);
        println!("other programs took {programs:.1} % of the machine, other machines {stolen:.1} %; {late:.3?}");
        match (programs > 5.0 || stolen > 1.0, late.worst > limit_ms) {
            (true, _) => Machine::Busy,
            (false, true) => Machine::Late,
            (false, false) => Machine::Quiet,
        }
    }
}

/// What came of a try.
pub struct Try {
    /// It was within tolerance.
    pub is_good: bool,
    /// How the machine was meanwhile.
    pub machine: Machine,
}

/// Judges a measurement that a busy machine can spoil, but not improve, by as many tries as that takes (see
/// [`is_good`]). The machine is quiet while no processor stands still for more than `limit_ms`, and others take hardly
/// any of their time. If it is so too seldom, the test is in the list of those that nobody judged.
pub fn until_quiet(what: &str, limit_ms: f64, measure: impl Fn(&Sleepers) -> Result<(), String>) {
    let attempt = |number: usize| {
        let watch = Watch::begin();
        let measured = measure(&watch.sleepers);
        let machine = watch.machine(limit_ms);
        println!("{what}, try {number}, {machine:?}: {measured:?}");
        if machine != Machine::Quiet {
            // What disturbs does not end at once.
            thread::sleep(Duration::from_secs(1));
        }
        Try { is_good: measured.is_ok(), machine }
    };
    let alone = || {
        let watch = Watch::begin();
        thread::sleep(Duration::from_secs(5));
        watch.machine(limit_ms)
    };
    if !is_good(what, attempt, alone) {
        not_judged(&format!("{what}: the machine disturbed too many tries"));
    }
}

/// How often something is tried at most.
pub const MOST_TRIES: usize = 8;
/// So much has to come together: a good try on a quiet machine is worth all of it ...
const ENOUGH: i32 = 4;
/// ... and elsewhere this: a machine that is not quiet could have spoiled it, and not improved it.
const GOOD: i32 = 1;
/// What a bad one is worth there: it was the machine's doing, or ours.
const BAD: i32 = -3;
/// Where it begins: what is good at the first try is good.
const BEFORE: i32 = ENOUGH - GOOD;

/// Whether something is good. The first try decides if it is good, or if the machine was quiet: what is bad then, fails at
/// once. A bad one on another machine is neither taken for nothing nor for an answer. Were there another one until one is
/// good, a defect that shows in half of them would never be found; so four good ones have to outweigh it, or one on a quiet
/// machine. Of such a defect hardly more pass than of a single try.
///
/// False if nobody knows, because the machine was busy: it says so by itself, or is not quiet while nothing is tried
/// (`alone`) either. If it is, what was tried has disturbed itself.
pub fn is_good(what: &str, mut attempt: impl FnMut(usize) -> Try, alone: impl FnOnce() -> Machine) -> bool {
    let (mut sum, mut is_busy) = (BEFORE, false);
    for number in 1..=MOST_TRIES {
        let Try { is_good, machine } = attempt(number);
        sum += match (is_good, machine) {
            (true, Machine::Quiet) => ENOUGH,
            (true, Machine::Late | Machine::Busy) => GOOD,
            (false, Machine::Quiet) => panic!("{what}: out of tolerance on a quiet machine, see above"),
            (false, Machine::Late | Machine::Busy) => BAD,
        };
        if sum >= ENOUGH {
            return true;
        }
        is_busy |= machine == Machine::Busy;
    }
    assert!(
        is_busy || alone() != Machine::Quiet,
        "{what}: out of tolerance, and the machine is quiet without it, see above"
    );
    false
}
