//! Two runs of the same design: do they say the same of its cells?

use brownout_analysis::{CellFindings, Findings, Outcome};

/// A cell, and what each run says of its faults' effect on goodput.
#[derive(Debug, Clone, PartialEq)]
pub struct Both {
    /// The cell in words.
    pub cell: String,
    /// By the one run, and by the other.
    pub outcomes: [Outcome; 2],
    /// Their intervals, if they are judged.
    pub intervals: [Option<(f64, f64)>; 2],
}

/// How what two runs say of a cell fits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Both tell the same.
    Same,
    /// One of them tells nothing, or less.
    Open,
    /// They contradict each other.
    Contradiction,
}

impl Both {
    /// Whether they fit together.
    pub fn fit(&self) -> Fit {
        use Outcome::{Better, Changed, NoDifference, Worse};
        match self.outcomes {
            [one, other] if one == other && matches!(one, Worse | Better | NoDifference | Changed) => Fit::Same,
            [Worse | Better | NoDifference, Worse | Better | NoDifference] => Fit::Contradiction,
            [NoDifference, Changed] | [Changed, NoDifference] => Fit::Contradiction,
            _ => Fit::Open,
        }
    }
}

/// Both runs' verdicts, cell by cell; none if their cells are not the same.
pub fn same(one: &Findings, other: &Findings) -> Option<Vec<Both>> {
    let alike = |(one, other): (&CellFindings, &CellFindings)| one.levels == other.levels;
    let cells = || one.cells.iter().zip(&other.cells);
    let is_same = one.cells.len() == other.cells.len() && one.design.factors == other.design.factors;
    (is_same && cells().all(alike)).then(|| {
        let both = |(one, other): (&CellFindings, &CellFindings)| Both {
            cell: one.text.clone(),
            outcomes: [one.effect.outcome, other.effect.outcome],
            intervals: [one.effect.interval, other.effect.interval],
        };
        cells().map(both).collect()
    })
}
