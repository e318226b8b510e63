//! The parts of a trial, as the controller has them.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use brownout_record::MachineRole;

use super::message::{FromPart, ToPart, read_file, read_message, write_message};
use crate::{LabError, ground::Interrupts};

/// Between two signs of life.
const LEASE_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at whether the user wants the end.
const LOOK: Duration = Duration::from_millis(50);
/// How long the process of a part may take to end after its last word.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A process of this program on another machine, which was started as [`super::part`].
pub struct Started {
    /// What it says.
    pub from: Box<dyn Read + Send>,
    /// What it hears.
    pub to: Box<dyn Write + Send>,
    /// Ends it, when all is over.
    pub ends: Box<dyn FnOnce() + Send>,
}

/// Starts parts on machines, in whichever way they are reached.
pub trait Reach: Send + Sync {
    /// Starts a part on a machine.
    ///
    /// # Errors
    /// It cannot be reached, or has not got this program; in words.
    fn start(&self, machine: &str) -> Result<Started, String>;

    /// What whoever runs the hosts did to them by itself since then (ms since 1970), if there is anybody who tells.
    ///
    /// # Errors
    /// It cannot be asked; in words.
    fn happened(&self, _since_unix_ms: i64) -> Result<Vec<Happening>, String> {
        Ok(Vec::new())
    }
}

/// Something that whoever runs the hosts did to one by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// The host.
    pub host: String,
    /// When, ms since 1970, by the clock of who did it; at most `error_ms` earlier than it was.
    pub unix_ms: i64,
    /// How exactly that is told.
    pub error_ms: u32,
    /// What, in words.
    pub text: String,
}

/// Starts a part by a command of the shell, whose standard input and output are the part's: `ssh a brownout part`.
///
/// # Errors
/// The shell cannot be started.
pub fn by_command(command: &str) -> io::Result<Started> {
    let mut child =
        Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let (Some(to), Some(from)) = (to, from) else { return Err(io::Error::other("a child without pipes")) };
    Ok(Started { from: Box::new(from), to: Box::new(to), ends: Box::new(move || end(child)) })
}

/// Waits for it, and ends it if it does not end.
fn end(mut child: Child) {
    let until = Instant::now() + ENDS_WITHIN;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What was heard of a part.
pub(super) enum Heard {
    Message(FromPart),
    /// It is over, and its record lies there.
    Over {
        message: FromPart,
        record: PathBuf,
    },
    /// Nothing more will be heard.
    Gone(String),
}

/// One part.
pub(super) struct Part {
    pub(super) machine: String,
    pub(super) role: MachineRole,
    to: Arc<Mutex<Box<dyn Write + Send>>>,
    heard: Receiver<Heard>,
    reader: Option<JoinHandle<()>>,
    ends: Option<Box<dyn FnOnce() + Send>>,
}

impl Part {
    /// Starts one; its record will lie at `record`.
    pub(super) fn start(reach: &dyn Reach, machine: &str, role: MachineRole, record: &Path) -> Result<Part, LabError> {
        let failed = |why: String| LabError::Machine(format!("no part of the run can be started on {machine}: {why}"));
        let Started { mut from, to, ends } = reach.start(machine).map_err(failed)?;
        let (sender, heard) = mpsc::channel();
        let record = record.to_owned();
        let read = move || {
            let last = loop {
                match read_message::<FromPart>(&mut from) {
                    Ok(Some(message @ FromPart::Over { .. })) => break over(message, &mut from, &record),
                    Ok(Some(message)) => {
                        if sender.send(Heard::Message(message)).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break Heard::Gone("it has ended without a word".to_owned()),
                    Err(error) => break Heard::Gone(error.to_string()),
                }
            };
            let _ = sender.send(last);
        };
        let reader = thread::Builder::new().name(format!("from-{machine}")).spawn(read);
        let reader = reader.map_err(|source| LabError::Ground { doing: "hear a part of the run", source })?;
        let to = Arc::new(Mutex::new(to));
        let hello = ToPart::Hello { version: env!("CARGO_PKG_VERSION").to_owned() };
        // One that does not hear it has ended, and that is heard.
        let _ = write_message(to.lock().unwrap_or_else(PoisonError::into_inner).as_mut(), &hello);
        Ok(Part { machine: machine.to_owned(), role, to, heard, reader: Some(reader), ends: Some(ends) })
    }

    /// One that does not hear it has ended, and that is heard.
    pub(super) fn tell(&self, message: &ToPart) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write_message(to.as_mut(), message);
    }

    /// What comes next within so long.
    pub(super) fn hear(&self, within: Duration) -> Option<Heard> {
        match self.heard.recv_timeout(within) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Heard::Gone("it has ended".to_owned())),
        }
    }

    pub(super) fn failed(&self, why: &str) -> LabError {
        LabError::Trial(format!("{}: {why}", self.machine))
    }
}

