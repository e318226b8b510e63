//! Complaints.

use std::{fmt, path::PathBuf};

/// What is wrong with a file, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Line and column, from 1; none for what is not in the file.
    pub place: Option<(usize, usize)>,
    /// The key, dotted: `queries.simple1.fields`, `faults.0.slow.host`; empty for the whole file.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The line itself, to be shown below.
    pub excerpt: Option<String>,
}

impl FileError {
    /// A complaint about what has no place in the file: the file itself, or what was said elsewhere.
    pub fn without_place(file: impl Into<PathBuf>, key: impl Into<String>, message: impl Into<String>) -> Self {
        FileError { file: file.into(), place: None, key: key.into(), message: message.into(), excerpt: None }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let (Some(excerpt), Some((line, column))) = (&self.excerpt, self.place) {
            let gutter = line.to_string().len();
            write!(f, "\n  {line} | {excerpt}\n  {:gutter$} | {:>column$}", "", "^")?;
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}
