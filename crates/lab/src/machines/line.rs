//! What a part hears of its controller, and what it tells.
//!
//! A controller that is gone may leave a pipe that nobody reads and nobody closes, as in a pod: then no write ends any more. So a thread
//! of its own writes, and a part does not wait for it longer than the controller's lease lasts.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use super::{
    LEASE,
    message::{FromPart, ToPart, read_message, write_file, write_message},
};
use crate::{LabError, ground::Interrupts};

/// Between two looks at whether the controller is still there.
const LOOK: Duration = Duration::from_millis(100);

/// What comes from the controller, and goes to it.
pub(super) struct Line {
    from: Receiver<ToPart>,
    to: Teller,
    heard: Heard,
}

/// When the controller was last heard, `CLOCK_MONOTONIC`.
#[derive(Clone)]
struct Heard(Arc<AtomicU64>);

impl Heard {
    fn now(&self) {
        self.0.store(monotonic_ns(), Ordering::Relaxed);
    }

    fn within(&self, time: Duration) -> bool {
        u128::from(monotonic_ns().saturating_sub(self.0.load(Ordering::Relaxed))) < time.as_nanos()
    }
}

/// What goes to the controller, in order.
enum Outgoing {
    /// Or why there is none.
    Frame(io::Result<Vec<u8>>),
    File(PathBuf),
    /// Asks whether all before it has gone.
    All(Sender<io::Result<()>>),
}

impl Line {
    /// Hears and tells on threads of their own, which end with the process, and asks for the end when the controller has not been heard
    /// for too long.
    ///
    /// # Errors
    /// There are no threads.
    pub(super) fn open(
        mut from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        interrupts: Interrupts,
    ) -> Result<Line, LabError> {
        let failed = |source| LabError::Ground { doing: "hear the controller", source };
        let heard = Heard(Arc::new(AtomicU64::new(monotonic_ns())));
        let (sender, receiver) = mpsc::channel();
        let hears = heard.clone();
        let hear = move || {
            while let Ok(Some(message)) = read_message::<ToPart>(&mut from) {
                hears.now();
                if !matches!(message, ToPart::Lease) && sender.send(message).is_err() {
                    return;
                }
            }
            // What was told ahead goes on for as long as the lease does.
            while hears.within(LEASE) {
                thread::sleep(LOOK);
            }
        };
        thread::Builder::new().name("controller".to_owned()).spawn(hear).map_err(failed)?;
        let leases = heard.clone();
        let lease = move || {
            while leases.within(LEASE) {
                thread::sleep(LOOK);
            }
            interrupts.raise();
        };
        thread::Builder::new().name("lease".to_owned()).spawn(lease).map_err(failed)?;
        let (queue, outgoing) = mpsc::channel();
        thread::Builder::new().name("to-controller".to_owned()).spawn(move || write(to, &outgoing)).map_err(failed)?;
        Ok(Line { from: receiver, to: Teller(queue), heard })
    }

    /// Whether the controller is there, as far as that can be known.
    pub(super) fn is_heard(&self) -> bool {
        self.heard.within(LEASE / 2)
    }

    /// The next message that has come by now.
    pub(super) fn next(&self) -> Option<ToPart> {
        self.from.try_recv().ok()
    }

    /// The next message, or none if it does not come within so long; an error if the controller is gone.
    pub(super) fn wait(&self, within: Duration) -> Result<Option<ToPart>, LabError> {
        match self.from.recv_timeout(within) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LabError::Interrupted),
        }
    }

    /// A controller that does not hear it will be missed soon enough.
    pub(super) fn tell(&self, message: &FromPart) {
        self.to.tell(message);
    }

    /// For others who tell, too.
    pub(super) fn teller(&self) -> Teller {
        self.to.clone()
    }

    /// Gives what is in a file, which has to stay until all is told.
    pub(super) fn give(&self, file: &Path) {
        self.to.put(Outgoing::File(file.to_owned()));
    }

    /// Waits until all is told.
    ///
    /// # Errors
    /// It could not be; or the controller has not been heard for too long.
    pub(super) fn all_told(&self) -> io::Result<()> {
        let (sender, told) = mpsc::channel();
        self.to.put(Outgoing::All(sender));
        loop {
            match told.recv_timeout(LOOK) {
                Ok(told) => return told,
                Err(RecvTimeoutError::Timeout) if self.heard.within(LEASE) => {}
                Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the controller is gone")),
            }
        }
    }
}

