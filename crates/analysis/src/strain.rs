//! How far the machine may have kept packets waiting, second by second.
//!
//! What a pair shows without any fault is exact as long as the emulator gets a processor when it needs one. Where it does not,
//! or where nobody knows, delays are the machine's doing as well, and no outsider can be told from it.

use std::collections::BTreeMap;

use crate::{
    TrialEvidence,
    disturbance::Reading,
    instrument::SATURATED_SHARE,
    segments::{Segment, Span},
    stalls::{EMULATOR_WAITED, WAITED_SHARE},
};

/// An emulator that used more than this share of a processor had queues of its own.
const EMULATOR_BUSY: f64 = 0.5;

/// By reading of the processors: 0 where the emulator always had one, 1 where it waited for as long as makes an interval late
/// ([`WAITED_SHARE`]), where it or the machine was busy, where others took processors, where it dropped packets because it ran out,
/// and where the record does not say.
pub(crate) struct Strain {
    readings: Vec<(Span, f64)>,
}

impl Strain {
    pub(crate) fn of(evidence: &TrialEvidence) -> Self {
        let mut spans: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut waited, mut busy, mut machine, mut cores) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in &evidence.cpu {
            spans.insert(row.starts_ns, row.starts_ns + row.length_ns);
            let of = match row.subject.as_str() {
                EMULATOR_WAITED => &mut waited,
                "emulator" => &mut busy,
                "machine" => &mut machine,
                "cores" => &mut cores,
                _ => continue,
            };
            of.insert(row.starts_ns, row.busy_ns as f64);
        }
        let unread = evidence.host_counters.iter().filter(|row| row.interface_dropped > 0);
        let unread = unread.map(|row| (row.starts_ns, row.starts_ns + row.length_ns));
        let dropping: Vec<Span> = evidence.links.dropping.iter().copied().chain(unread).collect();
        let readings = Reading::all(evidence);
        let strain = |starts_ns: u64, ends_ns: u64| {
            let length = ends_ns.saturating_sub(starts_ns).max(1) as f64;
            let share = |of: &BTreeMap<u64, f64>| of.get(&starts_ns).map_or(0.0, |used| used / length);
            let full = share(&machine) > SATURATED_SHARE * share(&cores);
            let drops = dropping.iter().any(|(from, to)| *from < ends_ns && *to > starts_ns);
            let crowded = readings.get(&starts_ns).is_some_and(Reading::crowded);
            if share(&busy) > EMULATOR_BUSY || full || drops || crowded {
                return 1.0;
            }
            waited.get(&starts_ns).map_or(1.0, |waited| (waited / length / WAITED_SHARE).min(1.0))
        };
        let of = |(starts_ns, ends_ns): (u64, u64)| ((starts_ns, ends_ns), strain(starts_ns, ends_ns));
        Strain { readings: spans.into_iter().map(of).collect() }
    }

    /// The mean over some segments; time of which there is no reading counts as 1.
    pub(crate) fn mean(&self, segments: &[Segment]) -> f64 {
        let (mut sum, mut all) = (0.0, 0.0);
        for segment in segments {
            let (from, to) = segment.between;
            let first = self.readings.partition_point(|((_, ends), _)| *ends <= from);
            let mut known = 0.0;
            for ((starts, ends), strain) in self.readings[first..].iter().take_while(|((starts, _), _)| *starts < to) {
                let common = (*ends).min(to).saturating_sub((*starts).max(from)) as f64;
                known += common;
                sum += common * strain;
            }
            let length = to.saturating_sub(from) as f64;
            sum += (length - known).max(0.0);
            all += length;
        }
        if all > 0.0 { sum / all } else { 1.0 }
    }
}
