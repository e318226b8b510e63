//! A place for a host that the emulator does not know.

use std::{fs::File, os::fd::AsRawFd, process::Command, thread};

/// A network namespace, which goes when this is dropped.
pub struct Namespace(File);

impl Namespace {
    pub fn new() -> Namespace {
        let make = || {
            // SAFETY: no memory is involved; only the new thread's namespace changes.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(made, 0, "cannot make a network namespace: {}", std::io::Error::last_os_error());
            Namespace(File::open("/proc/thread-self/ns/net").expect("/proc is mounted"))
        };
        thread::scope(|scope| scope.spawn(make).join()).expect("the thread that makes a namespace")
    }

    /// Where another process finds it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            // SAFETY: no memory is involved; the descriptor is open.
            let entered = unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "cannot enter a network namespace: {}", std::io::Error::last_os_error());
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join()).expect("work inside of a namespace")
    }

    pub fn ip(&self, arguments: &str) {
        let run = || Command::new("ip").args(arguments.split(' ')).status();
        let status = self.run(run).expect("this bench needs `ip`: apt-get install iproute2");
        assert!(status.success(), "ip {arguments}");
    }
}
