//! A disk: a real directory, served at another place.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    available,
    control::DiskControl,
    ending::Ending,
    error::DiskError,
    service::{self, Failure, Threads},
};

/// How a disk is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskOptions {
    /// Of the generator that draws which operations a fault hits, and how long they wait.
    pub seed: u64,
}

/// A real directory, served at another place until this is dropped, or the process ends by whatever way.
pub struct Disk {
    source: PathBuf,
    target: PathBuf,
    control: DiskControl,
    threads: Arc<Threads>,
    ending: Option<Ending>,
}

impl Disk {
    /// Serves the directory `source` at `target`, an existing empty directory, with [`DiskOptions::default`].
    ///
    /// # Errors
    /// As [`Disk::mount_with`].
    pub fn mount(source: &Path, target: &Path) -> Result<Disk, DiskError> {
        Disk::mount_with(source, target, DiskOptions::default())
    }

    /// Serves the directory `source` at `target` in the mount namespace of the calling thread, for every user.
    ///
    /// `target` is an existing empty directory, or `source` itself, which is then covered. While it is mounted, what is in
    /// `source` is to be changed through `target` only: the kernel keeps pages it has read, and names for a second. What
    /// is mounted below `source` is served as far as it was there when this was called.
    ///
    /// Raises the limit of open files of this process to what it may allow itself: each file that the kernel remembers of
    /// the mount takes one. Programs that it starts from then on inherit that limit, unless they are given their own.
    ///
    /// # Errors
    /// [`DiskError::Directory`] when one of the two is no directory, or `target` is not empty; [`DiskError::Mount`] when the
    /// kernel refuses a step. Nothing is mounted then.
    pub fn mount_with(source: &Path, target: &Path, options: DiskOptions) -> Result<Disk, DiskError> {
        let source = directory(source, "the source")?;
        let target = directory(target, "the mount point")?;
        if source != target && target.starts_with(&source) {
            // Serving it would be asking ourselves.
            let reason = format!("it lies inside the source, {}; use a directory outside", source.display());
            return Err(DiskError::Directory { path: target, role: "the mount point", reason });
        }
        if source != target && fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) {
            let reason = "it is not empty, and the mount would hide what is in it; use an empty directory".to_owned();
            return Err(DiskError::Directory { path: target, role: "the mount point", reason });
        }
        // As many as may be. Refused, all is as it was.
        let _ = brownout_machine::raise_file_limit(0);
        let control = DiskControl::new(target.clone(), options.seed);
        let shared = control.shared();
        let failed = |(action, errno): Failure| DiskError::Mount {
            action,
            target: target.clone(),
            source: errno.into(),
            remedy: available::remedy(errno),
        };
        // First, so that there is no mount without somebody to end it.
        let threads = Arc::new(Threads::default());
        let ending = Ending::prepare(&target, shared.clone(), Arc::clone(&threads)).map_err(failed)?;
        service::start(source.clone(), target.clone(), shared, &threads).map_err(failed)?;
        Ok(Disk { source, target, control, threads, ending: Some(ending) })
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

    /// Where it is served.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// How many threads serve it at this moment.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    #[cfg(test)]
    pub(crate) fn service(&self) -> Arc<Threads> {
        Arc::clone(&self.threads)
    }

    /// Ends it, even in use: what waits for it fails, and so does what uses it from then on. Dropping it does the same, in
    /// whatever mount namespace.
    ///
    /// # Errors
    /// [`DiskError::Mount`] when it cannot be unmounted, because it was moved or unmounted already.
    pub fn unmount(mut self) -> Result<(), DiskError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DiskError> {
        let Some(ending) = self.ending.take() else { return Ok(()) };
        ending.end().map_err(|errno| DiskError::Mount {
            action: "unmount",
            target: self.target.clone(),
            source: errno.into(),
            remedy: "",
        })
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

/// The full path of a directory.
fn directory(path: &Path, role: &'static str) -> Result<PathBuf, DiskError> {
    let refused = |reason: String| DiskError::Directory { path: path.to_owned(), role, reason };
    let full = fs::canonicalize(path).map_err(|error| refused(format!("{error}; create it first")))?;
    if full.is_dir() { Ok(full) } else { Err(refused("it is no directory".to_owned())) }
}
