//! The freezer of a container's own control group: all its processes stand at once, and do not notice.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::groups::{Version, keyed};

/// The freezer of one group.
#[derive(Debug, Clone)]
pub(super) struct Freezer {
    version: Version,
    directory: PathBuf,
    /// Whether we may freeze and thaw.
    pub(super) is_ours: bool,
}

impl Freezer {
    /// That of this directory, if it has one that can be read.
    pub(super) fn of(version: Version, directory: &Path) -> Option<Freezer> {
        let mut freezer = Freezer { version, directory: directory.to_owned(), is_ours: false };
        freezer.is_frozen().ok()?;
        freezer.is_ours = OpenOptions::new().write(true).open(freezer.file()).is_ok();
        Some(freezer)
    }

    /// What is written to …
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join(match self.version {
            Version::One => "freezer.state",
            Version::Two => "cgroup.freeze",
        })
    }

    /// … and what, to freeze or to thaw.
    pub(super) fn word(&self, freeze: bool) -> &'static str {
        match (self.version, freeze) {
            (Version::One, true) => "FROZEN",
            (Version::One, false) => "THAWED",
            (Version::Two, true) => "1",
            (Version::Two, false) => "0",
        }
    }

    /// Begins to freeze, or thaws.
    pub(super) fn set(&self, freeze: bool) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.file())?.write_all(self.word(freeze).as_bytes())
    }

    /// Whether the kernel shows all processes frozen, by whomever.
    pub(super) fn is_frozen(&self) -> io::Result<bool> {
        match self.version {
            Version::One => Ok(fs::read_to_string(self.file())?.trim() == "FROZEN"),
            Version::Two => {
                let events = fs::read_to_string(self.directory.join("cgroup.events"))?;
                let frozen = keyed(&events, "frozen").ok_or(io::ErrorKind::Unsupported)?;
                Ok(frozen == 1)
            }
        }
    }

    /// Whether a process that is frozen stays as it is even when it is killed, until it is thawed.
    pub(super) fn outlasts_kills(&self) -> bool {
        self.version == Version::One
    }
}
