//! Confinement of a database process: what it may do is to run, and nothing else.

use std::{
    ffi::CString,
    fs, io,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{self, Command},
};

use serde::Serialize;

use crate::ClusterError;

/// Locked memory that a node may have: enough for the JVM's own needs, too little to pin a heap.
const MEMLOCK_BYTES: libc::rlim_t = 64 * 1024;

/// The user and group that a node runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// User id, as seen from the user namespace we are in.
    pub uid: u32,
    /// Group id, as seen from the user namespace we are in.
    pub gid: u32,
}

impl Owner {
    /// The user `nobody` of Debian, Ubuntu and the kernel's overflow id.
    pub const NOBODY: Owner = Owner { uid: 65_534, gid: 65_534 };

    /// Whether this user can read `path`, as far as permission bits tell.
    ///
    /// Asked before anything starts: a JVM that may not read its jars says that its main class does not exist.
    pub(crate) fn check_reach(self, path: &Path) -> Result<(), ClusterError> {
        for at in path.ancestors() {
            let file = fs::metadata(at).map_err(ClusterError::files("look at", at))?;
            let shift = match () {
                () if file.uid() == self.uid => 6,
                () if file.gid() == self.gid => 3,
                () => 0,
            };
            let bits = (file.mode() >> shift) & 0o7;
            // Directories on the way have to be passed, the goal has to be read.
            let (passes, reads) = (bits & 0o1 != 0, bits & 0o4 != 0);
            if (file.is_dir() && !passes) || (at == path && !reads) {
                return Err(ClusterError::OutOfReach { uid: self.uid, path: path.to_owned(), at: at.to_owned() });
            }
        }
        Ok(())
    }
}

/// Makes `command`, once spawned, give up all that a database does not need.
///
/// It gets a session and a host name of its own, no capability (nor a way back to one), no locked
/// memory, no core file, none of our descriptors, ordinary scheduling; it runs as `owner` when one is
/// given, and dies with the thread that spawned it.
///
/// To be called after `EnterableHost::enter`: entering a network takes the privileges that are dropped here.
pub(crate) fn confine(command: &mut Command, host_name: &str, owner: Option<Owner>) -> io::Result<()> {
    let host_name = CString::new(host_name)?;
    let parent = process::id() as libc::pid_t;
    // SAFETY: between fork and exec only async-signal-safe system calls are made, on values made before the fork.
    unsafe {
        command.pre_exec(move || {
            check(libc::setsid())?;
            check(libc::unshare(libc::CLONE_NEWUTS))?;
            check(libc::sethostname(host_name.as_ptr(), host_name.as_bytes().len()))?;
            limit(libc::RLIMIT_MEMLOCK, Some(MEMLOCK_BYTES))?;
            limit(libc::RLIMIT_CORE, Some(0))?;
            limit(libc::RLIMIT_NOFILE, None)?;
            libc::umask(0o022);
            // A real-time emulator may have started us; a database must not inherit its priority.
            check(libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 }))?;
            // Whatever another thread had open at the fork (a TUN, a socket) must not outlive the lab in a database.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            drop_privileges(owner)?;
            // Last: a change of user clears the death signal.
            die_with(parent)
        });
    }
    Ok(())
}

/// Makes `command`, once spawned, die (SIGKILL) with the thread that spawned it, however that ends. The wish survives
/// an exec, but not a fork: what the command starts as a child of its own lives on.
pub(crate) fn die_with_us(command: &mut Command) {
    let parent = process::id() as libc::pid_t;
    // SAFETY: between fork and exec only async-signal-safe system calls are made.
    unsafe { command.pre_exec(move || die_with(parent)) };
}

/// Async-signal-safe.
fn die_with(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // The parent may have died before the line above.
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
    Ok(())
}

/// Async-signal-safe.
unsafe fn drop_privileges(owner: Option<Owner>) -> io::Result<()> {
    // SAFETY: plain system calls without pointers into our memory, but for a null list of no groups.
    unsafe {
        // Ambient capabilities would survive the exec; kernels without them answer EINVAL.
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        // The bounding set is what root regains at exec. The first number beyond the last capability is EINVAL.
        for capability in 0..64 {
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 {
                let error = io::Error::last_os_error();
                if capability > 0 && error.raw_os_error() == Some(libc::EINVAL) {
                    break;
                }
                return Err(error);
            }
        }
        if let Some(Owner { uid, gid }) = owner {
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(gid, gid, gid))?;
            check(libc::setresuid(uid, uid, uid))?;
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    }
}

/// Sets a limit, or raises it as far as it may go. Async-signal-safe.
unsafe fn limit(resource: libc::__rlimit_resource_t, value: Option<libc::rlim_t>) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `now` is a valid rlimit for both calls.
    unsafe {
        check(libc::getrlimit(resource, &mut now))?;
        match value {
            Some(value) => {
                let value = value.min(now.rlim_max);
                now = libc::rlimit { rlim_cur: value, rlim_max: value };
            }
            None => now.rlim_cur = now.rlim_max,
        }
        check(libc::setrlimit(resource, &now))
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_another_user_cannot_reach_is_named_with_the_closed_door() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (room, jar) = (directory.path().join("room"), directory.path().join("room/a.jar"));
        fs::create_dir(&room).unwrap();
        fs::write(&jar, "").unwrap();
        mode(directory.path(), 0o755);
        mode(&jar, 0o644);
        let stranger = Owner { uid: 4_000_000, gid: 4_000_000 };
        let closed_at = |path: &Path| match stranger.check_reach(path) {
            Ok(()) => None,
            Err(ClusterError::OutOfReach { at, .. }) => Some(at),
            Err(other) => panic!("{other}"),
        };
        for (bits, closed) in [(0o755, None), (0o711, None), (0o700, Some(&room)), (0o744, Some(&room))] {
            mode(&room, bits);
            assert_eq!(closed_at(&jar).as_ref(), closed, "{bits:o}");
        }
        mode(&room, 0o755);
        mode(&jar, 0o640);
        assert_eq!(closed_at(&jar), Some(jar));
    }
}
