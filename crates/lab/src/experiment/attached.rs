//! Files that an experiment file names, and containers that it is run on: read once, outside of the lab, and carried into it and into
//! the record.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Texts by path. Reading one keeps it; the files of all cells of a design share them.
#[derive(Debug, Default, Clone)]
pub(super) struct Attached {
    files: Arc<Mutex<BTreeMap<String, String>>>,
    /// What is not here is not read from the disk either: inside of a lab the disk may be another one.
    sealed: bool,
}

impl Attached {
    /// These and no others.
    pub(super) fn sealed(files: BTreeMap<String, String>) -> Self {
        Attached { files: Arc::new(Mutex::new(files)), sealed: true }
    }

    /// The text of a file.
    pub(super) fn read(&self, path: &Path) -> io::Result<String> {
        self.made(&path.display().to_string(), || std::fs::read_to_string(path))
    }

    /// The text of this name, which is made where there is none yet.
    pub(super) fn made(&self, name: &str, make: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
        if let Some(text) = self.known().get(name) {
            return Ok(text.clone());
        }
        if self.sealed {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was not read with the experiment file"));
        }
        let text = make()?;
        self.known().insert(name.to_owned(), text.clone());
        Ok(text)
    }

    /// All that were read.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        self.known().clone()
    }

    /// Texts are put there whole, so a panic of another thread has broken nothing.
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
