//! Checks before a run that the files it will write can be written, so that a wrong path does not cost a run.

use std::{fs::OpenOptions, io, path::Path};

use super::RunError;
use crate::{
    output::{self, OutputError, run_path},
    settings::Settings,
};

/// Checks that all files named in the settings can be written. Existing files are not changed.
///
/// # Errors
/// The first that cannot be written.
pub fn check(settings: &Settings) -> Result<(), RunError> {
    let log = &settings.log;
    let named = [
        ("-log file=", &log.file),
        ("-log hdrfile=", &log.hdr_file),
        ("-log csv=", &log.csv),
        ("-log json=", &log.json),
        ("-graph file=", &settings.graph.file),
    ];
    for (option, path) in named {
        if let Some(path) = path {
            writable(path).map_err(|source| RunError::Unwritable { option, path: path.clone(), source })?;
        }
    }
    if let Some(file) = &settings.graph.file {
        output::check_graph(file)?;
    }
    if let Some(path) = &settings.extras.record {
        let path = run_path(&path.to_string_lossy());
        if path.exists() {
            return Err(OutputError::Exists { path }.into());
        }
        writable(&path).map_err(|source| RunError::Unwritable { option: "--record ", path, source })?;
    }
    Ok(())
}

/// Opens it for writing, and removes it if it did not exist before.
fn writable(path: &Path) -> io::Result<()> {
    let there = path.exists();
    drop(OpenOptions::new().append(true).create(true).open(path)?);
    if there { Ok(()) } else { std::fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_whether_a_file_can_be_written_leaves_all_as_it_was() {
        let directory = std::env::temp_dir().join(format!("brownout-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (old, new) = (directory.join("old"), directory.join("new"));
        std::fs::write(&old, "kept").unwrap();
        writable(&old).unwrap();
        writable(&new).unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
        assert!(!new.exists());
        assert!(writable(&directory).is_err() && writable(&directory.join("no/such")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
