//! Whether this machine can serve a disk, and what to do if it cannot.

use std::{ffi::CString, io, os::unix::ffi::OsStrExt, path::Path};

use rustix::io::Errno;

use crate::sys::{self, Step};

const DEVICE: &str = "/dev/fuse";

/// See [`crate::Disk::available`].
pub(crate) fn available() -> Result<(), String> {
    if !Path::new(DEVICE).exists() {
        return Err(format!(
            "there is no {DEVICE}; load the module with `modprobe fuse`, and in a container start it with --device {DEVICE}"
        ));
    }
    let name = usable(&std::env::temp_dir())?;
    sys::try_mount(&name).map_err(|(step, error)| reason(step, &error))
}

/// A directory to try on. The kernel has the same word for one that is not there and for a filesystem that it does not
/// have.
fn usable(directory: &Path) -> Result<CString, String> {
    let refused = |why: &dyn std::fmt::Display| {
        format!("{}, the directory of temporary files: {why}; let TMPDIR name a directory", directory.display())
    };
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => CString::new(directory.as_os_str().as_bytes()).map_err(|error| refused(&error)),
        Ok(_) => Err(refused(&"it is none")),
        Err(error) => Err(refused(&error)),
    }
}

fn reason(step: Step, error: &io::Error) -> String {
    match (step, Errno::from_io_error(error)) {
        (Step::Fork, _) => format!("cannot try to mount a disk, because no process can be started: {error}"),
        (Step::Open, Some(Errno::ACCESS | Errno::PERM)) => {
            format!("{DEVICE} cannot be opened: {error}; run as root, or `chmod 0666 {DEVICE}` (its usual mode)")
        }
        (Step::Open, _) => format!(
            "{DEVICE} cannot be opened: {error}; load the module with `modprobe fuse`, \
             and in a container start it with --device {DEVICE}"
        ),
        (Step::Namespace, _) => format!(
            "a mount namespace cannot be made: {error}; run as root, or allow user namespaces \
             (`sysctl user.max_user_namespaces=15000`; on Ubuntu also \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
        ),
        (Step::Mount, Some(errno)) => format!("a FUSE filesystem cannot be mounted: {error}{}", remedy(errno)),
        (Step::Mount, None) => format!("a FUSE filesystem cannot be mounted: {error}"),
    }
}

/// What to do about an error of mounting, behind a semicolon.
pub(crate) fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => {
            "; run as root, or inside a user and mount namespace in which you are root, with /dev/fuse at mode 0666; \
             a container needs --cap-add SYS_ADMIN --device /dev/fuse and a security profile that allows mount"
        }
        Errno::NODEV | Errno::NOENT | Errno::NXIO => {
            "; load the module with `modprobe fuse`, and in a container start it with --device /dev/fuse"
        }
        Errno::NOSYS => "; this needs Linux 5.9 or later",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_of_temporary_files_is_no_missing_module() {
        let there = tempfile::tempdir().unwrap();
        assert!(usable(there.path()).is_ok());
        for missing in [there.path().join("none"), "/dev/null".into()] {
            let why = usable(&missing).unwrap_err();
            assert!(why.contains("TMPDIR") && !why.contains("modprobe"), "{why}");
        }
    }
}
