//! What can go wrong with a host's clock, and what to do about it.

use std::{io, path::PathBuf};

use thiserror::Error;

/// A host's clock could not be made or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClockError {
    /// A file could not be made.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried, as a verb: "create".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },

    /// The file of a host's clock is there already.
    #[error("{path} exists already: it may be another host's clock; give each host a file of its own, or remove it", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// The clock of an adopted file is changed by somebody else.
    #[error(
        "the clock of {path} is in the hands of another process; end that first, be it a run or a lab by hand",
        path = path.display()
    )]
    Held {
        /// The file.
        path: PathBuf,
    },

    /// A file that was to be adopted is that of no clock.
    #[error(
        "{path} is the file of no clock, or of another version's; print the override anew (brownout wrap), and start the \
         container with it",
        path = path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },

    /// The loader could not be told of this place.
    #[error(
        "the object that shifts clocks cannot lie in {path}: the loader's list of such objects \
         (LD_PRELOAD) cannot hold a path with a space, a colon or a dollar sign; use another directory", path = path.display()
    )]
    Unlistable {
        /// The directory.
        path: PathBuf,
    },

    /// An offset beyond what can be shown faithfully.
    #[error("a clock cannot be {offset_ns} ns off: at most {max} s either way", max = crate::parameters::MAX_OFFSET_NS / 1_000_000_000)]
    Offset {
        /// What was asked for.
        offset_ns: i64,
    },

    /// A drift that would stop the clock or double its pace.
    #[error("a clock cannot drift by {drift_ppb} ppb: at most {max} ppb (90 %) either way", max = crate::parameters::MAX_DRIFT_PPB)]
    Drift {
        /// What was asked for.
        drift_ppb: i64,
    },
}
