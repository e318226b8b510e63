//! Files that an experiment file names: read once, outside of the lab, and carried into it and into the record.

use std::{cell::RefCell, collections::BTreeMap, io, path::Path, rc::Rc};

/// Texts by path. Reading one keeps it; the files of all cells of a design share them.
#[derive(Debug, Default, Clone)]
pub(super) struct Attached {
    files: Rc<RefCell<BTreeMap<String, String>>>,
    /// What is not here is not read from the disk either: inside of a lab the disk may be another one.
    sealed: bool,
}

impl Attached {
    /// These and no others.
    pub(super) fn sealed(files: BTreeMap<String, String>) -> Self {
        Attached { files: Rc::new(RefCell::new(files)), sealed: true }
    }

    /// The text of a file.
    pub(super) fn read(&self, path: &Path) -> io::Result<String> {
        let name = path.display().to_string();
        if let Some(text) = self.files.borrow().get(&name) {
            return Ok(text.clone());
        }
        if self.sealed {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was not read with the experiment file"));
        }
        let text = std::fs::read_to_string(path)?;
        self.files.borrow_mut().insert(name, text.clone());
        Ok(text)
    }

    /// All that were read.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        self.files.borrow().clone()
    }
}
