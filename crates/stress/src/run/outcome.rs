//! How a run has ended.

use brownout_base::clock::monotonic_ns;

use super::{RunError, phase::How};
use crate::output::{Measure, SearchFacts, Total};

/// How a run has ended: what decides about its exit code.
pub struct Outcome {
    /// All of it; of thread counts, the last.
    pub total: Total,
    /// Each step by its name, if there are any.
    pub steps: Vec<(String, Total)>,
    /// How the last ended.
    pub how: How,
    /// What a search has found.
    pub search: Option<SearchFacts>,
    /// Why there are no figures.
    pub error: Option<RunError>,
}

impl Outcome {
    /// Of a run that measured something.
    pub fn of(total: Total, steps: Vec<(String, Total)>, how: How) -> Self {
        Outcome { total, steps, how, search: None, error: None }
    }

    /// Of one that could not begin, or not go on.
    pub fn without_figures(error: RunError) -> Self {
        let how = if error.exit_code() == 130 { How::Interrupted } else { How::Failed };
        Outcome { error: Some(error), ..Outcome::of(Total::new(monotonic_ns(), Measure::default()), Vec::new(), how) }
    }
}
