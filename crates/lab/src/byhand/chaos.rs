//! Chaos in progress: the thread that runs its rounds, and the fault it injects at the moment.

use std::{
    sync::{Arc, Mutex, mpsc::Sender},
    thread::JoinHandle,
};

/// Chaos that is on. Dropping it stops it, and heals.
pub(super) struct Chaos {
    pub(super) seed: u64,
    pub(super) asked: String,
    pub(super) doing: Arc<Mutex<String>>,
    pub(super) stop: Option<Sender<()>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Drop for Chaos {
    fn drop(&mut self) {
        // The thread waits for this end of the channel to go.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed.
            let _ = thread.join();
        }
    }
}
