//! A small child process that lets a container go on when this process has died while the container stood.
//!
//! It holds one end of a socket and is told what has to be undone. When the other end closes, by whatever end of this process,
//! it undoes that and exits. It holds nothing else open, so nothing else outlives this process through it.

use std::{
    ffi::{CStr, CString},
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::PathBuf,
    ptr,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};

/// As many processes as one container may have that is stopped by signals.
const MOST: usize = 4096;
/// Words that the child is told: the number of a process that was stopped, or one of these.
const FORGET: i32 = 0;
const FROZEN: i32 = -1;
/// For the child to say that it is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// A file, and what is written to it to thaw a container.
pub(super) type Thaw = (PathBuf, &'static str);

/// What would have to be undone, and the child that would do it.
pub(super) struct Healer {
    thaw: Option<Thaw>,
    told: Vec<i32>,
    child: Option<Child>,
}

struct Child {
    socket: UnixStream,
    pid: Pid,
}

impl Healer {
    /// Starts the child. Early is better: it is a copy of this process as it is now.
    pub(super) fn start(thaw: Option<Thaw>) -> io::Result<Healer> {
        let child = Child::start(thaw.as_ref())?;
        Ok(Healer { thaw, told: Vec::new(), child: Some(child) })
    }

    /// What thaws the container from now on; nothing may be held.
    pub(super) fn aim(&mut self, thaw: Option<Thaw>) -> io::Result<()> {
        if self.thaw != thaw {
            self.thaw = thaw;
            self.renew()?;
        }
        Ok(())
    }

    /// The container is about to be frozen.
    pub(super) fn freezes(&mut self) -> io::Result<()> {
        if self.told.contains(&FROZEN) { Ok(()) } else { self.tell(&[FROZEN]) }
    }

    /// These processes are about to be stopped.
    pub(super) fn stops(&mut self, pids: &[u32]) -> io::Result<()> {
        if self.told.len() + pids.len() > MOST {
            return Err(io::Error::other(format!("it has more than {MOST} processes")));
        }
        let words: Vec<i32> = pids.iter().map(|pid| pid.cast_signed()).collect();
        self.tell(&words)
    }

    /// All goes on again.
    pub(super) fn forget(&mut self) {
        self.told.clear();
        // One that does not listen must not undo what was undone: it is replaced.
        if self.child.as_mut().is_none_or(|child| child.tell(&[FORGET]).is_err()) {
            self.child = None;
        }
    }

    /// Starts another child if this one has died.
    pub(super) fn tend(&mut self) -> io::Result<()> {
        let has_died = self.child.as_ref().is_none_or(Child::has_died);
        if has_died { self.renew() } else { Ok(()) }
    }

    fn tell(&mut self, words: &[i32]) -> io::Result<()> {
        self.told.extend_from_slice(words);
        if self.child.as_mut().is_some_and(|child| child.tell(words).is_ok()) {
            return Ok(());
        }
        self.renew()
    }

    /// Another child in place of this one, which knows the same.
    fn renew(&mut self) -> io::Result<()> {
        self.child = None;
        let mut child = Child::start(self.thaw.as_ref())?;
        child.tell(&self.told)?;
        self.child = Some(child);
        Ok(())
    }
}

impl Drop for Healer {
    fn drop(&mut self) {
        if let Some(child) = self.child.as_ref().filter(|_| !self.told.is_empty()) {
            // What could not be undone here, it tries once more, as if we had died.
            let _ = child.socket.shutdown(Shutdown::Both);
            let _ = waitpid(Some(child.pid), WaitOptions::empty());
        }
    }
}

impl Child {
    fn start(thaw: Option<&Thaw>) -> io::Result<Child> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let path = thaw.map(|(path, _)| CString::new(path.as_os_str().as_bytes())).transpose()?;
        let thaw = path.as_deref().zip(thaw.map(|(_, word)| word.as_bytes()));
        let socket = theirs.as_raw_fd();
        // SAFETY: the child only calls what is async-signal-safe, asks for no memory and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => attend(socket, thaw),
            pid => Pid::from_raw(pid).ok_or(Errno::CHILD)?,
        };
        drop(theirs);
        ours.set_read_timeout(Some(PATIENCE))?;
        let begun = ours.read_exact(&mut [0]);
        let child = Child { socket: ours, pid };
        // On errors it is killed and reaped.
        begun
            .map_err(|error| io::Error::new(error.kind(), "the process that would heal a container does not start"))?;
        child.socket.set_nonblocking(true)?;
        Ok(child)
    }

    /// A child that does not listen must not hold us up: that is an error too.
    fn tell(&mut self, words: &[i32]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.socket.write_all(&bytes)
    }

    fn has_died(&self) -> bool {
        !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Before its socket closes: what it knows is not to be undone. One that was waited for is nobody's child any more,
        // and its number may be another's by now.
        if !self.has_died() {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

/// The child. All that is ever open here is the socket, as descriptor 0.
fn attend(socket: RawFd, thaw: Option<(&CStr, &[u8])>) -> ! {
    // SAFETY: all pointers are to what is on this stack or was there before the fork, and valid for the calls.
    unsafe {
        // Not of our terminal, nor to be ended with our process group.
        libc::setsid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"brownout-heal".as_ptr());
        let is_alone =
            libc::dup2(socket, 0) == 0 && libc::syscall(libc::SYS_close_range, 1_u32, libc::c_uint::MAX, 0_u32) == 0;
        if !is_alone || libc::write(0, c"r".as_ptr().cast(), 1) != 1 {
            libc::_exit(1);
        }
    }
    let mut held = [0_i32; MOST];
    let (mut count, mut is_frozen) = (0, false);
    let mut words = [0_i32; 512];
    loop {
        // SAFETY: `words` is valid for so many bytes. No signal interrupts this: all are blocked.
        let got = unsafe { libc::read(0, words.as_mut_ptr().cast(), size_of_val(&words)) };
        let Ok(got @ 1..) = usize::try_from(got) else { break };
        for word in words.iter().take(got / size_of::<i32>()) {
            match *word {
                FORGET => (count, is_frozen) = (0, false),
                FROZEN => is_frozen = true,
                pid => {
                    if let Some(next) = held.get_mut(count) {
                        *next = pid;
                        count += 1;
                    }
                }
            }
        }
    }
    // SAFETY: as above; the path ends in a zero.
    unsafe {
        if let Some((path, word)) = thaw.filter(|_| is_frozen) {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            libc::write(file, word.as_ptr().cast(), word.len());
        }
        for pid in held.iter().take(count) {
            libc::kill(*pid, libc::SIGCONT);
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command, thread};

    use brownout_cluster::hands;

    use super::*;

    /// A process to be stopped; it is killed at the end.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn new() -> Sleeper {
            Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
        }

        fn stop(&self) {
            kill_process(Pid::from_child(&self.0), Signal::STOP).unwrap();
            until(|| self.state() == Some('T'));
        }

        fn state(&self) -> Option<char> {
            hands::state(self.0.id())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn until(what: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_it_was_told_is_undone_when_the_socket_closes_and_what_it_forgot_is_not() {
        let (held, forgotten) = (Sleeper::new(), Sleeper::new());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("freezer.state");
        fs::write(&file, "FROZEN").unwrap();
        let mut healer = Healer::start(Some((file.clone(), "THAWED"))).unwrap();
        healer.stops(&[forgotten.0.id()]).unwrap();
        healer.forget();
        healer.freezes().unwrap();
        healer.stops(&[held.0.id()]).unwrap();
        held.stop();
        forgotten.stop();
        drop(healer);
        assert_eq!(fs::read_to_string(&file).unwrap(), "THAWED");
        until(|| held.state() != Some('T'));
        assert_eq!(forgotten.state(), Some('T'));
    }

    #[test]
    fn one_that_was_killed_is_replaced_and_its_successor_knows_the_same() {
        let held = Sleeper::new();
        let mut healer = Healer::start(None).unwrap();
        healer.stops(&[held.0.id()]).unwrap();
        held.stop();
        let first = healer.child.as_ref().unwrap().pid;
        kill_process(first, Signal::KILL).unwrap();
        until(|| hands::state(first.as_raw_nonzero().get().cast_unsigned()) == Some('Z'));
        assert_eq!(held.state(), Some('T'), "killed, it undoes nothing");
        healer.tend().unwrap();
        assert_ne!(healer.child.as_ref().unwrap().pid, first);
        drop(healer);
        until(|| held.state() != Some('T'));
    }

    #[test]
    fn it_holds_nothing_open_but_its_socket() {
        let healer = Healer::start(None).unwrap();
        let pid = healer.child.as_ref().unwrap().pid.as_raw_nonzero();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let open: Vec<String> = open.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(open, ["0"]);
    }
}
