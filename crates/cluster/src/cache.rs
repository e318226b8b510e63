//! The directory where downloads and other things that are slow to make are kept between runs.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Begins the names of unfinished files and directories in the cache.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Why the cache cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// No environment variable tells where it could be.
    #[error("no directory for the cache: HOME is not set; set BROWNOUT_CACHE to a directory that you may write to")]
    Nowhere,
    /// The directory, or something in it, cannot be written.
    #[error(
        "cannot {action} in the cache at {path}: {source}; set BROWNOUT_CACHE to a directory that you may write to"
    )]
    Files {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl CacheError {
    /// For `map_err` on file work.
    pub(crate) fn files(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CacheError {
        let path = path.into();
        move |source| CacheError::Files { action, path, source }
    }
}

/// Where the cache is: `$BROWNOUT_CACHE`, else `$XDG_CACHE_HOME/brownout`, else `~/.cache/brownout`.
/// It need not exist.
pub fn directory() -> Result<PathBuf, CacheError> {
    choose(|name| env::var_os(name).map(PathBuf::from))
}

fn choose(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, CacheError> {
    // The XDG base directory specification: a relative path is to be ignored.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    variable("BROWNOUT_CACHE")
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(|| absolute("XDG_CACHE_HOME").map(|path| path.join("brownout")))
        .or_else(|| absolute("HOME").map(|path| path.join(".cache/brownout")))
        .ok_or(CacheError::Nowhere)
}

/// Lets every user read the directory or file at `path`, whatever our umask is: databases run as another user than the
/// one whose cache this is.
pub(crate) fn open_up(path: &Path) -> io::Result<()> {
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The right to write in the cache; processes take turns, and the kernel takes it back from a dead one.
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Makes `cache` if need be and waits for the right to write in it; false from `go_on` ends the wait. Removes what a
    /// killed process has left unfinished there: nobody is still at work in it.
    pub(crate) fn take(cache: &Path, go_on: &dyn Fn() -> bool) -> Result<Option<Lock>, CacheError> {
        if !cache.is_dir() {
            fs::create_dir_all(cache).map_err(CacheError::files("create a directory", cache))?;
            open_up(cache).map_err(CacheError::files("open up", cache))?;
        }
        let path = cache.join("lock");
        let file = File::create(&path).map_err(CacheError::files("write", &path))?;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    remove_unfinished(cache);
                    return Ok(Some(Lock(file)));
                }
                Err(fs::TryLockError::WouldBlock) if go_on() => {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => return Err(CacheError::files("lock", &path)(error)),
            }
        }
    }
}

/// Only with the lock held.
fn remove_unfinished(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            // What cannot be removed is only a waste of space.
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let environment = |pairs: &'static [(&'static str, &'static str)]| {
            choose(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
        };
        for (pairs, place) in [
            (&[("BROWNOUT_CACHE", "/b"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")][..], "/b"),
            (&[("BROWNOUT_CACHE", ""), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], "/x/brownout"),
            (&[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")], "/h/.cache/brownout"),
        ] {
            assert_eq!(environment(pairs).unwrap(), Path::new(place));
        }
        assert!(matches!(environment(&[]), Err(CacheError::Nowhere)));
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_be_it_a_directory_or_a_file() {
        let cache = tempfile::tempdir().unwrap();
        let [directory, file, kept] =
            [".unfinished-x", ".unfinished-y.jsa", "z.jsa"].map(|name| cache.path().join(name));
        fs::create_dir_all(directory.join("jars")).unwrap();
        fs::write(&file, "half").unwrap();
        fs::write(&kept, "whole").unwrap();
        Lock::take(cache.path(), &|| true).unwrap().unwrap();
        assert_eq!((directory.exists(), file.exists(), kept.exists()), (false, false, true));
    }

    #[test]
    fn a_second_writer_waits_for_the_first() {
        let cache = tempfile::tempdir().unwrap();
        let first = Lock::take(cache.path(), &|| true).unwrap().unwrap();
        assert!(Lock::take(cache.path(), &|| false).unwrap().is_none());
        drop(first);
        assert!(Lock::take(cache.path(), &|| false).unwrap().is_some());
    }
}
