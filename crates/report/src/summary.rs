//! The summary on the terminal.

use brownout_analysis::Findings;

/// How the summary looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours and bold may be used; the caller knows of terminals and `NO_COLOR`.
    pub color: bool,
    /// Columns.
    pub width: usize,
}

/// What a run says, as text.
pub fn summary(findings: &Findings, _style: Style) -> String {
    findings.verdict.sentence.clone()
}
