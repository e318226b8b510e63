use brownout_analysis::AnalysisError;
use brownout_record::RecordError;
use thiserror::Error;

/// Why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The run could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run could not be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}
