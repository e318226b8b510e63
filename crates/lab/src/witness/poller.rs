//! A thread that polls one thing for a witness, and the channel that its rows go through.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_record::WitnessRow;

use crate::LabError;

/// A live node answers within this, nearly always, also on a busy machine. It is short, because what is asked this long
/// before a node goes on is answered all the same.
pub(super) const PATIENCE: Duration = Duration::from_millis(400);
/// A thread that looks at something again and again, until this is dropped.
pub(super) struct Poller {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    /// Calls `look` on a thread of its own, once in every `every`. `prepare` runs there first: it may enter a host.
    pub(super) fn start(
        name: String,
        every: Duration,
        prepare: impl FnOnce() -> io::Result<()> + Send + 'static,
        mut look: impl FnMut() + Send + 'static,
    ) -> Result<Poller, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            // A witness that cannot get to its place sees nothing, and what is not seen is not proven.
            if prepare().is_err() {
                return;
            }
            while !stopped.load(Ordering::Relaxed) {
                look();
                thread::sleep(every);
            }
        };
        let failed = |source| LabError::Ground { doing: "start a witness", source };
        Ok(Poller { stop, thread: Some(thread::Builder::new().name(name).spawn(run).map_err(failed)?) })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Where a witness tells what it saw. Nobody listens any more when all is about to end.
pub(super) fn tell(to: &Sender<WitnessRow>, row: WitnessRow) {
    let _ = to.send(row);
}
