//! SIGINT, SIGTERM and SIGHUP, counted.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// What asks for the end.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// A Ctrl-C this long after the first request means: at once. Before that it is the same request, which shells,
/// terminals and `timeout` may deliver twice.
const IMPATIENT_NS: u64 = 1_000_000_000;

static COUNT: AtomicU32 = AtomicU32::new(0);
/// When the first request came, `CLOCK_MONOTONIC`.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);
/// Where the parent of a lab passes interrupts on to; 0 for nowhere.
static FORWARD_TO: AtomicI32 = AtomicI32::new(0);

/// How often the user asked for the end.
#[derive(Debug, Clone, Copy)]
pub struct Interrupts(());

impl Interrupts {
    /// At least once since the process began.
    pub fn any(self) -> bool {
        COUNT.load(Ordering::Relaxed) > 0
    }

    /// As if the user had asked: what cannot go on ends everything in this process.
    pub fn raise(self) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }

    /// The next one also goes to this process; one after that kills it.
    pub(super) fn forward_to(self, pid: i32) {
        FORWARD_TO.store(pid, Ordering::Relaxed);
        // One that came before the child could hear is passed on now.
        if self.any() {
            pass_on(pid, Signal::INT);
        }
    }

    /// The process is gone; its number may be another's soon.
    pub(super) fn forward_to_nobody(self) {
        FORWARD_TO.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Interrupts {
    /// For what is tested without a lab: no signal is caught.
    pub fn unheard() -> Interrupts {
        Interrupts(())
    }
}

extern "C" fn count(signal: libc::c_int) {
    let before = COUNT.fetch_add(1, Ordering::Relaxed);
    // A plain clock_gettime, which a signal handler may call (signal-safety(7)).
    let now = brownout_base::clock::monotonic_ns();
    if before == 0 {
        FIRST_NS.store(now, Ordering::Relaxed);
    }
    let pid = FORWARD_TO.load(Ordering::Relaxed);
    let impatient =
        signal == libc::SIGINT && before > 0 && now.saturating_sub(FIRST_NS.load(Ordering::Relaxed)) > IMPATIENT_NS;
    // The first asks the lab to heal and to end; who asks again does not want to wait for that.
    pass_on(pid, if impatient { Signal::KILL } else { Signal::INT });
}

/// Only a system call, which a signal handler may make (signal-safety(7)); to nobody if the number is 0.
fn pass_on(pid: i32, signal: Signal) {
    // One that has ended needs no signal.
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}

/// Holds the requests back until it is dropped: a process that is born meanwhile is born holding them back too,
/// and gets them as soon as it has called [`catch_interrupts`].
pub(super) struct HeldBack(libc::sigset_t);

impl HeldBack {
    pub(super) fn now() -> HeldBack {
        // SAFETY: zeroed sets are valid places; sigemptyset and sigaddset make `held` a proper one.
        unsafe {
            let (mut held, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut held);
            for signal in SIGNALS {
                libc::sigaddset(&raw mut held, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            HeldBack(before)
        }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP are counted and do not end the process.
pub fn catch_interrupts() -> Interrupts {
    // The first reading looks for the clock in the kernel's page; a handler must not be the one who does.
    let _ = brownout_base::clock::monotonic_ns();
    // SAFETY: a zeroed sigaction with a handler that only touches atomics, the clock and kill is valid, and so is a
    // set made by sigemptyset and sigaddset. Without SA_RESTART, waits are cut short, so that they can look at the count.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut all);
        for signal in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as *const () as usize;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            libc::sigaddset(&raw mut all, signal);
        }
        // The parent of a lab held them back while it was born.
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const all, std::ptr::null_mut());
    }
    Interrupts(())
}
