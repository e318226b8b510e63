//! Hosts whose wall clocks differ, and how far they do.
//!
//! All hosts of a lab share one kernel and so one clock. A [`HostClock`] is the wall clock of one host: the
//! machine's, shifted by an offset and a drift that can be changed at any time. Processes started with its
//! [environment](HostClock::environment) see it: a small preloaded object ([`write_object`]) stands before the C library's
//! functions that read the wall clock, and takes the shift from a file that they share.
//! `CLOCK_MONOTONIC` stays what it is: clocks of real machines run apart, but none runs backwards there.
//!
//! Processes that others start see one as well, if they were given the object and a file: whoever changes that clock later
//! [adopts](HostClock::adopt) it.
//!
//! [`ntp`] measures what came of it, as the field does: four timestamps per exchange (RFC 5905), an
//! offset and its error bound. A [`ntp::Responder`] lets each host answer with its own clock. [`offset`] does the same for the
//! monotonic clocks of machines, all through a run.
//!
//! # What a shift does not reach
//! - programs linked statically, or that make system calls of their own (Go): the loader
//!   preloads nothing there, or they pass it by;
//! - set-user-id programs: the loader drops preloaded objects;
//! - times that the kernel writes: of files, the time in `adjtimex(2)`; of received packets, those
//!   that `ioctl` or a network card tells (stamps that come with `recvmsg(2)` are shifted);
//! - times that the C library takes inside itself, such as `syslog(3)`'s;
//! - waits that are under way when the clock is stepped: a deadline is translated when its wait begins.
//!   (Real kernels end sleeps until a wall-clock time early when that time is stepped to.)
//!
//! Waits until a wall-clock time (`pthread_cond_timedwait`, `sem_timedwait`, `clock_nanosleep`, timers …) are
//! translated; relative and monotonic ones need nothing. A process that tries to *set* its shifted clock
//! is refused (`EPERM`), because it would set the machine's.

mod error;
mod host_clock;
mod keeper;
pub mod ntp;
mod object;
pub mod offset;
mod parameters;
mod sys;

pub use error::ClockError;
pub use host_clock::{HostClock, Skew};
pub use object::{OBJECT_NAME, write_object};
pub use parameters::{FILE_VARIABLE, MAX_DRIFT_PPB, MAX_OFFSET_NS};
