//! The report: one HTML file.

use brownout_analysis::Findings;
use brownout_record::Run;

use crate::ReportError;

/// What a run says, as one HTML file that refers to nothing outside itself.
pub fn html(_run: &Run, findings: &Findings) -> Result<String, ReportError> {
    Ok(format!("<!doctype html><title>{}</title>", findings.name))
}
