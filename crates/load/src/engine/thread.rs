//! The threads of an engine as its owner sees them.

use std::{
    sync::{Arc, OnceLock, mpsc},
    thread::JoinHandle,
};

use super::worker::{Command, Final, Setup, Worker};
use crate::{
    LoadError,
    sys::{self, Waker},
};

/// A load thread as the engine's owner sees it.
pub(super) struct Thread {
    commands: mpsc::Sender<Command>,
    waker: Arc<Waker>,
    failure: Arc<OnceLock<String>>,
    pub(super) handle: Option<JoinHandle<Option<Final>>>,
}

impl Thread {
    /// Has the thread run `question` between two turns of its loop; the answer comes through the receiver, unless the
    /// thread has ended.
    pub(super) fn post<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (sender, receiver) = mpsc::channel();
        // A thread that has ended drops the command and its sender, which the receiver notices.
        let command: Command = Box::new(move |worker| drop(sender.send(question(worker))));
        if self.commands.send(command).is_ok() {
            self.waker.wake();
        }
        receiver
    }

    pub(super) fn is_dead(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Why it died, if it did.
    pub(super) fn reason(&self) -> String {
        self.failure.get().cloned().unwrap_or_else(|| "it panicked".to_owned())
    }
}

/// Starts thread number `index`, which reports through `ready` when it is connected, or why it cannot be.
pub(super) fn spawn(
    index: usize,
    setup: Arc<Setup>,
    ready: mpsc::Sender<Result<(), LoadError>>,
) -> Result<Thread, LoadError> {
    let waker = Arc::new(Waker::new().map_err(LoadError::system("an eventfd"))?);
    let failure = Arc::new(OnceLock::new());
    let (commands, inbox) = mpsc::channel();
    let (thread_waker, thread_failure) = (Arc::clone(&waker), Arc::clone(&failure));
    let body = move || {
        let run = || {
            (setup.config.thread_start)().map_err(LoadError::ThreadStart)?;
            sys::precise_timers();
            Worker::new(index, &setup, thread_waker, inbox, ready.clone())?.run()
        };
        run()
            .map_err(|error| {
                let _ = thread_failure.set(error.to_string());
                // After the start nobody listens any more; `health` reports the error then.
                let _ = ready.send(Err(error));
            })
            .ok()
    };
    let handle =
        std::thread::Builder::new().name(format!("load-{index}")).spawn(body).map_err(LoadError::system("a thread"))?;
    Ok(Thread { commands, waker, failure, handle: Some(handle) })
}
