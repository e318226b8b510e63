//! The end of a disk.
//!
//! A mount is known by its path only in the mount namespace where it was made, and whoever ends a disk may be in another
//! one by then. So a thread that is there from the beginning waits to do it: threads stay in the namespace that they were
//! started in.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::{
    control::Shared,
    service::{Failure, Threads},
    sys,
};

/// How long an end may take before its threads are left to themselves (one may be in a slow operation of the real directory).
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread that will end a disk. Dropped, it ends itself and nothing else.
pub(crate) struct Ending {
    /// Takes whom to tell how it went.
    order: Sender<Sender<Result<(), Errno>>>,
}

impl Ending {
    /// For the disk that is about to be mounted at `target` by the calling thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn prepare(target: &Path, shared: Arc<Shared>, threads: Arc<Threads>) -> Result<Ending, Failure> {
        let (order, ordered) = mpsc::channel::<Sender<_>>();
        let mount = Mount { target: target.to_owned(), shared, threads };
        let spawned = thread::Builder::new().name("disk-end".to_owned()).spawn(move || {
            sys::block_signals();
            // Root and working directory of its own, too, which no other thread changes. Without: those of the process.
            let _ = sys::own_umask();
            if let Ok(tell) = ordered.recv() {
                // Whoever ordered it waits.
                let _ = tell.send(mount.end());
            }
        });
        let failed = |error: std::io::Error| ("start a thread", sys::errno_of(&error));
        spawned.map(|_| Ending { order }).map_err(failed)
    }

    /// Ends the disk, and waits until it has ended.
    pub(crate) fn end(self) -> Result<(), Errno> {
        // A thread that is gone has panicked, and said so.
        let gone = Errno::SRCH;
        let (tell, told) = mpsc::channel();
        self.order.send(tell).map_err(|_| gone)?;
        told.recv().unwrap_or(Err(gone))
    }
}

/// What is to be ended.
struct Mount {
    target: PathBuf,
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

impl Mount {
    fn end(&self) -> Result<(), Errno> {
        self.shared.end();
        // By force, what waits for an answer fails at once, and the threads wake up. Older kernels want the privileges of
        // the machine's own root for it: then each thread is woken by a question of its own.
        let mut unmounted = sys::unmount(&self.target, true);
        if unmounted == Err(Errno::PERM) {
            self.wake();
            unmounted = sys::unmount(&self.target, false);
        }
        self.threads.wait(PATIENCE);
        unmounted
    }

    /// Asks until no thread is left to answer. Not on this thread: if they all are busy, it takes as long as they do.
    fn wake(&self) {
        let (target, threads) = (self.target.clone(), Arc::clone(&self.threads));
        let asker = thread::Builder::new().name("disk-wake".to_owned()).spawn(move || {
            let begun = Instant::now();
            for attempt in 0_u64.. {
                // A name that is not there is asked for each time.
                let asked = fs::symlink_metadata(target.join(format!(".brownout-wake-{attempt}")));
                let gone = asked.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound);
                if gone || threads.count() == 0 || begun.elapsed() > PATIENCE {
                    break;
                }
            }
        });
        if asker.is_ok() {
            self.threads.wait(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disk;

    #[test]
    fn threads_that_cannot_be_woken_by_force_are_woken_by_questions() {
        crate::testing::own_mounts();
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let disk = Disk::mount(directories[0].path(), directories[1].path()).unwrap();
        // More readers than one.
        std::thread::scope(|scope| {
            for n in 0..8 {
                let directory = directories[1].path();
                scope.spawn(move || {
                    (0..100).for_each(|k| fs::write(directory.join(format!("{n}-{k}")), "text").unwrap())
                });
            }
        });
        assert!(disk.threads() >= 3);
        let (shared, threads) = (disk.control().shared(), disk.service());
        shared.end();
        Mount { target: disk.target().to_owned(), shared, threads }.wake();
        assert_eq!(disk.threads(), 0);
        disk.unmount().unwrap();
    }
}
