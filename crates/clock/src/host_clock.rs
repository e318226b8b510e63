//! The wall clock of one host.

use std::{
    ffi::OsString,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use brownout_base::clock::monotonic_ns;

use crate::{
    ClockError,
    parameters::{FILE_VARIABLE, Shift},
    sys::{self, Mapping},
};

const SECOND: i64 = 1_000_000_000;

/// The largest offset either way: 20 years. Enough to pass the ends of NTP's era (2036) and of 32-bit
/// seconds (2038); little enough to tell the wall clock from the monotonic one by its value, on which the
/// translation of deadlines rests.
pub const MAX_OFFSET_NS: i64 = 20 * 365 * 86_400 * SECOND;

/// The largest drift either way, in parts per 10⁹: 90 %. The clock always goes forward.
pub const MAX_DRIFT_PPB: i64 = 900_000_000;

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
/// and by their children. Each change gives the monotonic times, in nanoseconds, just before and just
/// after it: it happened between the two.
///
/// When the last clone is dropped, the file is removed. Processes that are still running keep the shift they have
/// (call [`HostClock::reset`] first if they should not); processes started later have the machine's time.
#[derive(Clone)]
pub struct HostClock(Arc<Inner>);

struct Inner {
    path: PathBuf,
    parameters: Mapping,
    /// One writer at a time.
    writing: Mutex<()>,
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
        Ok(HostClock(Arc::new(Inner { path, parameters, writing: Mutex::new(()) })))
    }

    /// The variables that make a process see this clock: `LD_PRELOAD` with `object` (of [`crate::write_object`])
    /// and the file's. Children inherit them. An `LD_PRELOAD` that the process would have had otherwise is replaced; if it
    /// is needed, join the two with a colon.
    pub fn environment(&self, object: &Path) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", object.as_os_str().to_owned()), (FILE_VARIABLE, self.0.path.as_os_str().to_owned())]
    }

    /// Steps the clock to this difference from the machine's, and lets it drift from there.
    ///
    /// # Errors
    /// [`ClockError::Offset`] and [`ClockError::Drift`] beyond [`MAX_OFFSET_NS`] and [`MAX_DRIFT_PPB`].
    pub fn set(&self, skew: Skew) -> Result<(u64, u64), ClockError> {
        check_offset(skew.offset_ns)?;
        let rate = rate(skew.drift_ppb)?;
        self.change(|_, now| Ok(Shift { offset_ns: skew.offset_ns, rate, since_ns: now }))
    }

    /// Steps the clock by `by_ns` and adds `by_ppb` to its drift: shifts of several hands add up, and the opposite
    /// takes one back (its step; what its drift has gained meanwhile stays).
    ///
    /// # Errors
    /// [`ClockError::Offset`] and [`ClockError::Drift`] if the sums are beyond [`MAX_OFFSET_NS`] and [`MAX_DRIFT_PPB`].
    pub fn shift(&self, by_ns: i64, by_ppb: i64) -> Result<(u64, u64), ClockError> {
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
    pub fn reset(&self) -> Result<(u64, u64), ClockError> {
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

    /// The file by which processes see the clock.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn change(&self, next: impl FnOnce(Shift, i64) -> Result<Shift, ClockError>) -> Result<(u64, u64), ClockError> {
        // Nothing is half done under this lock: a thread that died with it has left the old shift or the new one.
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = monotonic_ns();
        let shift = next(self.0.parameters.load(), sys::realtime_ns())?;
        self.0.parameters.store(shift);
        Ok((before, monotonic_ns()))
    }
}

impl std::fmt::Debug for HostClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostClock").field("path", &self.0.path).field("skew", &self.skew()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Gone already, or its directory is: as it should be.
        let _ = fs::remove_file(&self.path);
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
