//! Measurements of one subject, compared with what had to be seen there.

use std::{cell::RefCell, collections::HashMap};

use brownout_record::Quantity;

use crate::{
    AnalysisError,
    judgement::{Observation, Row, enough, tells},
    measure::{Measure, Source, is_share},
    segments::{Force, Segment, Span},
    stats::{ENOUGH, TELLING},
    subject::SubjectSeries,
    target::{Asks, Question},
    words::show,
};

/// Segments with the same things in force.
pub(crate) struct Window {
    /// Of its own in the trial.
    pub(crate) id: usize,
    pub(crate) segments: Vec<Segment>,
    pub(crate) forces: Vec<Force>,
}

impl Window {
    /// From the beginning of its first segment to the end of its last, ns since the run's zero.
    pub(crate) fn span(&self) -> Span {
        let first = self.segments.first().map_or(0, |segment| segment.between.0);
        (first, self.segments.last().map_or(first, |segment| segment.between.1))
    }
}

/// The windows in which one severity of one fault has to show itself.
pub(crate) struct Windows {
    pub(crate) during: Vec<Window>,
    /// Between its periods, when it is not there.
    pub(crate) pauses: Vec<Window>,
    /// After its last healing, in order of time.
    pub(crate) after: Vec<Window>,
    /// It was healed for good.
    pub(crate) healed: bool,
}

/// A subject, with all that was measured of it so far.
pub(crate) struct SubjectEvidence<'a> {
    pub(crate) series: SubjectSeries<'a>,
    pub(crate) asks: Asks<'a>,
    /// Before the first injection of any fault.
    pub(crate) before: &'a Window,
    /// When the kernel says that the emulator waited for a processor.
    pub(crate) starved: &'a [Span],
    known: RefCell<HashMap<(Source<'a>, Quantity, usize), Measure>>,
}

impl<'a> SubjectEvidence<'a> {
    pub(crate) fn new(series: SubjectSeries<'a>, asks: Asks<'a>, before: &'a Window, starved: &'a [Span]) -> Self {
        SubjectEvidence { series, asks, before, starved, known: RefCell::default() }
    }

    /// What a source measured in some segments with the same things in force.
    pub(crate) fn series_measure(
        &self,
        source: Source<'a>,
        quantity: Quantity,
        segments: &[Segment],
        forces: &[Force],
    ) -> Result<Measure, AnalysisError> {
        Ok(match self.asks.drifting(forces).next().filter(|_| quantity == Quantity::ClockOffset) {
            Some(drift) => self.series.offset_at_drift(source, segments, drift),
            None => self.series.measure(source, quantity, segments)?,
        })
    }

    /// The same, known from the second time on.
    pub(crate) fn measure(
        &self,
        source: Source<'a>,
        quantity: Quantity,
        window: &Window,
    ) -> Result<Measure, AnalysisError> {
        if let Some(known) = self.known.borrow().get(&(source, quantity, window.id)) {
            return Ok(*known);
        }
        let measure = self.series_measure(source, quantity, &window.segments, &window.forces)?;
        self.known.borrow_mut().insert((source, quantity, window.id), measure);
        Ok(measure)
    }

    /// That not one probe arrived before any fault, in words. No fault does that, and none can be seen by probes there: what the
    /// emulator alone says of its own work is no proof.
    pub(crate) fn eaten(&self, sources: &[Source<'a>]) -> Result<Option<String>, AnalysisError> {
        if !sources.contains(&Source::Probes) {
            return Ok(None);
        }
        let lost = self.measure(Source::Probes, Quantity::Loss, self.before)?;
        let are_eaten = lost.samples >= ENOUGH && lost.value.is_some_and(|share| share >= 1.0);
        Ok(are_eaten.then(|| {
            format!(
                "none of {} probes arrived before any fault: a firewall or a network policy drops them, on one of the two hosts or \
                 between them; let their UDP pass, or nothing can be proven here",
                lost.samples
            )
        }))
    }

    /// That a delay cannot be told, in words: it goes from one machine to another, and how far their clocks are apart is not known as
    /// exactly as the delay is to be.
    pub(crate) fn apart(&self, row: &Row<'_>) -> Option<String> {
        let (quantity, tolerance) = (row.asked.quantity, row.asked.tolerance);
        let doubt = self.series.clock_doubt_ns();
        (quantity == Quantity::OneWayDelay && doubt > tolerance).then(|| {
            let known = match doubt.is_finite() {
                true => format!("only known to within ± {}", show(quantity, doubt)),
                false => "not known".to_owned(),
            };
            format!(
                "how far the clocks of its two machines are apart is {known}, and ± {} is to be told; machines that are nearer to \
                 each other, or less busy, know it better",
                show(quantity, tolerance)
            )
        })
    }

    /// What a source says of a window; none where it cannot say anything.
    pub(crate) fn observe(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
    ) -> Result<Option<Observation<'a>>, AnalysisError> {
        let during = self.measure(source, row.asked.quantity, window)?;
        self.observation(source, row, &window.forces, &during, 0.0)
    }

    pub(crate) fn needs_before(&self, source: Source<'a>, row: &Row<'_>) -> bool {
        row.asked.quantity != Quantity::ProcessorShare && source != Source::Checksums
    }

    /// The same of what was measured while some forces were there, with `widen` more allowed.
    pub(crate) fn observation(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        forces: &[Force],
        during: &Measure,
        widen: f64,
    ) -> Result<Option<Observation<'a>>, AnalysisError> {
        let quantity = row.asked.quantity;
        let disturbed = forces.iter().any(|(other, _)| *other != row.fault && row.disturbing.contains(other));
        if disturbed && !self.asks.any(quantity, forces, None) {
            return Ok(None);
        }
        let before = self.measure(source, quantity, self.before)?;
        let question =
            Question { asks: &self.asks, source, quantity, forces, fault: row.fault, before: &before, during };
        let Some(target) = question.target() else { return Ok(None) };
        let least = enough(source, quantity);
        let enough = during.samples >= least && (before.samples >= least || !self.needs_before(source, row));
        let measured = if target.change {
            during.value.zip(before.value).map(|(during, before)| during - before)
        } else {
            during.value
        };
        // Packets that are hit in bursts say less than as many that are hit each by itself.
        let clumps = if is_share(quantity) { self.asks.clumping(quantity, forces) } else { 1.0 };
        let own_error = during.error * clumps.sqrt();
        let error = match (target.change, quantity) {
            // Bounds add; errors of independent counts add as squares.
            (true, Quantity::ClockOffset | Quantity::ClockDrift | Quantity::OneWayDelay) => before.error + own_error,
            (true, _) => before.error.hypot(own_error),
            (false, _) => own_error,
        };
        let allowed = row.asked.tolerance + question.others_tolerance() + error + target.slack + widen;
        // What speaks for the fault need not be beyond the doubt that is given to what speaks against it.
        let narrow = match quantity {
            Quantity::ClockOffset | Quantity::ClockDrift => allowed,
            _ => allowed - error * (1.0 - TELLING),
        };
        let mut observation =
            Observation { source, target, during: *during, measured, allowed: narrow, enough, tells: false };
        observation.tells = measured.is_some_and(|measured| tells(row, &observation, measured));
        Ok(Some(Observation { allowed, ..observation }))
    }
}
