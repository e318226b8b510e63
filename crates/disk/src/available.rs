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
    let directory = std::env::temp_dir();
    let name = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
    sys::try_mount(&name).map_err(|(step, error)| reason(step, &error))
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
