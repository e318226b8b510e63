//! A slow or failing disk: a real directory, served through FUSE at another place, with faults.
//!
//! A database that keeps its files there meets a disk whose reads, writes, syncs or changes of names take longer, fail, or
//! both, all of them or a share. Without a fault it is a plain directory, at a cost that `cargo bench -p brownout-disk` tells.
//!
//! ```no_run
//! use brownout_disk::{Disk, DiskFault, Operation, Operations, Probe};
//! use std::{path::Path, time::Duration};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let disk = Disk::mount(Path::new("/tmp/real"), Path::new("/tmp/mounted"))?;
//! let probe = Probe::start(disk.target(), Duration::from_millis(100), Operations::ALL)?;
//!
//! // Every fsync takes 20 ms longer, until the guard goes.
//! let slow = DiskFault { operations: Operation::Sync.into(), delay: "20ms".parse()?, ..DiskFault::default() };
//! let guard = disk.control().impair(&slow)?;
//! std::thread::sleep(Duration::from_secs(1));
//! let healed = guard.heal()?;
//! println!("healed at {} ± {} ns; {} probes", healed.at_ns, healed.error_ns, probe.drain().len());
//! # Ok(())
//! # }
//! ```
//!
//! # What is like a real disk, and what is not
//!
//! - The page cache stays: what is cached is read without asking the disk, so that no fault on reads shows. Every `write`
//!   and every `fsync` asks it.
//! - While a file is being synced or written to, other writes and syncs of the same file wait (the kernel holds its lock for
//!   the whole request); while a name in a directory is changed, so do other changes in the same directory. Everything else goes
//!   on: requests that wait for a fault hold up no other.
//! - What is written to a shared mapping is slow where the program waits for it: at its `msync` or `fsync`. An error shows
//!   there, too.
//! - Waits end early for who is killed. No other signal cuts them short, as on a disk.
//! - There are no extended attributes, no access control lists, no `O_TMPFILE` and no set-user-ID programs on it.
//! - The processes that use it are answered with the modes and owners of the real directory, which the kernel enforces.
//!
//! # What it needs
//!
//! Linux 5.9, `/dev/fuse`, `/proc`, and the right to mount: as root, or as the mapped root of a user namespace with a mount
//! namespace. [`Disk::available`] tries it. No library of the system, no helper program.
//!
//! Each file that the kernel remembers of the mount takes a descriptor, in a table of the serving threads' own; so a
//! process may serve about as many files as its hard limit of open files says.

mod available;
mod control;
mod counters;
mod decision;
mod delay_queue;
mod disk;
mod ending;
mod error;
mod fault;
mod operation;
mod passthrough;
mod probe;
mod protocol;
mod service;
mod sys;
#[cfg(test)]
mod testing;

pub use control::{DiskControl, DiskGuard};
pub use counters::{DiskCounters, OperationCounters};
pub use disk::{Disk, DiskOptions};
pub use error::DiskError;
pub use fault::{DiskErrno, DiskFault};
pub use operation::{Operation, Operations};
pub use probe::{DiskSample, Probe};
