//! What the tests of real mounts share. They need root and `/dev/fuse`; without, they fail and say so.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::{self, File},
    io::Write,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use brownout_disk::{Disk, DiskControl, DiskCounters, DiskErrno, DiskFault, DiskOptions, Operation, Operations};
use brownout_units::Delay;
use tempfile::TempDir;

/// For what must come: no property of ours, only an end for a test that hangs. A machine that is shared may stand still
/// for seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A mounted disk in a mount namespace of the calling thread's own, which ends with the test.
pub struct Mounted {
    pub disk: Option<Disk>,
    pub source: PathBuf,
    pub target: PathBuf,
    // Last, so that it is removed when nothing is mounted in it any more.
    pub directory: TempDir,
}

impl Mounted {
    pub fn new() -> Mounted {
        Mounted::seeded(1)
    }

    pub fn seeded(seed: u64) -> Mounted {
        Mounted::on(tempfile::tempdir().unwrap(), seed)
    }

    /// Serves a directory in memory, where there is one: what takes a real disk its time is no matter then.
    pub fn in_memory() -> Mounted {
        Mounted::on(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(), 1)
    }

    fn on(directory: TempDir, seed: u64) -> Mounted {
        own_mounts();
        let (source, target) = (directory.path().join("source"), directory.path().join("target"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&target).unwrap();
        let disk = Disk::mount_with(&source, &target, DiskOptions { seed });
        let disk = Some(disk.unwrap_or_else(|error| panic!("this test needs root and /dev/fuse: {error}")));
        Mounted { disk, source, target, directory }
    }

    pub fn disk(&self) -> &Disk {
        self.disk.as_ref().unwrap()
    }

    pub fn control(&self) -> DiskControl {
        self.disk().control()
    }

    /// A file on the mount, opened for reading and writing.
    pub fn create(&self, name: &str) -> File {
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.target.join(name)).unwrap()
    }
}

/// Every such operation takes this much longer.
pub fn slower(operations: impl Into<Operations>, delay: Delay) -> DiskFault {
    DiskFault { operations: operations.into(), delay, ..DiskFault::default() }
}

/// Every such operation fails like this, at once.
pub fn failing(operations: impl Into<Operations>, error: DiskErrno) -> DiskFault {
    DiskFault { operations: operations.into(), error: Some(error), ..DiskFault::default() }
}

/// Gives the calling thread, and those that it starts, a mount namespace of their own.
pub fn own_mounts() {
    // SAFETY: constants only.
    unsafe {
        let unshared = libc::unshare(libc::CLONE_NEWNS);
        assert_eq!(unshared, 0, "this test needs root: {}", std::io::Error::last_os_error());
        let none = std::ptr::null();
        let private = libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
        assert_eq!(private, 0, "{}", std::io::Error::last_os_error());
    }
}

pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}

/// A thread that does nothing but sleep for a millisecond over and over, scheduled as those of a disk are. By how much it
/// wakes too late is what this machine adds to whatever waits for a time, or for another thread, meanwhile.
pub struct Sleeper {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
    begun: Instant,
    waited: Duration,
}

/// What the machine did to what ran on it, while something was measured.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// By how much a sleeper usually (in the median) woke too late.
    pub usual: Duration,
    /// By how much it did at worst.
    pub worst: Duration,
    /// How long the threads of this process, those of other tests among them, waited for a processor, of the time.
    pub waited: f64,
}

impl Sleeper {
    pub fn start() -> Sleeper {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            // SAFETY: no memory is involved.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0) };
            let mut late = Vec::new();
            while late.is_empty() || !ends.load(Ordering::Relaxed) {
                let millisecond = Duration::from_millis(1);
                late.push(timed(|| thread::sleep(millisecond)).1.saturating_sub(millisecond));
            }
            late
        });
        Sleeper { is_over, thread, begun: Instant::now(), waited: waited() }
    }

    pub fn end(self) -> Machine {
        let waited = waited().saturating_sub(self.waited).as_secs_f64() / self.begun.elapsed().as_secs_f64();
        self.is_over.store(true, Ordering::Relaxed);
        let late = self.thread.join().unwrap();
        let worst = late.iter().copied().max().unwrap();
        Machine { usual: median(late), worst, waited }
    }
}

impl Machine {
    fn is_quiet(&self) -> bool {
        self.worst <= Duration::from_millis(2) && self.waited <= 0.05
    }
}

/// How long the threads that this process has at this moment waited for a processor, in all.
fn waited() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    // On a processor, waiting for one, turns: Documentation/scheduler/sched-stats.rst. A thread may have ended.
    let waited = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited.sum())
}

/// Repeats a measurement that a machine can spoil, but not improve. Out of tolerance on a quiet machine it fails at once;
/// only what was disturbed is measured again, for a while.
pub fn unless_disturbed(what: &str, mut measure: impl FnMut() -> (Result<(), String>, Machine)) {
    for attempt in 1..=15 {
        let (Err(wrong), machine) = measure() else { return };
        println!("{what}, attempt {attempt}: {wrong}; {machine:?}");
        assert!(!machine.is_quiet(), "{what}: out of tolerance on a quiet machine: {wrong}");
    }
    panic!("{what}: out of tolerance, and the machine never quiet, see above");
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Waits for what must come.
pub fn eventually(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < end, "never came: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a fault has made an operation of that kind wait since the counters were last taken. It is counted, and so
/// seen by a thread that stood still itself until its wait was over.
pub fn delayed(control: &DiskControl, operation: Operation) {
    eventually("an operation to wait", || control.take_counters().of(operation).delayed > 0);
}

/// Takes counters until nothing is in service, and adds them up.
pub fn settled(control: &DiskControl) -> DiskCounters {
    let mut all = DiskCounters::default();
    eventually("the balance of the counters", || {
        all.add(&control.take_counters());
        all.iter().all(|(_, each)| each.received == each.answered + each.interrupted)
    });
    all
}

/// Reads from the disk, not from the page cache.
pub fn uncached(file: &File) {
    // SAFETY: no memory is involved.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

pub fn errno<T>(result: std::io::Result<T>) -> Result<T, i32> {
    result.map_err(|error| error.raw_os_error().unwrap())
}

/// Writes once, in one request.
pub fn put(file: &mut File, bytes: &[u8]) -> Result<(), i32> {
    errno(file.write_all(bytes))
}

/// Descriptors that the threads have open which serve the disk of this source: they have a table of their own.
pub fn descriptors_of_service(source: &Path) -> usize {
    let tasks = || fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let is_timer = |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "disk-timer");
    // Other tests of the same program have disks, too.
    let serves = |directory: &PathBuf| {
        let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.starts_with(source)))
    };
    let mut table = None;
    // A thread gives itself its name, which may be a moment after the disk is mounted.
    eventually("the thread that serves the disk", || {
        table = tasks().filter(is_timer).map(|task| task.join("fd")).find(serves);
        table.is_some()
    });
    count(&table.unwrap())
}

pub fn count(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

pub const SYNC: Operation = Operation::Sync;
pub const WRITE: Operation = Operation::Write;
pub const READ: Operation = Operation::Read;
pub const METADATA: Operation = Operation::Metadata;
