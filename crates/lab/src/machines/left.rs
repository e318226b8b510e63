//! One record of a trial, made of what its parts have left.

use brownout_clock::offset::Offsets;
use brownout_load::Part;
use brownout_record::{Intervals, LostLoad, MachineRow, Recorder, Run, TrialPart};

use super::{part::TRIAL, shares::Shares};
use crate::{LabError, plan::INTERVAL_NS};

/// What a part has left, or, where it is lost, what it had told.
pub(super) struct Left {
    pub(super) machine: MachineRow,
    pub(super) record: Run,
    /// The zero of the record, by the clock that its times are of.
    pub(super) zero_ns: u64,
    /// Of that clock and the axis; none where it is the axis.
    pub(super) offsets: Option<Offsets>,
    /// Of a load that is lost: what it was to send.
    pub(super) share: Option<Part>,
}

impl Left {
    /// A time of the record on the axis, and how exactly that is known, ns.
    fn on_axis(&self, at_ns: u64) -> Option<(u64, u64)> {
        let own_ns = self.zero_ns + at_ns;
        match &self.offsets {
            Some(offsets) => offsets.on_server(own_ns),
            None => Some((own_ns, 0)),
        }
    }
}

/// Where the intervals of a trial lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Their beginning, on the axis.
    pub(super) begins_ns: u64,
    /// The same on the time line of the run.
    pub(super) begins_run_ns: u64,
    /// When the load was over, on the axis.
    pub(super) until_ns: u64,
}

/// Writes all that was left into the record of the run.
///
/// # Errors
/// Those of [`brownout_record::merge`].
pub(super) fn merge(
    recorder: &mut Recorder,
    trial: u32,
    all: &[Left],
    span: Span,
    shares: &Shares,
) -> Result<(), LabError> {
    let Span { begins_ns, begins_run_ns, until_ns } = span;
    // Of the controller's clock only the moment counts at which it was compared: all else is by the axis.
    let on_run = |left: &Left, at_ns: u64| {
        let (axis_ns, error_ns) = left.on_axis(at_ns)?;
        Some(((begins_run_ns + axis_ns).saturating_sub(begins_ns), error_ns))
    };
    let due = |left: &Left, from_ns: u64, to_ns: u64| left.share.map_or(0, |share| shares.due(share, from_ns, to_ns));
    let of_each: Vec<_> = all
        .iter()
        .map(|left| (move |at_ns| on_run(left, at_ns), move |from_ns, to_ns| due(left, from_ns, to_ns)))
        .collect();
    let until_ns = until_ns.saturating_sub(begins_ns);
    let from_ns = shares.measured_since().unwrap_or(until_ns);
    let mut parts = Vec::new();
    for (left, (on_run, due)) in all.iter().zip(&of_each) {
        let lost = left.share.map(|_| LostLoad { due, from_ns, until_ns, length_ns: INTERVAL_NS });
        parts.push(TrialPart { machine: left.machine.clone(), run: &left.record, trial: TRIAL, on_run, lost });
    }
    let intervals = Intervals { epoch_ns: begins_run_ns, length_ns: INTERVAL_NS };
    Ok(brownout_record::merge(recorder, trial, intervals, &parts)?)
}
