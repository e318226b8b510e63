//! Ctrl-C and its kin, counted.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);
/// Where the parent of a lab passes interrupts on to; 0 for nowhere.
static FORWARD_TO: AtomicI32 = AtomicI32::new(0);

/// How often the user asked for the end.
#[derive(Debug, Clone, Copy)]
pub struct Interrupts(());

impl Interrupts {
    /// Since the process began.
    pub fn count(self) -> u32 {
        COUNT.load(Ordering::Relaxed)
    }

    /// At least once.
    pub fn any(self) -> bool {
        self.count() > 0
    }

    /// The next one also goes to this process; one after that kills it.
    pub(super) fn forward_to(self, pid: libc::pid_t) {
        FORWARD_TO.store(pid, Ordering::Relaxed);
        // One that came before the child could hear is passed on now.
        if self.any() {
            // SAFETY: kill takes any pid and signal; a wrong one is an error it returns.
            unsafe { libc::kill(pid, libc::SIGINT) };
        }
    }

    /// The process is gone; its number may be another's soon.
    pub(super) fn forward_to_nobody(self) {
        FORWARD_TO.store(0, Ordering::Relaxed);
    }
}

extern "C" fn count(_signal: libc::c_int) {
    let before = COUNT.fetch_add(1, Ordering::Relaxed);
    let pid = FORWARD_TO.load(Ordering::Relaxed);
    if pid != 0 {
        // The first asks the lab to heal and to end; who asks again does not want to wait for that.
        let signal = if before == 0 { libc::SIGINT } else { libc::SIGKILL };
        // SAFETY: kill is async-signal-safe (signal-safety(7)).
        unsafe { libc::kill(pid, signal) };
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP are counted and do not end the process.
pub fn catch_interrupts() -> Interrupts {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: a zeroed sigaction with a handler that only touches atomics and kill is valid. Without
        // SA_RESTART, waits are cut short, so that they can look at the count.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    Interrupts(())
}
