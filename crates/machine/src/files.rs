//! The limit of open files (`RLIMIT_NOFILE`, setrlimit(2)).

use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that this process has open.
pub fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64)
}

/// Lets this process open as many files as its hard limit allows, and more where `needed` is beyond that and the process
/// may raise the hard limit, too (`CAP_SYS_RESOURCE`; up to `fs.nr_open`). Limits are only ever raised. With a `needed` of
/// zero it never fails.
///
/// # Errors
/// The limit there is, if it is below `needed`, with what the kernel said.
pub fn raise_file_limit(needed: u64) -> Result<(), (u64, io::Error)> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // None is no limit.
    let [soft, hard] = [current, maximum].map(|limit| limit.unwrap_or(u64::MAX));
    let set = |limit| setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit });
    if needed > hard {
        return set(Some(needed)).map_err(|errno| {
            // What is allowed may still be of use to others.
            let _ = set(maximum);
            (hard, errno.into())
        });
    }
    match set(maximum) {
        Err(errno) if soft < needed => Err((soft, errno.into())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_only_ever_raised_and_who_needs_none_is_not_refused() {
        let limits = || {
            let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
            [current, maximum].map(|limit| limit.unwrap_or(u64::MAX))
        };
        let before = limits();
        raise_file_limit(0).unwrap();
        let [soft, hard] = limits();
        assert_eq!((soft, hard), (before[1], before[1]), "the soft limit is the hard one");
        assert!(open_files() >= 3);
        // No kernel has room for so many (`fs.nr_open`).
        if hard < u64::MAX {
            assert_eq!(raise_file_limit(u64::MAX - 1).unwrap_err().0, hard);
        }
        assert_eq!(limits(), [soft, hard]);
    }
}
