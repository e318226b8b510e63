//! What is wrong with a disk.

use std::{fmt, str::FromStr};

use brownout_units::{Delay, Share};
use rustix::io::Errno;

use crate::{
    error::DiskError,
    operation::{Operation, Operations},
};

/// What a failing operation answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskErrno {
    /// `EIO`: the medium failed. Any operation can answer it.
    Io,
    /// `ENOSPC`: the disk is full. What needs space answers it: writes, syncs (where space is given late), and of the
    /// metadata what creates a name or allocates. Reading and deleting work on a full disk.
    NoSpace,
    /// `EROFS`: the disk was made read-only, as filesystems do that met an error. Writes, syncs and metadata answer it.
    ReadOnly,
}

impl DiskErrno {
    /// The number, as in `errno`.
    pub const fn code(self) -> i32 {
        self.errno().raw_os_error()
    }

    pub(crate) const fn errno(self) -> Errno {
        match self {
            DiskErrno::Io => Errno::IO,
            DiskErrno::NoSpace => Errno::NOSPC,
            DiskErrno::ReadOnly => Errno::ROFS,
        }
    }

    /// Whether an operation of this kind can answer it; `allocates` says that it needs space.
    pub(crate) const fn can_come_from(self, operation: Operation, allocates: bool) -> bool {
        match (self, operation) {
            (DiskErrno::Io, _) => true,
            (_, Operation::Read) => false,
            (DiskErrno::ReadOnly, _) => true,
            (DiskErrno::NoSpace, Operation::Metadata) => allocates,
            (DiskErrno::NoSpace, Operation::Write | Operation::Sync) => true,
        }
    }
}

impl fmt::Display for DiskErrno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DiskErrno::Io => "EIO",
            DiskErrno::NoSpace => "ENOSPC",
            DiskErrno::ReadOnly => "EROFS",
        })
    }
}

impl FromStr for DiskErrno {
    type Err = DiskError;

    fn from_str(text: &str) -> Result<Self, DiskError> {
        match text.to_ascii_uppercase().as_str() {
            "EIO" => Ok(DiskErrno::Io),
            "ENOSPC" => Ok(DiskErrno::NoSpace),
            "EROFS" => Ok(DiskErrno::ReadOnly),
            _ => Err(DiskError::NoSuchErrno(text.to_owned())),
        }
    }
}

/// A fault: operations of some kinds, or a share of them, take longer, fail, or both.
///
/// An operation that is hit waits first, then is carried out on the real directory, or fails without being carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskFault {
    /// Which kinds are hit.
    pub operations: Operations,
    /// How much longer they take: each request that the kernel makes of the disk.
    ///
    /// A `write` of more than 1 MiB is several requests, one after the other; so is one that goes on from a page which is
    /// only partly in the page cache into the next (an append across a page's border, mostly: two requests). A read of a
    /// file is a request for each piece of the readahead.
    pub delay: Delay,
    /// The delay is drawn evenly from `delay - jitter` to `delay + jitter`.
    pub jitter: Delay,
    /// Which share of them is hit, drawn for each operation.
    pub share: Share,
    /// How those that are hit fail, after their delay; `None`: they succeed.
    pub error: Option<DiskErrno>,
}

impl Default for DiskFault {
    /// All operations, no delay, no error: a start for struct update syntax, which [`DiskFault::check`] refuses.
    fn default() -> Self {
        DiskFault {
            operations: Operations::ALL,
            delay: Delay::ZERO,
            jitter: Delay::ZERO,
            share: Share::ALL,
            error: None,
        }
    }
}

impl DiskFault {
    /// The longest delay that can be asked for, one hour: what takes longer is a disk that hangs.
    pub const LONGEST: Delay = Delay::from_secs(3600);

    /// Whether it can be injected and could be noticed.
    ///
    /// # Errors
    /// [`DiskError::Fault`] when it hits nothing or changes nothing, when the jitter is larger than the delay, when the
    /// delay is longer than [`DiskFault::LONGEST`], or when no operation named can answer `error`.
    pub fn check(&self) -> Result<(), DiskError> {
        let refuse = |why: String| Err(DiskError::Fault(why));
        if self.operations.is_empty() || self.share == Share::ZERO {
            return refuse("it hits no operation; name read, write, sync or metadata, and a share above 0%".to_owned());
        }
        if self.delay == Delay::ZERO && self.error.is_none() {
            return refuse("it neither delays nor fails anything; give a delay or an error".to_owned());
        }
        if self.jitter > self.delay {
            return refuse(format!(
                "a jitter of ±{} around a delay of {} would make times negative; give a jitter up to the delay",
                self.jitter, self.delay
            ));
        }
        if self.delay > Self::LONGEST {
            return refuse(format!("a delay of {} is longer than {}", self.delay, Self::LONGEST));
        }
        match self.error {
            Some(error) if !self.operations.iter().any(|operation| error.can_come_from(operation, true)) => {
                refuse(format!("a {} never answers {error}; use EIO, or name other operations", self.operations))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for DiskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.share != Share::ALL {
            write!(f, "{} of ", self.share)?;
        }
        write!(f, "{}:", self.operations)?;
        if self.delay != Delay::ZERO {
            write!(f, " +{}", self.delay)?;
            if self.jitter != Delay::ZERO {
                write!(f, " ± {}", self.jitter)?;
            }
        }
        match self.error {
            Some(error) => write!(f, " {error}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_without_effect_is_refused() {
        let all = DiskFault::default();
        let slow = DiskFault { operations: Operation::Sync.into(), delay: Delay::from_ms(20), ..all };
        assert!(slow.check().is_ok());
        let refused = [
            all,
            DiskFault { operations: Operations::NONE, ..slow },
            DiskFault { share: Share::ZERO, ..slow },
            DiskFault { jitter: Delay::from_ms(21), ..slow },
            DiskFault { delay: Delay::from_secs(3601), ..slow },
            DiskFault { operations: Operation::Read.into(), error: Some(DiskErrno::NoSpace), ..all },
            DiskFault { operations: Operation::Read.into(), error: Some(DiskErrno::ReadOnly), ..all },
        ];
        for fault in refused {
            assert!(fault.check().is_err(), "{fault}");
        }
    }

    #[test]
    fn a_full_disk_still_deletes() {
        assert!(DiskErrno::NoSpace.can_come_from(Operation::Metadata, true));
        assert!(!DiskErrno::NoSpace.can_come_from(Operation::Metadata, false));
        assert!(!DiskErrno::NoSpace.can_come_from(Operation::Read, true));
    }

    #[test]
    fn a_fault_reads_as_it_is_meant() {
        let fault = DiskFault {
            operations: [Operation::Sync, Operation::Write].into_iter().collect(),
            delay: Delay::from_ms(20),
            jitter: Delay::from_ms(5),
            share: "10%".parse().unwrap(),
            error: Some(DiskErrno::Io),
        };
        assert_eq!(fault.to_string(), "10% of write, sync: +20ms ± 5ms EIO");
    }
}
