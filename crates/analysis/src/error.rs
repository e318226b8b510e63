use brownout_record::RecordError;
use thiserror::Error;

/// Why a run could not be analysed.
#[derive(Debug, Error)]
pub enum AnalysisError {
    /// The run could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Two histograms of the run could not be added up.
    #[error("the run's {what} histograms cannot be merged: {why}; the file is damaged")]
    Histogram {
        /// Which ones.
        what: &'static str,
        /// What the histogram library said.
        why: String,
    },
}
