//! The threads that serve a disk.
//!
//! Readers take requests from the kernel and carry them out; there is always one more of them than are busy, so that a
//! slow operation of the real directory holds up nobody. A request that a fault makes wait is put aside ([`crate::delay_queue`]); one
//! thread, the timer, takes it out again when its time has come, and hands it to a pool of workers.
//!
//! **These threads share a table of open files with one another and with nobody else.** A process that serves a disk and
//! uses it, too, could otherwise never be killed: its last threads would wait for an answer from the disk, and the
//! disk's device, whose closing makes the requests that wait fail, would not be closed before the last thread has gone. So the device
//! belongs to threads that never wait for the disk, and is closed with them. Besides, no child that the process starts
//! inherits a descriptor of ours, nor do we hold one of its own open.

mod answer;
mod handshake;
mod workers;
mod writeback;

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::{
    control::Shared,
    delay_queue::Ended,
    passthrough::Passthrough,
    protocol::{REQUEST_SIZE, Reply},
    sys,
};

use workers::Workers;
use writeback::DeferredWaits;

/// The most requests that are carried out at a time, of those that do not wait.
const MOST_READERS: usize = 64;

/// What the serving threads share.
struct Service {
    device: OwnedFd,
    passthrough: Passthrough,
    shared: Arc<Shared>,
    /// Readers that wait for a request.
    idle: AtomicUsize,
    readers: AtomicUsize,
    workers: Workers,
    deferred: DeferredWaits,
    threads: Arc<Threads>,
}

/// How many threads serve a disk. It holds no descriptors, so that any thread may wait for their end.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    count: Mutex<usize>,
    changed: Condvar,
    /// No thread can be started, as on a machine that has none left.
    #[cfg(test)]
    none_left: std::sync::atomic::AtomicBool,
}

impl Threads {
    /// Waits until none is left. Returns whether so.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(count, patience, |count| *count > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }

    pub(crate) fn count(&self) -> usize {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, change: isize) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_add_signed(change);
        drop(count);
        self.changed.notify_all();
    }
}

