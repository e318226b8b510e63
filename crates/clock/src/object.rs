//! The preloaded object, which this library carries within itself.

use std::{
    fs,
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::ClockError;

/// Built from `preload/` by `build.rs`.
static OBJECT: &[u8] = include_bytes!(env!("BROWNOUT_CLOCK_OBJECT"));

/// The name of the file of the object that shifts clocks.
pub const OBJECT_NAME: &str = "libbrownout-clock.so";

/// Writes the object that shifts clocks into the directory `dir`, readable and executable by all, and gives its path,
/// absolute, for [`crate::HostClock::environment`]. Once is enough for all hosts; once more does nothing.
///
/// Each user whose processes shall see a shifted clock must be able to enter the directory. If the object
/// cannot be loaded, the loader says so on the standard error of the process and goes on without it.
///
/// # Errors
/// [`ClockError::File`] if it cannot be written; [`ClockError::Unlistable`] if the loader could not be told of the path.
pub fn write_object(dir: &Path) -> Result<PathBuf, ClockError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| ClockError::File { action, path, source }
    };
    // Links are resolved: a relative path would mean another file in each working directory.
    let dir = dir.canonicalize().map_err(failed("find the directory", dir))?;
    if dir.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'$')) {
        return Err(ClockError::Unlistable { path: dir });
    }
    let path = dir.join(OBJECT_NAME);
    if is_written(&path) {
        return Ok(path);
    }
    // Under another name first: somebody may be loading it.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let draft = dir.join(format!(".{OBJECT_NAME}.{}.{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&draft)?;
        // Whatever the umask says.
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
        file.write_all(OBJECT)?;
        drop(file);
        fs::rename(&draft, &path)
    })();
    written.map_err(|error| {
        // What is half done serves nobody; that it cannot be removed either adds nothing to the error.
        let _ = fs::remove_file(&draft);
        failed("write", &path)(error)
    })?;
    Ok(path)
}

/// Is this very object there, for everybody?
fn is_written(path: &Path) -> bool {
    let mode = fs::symlink_metadata(path).map(|of| if of.is_file() { of.permissions().mode() & 0o777 } else { 0 });
    mode.is_ok_and(|mode| mode == 0o755) && fs::read(path).is_ok_and(|found| found == OBJECT)
}
