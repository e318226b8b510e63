//! What can go wrong while writing.

use std::{io, path::PathBuf};

use brownout_record::RecordError;

/// An output that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file could not be read or written.
    #[error("cannot {doing} '{}': {source}; check the path, the rights and the space on the disk", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// `-graph file=` names an existing file that is not a graph.
    #[error(
        "'{}' is there already, and {why}; a run can only be added to a graph that this tool or cassandra-stress wrote: \
         give another file, or remove it", path.display()
    )]
    NoGraph {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// An address that cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; another program may use the port, or the address is not this machine's"
    )]
    Listen {
        /// The address.
        address: String,
        /// What happened.
        source: io::Error,
    },
    /// `--record` names an existing file.
    #[error("'{}' is there already; a run is never written over another: give another file, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The run file could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}
