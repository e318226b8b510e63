//! A small child process that makes a clock right again when this process has died while it was wrong.
//!
//! It holds one end of a socket. When the other end closes, by whatever end of this process, it takes the shift back and exits.
//! It holds nothing else open but the clock's file, whose lock is its own as well: nobody can have the clock before it is right.

use std::{
    fs::File,
    io::{self, Read},
    net::Shutdown,
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    ptr,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, waitpid},
};

use crate::parameters::{Parameters, Shift};

/// For the child to say that it is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// The child's two descriptors are 0 and 1; it finds them above those first.
const ABOVE: libc::c_int = 3;

/// The child, until this is dropped: then the clock is right.
pub(crate) struct Keeper {
    socket: UnixStream,
    pid: Pid,
    _lock: File,
}

impl Keeper {
    /// Starts the child. `lock` is the clock's file, which is locked, and `parameters` are mapped from it.
    pub(crate) fn start(parameters: &Parameters, lock: File) -> io::Result<Keeper> {
        let (ours, theirs) = UnixStream::pair()?;
        let (socket, file) = (theirs.as_raw_fd(), lock.as_raw_fd());
        // SAFETY: the child only calls what is async-signal-safe, asks for no memory and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => attend(socket, file, parameters),
            pid => Pid::from_raw(pid).ok_or(Errno::CHILD)?,
        };
        drop(theirs);
        // On errors it ends with this.
        let keeper = Keeper { socket: ours, pid, _lock: lock };
        keeper.socket.set_read_timeout(Some(PATIENCE))?;
        (&keeper.socket).read_exact(&mut [0])?;
        Ok(keeper)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It takes back what there is to be taken back, and ends. One that was killed is nobody's child any more.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The child.
fn attend(socket: RawFd, lock: RawFd, parameters: &Parameters) -> ! {
    // SAFETY: all pointers are to what is on this stack or static, and valid for the calls.
    unsafe {
        // Not of our terminal, nor to be ended with our process group.
        libc::setsid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"brownout-clock".as_ptr());
        let socket = libc::fcntl(socket, libc::F_DUPFD, ABOVE);
        let lock = libc::fcntl(lock, libc::F_DUPFD, ABOVE);
        let is_alone = libc::dup2(socket, 0) == 0
            && libc::dup2(lock, 1) == 1
            && libc::syscall(libc::SYS_close_range, 2_u32, libc::c_uint::MAX, 0_u32) == 0;
        if !is_alone || libc::write(0, c"r".as_ptr().cast(), 1) != 1 {
            libc::_exit(1);
        }
        // Nothing is ever said. No signal interrupts this: all are blocked.
        let mut byte = 0_u8;
        while libc::read(0, (&raw mut byte).cast(), 1) > 0 {}
    }
    // Whoever died halfway through a change has filled the slot that is not in force.
    parameters.store(Shift::NONE);
    // SAFETY: nothing of this process is to be run any more.
    unsafe { libc::_exit(0) }
}
