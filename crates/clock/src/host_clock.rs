//! The wall clock of one host.

use std::{
    ffi::OsString,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use brownout_base::{Change, clock::monotonic_ns};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    ClockError,
    keeper::Keeper,
    parameters::{FILE_VARIABLE, MAX_DRIFT_PPB, MAX_OFFSET_NS, Shift},
    sys::{self, Mapping},
};

const SECOND: i64 = 1_000_000_000;

/// How a clock differs from the machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// Nanoseconds by which it is ahead (negative: behind) now.
    pub offset_ns: i64,
    /// Nanoseconds that it gains (negative: loses) in each second of the machine's: parts per 10⁹.
    pub drift_ppb: i64,
}

/// The wall clock of one host: the machine's, shifted. Clones are the same clock.
///
/// Changes are seen at once by every process that was started with its [environment](HostClock::environment),
/// and by their children. Each change says when it came into force.
///
/// When the last clone is dropped, the file is removed. Processes that are still running keep the shift they have
/// (call [`HostClock::reset`] first if they should not); processes started later have the machine's time. The file of a clock
/// that was [adopted](HostClock::adopt) stays, and shows the machine's time.
#[derive(Clone)]
pub struct HostClock(Arc<Inner>);

struct Inner {
    path: PathBuf,
    parameters: Mapping,
    /// One writer at a time.
    writing: Mutex<()>,
    /// Of a clock whose file is others': who makes it right if this process dies.
    keeper: Option<Keeper>,
}

