//! The limit of open files (`RLIMIT_NOFILE`, setrlimit(2)).

use std::{fs, io};

use super::check;

/// Descriptors that this process has open.
pub(crate) fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64)
}

/// Lets this process open as many files as its hard limit allows, and more where `needed` is beyond that and the process
/// may raise the hard limit, too (`CAP_SYS_RESOURCE`; up to `fs.nr_open`). Limits are only ever raised.
///
/// # Errors
/// The limit there is, if it is below `needed`, with what the kernel said.
pub(crate) fn raise_file_limit(needed: u64) -> Result<(), (u64, io::Error)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }).map_err(|error| (0, error))?;
    let set = |soft, hard| {
        let wanted = libc::rlimit { rlim_cur: soft, rlim_max: hard };
        // SAFETY: `wanted` is readable.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) })
    };
    let beyond = needed > limit.rlim_max;
    let raised = match beyond {
        true => set(needed, needed),
        false if limit.rlim_cur < limit.rlim_max => set(limit.rlim_max, limit.rlim_max),
        false => return Ok(()),
    };
    match raised {
        Err(error) if beyond => {
            // What is allowed may still be of use to others.
            let _ = set(limit.rlim_max, limit.rlim_max);
            Err((limit.rlim_max, error))
        }
        Err(error) if limit.rlim_cur < needed => Err((limit.rlim_cur, error)),
        _ => Ok(()),
    }
}
