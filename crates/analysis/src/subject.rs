//! All measurements of one subject (a pair of hosts, a host, a directory), and what each source measured in given
//! segments of time.

use std::collections::BTreeMap;

use brownout_record::{FaultRecord, HostCounterRow, Quantity, Subject, WitnessRow};

use crate::{
    AnalysisError, TrialEvidence,
    distribution::Distribution,
    index::Index,
    links::{LinkCounts, held, release_error},
    measure::{LEAN, Measure, Source, is_share},
    routes::MEASURED,
    samples::{self, Sample},
    segments::{Class, Segment, Span},
    stats,
    target::HELD,
};

/// Of an answer of which the record does not say when it came (formats before [`Quantity::AnswerTime`]) it was at most this much later,
/// ns: requests begun less before a change say nothing.
const PATIENCE_NS: u64 = 1_000_000_000;

/// CPU time of a node in one reading.
struct CpuShare {
    span: Span,
    busy_ns: u64,
    cores_ns: u64,
}

/// Everything about one subject.
pub(crate) struct SubjectSeries<'a> {
    evidence: &'a TrialEvidence,
    subject: &'a Subject,
    class: Class,
    samples: Vec<Sample>,
    links: &'a [LinkCounts],
    kernel: &'a [&'a HostCounterRow],
    cpu: Vec<CpuShare>,
    witnesses: BTreeMap<(Quantity, &'a str), Vec<&'a WitnessRow>>,
    /// No fault of the trial ever hits it: nothing changes here, and a reading may go on over a change elsewhere.
    spared: bool,
}

impl<'a> SubjectSeries<'a> {
    pub(crate) fn of(evidence: &'a TrialEvidence, index: &'a Index<'a>, subject: &'a Subject, spared: bool) -> Self {
        let mut series = SubjectSeries {
            evidence,
            subject,
            class: Class::of(subject),
            samples: Vec::new(),
            links: &[],
            kernel: &[],
            cpu: Vec::new(),
            witnesses: BTreeMap::new(),
            spared,
        };
        match subject {
            Subject::Pair { from, to } => {
                series.samples = samples::of(index.probes(from, to));
                series.links = evidence.links.of(from, to);
                series.kernel = index.kernel(to);
            }
            Subject::Host { host } => {
                let shares = index.cpu(host).iter();
                series.cpu = shares
                    .map(|(row, cores_ns)| CpuShare {
                        span: (row.starts_ns, row.starts_ns + row.length_ns),
                        busy_ns: row.busy_ns,
                        cores_ns: *cores_ns,
                    })
                    .collect();
            }
            // The emulator's counters know packets of the overlay by their envelopes alone.
            Subject::Overlay { from, to } => series.samples = samples::of(index.overlay_probes(from, to)),
            Subject::Directory { .. } => {}
        }
        for row in index.witnesses(subject) {
            series.witnesses.entry((row.quantity, &row.source)).or_default().push(row);
        }
        series
    }

    /// Without the probes that may have been dropped before a limit of rate, by the emulator's own account.
    pub(crate) fn without_queued(mut self) -> Self {
        self.samples = samples::without_queued(std::mem::take(&mut self.samples), self.links);
        self
    }

    /// How exactly the clocks at both ends are known, ns: 0 on one machine.
    pub(crate) fn clock_doubt_ns(&self) -> f64 {
        match self.subject {
            Subject::Pair { from, to } => self.evidence.clock_doubt_ns(from, to),
            _ => 0.0,
        }
    }

    /// Whether the emulator counted its packets.
    pub(crate) fn is_counted(&self) -> bool {
        !self.links.is_empty()
    }

