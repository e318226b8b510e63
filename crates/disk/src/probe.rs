//! A disk probe: small operations on a mounted disk, each timed, all the time.
//!
//! It does what a database does to a disk, with files of its own, through the same mount: what it is made to wait, or the
//! error that it gets, is what the database gets. It works on any directory, mounted or not.

mod subject;

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use self::subject::Subject;
use crate::{
    error::DiskError,
    operation::{Operation, Operations},
};

/// How long dropping a probe waits for its thread to end; on a disk that hangs, the thread ends later, by itself.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most samples kept for a caller who does not drain them: a day and more at 10 a second.
const MOST: usize = 1_000_000;

/// How long one operation of the probe took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSample {
    /// When it was begun, on `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    /// Which it was: a write of 512 bytes, a sync (`fdatasync`) after it, a read of 4096 bytes past the page cache, or a
    /// `fallocate` of space that the file has.
    pub operation: Operation,
    /// How long it took, in nanoseconds, or the `errno` with which it failed.
    pub took_ns: Result<u64, i32>,
}

/// A probe that runs until this is dropped.
///
/// Its file is in a directory of its own, [`Probe::DIRECTORY`], inside the directory that it probes; both go when it ends.
/// Cassandra takes what it needs from its directories by the form of the names (`CommitLog-7-….log`, `….hints`, SSTable
/// components in directories of keyspaces), and leaves alone what has another.
#[derive(Debug)]
pub struct Probe {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    samples: VecDeque<DiskSample>,
    under_way: Option<(Operation, u64)>,
    stop: bool,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe {
    /// The directory of the probe's files, inside the directory that it probes.
    pub const DIRECTORY: &str = ".brownout";
    /// The file that is written and read, inside of [`Probe::DIRECTORY`].
    pub const FILE: &str = subject::FILE;

    /// Starts to probe the disk on which `directory` lies: every `every`, one of each of `operations`, one after the other.
    /// (For a sync, something is written first, without being timed.) What takes longer than `every` puts off the next.
    ///
    /// Returns when its files are made, so start it before the disk is impaired.
    ///
    /// # Errors
    /// [`DiskError::Probe`] when its files cannot be made within five seconds, or its thread cannot be started.
    pub fn start(directory: &Path, every: Duration, operations: Operations) -> Result<Probe, DiskError> {
        let failed = {
            let directory = directory.to_owned();
            move |action, source| DiskError::Probe { directory, action, source }
        };
        let shared = Arc::new(Shared::default());
        let (announce, announced) = mpsc::sync_channel(1);
        let (path, theirs) = (directory.join(Self::DIRECTORY), Arc::clone(&shared));
        let work = move || {
            let opened = Subject::open(&path);
            let prober = opened.map(|subject| Prober { subject, shared: Arc::clone(&theirs), every, operations });
            let prober = match prober {
                Ok(prober) => announce.send(Ok(())).map(|()| prober).ok(),
                Err(error) => {
                    let _ = announce.send(Err(error));
                    None
                }
            };
            if let Some(mut prober) = prober {
                prober.run();
            }
            clean(&path);
            theirs.state().ended = true;
            theirs.changed.notify_all();
        };
        let spawned = thread::Builder::new().name("disk-probe".to_owned()).spawn(work);
        if let Err(error) = spawned {
            return Err(failed("start its thread", error));
        }
        let probe = Probe { shared };
        match announced.recv_timeout(Duration::from_secs(5)) {
            Ok(Ok(())) => Ok(probe),
            Ok(Err((action, error))) => Err(failed(action, error)),
            Err(_) => Err(failed("make its files in time", std::io::ErrorKind::TimedOut.into())),
        }
    }

    /// The samples that were completed since this was last called, oldest first. Never waits for the disk.
    pub fn drain(&self) -> Vec<DiskSample> {
        self.shared.state().samples.drain(..).collect()
    }

    /// The operation that is under way, and when it was begun (as [`DiskSample::at_ns`]): while a disk hangs there are no
    /// samples, and that has to be seen, too.
    pub fn under_way(&self) -> Option<(Operation, u64)> {
        self.shared.state().under_way
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.stop = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, |state| !state.ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// What the probe's thread has.
struct Prober {
    subject: Subject,
    shared: Arc<Shared>,
    every: Duration,
    operations: Operations,
}

impl Prober {
    fn run(&mut self) {
        let every_ns = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mut due_ns = monotonic_ns();
        loop {
            for operation in self.operations.iter() {
                if !self.probe(operation) {
                    return;
                }
            }
            // On time again after a slow one, without catching up on those that were missed.
            due_ns = due_ns.saturating_add(every_ns).max(monotonic_ns());
            if !self.pause_until(due_ns) {
                return;
            }
        }
    }

    /// Returns whether to go on.
    fn pause_until(&self, due_ns: u64) -> bool {
        let mut state = self.shared.state();
        while !state.stop {
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                return true;
            }
            let pause = Duration::from_nanos(due_ns - now_ns);
            state = self.shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Times one operation. Returns whether to go on.
    fn probe(&mut self, operation: Operation) -> bool {
        self.subject.prepare(operation);
        let at_ns = monotonic_ns();
        {
            let mut state = self.shared.state();
            if state.stop {
                return false;
            }
            state.under_way = Some((operation, at_ns));
        }
        let begun_ns = monotonic_ns();
        let result = self.subject.operate(operation);
        let took_ns = result.map(|()| monotonic_ns() - begun_ns);
        let mut state = self.shared.state();
        state.under_way = None;
        if state.samples.len() == MOST {
            state.samples.pop_front();
        }
        state.samples.push_back(DiskSample { at_ns: begun_ns, operation, took_ns });
        !state.stop
    }
}

/// Takes the probe's directory away, if nobody else's file is in it.
fn clean(directory: &Path) {
    let _ = fs::remove_file(directory.join(Probe::FILE));
    let _ = fs::remove_dir(directory);
}
