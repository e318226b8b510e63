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
        let during = self.series_measure(source, quantity, &window.segments, &window.forces)?;
        let own = self.series.distribution(source, quantity, &window.segments, &[])?;
        let widen = error_of_one(quantity, &during, &before, own.as_ref()) + row.leeway.within(&window.segments);
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

#[cfg(test)]
mod tests {
    use brownout_record::{Expectation, Quantity, Subject};

    use super::*;
    use crate::{
        measure::Measure,
        target::{Bound, Target},
    };

    /// Whether so many lost probes are harm, if as many were sent in the baseline and all arrived.
    fn is_found(hits: u64, count: u64) -> bool {
        let subject = Subject::pair("n1", "n2");
        let tolerance = 0.001;
        let asked = Expectation { subject, quantity: Quantity::Loss, hit: false, asked: 0.0, tolerance, burst: None };
        let row = Row {
            fault: 0,
            asked: &asked,
            least: f64::INFINITY,
            disturbing: &[],
            leeway: crate::judgement::Leeway::None,
        };
        let (before, during) = (Measure::share(0, count), Measure::share(hits, count));
        let target = Target { change: true, expected: 0.0, without: 0.0, bound: Bound::Both, slack: 0.0, tells: true };
        let whole = Observation {
            source: Source::Probes,
            target,
            during,
            measured: during.value,
            allowed: tolerance + before.error.hypot(during.error),
            enough: true,
            tells: true,
        };
        whole.contradicts() && !is_chance(&row, &whole, &before, 1.0)
    }

    /// The table in docs/definitions.md.
    #[test]
    fn losses_that_are_found_are_the_smaller_the_more_probes_there_are() {
        for (count, share) in [(100, 0.27), (300, 0.105), (1_000, 0.035), (3_000, 0.013), (10_000, 0.005)] {
            let hits = (share * count as f64).round() as u64;
            assert!(is_found(hits, count), "{share} of {count}");
            assert!(!is_found(hits * 9 / 10, count), "less than {share} of {count}");
        }
    }
}