    /// Who can have looked at a quantity here; the first of them has to.
    pub(crate) fn sources(&self, quantity: Quantity) -> Vec<Source<'a>> {
        let witnesses = |quantity: Quantity| {
            let from = (quantity, "");
            self.witnesses
                .range(from..)
                .take_while(move |((of, _), _)| *of == quantity)
                .map(|((_, by), _)| Source::Witness(by))
        };
        if self.class == Class::Overlays {
            return if MEASURED.contains(&quantity) { vec![Source::Probes] } else { Vec::new() };
        }
        match quantity {
            Quantity::OneWayDelay
            | Quantity::DelaySpread
            | Quantity::Loss
            | Quantity::Duplicates
            | Quantity::Reordered => vec![Source::Probes, Source::Counters],
            Quantity::Corruption => vec![Source::Probes, Source::Counters, Source::Checksums],
            Quantity::Rate => witnesses(quantity).chain([Source::Counters]).collect(),
            Quantity::ProcessorShare => [Source::Cpu].into_iter().chain(witnesses(quantity)).collect(),
            // A drift is the slope of the offsets.
            Quantity::ClockDrift => witnesses(Quantity::ClockOffset).collect(),
            _ => witnesses(quantity).collect(),
        }
    }

    /// The delays of the probes sent in some segments, in the order of their sending, ns.
    pub(crate) fn delays(&self, segments: &[Segment]) -> Vec<f64> {
        let sent = segments.iter().flat_map(|segment| {
            let (from, to) = segment.sent(self.class);
            samples::sent(&self.samples, from, to)
        });
        sent.filter_map(|sample| sample.delay_ns).map(|delay| delay as f64).collect()
    }

    /// A fault of the trial, by its index.
    pub(crate) fn fault(&self, at: usize) -> &'a FaultRecord {
        &self.evidence.faults[at]
    }

    /// The single measurements of one in some segments, but for those begun within `without`; none where it makes none.
    pub(crate) fn distribution(
        &self,
        source: Source<'_>,
        quantity: Quantity,
        segments: &[Segment],
        without: &[Span],
    ) -> Result<Option<Distribution>, AnalysisError> {
        let counts = |at_ns: u64| !without.iter().any(|(from, to)| (*from..*to).contains(&at_ns));
        Ok(match (source, quantity) {
            (Source::Probes, Quantity::OneWayDelay) => {
                let sent = segments.iter().flat_map(|segment| {
                    let (from, to) = segment.sent(self.class);
                    samples::sent(&self.samples, from, to)
                });
                let delays = sent.filter(|sample| counts(sample.sent_ns)).filter_map(|sample| sample.delay_ns);
                Some(Distribution::of(delays.map(|delay| delay as f64).collect()))
            }
            (Source::Counters, Quantity::OneWayDelay) => {
                Some(Distribution::Counted(held(self.settled(segments).filter(|row| counts(row.starts_ns)))?))
            }
            (
                Source::Witness(name),
                Quantity::ReadTime
                | Quantity::WriteTime
                | Quantity::SyncTime
                | Quantity::MetadataTime
                | Quantity::LargestPacket
                | Quantity::Rate,
            ) => {
                let rows = self.looks(name, quantity, segments);
                Some(Distribution::of(rows.flatten().map(|row| row.value).collect()))
            }
            (Source::Witness(name), Quantity::ClockOffset) => {
                let rows = || self.looks(name, quantity, segments).flatten();
                let mut values: Vec<f64> = rows().map(|row| row.value).collect();
                let usual = stats::quantile(&mut values, 0.5).unwrap_or_default();
                // A reading that took long is known within a wide bound: it shows no more than its nearest end.
                let nearest = |row: &&WitnessRow| usual.clamp(row.value - row.error.abs(), row.value + row.error.abs());
                Some(Distribution::of(rows().map(nearest).collect()))
            }
            _ => None,
        })
    }

    /// What one measured in some segments.
    pub(crate) fn measure(
        &self,
        source: Source<'_>,
        quantity: Quantity,
        segments: &[Segment],
    ) -> Result<Measure, AnalysisError> {
        Ok(match source {
            Source::Probes => {
                let measure = samples::measure(quantity, &self.samples, segments, self.class);
                // Beyond its tolerance nothing is told at all.
                let doubt =
                    Some(self.clock_doubt_ns()).filter(|doubt| quantity == Quantity::OneWayDelay && doubt.is_finite());
                Measure { error: measure.error + doubt.unwrap_or(0.0), ..measure }
            }
            Source::Counters => self.counters(quantity, segments)?,
            Source::Checksums => self.checksums(segments),
            Source::Cpu => self.processor(segments),
            Source::Witness(name) => self.witness(name, quantity, segments),
        })
    }

    /// A clock's offset at the moment in which a fault began to make it drift: the line of its offsets in each segment, gone
    /// back to there. Its error is the worst that the bounds of the offsets allow.
    pub(crate) fn offset_at_drift(&self, source: Source<'_>, segments: &[Segment], drift: usize) -> Measure {
        let Source::Witness(name) = source else { return Measure::default() };
        let Some(rows) = self.witnesses.get(&(Quantity::ClockOffset, name)) else { return Measure::default() };
        let (mut sum, mut bounds, mut count) = (0.0, 0.0, 0_u64);
        for segment in segments {
            let Some(at) = segment.forces.iter().position(|force| force.0 == drift) else { continue };
            let since = segment.since[at] as f64;
            let (from, to) = segment.begun(self.class);
            let first = rows.partition_point(|row| row.at_ns < from);
            let rows = &rows[first..rows.partition_point(|row| row.at_ns < to).max(first)];
            let n = rows.len() as f64;
            let seconds = |row: &WitnessRow| (row.at_ns as f64 - since) / 1e9;
            let middle = rows.iter().map(|row| seconds(row)).sum::<f64>() / n;
            let spread: f64 = rows.iter().map(|row| (seconds(row) - middle).powi(2)).sum();
            if spread <= 0.0 || rows.is_empty() {
                continue;
            }
            for row in rows {
                // What least squares make of one value, where the seconds are 0.
                let weight = 1.0 / n - (seconds(row) - middle) * middle / spread;
                sum += weight * row.value * n;
                bounds += weight.abs() * row.error * n;
            }
            count += rows.len() as u64;
        }
        let per = count.max(1) as f64;
        Measure { error: bounds / per, ..Measure::exact((count > 0).then_some(sum / per), count) }
    }

    fn counters(&self, quantity: Quantity, segments: &[Segment]) -> Result<Measure, AnalysisError> {
        let inside = || self.settled(segments);
        let share = |hits: fn(&LinkCounts) -> u64, of: fn(&LinkCounts) -> u64| {
            let (settled, of_settled) = inside().fold((0, 0), |sum, row| (sum.0 + hits(row), sum.1 + of(row)));
            if of_settled > 0 {
                return Measure::share(settled.min(of_settled), of_settled);
            }
            // What comes and goes every few seconds leaves no reading between its margins. But what is done to packets as
            // they come in needs no time to settle.
            let leaning = leaning(self.links, segments);
            let (hits, of) = leaning.fold((0, 0), |sum, row| (sum.0 + hits(row), sum.1 + of(row)));
            Measure { leans: of > 0, ..Measure::share(hits.min(of), of) }
        };
        Ok(match quantity {
            Quantity::OneWayDelay | Quantity::DelaySpread => {
                let times = match quantity {
                    Quantity::OneWayDelay => held(self.timed(segments).into_iter())?,
                    _ => held(inside())?,
                };
                let at = |q: f64| times.value_at_quantile(q) as f64;
                let value = if quantity == Quantity::OneWayDelay { at(0.5) } else { at(0.9) - at(0.1) };
                Measure::exact((!times.is_empty()).then_some(value), times.len())
            }
            Quantity::Loss => share(|row| row.lost + row.cut, |row| row.offered),
            Quantity::Duplicates => share(|row| row.duplicated, LinkCounts::passed),
            Quantity::Reordered => share(|row| row.reordered, LinkCounts::passed),
            Quantity::Corruption => share(|row| row.corrupted, |row| row.passed() + row.duplicated),
            Quantity::Rate => {
                let rate = |row: &LinkCounts| row.delivered_bytes as f64 * 8e9 / row.length_ns.max(1) as f64;
                let packets = inside().map(|row| row.delivered).sum();
                Measure::exact(inside().map(rate).reduce(f64::max), packets)
            }
            _ => Measure::default(),
        })
    }

    /// The readings that say how long packets took in some segments.
    fn timed<'b>(&'b self, segments: &'b [Segment]) -> Vec<&'b LinkCounts> {
        let settled: Vec<&LinkCounts> = self.settled(segments).collect();
        // Counters are also read right after a brief fault came and right before it goes. What was on its way when it came is in such
        // a reading, but does not move its median.
        let is_brief = settled.iter().all(|row| row.delivered == 0);
        if is_brief { between(self.links, segments).collect() } else { settled }
    }

    /// How late the emulator says itself that it released packets, ns: a quarter of them, at least so much. A processor that was taken
    /// for two milliseconds holds up all packets of a period of a hundred, and that is not the fault's doing.
    pub(crate) fn released_late(&self, segments: &[Segment]) -> Result<f64, AnalysisError> {
        let errors = release_error(self.timed(segments).into_iter())?;
        Ok(if errors.is_empty() { 0.0 } else { errors.value_at_quantile(0.75) as f64 })
    }

    /// The readings of counters in some segments, once what is in force has settled.
    fn settled<'b>(&'b self, segments: &'b [Segment]) -> impl Iterator<Item = &'b LinkCounts> {
        inside(self.links, |row| (row.starts_ns, row.ends_ns()), segments, self.class, self.spared)
    }

    /// What the receiving kernel threw away, beside what the emulator damaged, of all that came to it.
    fn checksums(&self, segments: &[Segment]) -> Measure {
        let Subject::Pair { to, .. } = self.subject else { return Measure::default() };
        let span = |row: &&HostCounterRow| (row.starts_ns, row.starts_ns + row.length_ns);
        let errors: u64 = inside(self.kernel, span, segments, self.class, false).map(|row| row.checksum_errors).sum();
        let readings = inside(self.kernel, span, segments, self.class, false).count();
        let (mut corrupted, mut delivered) = (0, 0);
        for links in self.evidence.links.ending_at(to) {
            for row in inside(links, |row| (row.starts_ns, row.ends_ns()), segments, self.class, false) {
                corrupted += row.corrupted;
                delivered += row.delivered;
            }
        }
        let share = Measure::share(errors.min(delivered), delivered);
        let told = corrupted as f64 / delivered.max(1) as f64;
        Measure { samples: if readings > 0 { corrupted } else { 0 }, told, ..share }
    }

    fn processor(&self, segments: &[Segment]) -> Measure {
        let (mut busy, mut cores, mut readings) = (0, 0, 0);
        for row in inside(&self.cpu, |row| row.span, segments, self.class, false) {
            busy += row.busy_ns;
            cores += row.cores_ns;
            readings += 1;
        }
        let held = self.witness(HELD, Quantity::ProcessorShare, segments).value.unwrap_or(0.0);
        Measure { told: held, ..Measure::exact((cores > 0).then(|| busy as f64 / cores as f64), readings) }
    }

    /// What a witness saw, segment by segment.
    fn looks<'b>(
        &'b self,
        name: &'b str,
        quantity: Quantity,
        segments: &'b [Segment],
    ) -> impl Iterator<Item = &'b [&'a WitnessRow]> + Clone {
        let of = if quantity == Quantity::ClockDrift { Quantity::ClockOffset } else { quantity };
        let rows = self.witnesses.get(&(of, name)).map_or(&[][..], Vec::as_slice);
        segments.iter().map(move |segment| {
            let (from, to) = segment.begun(self.class);
            let first = rows.partition_point(|row| row.at_ns < from);
            let last = rows.partition_point(|row| row.at_ns < to).max(first);
            &rows[first..last]
        })
    }

    fn witness(&self, name: &str, quantity: Quantity, segments: &[Segment]) -> Measure {
        if quantity == Quantity::Answers {
            return self.answers(name, segments);
        }
        let spans = self.looks(name, quantity, segments);
        let all = || spans.clone().flatten();
        let values = || all().map(|row| row.value).collect::<Vec<f64>>();
        let count = all().count() as u64;
        match quantity {
            _ if quantity == Quantity::Running || is_share(quantity) => {
                let sum = all().map(|row| row.value).sum::<f64>();
                let error = stats::share_half_width(sum.round().max(0.0) as u64, count);
                Measure { error, ..Measure::exact((count > 0).then(|| sum / count as f64), count) }
            }
            Quantity::ProcessorShare => Measure::exact(stats::mean(&values()), count),
            Quantity::Rate => Measure::exact(stats::quantile(&mut values(), 0.9), count),
            Quantity::ClockDrift => slope(spans),
            _ => Measure::bounded(all().map(|row| (row.value, row.error))),
        }
    }
}