/// Counts a thread for as long as it runs, however it ends.
struct Counted(Arc<Threads>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

/// What could not be done, and why.
pub(crate) type Failure = (&'static str, Errno);

/// Serves `source` at `target` until it is unmounted, by `threads`; returns once it is mounted.
///
/// # Errors
/// What failed; nothing is mounted then.
pub(crate) fn start(
    source: PathBuf,
    target: PathBuf,
    shared: Arc<Shared>,
    threads: &Arc<Threads>,
) -> Result<(), Failure> {
    let (announce, announced) = mpsc::sync_channel(1);
    let their_threads = Arc::clone(threads);
    their_threads.add(1);
    let counted = Counted(Arc::clone(threads));
    let first = move || {
        let _counted = counted;
        // Everything that holds a descriptor is made on this thread, and dropped by the last that serves.
        let mounted = prepare(&source, &target, Arc::clone(&shared), their_threads);
        match mounted {
            Ok(service) => {
                let _ = announce.send(Ok(()));
                service.readers.fetch_add(1, Ordering::AcqRel);
                service.serve();
            }
            Err(failure) => {
                let _ = announce.send(Err(failure));
            }
        }
    };
    let spawned = thread::Builder::new().name("disk".to_owned()).spawn(first);
    spawned.map_err(|error| ("start a thread", sys::errno_of(&error)))?;
    announced.recv().unwrap_or(Err(("start a thread", Errno::AGAIN)))
}

/// On the first serving thread: all that is needed, up to the mount.
fn prepare(source: &Path, target: &Path, shared: Arc<Shared>, threads: Arc<Threads>) -> Result<Arc<Service>, Failure> {
    let named = |action| move |errno| (action, errno);
    sys::block_signals();
    sys::own_file_table().map_err(named("make a table of open files (Linux 5.9 or later)"))?;
    sys::own_umask().map_err(named("make a file mode mask"))?;
    let passthrough = Passthrough::open(source).map_err(named("open the source, by way of /proc/thread-self/fd,"))?;
    let device = rustix::fs::open(c"/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let device = device.map_err(named("open /dev/fuse"))?;
    // Started before the mount is made, so that no mount is left without a timer. It gets the service later, or ends.
    let (serve, served) = mpsc::sync_channel::<Arc<Service>>(1);
    let timer = move || served.recv().iter().for_each(Service::keep_time);
    spawn(&threads, "disk-timer", timer).map_err(named("start a thread"))?;
    let mode = passthrough.mode().map_err(named("read the mode of the source"))?;
    sys::mount_fuse(device.as_fd(), target, mode).map_err(named("mount a FUSE filesystem"))?;
    let service = Arc::new(Service {
        device,
        passthrough,
        shared,
        idle: AtomicUsize::new(0),
        readers: AtomicUsize::new(0),
        workers: Workers::default(),
        deferred: DeferredWaits::default(),
        threads,
    });
    // It waits for this.
    let _ = serve.send(Arc::clone(&service));
    Ok(service)
}

/// Starts a thread that serves; it gets the file table of the thread that calls.
fn spawn(threads: &Arc<Threads>, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    #[cfg(test)]
    if threads.none_left.load(Ordering::Relaxed) {
        return Err(Errno::AGAIN);
    }
    threads.add(1);
    let counted = Counted(Arc::clone(threads));
    let work = move || {
        let _counted = counted;
        // Each thread has a mask of its own; without it, modes would be narrowed twice, which no fault asked for.
        let _ = sys::own_umask();
        work();
    };
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| sys::errno_of(&error))
}

impl Service {
    /// A reader: takes requests until the disk is unmounted.
    fn serve(self: &Arc<Self>) {
        // Touched only as far as requests reach.
        let mut request = vec![0; REQUEST_SIZE];
        let mut reply = Reply::new();
        loop {
            self.idle.fetch_add(1, Ordering::AcqRel);
            let read = rustix::io::read(&self.device, &mut request[..]);
            let idle = self.idle.fetch_sub(1, Ordering::AcqRel) - 1;
            match read {
                Ok(length) => {
                    if idle == 0 {
                        self.one_more_reader();
                    }
                    self.answer(&request[..length], &mut reply);
                }
                // ENOENT: the request was taken back while we read it.
                Err(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
                // ENODEV: unmounted. Anything else would repeat itself for ever.
                Err(_) => break,
            }
            if self.shared.ended() {
                break;
            }
        }
        self.shared.end();
        self.workers.end();
    }

    fn one_more_reader(self: &Arc<Self>) {
        let one_more = |readers| (readers < MOST_READERS).then_some(readers + 1);
        if self.readers.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_err() {
            return;
        }
        let service = Arc::clone(self);
        if spawn(&self.threads, "disk-reader", move || service.serve()).is_err() {
            // Those that there are go on; the next request tries again.
            self.readers.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The timer: hands over what has waited long enough.
    fn keep_time(self: &Arc<Self>) {
        sys::precise_sleep();
        let mut reply = Reply::new();
        while let Some(ended) = self.shared.delayed.pop(sys::killed) {
            match ended {
                // Failing a request takes no time.
                Ended::Due(request) if request.decision.error.is_some() => self.finish(request, &mut reply),
                Ended::Due(request) => {
                    if let Some(request) = self.workers.give(request, || self.one_more_worker()) {
                        self.finish(request, &mut reply);
                    }
                }
                Ended::Killed(request) => self.give_up(&request, &mut reply),
            }
        }
    }

    fn one_more_worker(self: &Arc<Self>) -> Result<(), Errno> {
        let service = Arc::clone(self);
        spawn(&self.threads, "disk-worker", move || {
            let mut reply = Reply::new();
            while let Some(request) = service.workers.next() {
                service.finish(request, &mut reply);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::control::DiskControl;

    #[test]
    fn a_disk_whose_timer_cannot_start_leaves_no_mount() {
        crate::testing::own_mounts();
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [source, target] = [directories[0].path(), directories[1].path()];
        let is_mounted = || {
            let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
            mounts.contains(target.to_str().unwrap())
        };
        let start = |threads: &Arc<Threads>| {
            let shared = DiskControl::new(target.to_owned(), 0).shared();
            super::start(source.to_owned(), target.to_owned(), shared, threads)
        };
        let threads = Arc::new(Threads::default());
        threads.none_left.store(true, Ordering::Relaxed);
        assert_eq!(start(&threads), Err(("start a thread", Errno::AGAIN)));
        assert!(!is_mounted());
        assert!(threads.wait(Duration::from_secs(60)), "a thread of it stays");
        // With a timer it is one, and is seen here.
        threads.none_left.store(false, Ordering::Relaxed);
        start(&threads).unwrap();
        assert!(is_mounted());
        sys::unmount(target, true).unwrap();
    }
}
