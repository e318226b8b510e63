//! The directory of a run: `run.db`, `report.html`, `logs/`, and while it lasts `scratch/`.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::LabError;

/// A run's directory, held by a lock for as long as the run lasts.
pub struct RunDirectory {
    path: PathBuf,
    _lock: File,
    keep_scratch: bool,
}

impl RunDirectory {
    /// Makes a new directory below `parent`, named after the experiment and the moment.
    pub fn create(parent: &Path, name: &str, started_unix_ms: u64, keep_scratch: bool) -> Result<Self, LabError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| LabError::Directory { doing, path, source }
        };
        fs::create_dir_all(parent).map_err(failed("make", parent))?;
        let parent = parent.canonicalize().map_err(failed("find", parent))?;
        let stem = format!("{name}-{}", stamp(started_unix_ms));
        let mut attempt = 0;
        let path = loop {
            let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
            let path = parent.join(format!("{stem}{suffix}"));
            match fs::DirBuilder::new().mode(0o755).create(&path) {
                Ok(()) => break path,
                // Two runs of one second.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1_000 => attempt += 1,
                Err(error) => return Err(failed("make", &path)(error)),
            }
        };
        RunDirectory::hold(path, keep_scratch)
    }

    /// The directory of a run that goes on. What an earlier session was to keep is kept, whatever this one is asked.
    pub fn open(path: &Path, keep_scratch: bool) -> Result<Self, LabError> {
        let failed = |source| LabError::Directory { doing: "find", path: path.to_owned(), source };
        let path = path.canonicalize().map_err(failed)?;
        // The lock of a session that ended is gone, and its scratch too, unless it was to be kept.
        let was_to_be_kept = match fs::read(path.join(LOCK)) {
            Ok(text) => text == KEPT.as_bytes(),
            Err(_) => path.join("scratch").exists(),
        };
        RunDirectory::hold(path, keep_scratch || was_to_be_kept)
    }

    /// Locks it, and makes what is missing in it.
    fn hold(path: PathBuf, keep_scratch: bool) -> Result<Self, LabError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| LabError::Directory { doing, path, source }
        };
        for part in ["logs", "scratch"] {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(failed("make", &part))?;
        }
        let lock_path = path.join(LOCK);
        // Of another holder nothing is changed.
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let mut lock = opened.map_err(failed("make", &lock_path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed("lock", &lock_path)(error),
            TryLockError::WouldBlock => LabError::Resume(format!(
                "{} is still being made by another process; wait for its end, or end it with Ctrl-C",
                path.display()
            )),
        })?;
        // Whoever finds it without its holder has to know what it holds.
        let kept = if keep_scratch { KEPT } else { "" };
        let written = lock.set_len(0).and_then(|()| lock.write_all(kept.as_bytes()));
        written.map_err(failed("write", &lock_path))?;
        Ok(RunDirectory { path, _lock: lock, keep_scratch })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the nodes store; gone after the run.
    fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // The result is complete without these; what cannot be removed now, `sweep` removes later.
        if !self.keep_scratch {
            let _ = fs::remove_dir_all(self.scratch());
        }
        let _ = fs::remove_file(self.path.join(LOCK));
    }
}

/// A run that is just being made has its file after this.
const MADE_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
const LOCK: &str = ".running";
/// In the lock of a run whose scratch is kept.
const KEPT: &str = "keep\n";

/// Removes what killed runs left below `parent`: the scratch of every run whose lock nobody holds, unless it was to be kept.
/// Says which.
pub fn sweep(parent: &Path) -> Vec<PathBuf> {
    let mut swept = Vec::new();
    for run in fs::read_dir(parent).into_iter().flatten().flatten() {
        let lock_path = run.path().join(LOCK);
        // A run takes its lock before it has a file: without one, it is just being made, or was killed just then.
        let age =
            run.metadata().and_then(|directory| directory.modified()).map(|made| made.elapsed().unwrap_or_default());
        let begun = run.path().join("run.db").exists() || age.is_ok_and(|age| age > MADE_WITHIN);
        let Some(lock) = File::open(&lock_path).ok().filter(|_| begun) else { continue };
        if lock.try_lock().is_ok() {
            let scratch = run.path().join("scratch");
            let kept = fs::read(&lock_path).is_ok_and(|text| text == KEPT.as_bytes());
            if !kept && scratch.exists() && fs::remove_dir_all(&scratch).is_ok() {
                swept.push(scratch);
            }
            let _ = fs::remove_file(lock_path);
        }
    }
    swept
}