impl SubjectSeries<'_> {
    /// The share of the requests begun in some segments that were answered while the same segment went on: what a host does with them
    /// once it goes on says nothing of whether it stood still.
    fn answers(&self, name: &str, segments: &[Segment]) -> Measure {
        let of = |quantity| self.witnesses.get(&(quantity, name)).map_or(&[][..], Vec::as_slice);
        let (rows, times) = (of(Quantity::Answers), of(Quantity::AnswerTime));
        let (mut answered, mut count) = (0, 0);
        for segment in segments {
            let ((from, to), (_, ends)) = (segment.begun(self.class), segment.settled(self.class));
            let first = rows.partition_point(|row| row.at_ns < from);
            for row in rows[first..].iter().take_while(|row| row.at_ns < to) {
                let took = times.binary_search_by_key(&row.at_ns, |time| time.at_ns).ok().map(|at| times[at].value);
                let in_time = match took {
                    Some(took) => row.value > 0.0 && row.at_ns + took as u64 <= ends,
                    None if times.is_empty() && row.at_ns + PATIENCE_NS > to => continue,
                    None => times.is_empty() && row.value > 0.0,
                };
                answered += u64::from(in_time);
                count += 1;
            }
        }
        Measure::share(answered, count)
    }
}

/// Those rows that lie wholly inside a segment, or those that have any part in it. Rows and segments are in order of time.
fn inside<'b, T>(
    rows: &'b [T],
    span: impl Fn(&T) -> Span + Copy + 'b,
    segments: &'b [Segment],
    class: Class,
    partly: bool,
) -> impl Iterator<Item = &'b T> {
    segments.iter().flat_map(move |segment| {
        let (from, to) = if partly { segment.between } else { segment.settled(class) };
        let begins = |row: &T| if partly { span(row).1 <= from } else { span(row).0 < from };
        let first = rows.partition_point(begins);
        rows[first..].iter().take_while(move |row| if partly { span(row).0 < to } else { span(row).1 <= to })
    })
}

