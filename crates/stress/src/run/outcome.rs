//! How a run has ended.

use brownout_base::clock::monotonic_ns;

use super::{RunError, phase::How};
use crate::output::{Measure, SearchFacts, Total};

/// How a run has ended, which determines its exit code.
pub struct Outcome {
    /// Figures of the whole run; of thread counts, those of the last step.
    pub total: Total,
    /// Each step by its name, if there are any.
    pub steps: Vec<(String, Total)>,
    /// How the last ended.
    pub how: How,
    /// The result of a search.
    pub search: Option<SearchFacts>,
    /// Why there are no figures.
    pub error: Option<RunError>,
}

impl Outcome {
    /// For a run that measured something.
    pub fn of(total: Total, steps: Vec<(String, Total)>, how: How) -> Self {
        Outcome { total, steps, how, search: None, error: None }
    }

    /// For a run that could not begin or not continue.
    pub fn without_figures(error: RunError) -> Self {
        let how = if error.exit_code() == 130 { How::Interrupted } else { How::Failed };
        Outcome { error: Some(error), ..Outcome::of(Total::new(monotonic_ns(), Measure::default()), Vec::new(), how) }
    }
}
