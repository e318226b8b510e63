use std::path::PathBuf;

use brownout_generate::{
    compress::CompressError, java::WeightsError, rows::RowError, seeds::SeedsError, sizes::SizeError,
    values::ValueError,
};
use brownout_load::{LoadError, TlsError};
use thiserror::Error;

use super::{disk::DiskError, nodetool::NodetoolError};
use crate::{output::OutputError, profile::ProfileError, schema::SchemaError, settings::SettingsError};

/// Why a run cannot begin, or cannot continue.
#[derive(Debug, Error)]
pub enum RunError {
    /// The command line, or a file that it names.
    #[error(transparent)]
    Settings(Box<SettingsError>),
    /// The schema, or the way to the cluster.
    #[error(transparent)]
    Schema(Box<SchemaError>),
    /// Encryption.
    #[error(transparent)]
    Tls(Box<TlsError>),
    /// The engine.
    #[error(transparent)]
    Load(Box<LoadError>),
    /// An output file.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Values that cannot be generated as requested.
    #[error(transparent)]
    Value(Box<ValueError>),
    /// Rows that cannot be generated as requested.
    #[error(transparent)]
    Row(Box<RowError>),
    /// A compression ratio that cannot be reached.
    #[error(transparent)]
    Compress(Box<CompressError>),
    /// Partition sizes that cannot be reached.
    #[error(transparent)]
    Size(Box<SizeError>),
    /// A profile.
    #[error(transparent)]
    Profile(Box<ProfileError>),
    /// Partitions that cannot be chosen as requested.
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    /// Operations that cannot be chosen as requested.
    #[error("the weights of the operations: {0}")]
    Weights(#[from] WeightsError),
    /// Work on the nodes' disks.
    #[error(transparent)]
    Disk(Box<DiskError>),
    /// The nodetool command template.
    #[error(transparent)]
    Nodetool(#[from] NodetoolError),
    /// A node that is not part of the cluster.
    #[error("{option}{host} is none of the nodes that are used: {known}")]
    NoSuchNode {
        /// The option.
        option: &'static str,
        /// What it names.
        host: String,
        /// The nodes.
        known: String,
    },
    /// A file of the run that cannot be written.
    #[error("cannot write {path}: {source}; check the path, the rights and the space on the disk")]
    File {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
    /// A path on the command line that cannot be written, found before any server is contacted.
    #[error("{option}{} cannot be written: {source}; check the path, the rights and the space on the disk", path.display())]
    Unwritable {
        /// The option.
        option: &'static str,
        /// What it names.
        path: PathBuf,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
    /// Settings that cannot be combined.
    #[error("{what}; {remedy}")]
    Unfit {
        /// What does not fit.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The warm-up failed.
    #[error("Failed to execute warmup")]
    Warmup,
    /// The user interrupted.
    #[error("interrupted in {what}: nothing was measured")]
    Interrupted {
        /// What was in progress.
        what: &'static str,
    },
}

impl RunError {
    /// The exit code of `brownout` (design, section 5): 2 if the command line or files are wrong, 130 after an
    /// interrupt, else 1: the run was not completed.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Settings(_)
            | RunError::Tls(_)
            | RunError::Value(_)
            | RunError::Row(_)
            | RunError::Compress(_)
            | RunError::Size(_)
            | RunError::Profile(_)
            | RunError::Seeds(_)
            | RunError::Weights(_)
            | RunError::Nodetool(_)
            | RunError::NoSuchNode { .. }
            | RunError::Unwritable { .. }
            | RunError::Output(OutputError::Exists { .. } | OutputError::NoGraph { .. })
            | RunError::Unfit { .. } => 2,
            RunError::Load(error) if matches!(**error, LoadError::Interrupted { .. }) => 130,
            RunError::Load(error) if matches!(**error, LoadError::Config { .. }) => 2,
            RunError::Schema(error) if matches!(**error, SchemaError::Interrupted { .. }) => 130,
            RunError::Schema(error)
                if matches!(**error, SchemaError::NoSuchPlace { .. } | SchemaError::Definition { .. }) =>
            {
                2
            }
            RunError::Disk(error) if error.is_interrupt() => 130,
            RunError::Interrupted { .. } => 130,
            _ => 1,
        }
    }
}

macro_rules! boxed {
    ($($variant:ident($source:ty)),*) => {
        $(impl From<$source> for RunError {
            fn from(error: $source) -> Self {
                RunError::$variant(Box::new(error))
            }
        })*
    };
}

boxed!(
    Settings(SettingsError),
    Schema(SchemaError),
    Tls(TlsError),
    Load(LoadError),
    Value(ValueError),
    Row(RowError),
    Compress(CompressError),
    Size(SizeError),
    Profile(ProfileError),
    Disk(DiskError)
);