/// `20261120-213055`, UTC.
fn stamp(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok().and_then(chrono::DateTime::from_timestamp_millis).unwrap_or_default();
    moment.format("%Y%m%d-%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_the_moment() {
        assert_eq!(stamp(1_795_210_255_999), "20261120-213055");
        assert_eq!(stamp(u64::MAX), "19700101-000000");
    }

    #[test]
    fn two_runs_of_one_second_have_directories_of_their_own() {
        let parent = tempfile::tempdir().unwrap();
        let first = RunDirectory::create(parent.path(), "x", 0, false).unwrap();
        let second = RunDirectory::create(parent.path(), "x", 0, false).unwrap();
        assert_ne!(first.path(), second.path());
    }

    #[test]
    fn the_scratch_goes_with_its_run_and_only_then() {
        let parent = tempfile::tempdir().unwrap();
        let directory = RunDirectory::create(parent.path(), "x", 0, false).unwrap();
        fs::write(directory.path().join("run.db"), "").unwrap();
        assert!(sweep(parent.path()).is_empty(), "a running run is left alone");
        let scratch = directory.scratch();
        // A killed run: its lock is free, nothing was removed.
        let RunDirectory { path: _, _lock: lock, keep_scratch: _ } = &directory;
        lock.unlock().unwrap();
        assert_eq!(sweep(parent.path()), std::slice::from_ref(&scratch));
        assert!(!scratch.exists());
        drop(directory);
        assert!(sweep(parent.path()).is_empty());
    }

    #[test]
    fn the_scratch_of_a_killed_run_that_was_to_be_kept_stays() {
        let parent = tempfile::tempdir().unwrap();
        let directory = RunDirectory::create(parent.path(), "x", 0, true).unwrap();
        fs::write(directory.path().join("run.db"), "").unwrap();
        fs::write(directory.scratch().join("data"), "rows").unwrap();
        // Killed: nothing was dropped, and the kernel has let go of the lock.
        directory._lock.unlock().unwrap();
        assert!(sweep(parent.path()).is_empty());
        assert_eq!(fs::read(directory.scratch().join("data")).unwrap(), b"rows");
        assert!(!directory.path().join(LOCK).exists(), "and nobody looks at it again");
    }

    #[test]
    fn a_run_that_is_being_made_is_not_resumed_and_says_so() {
        let parent = tempfile::tempdir().unwrap();
        let directory = RunDirectory::create(parent.path(), "x", 0, false).unwrap();
        let error = RunDirectory::open(directory.path(), false).err().unwrap();
        assert!(error.to_string().contains("still being made by another process"), "{error}");
        assert_eq!(error.exit_code(), 2);
        assert!(directory.scratch().exists() && directory.path().join(LOCK).exists(), "its maker does not notice");
    }

    #[test]
    fn a_run_that_goes_on_keeps_what_it_was_to_keep_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        for (kept, killed) in [(true, false), (true, true), (false, false), (false, true)] {
            let directory = RunDirectory::create(parent.path(), "x", 0, kept).unwrap();
            let path = directory.path().to_owned();
            fs::write(path.join("scratch/data"), "rows").unwrap();
            if killed {
                directory._lock.unlock().unwrap();
                std::mem::forget(directory);
            } else {
                drop(directory);
            }
            drop(RunDirectory::open(&path, false).unwrap());
            assert_eq!(path.join("scratch/data").exists(), kept, "killed: {killed}");
        }
    }
}