fn over(message: FromPart, from: &mut dyn Read, record: &Path) -> Heard {
    let FromPart::Over { record: bytes, .. } = message else { return Heard::Message(message) };
    let read = File::create(record).and_then(|mut file| read_file(from, bytes, &mut file));
    match read {
        Ok(()) => Heard::Over { message, record: record.to_owned() },
        Err(error) => Heard::Gone(format!("its record cannot be had: {error}")),
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Without input it ends by itself.
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(io::sink());
        if let Some(ends) = self.ends.take() {
            ends();
        }
        if let Some(reader) = self.reader.take() {
            // A panic has been printed by the thread itself.
            let _ = reader.join();
        }
    }
}

/// All parts of a trial. They get signs of life until this is dropped.
pub(super) struct Fleet {
    pub(super) parts: Vec<Part>,
    stop: Arc<AtomicBool>,
    lease: Option<JoinHandle<()>>,
}

impl Fleet {
    pub(super) fn of(parts: Vec<Part>) -> Result<Fleet, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let all: Vec<_> = parts.iter().map(|part| Arc::clone(&part.to)).collect();
        let lease = move || {
            let mut next = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                if Instant::now() >= next {
                    next = Instant::now() + LEASE_EVERY;
                    for to in &all {
                        let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                        let _ = write_message(to.as_mut(), &ToPart::Lease);
                    }
                }
                thread::sleep(LOOK);
            }
        };
        let lease = thread::Builder::new().name("lease".to_owned()).spawn(lease);
        let lease = lease.map_err(|source| LabError::Ground { doing: "tell parts that the run goes on", source })?;
        Ok(Fleet { parts, stop, lease: Some(lease) })
    }

    pub(super) fn with(&self, role: MachineRole) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.role == role)
    }

    /// Waits for what each of these is to say; what else they say is for `otherwise`.
    pub(super) fn wait_for<'a, T>(
        &self,
        parts: impl Iterator<Item = &'a Part>,
        within: Duration,
        interrupts: Interrupts,
        mut wanted: impl FnMut(&Part, &FromPart) -> Option<T>,
        mut otherwise: impl FnMut(&Part, FromPart),
    ) -> Result<Vec<T>, LabError> {
        let until = Instant::now() + within;
        let mut all = Vec::new();
        for part in parts {
            loop {
                if interrupts.any() {
                    return Err(LabError::Interrupted);
                }
                if Instant::now() > until {
                    return Err(part.failed(&format!("it has said nothing for {} s", within.as_secs())));
                }
                match part.hear(LOOK) {
                    None => {}
                    Some(Heard::Message(FromPart::Failed { text, .. })) => return Err(part.failed(&text)),
                    Some(Heard::Message(message)) => match wanted(part, &message) {
                        Some(said) => {
                            all.push(said);
                            break;
                        }
                        None => otherwise(part, message),
                    },
                    Some(Heard::Over { message: FromPart::Over { failure, .. }, .. }) => {
                        return Err(part.failed(&failure.unwrap_or_else(|| "it was over too early".to_owned())));
                    }
                    Some(Heard::Over { .. }) => return Err(part.failed("it was over too early")),
                    Some(Heard::Gone(why)) => return Err(part.failed(&why)),
                }
            }
        }
        Ok(all)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(lease) = self.lease.take() {
            // A panic has been printed by the thread itself.
            let _ = lease.join();
        }
    }
}