/// Tells the controller, from any thread.
#[derive(Clone)]
pub(super) struct Teller(Sender<Outgoing>);

impl Teller {
    pub(super) fn tell(&self, message: &FromPart) {
        let mut frame = Vec::new();
        self.put(Outgoing::Frame(write_message(&mut frame, message).map(|()| frame)));
    }

    fn put(&self, outgoing: Outgoing) {
        // The thread ends with the process.
        let _ = self.0.send(outgoing);
    }
}

fn write(mut to: impl Write, outgoing: &Receiver<Outgoing>) {
    // After an error nothing goes any more.
    let mut failed: Option<io::Error> = None;
    for one in outgoing {
        let result = match (one, &failed) {
            (Outgoing::All(asks), _) => {
                // Who does not wait for the answer does not want it.
                let _ = asks.send(failed.take().map_or(Ok(()), Err));
                Ok(())
            }
            (_, Some(_)) => Ok(()),
            (Outgoing::Frame(frame), None) => frame.and_then(|frame| to.write_all(&frame)).and_then(|()| to.flush()),
            (Outgoing::File(path), None) => File::open(path).and_then(|mut file| write_file(&mut to, &mut file)),
        };
        failed = failed.or(result.err());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::machines::message::read_file;

    fn note(text: &str) -> FromPart {
        FromPart::Note { text: text.to_owned() }
    }

    #[test]
    fn what_is_told_and_given_goes_in_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 200_000]).unwrap();
        let (mut from_part, to) = io::pipe().unwrap();
        let (hears, _controller) = io::pipe().unwrap();
        let line = Line::open(hears, to, Interrupts::unheard()).unwrap();
        line.tell(&note("a"));
        line.teller().tell(&note("b"));
        line.give(file.path());
        let read = thread::spawn(move || {
            for expected in ["a", "b"] {
                let heard = read_message::<FromPart>(&mut from_part).unwrap();
                assert!(matches!(heard, Some(FromPart::Note { text }) if text == expected));
            }
            let mut given = Vec::new();
            read_file(&mut from_part, 200_000, &mut given).unwrap();
            given
        });
        line.all_told().unwrap();
        assert_eq!(read.join().unwrap(), vec![7; 200_000]);
    }

    #[test]
    fn a_part_that_nobody_reads_goes_on_and_ends_when_the_controller_is_gone() {
        // Kept open, and read by nobody.
        let (_from_part, to) = io::pipe().unwrap();
        let (hears, mut controller) = io::pipe().unwrap();
        let line = Line::open(hears, to, Interrupts::unheard()).unwrap();
        write_message(&mut controller, &ToPart::Stop).unwrap();
        assert!(matches!(line.wait(Duration::from_secs(60)), Ok(Some(ToPart::Stop))));
        let begun = Instant::now();
        // More than any pipe holds.
        for _ in 0..40 {
            line.tell(&note(&"x".repeat(100_000)));
        }
        line.heard.0.store(0, Ordering::Relaxed);
        assert!(!line.is_heard());
        assert_eq!(line.all_told().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < LEASE, "it has waited for nobody");
    }

    #[test]
    fn where_it_cannot_be_told_that_is_said_in_the_end() {
        let (from_part, to) = io::pipe().unwrap();
        drop(from_part);
        let (hears, _controller) = io::pipe().unwrap();
        let line = Line::open(hears, to, Interrupts::unheard()).unwrap();
        line.tell(&note("a"));
        assert_eq!(line.all_told().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
