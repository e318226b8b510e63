use std::path::PathBuf;

use brownout_generate::{
    compress::CompressError, java::WeightsError, rows::RowError, seeds::SeedsError, sizes::SizeError,
    values::ValueError,
};
use brownout_load::{LoadError, TlsError};
use thiserror::Error;

use super::{disk::DiskError, nodetool::NodetoolError};
use crate::{output::OutputError, profile::ProfileError, schema::SchemaError, settings::SettingsError};

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// The words, or a file that they name.
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
    /// A file that is written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Values that cannot be made as asked.
    #[error(transparent)]
    Value(Box<ValueError>),
    /// Rows that cannot be made as asked.
    #[error(transparent)]
    Row(Box<RowError>),
    /// A ratio of compression that cannot be reached.
    #[error(transparent)]
    Compress(Box<CompressError>),
    /// Sizes of partitions that cannot be reached.
    #[error(transparent)]
    Size(Box<SizeError>),
    /// A profile.
    #[error(transparent)]
    Profile(Box<ProfileError>),
    /// Partitions that cannot be chosen as asked.
    #[error(transparent)]
    Seeds(#[from] SeedsError),
    /// Operations that cannot be chosen as asked.
    #[error("the weights of the operations: {0}")]
    Weights(#[from] WeightsError),
    /// What was to be done to the nodes' disks.
    #[error(transparent)]
    Disk(Box<DiskError>),
    /// The template of nodetool.
    #[error(transparent)]
    Nodetool(#[from] NodetoolError),
    /// A node that is to be used and is none of the cluster's.
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
    /// A path of the command line that cannot be written. Found before anything is asked.
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
    /// Something that is asked for and cannot be had together.
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
    /// The user asked for an end.
    #[error("interrupted in {what}: nothing was measured")]
    Interrupted {
        /// What was under way.
        what: &'static str,
    },
}

impl RunError {
    /// The exit code of `brownout` (design, section 5): 2 where words or files are wrong, 130 after an interrupt, else 1:
    /// the run was not done.
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
