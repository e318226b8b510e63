//! A disk: a real folder, served at another place.

use std::{
    ffi::CString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    available,
    control::{DiskControl, Shared},
    error::DiskError,
    service::{self, Threads},
    sys,
};

/// How long an end may take before its threads are left to themselves (one may be in a slow operation of the real folder).
const PATIENCE: Duration = Duration::from_secs(5);

/// How a disk is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskOptions {
    /// Of the generator that draws which operations a fault hits, and how long they wait.
    pub seed: u64,
}

/// A real folder, served at another place until this is dropped, or the process ends by whatever way.
pub struct Disk {
    source: PathBuf,
    target: PathBuf,
    control: DiskControl,
    shared: Arc<Shared>,
    threads: Arc<Threads>,
    mounted: bool,
}

impl Disk {
    /// Serves the folder `source` at `target`, an existing empty folder, with [`DiskOptions::default`].
    ///
    /// # Errors
    /// As [`Disk::mount_with`].
    pub fn mount(source: &Path, target: &Path) -> Result<Disk, DiskError> {
        Disk::mount_with(source, target, DiskOptions::default())
    }

    /// Serves the folder `source` at `target` in the mount namespace of the calling thread, for every user.
    ///
    /// `target` is an existing empty folder, or `source` itself, which is then covered. While it is mounted, what is in
    /// `source` is to be changed through `target` only: the kernel keeps pages it has read, and names for a second. What
    /// is mounted below `source` is served as far as it was there when this was called.
    ///
    /// Raises the limit of open files of this process to what it may allow itself: each file that the kernel remembers of
    /// the mount takes one.
    ///
    /// # Errors
    /// [`DiskError::Folder`] when one of the two is no folder, or `target` is not empty; [`DiskError::Mount`] when the
    /// kernel refuses a step. Nothing is mounted then.
    pub fn mount_with(source: &Path, target: &Path, options: DiskOptions) -> Result<Disk, DiskError> {
        let source = folder(source, "the source")?;
        let target = folder(target, "the mount point")?;
        if source != target && target.starts_with(&source) {
            // Serving it would be asking ourselves.
            let reason = format!("it lies inside the source, {}; use a folder outside", source.display());
            return Err(DiskError::Folder { path: target, role: "the mount point", reason });
        }
        if source != target && fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) {
            let reason = "it is not empty, and the mount would hide what is in it; use an empty folder".to_owned();
            return Err(DiskError::Folder { path: target, role: "the mount point", reason });
        }
        sys::raise_file_limit();
        let control = DiskControl::new(target.clone(), options.seed);
        let shared = control.shared();
        let started = service::start(c_string(&source), c_string(&target), Arc::clone(&shared));
        let threads = started.map_err(|(action, errno)| {
            let source = io::Error::from_raw_os_error(errno);
            DiskError::Mount { action, target: target.clone(), source, remedy: available::remedy(errno) }
        })?;
        Ok(Disk { source, target, control, shared, threads, mounted: true })
    }

    /// Whether this process could mount a disk, or could from inside a user namespace; tried in a child process, in a
    /// mount namespace that ends with it.
    ///
    /// # Errors
    /// The reason and the remedy, for a person to read.
    pub fn available() -> Result<(), String> {
        available::available()
    }

    /// The handle through which it is impaired and asked.
    pub fn control(&self) -> DiskControl {
        self.control.clone()
    }

    /// The real folder.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Where it is served.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// How many threads serve it at this moment.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Ends it, even in use: what waits for it fails, and so does what uses it from then on. Dropping it does the same.
    ///
    /// # Errors
    /// [`DiskError::Mount`] when it cannot be unmounted, because it was moved or unmounted already.
    pub fn unmount(mut self) -> Result<(), DiskError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DiskError> {
        if !std::mem::take(&mut self.mounted) {
            return Ok(());
        }
        let target = c_string(&self.target);
        self.shared.end();
        // By force, what waits for an answer fails at once, and the threads wake up. Older kernels want the privileges of
        // the machine's own root for it: then each thread is woken by a question of its own.
        let mut unmounted = sys::unmount(&target, true);
        if unmounted == Err(libc::EPERM) {
            self.wake();
            unmounted = sys::unmount(&target, false);
        }
        self.threads.wait(PATIENCE);
        unmounted.map(drop).map_err(|errno| DiskError::Mount {
            action: "unmount",
            target: self.target.clone(),
            source: io::Error::from_raw_os_error(errno),
            remedy: "",
        })
    }

    /// Asks until no thread is left to answer. Not on this thread: if they all are busy, it takes as long as they do.
    fn wake(&self) {
        let (target, threads) = (self.target.clone(), Arc::clone(&self.threads));
        let asker = thread::Builder::new().name("disk-wake".to_owned()).spawn(move || {
            let begun = Instant::now();
            for attempt in 0_u64.. {
                // A name that is not there is asked for each time.
                let asked = fs::symlink_metadata(target.join(format!(".brownout-wake-{attempt}")));
                let gone = asked.is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
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

impl Drop for Disk {
    fn drop(&mut self) {
        // What was unmounted by somebody else has ended already.
        let _ = self.end();
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("source", &self.source).field("target", &self.target).finish_non_exhaustive()
    }
}

/// The full path of a folder.
fn folder(path: &Path, role: &'static str) -> Result<PathBuf, DiskError> {
    let refused = |reason: String| DiskError::Folder { path: path.to_owned(), role, reason };
    let full = fs::canonicalize(path).map_err(|error| refused(format!("{error}; create it first")))?;
    if full.is_dir() { Ok(full) } else { Err(refused("it is no folder".to_owned())) }
}

/// A path that came from the system holds no zero byte.
fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_cannot_be_woken_by_force_are_woken_by_questions() {
        // SAFETY: constants only.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0, "this test needs root: {}", io::Error::last_os_error());
            let none = std::ptr::null();
            libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
        }
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let disk = Disk::mount(folders[0].path(), folders[1].path()).unwrap();
        // More readers than one.
        std::thread::scope(|scope| {
            for n in 0..8 {
                let folder = folders[1].path();
                scope.spawn(move || (0..100).for_each(|k| fs::write(folder.join(format!("{n}-{k}")), "text").unwrap()));
            }
        });
        assert!(disk.threads() >= 3);
        disk.shared.end();
        disk.wake();
        assert_eq!(disk.threads(), 0);
        disk.unmount().unwrap();
    }
}
