use std::path::{Path, PathBuf};

use brownout_analysis::AnalysisError;
use brownout_record::RecordError;
use thiserror::Error;

/// What a study can fail with.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The run could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run could not be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A file could not be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A README has markers that cannot be followed.
    #[error("the README: {0}")]
    Marker(String),
}

impl StudyError {
    pub(crate) fn file(path: &Path, why: impl ToString) -> Self {
        StudyError::File { path: path.to_owned(), why: why.to_string() }
    }
}