/// Those readings of counters that lie between two changes, however soon after the one.
fn between<'b>(rows: &'b [LinkCounts], segments: &'b [Segment]) -> impl Iterator<Item = &'b LinkCounts> {
    segments.iter().flat_map(|segment| {
        let (from, to) = segment.between;
        let first = rows.partition_point(|row| row.starts_ns < from);
        rows[first..].iter().take_while(move |row| row.ends_ns() <= to)
    })
}

/// Those readings of counters that lie in a segment but for a small part of their length.
fn leaning<'b>(rows: &'b [LinkCounts], segments: &'b [Segment]) -> impl Iterator<Item = &'b LinkCounts> {
    segments.iter().flat_map(move |segment| {
        let (from, to) = segment.between;
        let lean = |row: &LinkCounts| (row.length_ns as f64 * LEAN) as u64;
        let first = rows.partition_point(|row| row.starts_ns + lean(row) < from);
        rows[first..].iter().take_while(move |row| row.ends_ns() <= to + lean(row))
    })
}

/// Slope of a clock's offset over true time, ns/s: least squares, each stretch of time around its own middle.
///
/// Its error is the worst that the bounds of the offsets allow: all below on the one side, all above on the other.
fn slope<'b>(spans: impl Iterator<Item = &'b [&'b WitnessRow]>) -> Measure {
    let (mut xx, mut xy, mut bounds, mut count) = (0.0, 0.0, 0.0, 0);
    for rows in spans {
        let seconds = |row: &WitnessRow| (row.at_ns - rows[0].at_ns) as f64 / 1e9;
        let mean =
            |value: &dyn Fn(&WitnessRow) -> f64| rows.iter().map(|row| value(row)).sum::<f64>() / rows.len() as f64;
        let (x, y) = (mean(&seconds), mean(&|row| row.value));
        for row in rows {
            let away = seconds(row) - x;
            xx += away * away;
            xy += away * (row.value - y);
            bounds += away.abs() * row.error;
        }
        count += rows.len() as u64;
    }
    let known = xx > 0.0;
    Measure { error: if known { bounds / xx } else { 0.0 }, ..Measure::exact(known.then(|| xy / xx), count) }
}
