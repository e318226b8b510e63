//! What the command asks of the lab's first process, which it starts with [`INSIDE`].

use std::{collections::BTreeMap, os::fd::RawFd, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    experiment::{FileError, Source},
    provided::Provided,
    shares::Labs,
};

/// The hidden command that the lab's first process is started with.
pub const INSIDE: &str = "inside-lab";

/// What the lab's first process is asked.
#[derive(Serialize, Deserialize)]
pub(crate) enum Request {
    /// All trials of a run.
    Run(Box<RunRequest>),
    /// See [`crate::selftest`].
    SelfTest,
    /// A lab by hand.
    ByHand(Box<LabRequest>),
}

/// An experiment, as it is known everywhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) set: Vec<String>,
    /// Files that it names, and containers that were found for it, by path or name.
    pub(crate) attached: BTreeMap<String, String>,
}

impl Asked {
    /// What a file says, with these assignments.
    pub(crate) fn of(source: &Source, set: &[String]) -> Asked {
        let (file, text) = (source.file().to_owned(), source.text().to_owned());
        Asked { file, text, set: set.to_vec(), attached: source.attached() }
    }

    /// The file with what was set in it, and with all that was found for it.
    pub(crate) fn source(&self) -> Result<Source, FileError> {
        let mut source = Source::from_text(&self.file, self.text.clone())?.with_attached(self.attached.clone());
        self.set.iter().try_for_each(|assignment| source.set(assignment))?;
        Ok(source)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub(crate) asked: Asked,
    pub(crate) provided: Provided,
    pub(crate) started_unix_ms: u64,
    pub(crate) keep: bool,
    pub(crate) sabotage: bool,
    /// The run was begun before, and goes on.
    pub(crate) resumes: bool,
    /// The number of the one trial that is to be run; none: all.
    pub(crate) only: Option<u32>,
    /// That work at once.
    pub(crate) labs: Labs,
    /// Of the one who shows progress; the lab only carries it.
    pub(crate) view: String,
}

/// Nodes that ran before the lab, and go on when it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachedLab {
    /// What runs in it, in words: "Cassandra 5.0.9", or which containers they are.
    pub(crate) system: String,
    /// Whether all of them answered as nodes of the database of the lab file; else nothing is known of what they run.
    pub(crate) has_database: bool,
}

/// What `up` and `attach` ask of a lab's keeper and of its first process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LabRequest {
    pub(crate) name: String,
    /// Where its directory lies.
    pub(crate) registry: PathBuf,
    pub(crate) provided: Provided,
    /// The lab file, its text, and what was set in it.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) set: Vec<String>,
    /// Of a lab that is attached to containers: what they run. None: its nodes are its own.
    pub(crate) attached: Option<AttachedLab>,
    /// Files that the lab file names, and containers that it is attached to, by path or name; read outside.
    pub(crate) files: BTreeMap<String, String>,
    /// Why there are no disks that can be slow; none: there are.
    pub(crate) no_disk: Option<String>,
    pub(crate) started_unix_ms: u64,
    pub(crate) who: String,
    /// Inherited; each is the same in the keeper and in the first process.
    pub(crate) lock: RawFd,
    pub(crate) listener: RawFd,
    pub(crate) birth: RawFd,
}
