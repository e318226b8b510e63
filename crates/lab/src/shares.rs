//! The labs that work at once, and the processors of each.

use brownout_machine::cpu_list;
use serde::{Deserialize, Serialize};

/// Labs that work at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labs {
    /// The processors of each, ascending; of a single one, all that there are.
    pub processors: Vec<Vec<usize>>,
    /// Why there are so many and no more, in words.
    pub reason: String,
}

impl Labs {
    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.processors.len()).unwrap_or(u32::MAX)
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.processors.len() > 1
    }

    /// How many may be at work beside each other while a cell is run: what its file says, or all.
    pub(crate) fn at_once(&self, parallel: Option<u32>) -> u32 {
        parallel.unwrap_or(u32::MAX).min(self.count())
    }

    /// The processors of each, as lists.
    pub fn lists(&self) -> Vec<String> {
        self.processors.iter().map(|own| cpu_list(own)).collect()
    }

    /// "2 at once, on processors 0-3 and 4-7 (…)"; "one at a time (…)".
    pub fn words(&self) -> String {
        let reason = &self.reason;
        match self.count() {
            1 => format!("one at a time ({reason})"),
            count => format!("{count} at once, each on processors of its own: {} ({reason})", self.lists().join("; ")),
        }
    }

    /// What to mind; none with processors enough.
    pub fn warning(&self) -> Option<String> {
        let each = self.processors.first().map_or(0, Vec::len);
        (self.are_several() && each < 2).then(|| {
            "each lab has one processor, for which the database and the measurement compete; fewer labs at once (parallel) \
             have more"
                .to_owned()
        })
    }
}
