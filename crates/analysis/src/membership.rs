//! Which trials are a cell's own, and which it is compared with.

use brownout_record::{Arm, CellRow};

use crate::TrialFindings;

/// Whether a trial is one of a cell's own: with its faults, if it has any.
pub(crate) fn is_own(cell: &CellRow, trial: &TrialFindings) -> bool {
    trial.cell == cell.cell && (trial.arm == Arm::Fault || cell.description.faults.is_empty())
}

/// Whether a cell is compared with a trial: without a fault, and alike in all else.
pub(crate) fn is_compared(cell: &CellRow, trial: &TrialFindings) -> bool {
    trial.cell == cell.compared_with && trial.arm == Arm::None
}
