//! Starting the lab's first process, in namespaces of its own or in none.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream, process::ExitStatusExt},
    },
    process::ExitStatus,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getgid, getuid, set_parent_process_death_signal, waitpid},
};

use super::{Interrupts, Privilege, signals::HeldBack};
use crate::LabError;

/// The child reads its request here, and learns of its parent's end.
const REQUEST_FD: RawFd = 3;

/// The lab's first process, seen from outside.
pub struct Enclosed {
    pid: libc::pid_t,
    /// Held open for as long as this process lives; its end tells the child.
    _lifeline: OwnedFd,
    interrupts: Interrupts,
}

/// What stands between a lab's first process and the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walls {
    /// Namespaces of its own: it is PID 1, and all that it makes is gone with it.
    Own,
    /// Nothing: it works on hosts that are not ours, from where it is, and makes nothing on this machine but its run's directory.
    /// No right is needed for that.
    None,
}

impl Walls {
    /// The flags of clone(2).
    fn flags(self, privilege: Privilege) -> libc::c_int {
        let own = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        match (self, privilege) {
            (Walls::None, _) => 0,
            (Walls::Own, Privilege::Root) => own,
            (Walls::Own, Privilege::UserNamespace) => own | libc::CLONE_NEWUSER,
        }
    }
}

/// Starts this program again, with `arguments`, within `walls`. `request` is what the child gets from [`request`]. Interrupts are
/// passed on to it, and it ends with this process.
pub fn enclose(arguments: &[&str], request: &[u8], interrupts: Interrupts, walls: Walls) -> Result<Enclosed, LabError> {
    let failed = |doing: &'static str| move |source: io::Error| LabError::Ground { doing, source };
    let (child_end, our_end) = UnixStream::pair().map_err(failed("make a pair of sockets"))?;
    let program = CString::new("/proc/self/exe").map_err(|error| failed("name this program")(error.into()))?;
    let name = std::env::args_os().next().unwrap_or_else(|| "brownout".into());
    let arguments: Vec<CString> = std::iter::once(CString::new(name.as_bytes()))
        .chain(arguments.iter().map(|argument| CString::new(*argument)))
        .collect::<Result<_, _>>()
        .map_err(|error| failed("pass arguments")(error.into()))?;
    let mut argv: Vec<*const libc::c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    argv.push(std::ptr::null());

    let flags = walls.flags(Privilege::current());
    let held_back = HeldBack::now();
    // SAFETY: like fork(2): without CLONE_VM the child has its own copy of everything, and until it
    // executes a program it only makes system calls (see `child`).
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags | libc::SIGCHLD), 0, 0, 0, 0) as libc::pid_t };
    if pid < 0 {
        let source = io::Error::last_os_error();
        return Err(match walls {
            Walls::Own => LabError::Namespaces { source },
            Walls::None => failed("start the run's process")(source),
        });
    }
    if pid == 0 {
        child(child_end.as_raw_fd(), our_end.as_raw_fd(), &program, &argv);
    }
    drop((child_end, held_back));
    let enclosed = Enclosed { pid, _lifeline: our_end.into(), interrupts };
    if flags & libc::CLONE_NEWUSER != 0 {
        map_user(pid).map_err(failed("map this user into the lab's user namespace"))?;
    }
    let mut socket = File::from(enclosed._lifeline.try_clone().map_err(failed("keep the lab's socket"))?);
    let length = (request.len() as u64).to_le_bytes();
    socket
        .write_all(&[1])
        .and_then(|()| socket.write_all(&length))
        .and_then(|()| socket.write_all(request))
        .map_err(failed("hand the lab its request"))?;
    interrupts.forward_to(pid);
    Ok(enclosed)
}

impl Enclosed {
    /// Waits for the lab's end. An interrupt is passed on, and the lab's own end is awaited all the same.
    pub fn wait(self) -> io::Result<ExitStatus> {
        loop {
            match waitpid(Pid::from_raw(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => {
                    self.interrupts.forward_to_nobody();
                    return Ok(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Enclosed {
    /// Waits for the lab's end, and for what it answers until then.
    pub fn answer(self) -> io::Result<(Vec<u8>, ExitStatus)> {
        let mut answer = Vec::new();
        File::from(self._lifeline.try_clone()?).read_to_end(&mut answer)?;
        Ok((answer, self.wait()?))
    }
}

/// In the child: answers its parent.
pub fn answer(answer: &[u8]) -> io::Result<()> {
    // SAFETY: the parent made this descriptor for us, and `request` has read from it.
    let mut socket = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(REQUEST_FD) });
    socket.write_all(answer)
}

/// In the child: what its parent handed over. Also asks the kernel to end this process with its parent.
pub fn request() -> io::Result<Vec<u8>> {
    die_with_parent();
    // SAFETY: the parent made this descriptor for us; a program started by hand has none, and reading fails.
    let mut socket = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(REQUEST_FD) });
    let mut length = [0; 8];
    socket.read_exact(&mut length)?;
    let mut request = vec![0; usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX).min(1 << 26)];
    socket.read_exact(&mut request)?;
    Ok(request)
}

/// In the child: whether the parent has ended. The kernel's signal comes first; this is for the moment before it was asked.
pub fn parent_is_gone() -> bool {
    let mut poll = libc::pollfd { fd: REQUEST_FD, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, no waiting.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 && poll.revents & libc::POLLHUP != 0 }
}

/// In the child: programs that it starts shall not have the descriptor of its request.
pub fn keep_request_from_children() {
    // SAFETY: sets a flag of a descriptor; where there is none, that is an error and nothing happens.
    unsafe { libc::fcntl(REQUEST_FD, libc::F_SETFD, libc::FD_CLOEXEC) };
}

fn die_with_parent() {
    // With a valid signal it cannot fail.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Runs in the child, which is a copy of a process that may have had threads: system calls only.
fn child(socket: RawFd, parents_end: RawFd, program: &CString, argv: &[*const libc::c_char]) -> ! {
    die_with_parent();
    // SAFETY: plain system calls on descriptors that this process owns, with valid pointers; no
    // allocation, no locks. `environ` is left as it was copied.
    unsafe {
        libc::close(parents_end);
        // Its own process group: a Ctrl-C on the terminal reaches the parent alone, which passes it on once.
        libc::setpgid(0, 0);
        let mut go = 0_u8;
        // The end of the socket instead of a byte: the parent died before it was done with us.
        if libc::read(socket, (&raw mut go).cast(), 1) != 1 {
            libc::_exit(1);
        }
        if socket == REQUEST_FD {
            libc::fcntl(socket, libc::F_SETFD, 0);
        } else {
            libc::dup2(socket, REQUEST_FD);
        }
        libc::execv(program.as_ptr(), argv.as_ptr());
        libc::_exit(127);
    }
}

/// The one mapping that needs no privilege: this user is 0 inside (user_namespaces(7)).
fn map_user(pid: libc::pid_t) -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    std::fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    std::fs::write(format!("/proc/{pid}/uid_map"), format!("0 {uid} 1"))?;
    std::fs::write(format!("/proc/{pid}/gid_map"), format!("0 {gid} 1"))
}
