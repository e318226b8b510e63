//! Where a part keeps its record until its controller has it.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use crate::LabError;

/// What the names of parts' directories begin with; a number follows.
const PREFIX: &str = "brownout-part-";

/// A directory of one part, which goes with it.
///
/// It is locked as long as the part lives. Its process says nothing to others: machines that share a directory of temporary files may
/// have process numbers of their own.
pub(super) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// A new one below `all`. Those of parts that were killed go now.
    pub(super) fn below(all: &Path) -> Result<Scratch, LabError> {
        let entries = fs::read_dir(all).into_iter().flatten().flatten();
        for left in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            // Removed under the lock, so that nobody begins to use it.
            let _ = locked(&left.path()).map(|_lock| fs::remove_dir_all(left.path()));
        }
        let mut path = all.join(PREFIX);
        for number in 0..u64::MAX {
            path = all.join(format!("{PREFIX}{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(source) => return Err(LabError::Directory { doing: "make", path, source }),
            }
            // Between these two calls another part may have taken it for one that was left.
            if let Ok(lock) = locked(&path) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
        Err(LabError::Directory { doing: "make", path, source: ErrorKind::AlreadyExists.into() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed, the next part removes.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A directory that nobody else holds, and that is still there.
fn locked(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    directory.try_lock()?;
    if directory.metadata()?.nlink() == 0 {
        return Err(ErrorKind::NotFound.into());
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_own_and_what_the_killed_left_goes() {
        let all = tempfile::tempdir().unwrap();
        let left = all.path().join(format!("{PREFIX}7"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("part.db"), "x").unwrap();
        let one = Scratch::below(all.path()).unwrap();
        let other = Scratch::below(all.path()).unwrap();
        assert!(one.path() != other.path() && one.path().exists() && other.path().exists());
        assert!(!left.exists());
        drop((one, other));
        assert_eq!(fs::read_dir(all.path()).unwrap().count(), 0);
    }

    #[test]
    fn parts_that_begin_at_once_do_not_take_one_another_for_dead() {
        let all = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let own = Scratch::below(all.path()).unwrap();
                        let file = own.path().join("part.db");
                        fs::write(&file, "x").unwrap();
                        assert_eq!(fs::read(&file).unwrap(), b"x");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(all.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let all = tempfile::tempdir().unwrap();
        let file = all.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Scratch::below(&file).map(drop).unwrap_err();
        assert!(error.to_string().contains("brownout-part-0"), "{error}");
    }
}
