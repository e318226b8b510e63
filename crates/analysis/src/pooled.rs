//! What several stretches of the same kind show together.
//!
//! Of a fault that comes and goes each stretch may be too short to tell a loss from an accident, and all of them are not.

use crate::{
    AnalysisError,
    judgement::{Observation, Proof, Row, refutation},
    measure::Source,
    observe::{SubjectEvidence, Window},
    steady::{error_of_one, is_chance},
};

impl<'a> SubjectEvidence<'a> {
    /// What contradicts in all stretches of a window together: by the figure of all of them, and by their single measurements.
    pub(crate) fn pooled(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
    ) -> Result<Option<String>, AnalysisError> {
        let quantity = row.asked.quantity;
        let of_all = |why: String| format!("of {} stretches together, {why}", window.segments.len());
        let before = self.measure(source, quantity, self.before)?;
        let during = self.place_measure(source, quantity, &window.segments, &window.forces)?;
        let own = self.place.distribution(source, quantity, &window.segments, &[])?;
        let widen = error_of_one(quantity, &during, &before, own.as_ref()) + row.strained_by(&window.segments);
        let observed = self.observation(source, row, &window.forces, &during, widen)?;
        let clumps = self.asks.clumping(quantity, &window.forces);
        let against = |one: &Observation<'_>| one.contradicts() && !is_chance(row, one, &before, clumps);
        if let Some(observed) = observed.filter(against) {
            return Ok(Some(of_all(refutation(row, &observed, ""))));
        }
        let known = before.samples >= crate::judgement::enough(source, quantity) || !self.needs_before(source, row);
        if !known {
            return Ok(None);
        }
        let singly = self.together(source, row, std::slice::from_ref(window))?;
        Ok(singly.filter(|(verdict, _)| *verdict == Proof::Refuted).map(|(_, why)| why))
    }
}
