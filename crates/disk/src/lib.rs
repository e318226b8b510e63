//! A slow or failing disk: a real folder, served through FUSE at another place, with faults.

mod available;
mod clock;
mod control;
mod counters;
mod disk;
mod error;
mod fault;
mod folder;
mod held;
mod operation;
mod probe;
mod protocol;
mod random;
mod service;
mod sys;

pub use control::{DiskControl, DiskGuard};
pub use counters::{DiskCounters, OperationCounters};
pub use disk::{Disk, DiskOptions};
pub use error::DiskError;
pub use fault::{DiskErrno, DiskFault};
pub use operation::{Operation, Operations};
pub use probe::{DiskSample, Probe};
