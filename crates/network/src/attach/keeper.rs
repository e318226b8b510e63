//! Says twice a second that somebody is there to carry what is diverted, as long as that is so: the kernel forgets it after two
//! seconds.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_machine::run_urgently;

use super::state::State;
use crate::{emulator::Emulator, error::NetworkError};

const EVERY: Duration = Duration::from_millis(500);

/// As urgent as the emulator: on a busy machine, packets would pass it by else.
const FIFO_PRIORITY: u8 = 20;

/// A thread that ends when this is dropped.
pub(super) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps all diverting that can be read, and counts in `lapses` how often one was too late.
    pub(super) fn start(
        state: Arc<Mutex<State>>,
        emulator: Emulator,
        lapses: Arc<AtomicU64>,
        realtime: bool,
    ) -> Result<Keeper, NetworkError> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("attachment".to_owned())
            .spawn(move || {
                run_urgently(realtime.then_some(FIFO_PRIORITY));
                keep(&state, &emulator, &lapses, &stopped);
            })
            .map_err(|source| NetworkError::Emulator { action: "start the thread that keeps it attached", source })?;
        Ok(Keeper { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has already been printed by the thread.
            let _ = thread.join();
        }
    }
}

fn keep(state: &Mutex<State>, emulator: &Emulator, lapses: &AtomicU64, stopped: &Receiver<()>) {
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // It waits for as long as the emulator hangs; if that has ended, packets pass in two seconds.
        let Ok(broken) = emulator.broken_ports() else { return };
        for one in state.lock().unwrap_or_else(PoisonError::into_inner).opened.iter_mut().flatten() {
            if broken.contains(&one.port) {
                // Somebody has taken our device away: what is diverted would go nowhere.
                one.end();
            } else if one.refresh().is_some_and(|refreshed| !refreshed.is_ok_and(|in_time| in_time)) {
                lapses.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
