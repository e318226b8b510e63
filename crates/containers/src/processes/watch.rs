//! Notices that a container has ended or was started again, by whomever.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::life::Shared;

/// While it runs: between two looks at whether the healer does.
const TEND_EVERY: Duration = Duration::from_secs(1);
/// While it is down: between two questions to the runtime, or, as podman works hard for an answer, so many times what one took. The
/// kernel says afterwards when the new process began.
const ASK_EVERY: Duration = Duration::from_millis(200);
const ASK_SELDOM: u32 = 10;

/// A thread that watches one container, until this is dropped.
pub(super) struct Watch {
    /// The other end ends the thread when this closes.
    awake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Watch> {
        let (awake, end) = UnixStream::pair()?;
        let thread = thread::Builder::new().name(format!("watch-{}", shared.name)).spawn({
            let shared = Arc::clone(shared);
            move || watch(&shared, &end)
        })?;
        Ok(Watch { awake: Some(awake), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.awake = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared, end: &UnixStream) {
    let mut ask_every = ASK_EVERY;
    loop {
        let pidfd = shared.life().main.as_ref().map(|main| Arc::clone(&main.pidfd));
        let patience = if pidfd.is_some() { TEND_EVERY } else { ask_every };
        let (is_over, has_died) = wait(pidfd.as_deref(), end, patience);
        if is_over {
            return;
        }
        let died_ns = has_died.then(monotonic_ns);
        let mut life = shared.life();
        // Another one may have been found meanwhile.
        let is_that =
            life.main.as_ref().zip(pidfd.as_ref()).is_some_and(|(main, pidfd)| Arc::ptr_eq(&main.pidfd, pidfd));
        if let Some(at_ns) = died_ns.filter(|_| is_that) {
            life.bury(at_ns);
        }
        let is_down = life.main.is_none();
        if !is_down {
            // One that cannot be started now is tried again at the next look.
            let _ = life.healer.tend();
        }
        drop(life);
        if is_down {
            let asked = Instant::now();
            let main = shared.engine.main();
            ask_every = ASK_EVERY.max(ASK_SELDOM * asked.elapsed());
            if let Ok(Some((pid, id))) = main {
                // It may have ended again already.
                let _ = shared.adopt(pid, &id);
            }
        }
    }
}

/// Whether the watch is over, and whether the process has ended; waits for either, and not for long.
fn wait(pidfd: Option<&OwnedFd>, end: &UnixStream, patience: Duration) -> (bool, bool) {
    let patience = Timespec::try_from(patience).unwrap_or_default();
    let mut waiting = vec![PollFd::new(end, PollFlags::IN)];
    waiting.extend(pidfd.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
    if poll(&mut waiting, Some(&patience)).is_err() {
        return (false, false);
    }
    let is_ready = |index: usize| waiting.get(index).is_some_and(|fd| !fd.revents().is_empty());
    (is_ready(0), is_ready(1))
}