impl HostClock {
    /// A clock that does not differ yet, by way of the new file `path` (mode 0644; its directory must be
    /// accessible to the users whose processes shall see the clock).
    ///
    /// # Errors
    /// [`ClockError::Exists`] if the file is there already, [`ClockError::File`] if it cannot be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, ClockError> {
        let given = path.as_ref();
        let failed = |action| move |source: io::Error| ClockError::File { action, path: given.to_owned(), source };
        // Absolute, because the processes that open it work in directories of their own.
        let path = std::path::absolute(given).map_err(failed("find"))?;
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o644);
        let file = options.open(&path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => ClockError::Exists { path: given.to_owned() },
            _ => failed("create")(source),
        })?;
        let mapped = (|| {
            // Whatever the umask says.
            file.set_permissions(fs::Permissions::from_mode(0o644))?;
            Mapping::new(&file)
        })();
        let parameters = mapped.map_err(|source| {
            // Ours and useless; that it cannot be removed either adds nothing to the error.
            let _ = fs::remove_file(&path);
            failed("map")(source)
        })?;
        // A slot that is all zero means "no drift since 1970": no shift.
        parameters.store(Shift::NONE);
        parameters.mark();
        Ok(HostClock(Arc::new(Inner { path, parameters, writing: Mutex::new(()), keeper: None })))
    }

    /// The clock of the file `path`, which is there already, and which processes that others have started look at. It shows the
    /// machine's time, and is nobody else's to change, until the last clone is dropped; then it shows the machine's time
    /// again, and the file stays. So it does when this process is killed: a small child process sees to that. It is a copy of
    /// this one as it is now, but for what is open: early is better.
    ///
    /// # Errors
    /// [`ClockError::Held`] if another process has it, [`ClockError::Foreign`] if the file is that of no clock,
    /// [`ClockError::File`] if it cannot be opened or the child cannot be started.
    pub fn adopt(path: impl AsRef<Path>) -> Result<Self, ClockError> {
        let given = path.as_ref();
        let failed = |action| move |source: io::Error| ClockError::File { action, path: given.to_owned(), source };
        let path = std::path::absolute(given).map_err(failed("find"))?;
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).map_err(failed("open"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => ClockError::Held { path: given.to_owned() },
            _ => failed("lock")(errno.into()),
        })?;
        let parameters = Mapping::of(&file).map_err(|source| match source.kind() {
            ErrorKind::InvalidData => ClockError::Foreign { path: given.to_owned() },
            _ => failed("map")(source),
        })?;
        if !parameters.is_valid() {
            return Err(ClockError::Foreign { path: given.to_owned() });
        }
        // A machine that lost its power has left it as it was.
        parameters.store(Shift::NONE);
        let keeper = Keeper::start(&parameters, file).map_err(failed("have a process look after"))?;
        Ok(HostClock(Arc::new(Inner { path, parameters, writing: Mutex::new(()), keeper: Some(keeper) })))
    }

    /// The variables that make a process see this clock: `LD_PRELOAD` with `object` (of [`crate::write_object`])
    /// and the file's. Children inherit them. An `LD_PRELOAD` that the process would have had otherwise is replaced; if it
    /// is needed, join the two with a colon.
    pub fn environment(&self, object: &Path) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", object.as_os_str().to_owned()), (FILE_VARIABLE, self.0.path.as_os_str().to_owned())]
    }

    /// Steps the clock by `by_ns` and adds `by_ppb` to its drift: shifts of several hands add up, and the opposite
    /// takes one back (its step; what its drift has gained meanwhile stays).
    ///
    /// # Errors
    /// [`ClockError::Offset`] and [`ClockError::Drift`] if the sums are beyond [`MAX_OFFSET_NS`] and [`MAX_DRIFT_PPB`].
    pub fn shift(&self, by_ns: i64, by_ppb: i64) -> Result<Change, ClockError> {
        self.change(|shift, now| {
            let offset_ns = shift.skew_at(now).saturating_add(by_ns);
            check_offset(offset_ns)?;
            let rate = rate(shift.drift_ppb().saturating_add(by_ppb))?;
            Ok(Shift { offset_ns, rate, since_ns: now })
        })
    }

    /// Steps back to the machine's own time.
    ///
    /// # Errors
    /// None today; the type is that of the other changes.
    pub fn reset(&self) -> Result<Change, ClockError> {
        self.change(|_, _| Ok(Shift::NONE))
    }

    /// How the clock differs from the machine's now.
    pub fn skew(&self) -> Skew {
        let now = sys::realtime_ns();
        let shift = self.0.parameters.load();
        Skew { offset_ns: shift.skew_at(now), drift_ppb: shift.drift_ppb() }
    }

    /// This host's wall clock, in nanoseconds since 1970.
    pub fn realtime_ns(&self) -> u64 {
        let now = sys::realtime_ns();
        u64::try_from(now.saturating_add(self.0.parameters.load().skew_at(now))).unwrap_or(0)
    }

    fn change(&self, next: impl FnOnce(Shift, i64) -> Result<Shift, ClockError>) -> Result<Change, ClockError> {
        // Nothing is half done under this lock: a thread that died with it has left the old shift or the new one.
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let asked_ns = monotonic_ns();
        let shift = next(self.0.parameters.load(), sys::realtime_ns())?;
        self.0.parameters.store(shift);
        Ok(Change::between(asked_ns, monotonic_ns()))
    }
}

impl std::fmt::Debug for HostClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostClock").field("path", &self.0.path).field("skew", &self.skew()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match &self.keeper {
            // It does the same, but only once the machine lets it.
            Some(_) => self.parameters.store(Shift::NONE),
            None => {
                // Gone already, or its directory is: as it should be.
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}

fn check_offset(offset_ns: i64) -> Result<(), ClockError> {
    if offset_ns.unsigned_abs() > MAX_OFFSET_NS.unsigned_abs() {
        return Err(ClockError::Offset { offset_ns });
    }
    Ok(())
}

fn rate(drift_ppb: i64) -> Result<i64, ClockError> {
    if drift_ppb.unsigned_abs() > MAX_DRIFT_PPB.unsigned_abs() {
        return Err(ClockError::Drift { drift_ppb });
    }
    Ok(Shift::rate_of(drift_ppb, SECOND))
}
