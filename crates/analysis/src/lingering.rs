//! Whether a fault that is not in force, between its periods or after its healing, is gone all the time.
//!
//! What all the pauses show together, or all of the recovery, does not tell a fault that stayed in two of five pauses, or for
//! some seconds of the recovery. What links, nodes and clocks show that nobody asked for is harm, and is looked for stretch by
//! stretch; times of disks, sizes and rates are not, because they have other reasons, too. But what lies nearer to the fault than
//! to what was before it, in nearly every measurement, has one.

use brownout_record::Quantity;

use crate::{
    AnalysisError,
    judgement::{Row, enough},
    measure::Source,
    observe::{SubjectEvidence, Window},
    segments::{Class, Segment},
    words::{said, show},
};

/// A stretch is looked at as a whole, and in parts of this share of it, each half over the next.
const PART: f64 = 0.2;

/// Where what is measured is no longer nearer to the fault.
enum Border {
    /// The quantile lies below this with the fault.
    Below(f64),
    /// Or above.
    Above(f64),
}

impl<'a> SubjectEvidence<'a> {
    /// Which part of a window, in which the fault is not in force, nor anything else of this subject, still shows it.
    pub(crate) fn lingers(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        when: &str,
    ) -> Result<Option<String>, AnalysisError> {
        let quantity = row.asked.quantity;
        let asked = row.asked.asked;
        let looked = matches!(source, Source::Witness(_)) && window.forces.is_empty();
        if !looked || !row.asked.hit || asked <= 0.0 {
            return Ok(None);
        }
        // How much of what is measured has to look like the fault: a disk that is busy is slow now and then, and no train is faster
        // than its limit.
        let share = match quantity {
            Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime | Quantity::MetadataTime => 0.1,
            Quantity::LargestPacket => 0.5,
            Quantity::Rate => 0.9,
            _ => return Ok(None),
        };
        let Some(before) = self.series.distribution(source, quantity, &self.before.segments, &[])? else {
            return Ok(None);
        };
        let (Some(usual), Some(last)) = (before.quantile(0.5), before.quantile(0.99)) else { return Ok(None) };
        let least = enough(source, quantity);
        let border = match quantity {
            Quantity::LargestPacket => Border::Below((usual + asked) / 2.0),
            Quantity::Rate => Border::Below((usual * asked).sqrt()),
            _ => Border::Above((usual + asked / 2.0).max(last)),
        };
        let limits = matches!(border, Border::Below(_));
        if before.count() < least || limits && asked >= usual {
            return Ok(None);
        }
        for segment in &window.segments {
            let parts = segment.parts(Class::of(&row.asked.subject), PART);
            for part in std::iter::once(segment.clone()).chain(parts) {
                let Some(seen) = self.seen_in(source, quantity, &part, share, least)? else { continue };
                let shows = match border {
                    Border::Below(border) => seen < border,
                    Border::Above(border) => seen > border,
                };
                if shows {
                    let (who, verb) = said(source, quantity);
                    let seconds = |at: u64| at as f64 / 1e9;
                    return Ok(Some(format!(
                        "{who} {verb} {} from {:.1} s to {:.1} s {when}, and {} before",
                        show(quantity, seen),
                        seconds(part.between.0),
                        seconds(part.between.1),
                        show(quantity, usual)
                    )));
                }
            }
        }
        Ok(None)
    }

    /// A quantile of what was measured in a segment; none where that is too little.
    fn seen_in(
        &self,
        source: Source<'a>,
        quantity: Quantity,
        segment: &Segment,
        share: f64,
        least: u64,
    ) -> Result<Option<f64>, AnalysisError> {
        let own = self.series.distribution(source, quantity, std::slice::from_ref(segment), &[])?;
        Ok(own.filter(|own| own.count() >= least).and_then(|own| own.quantile(share)))
    }
}
