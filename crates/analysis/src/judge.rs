//! The verdict on one subject and one quantity of one severity of a fault: did the evidence show what was expected?

use brownout_record::{Period, Quantity};

use crate::{
    AnalysisError,
    judgement::{Judgement, Observation, Proof, Row, SourceSeen, Stretch, cannot_tell, enough, too_few},
    measure::{Measure, Source},
    observe::{SubjectEvidence, Window, Windows},
    segments::{BRIEF_NS, Class, Segment},
    stats::ENOUGH,
    steady::Alone,
    target::HELD,
    words::said,
};

/// The witness that tells what a node's own process takes for the time.
const DATABASE: &str = "database";

/// Counters are read about once a second: a stretch of this length holds a whole reading, ns.
const READING_NS: u64 = 2_500_000_000;

impl<'a> SubjectEvidence<'a> {
    pub(crate) fn judge(&self, row: &Row<'_>, windows: &Windows) -> Result<Judgement, AnalysisError> {
        let mut sources = self.series.sources(row.asked.quantity);
        let blind = self.eaten(&sources)?.or_else(|| self.apart(row));
        sources.retain(|source| blind.is_none() || *source != Source::Probes);
        let mut judgement = self.during(&sources, row, windows)?;
        if let Some(why) = blind.filter(|_| judgement.verdict != Some(Proof::Refuted)) {
            judgement.fail(Proof::Unproven, row, why);
        }
        let hits = row.asked.hit && row.asked.asked != 0.0;
        // What else links show on a spared subject is looked for as harm, stretch by stretch, in every phase.
        let stretches = if hits || matches!(row.asked.quantity, Quantity::Rate | Quantity::LargestPacket) {
            self.stretches(&sources, row, &windows.during)?
        } else {
            Vec::new()
        };
        // What some periods showed and others did not says more than the figure of all of them.
        let agree = stretches.iter().any(|stretch| stretch.judged && stretch.why.is_none());
        let refuted = judgement.verdict == Some(Proof::Refuted);
        let why = stretches.iter().find_map(|stretch| stretch.why.clone());
        if hits {
            judgement.stretches = stretches;
        }
        if let Some(why) = why.filter(|_| agree || !refuted) {
            judgement.fail(Proof::Refuted, row, why);
        }
        if judgement.verdict.is_none() {
            self.unjudged(&sources, row, windows, &mut judgement)?;
        }
        if judgement.verdict == Some(Proof::Refuted) {
            return Ok(judgement);
        }
        for window in &windows.pauses {
            for source in &sources {
                let Some(observation) = self.observe(*source, row, window)?.filter(Observation::contradicts) else {
                    continue;
                };
                judgement.refute(row, &observation, "while it was not in force");
                return Ok(judgement);
            }
        }
        if self.stays(&sources, row, &windows.pauses, "while it was not in force", &mut judgement)? {
            return Ok(judgement);
        }
        self.after(&sources, row, windows, &mut judgement)?;
        if judgement.verdict != Some(Proof::Refuted) {
            self.stays(&sources, row, &windows.after, "although the fault was healed", &mut judgement)?;
        }
        judgement.verdict = judgement.verdict.or(Some(Proof::Proven));
        Ok(judgement)
    }

    /// Whether it still is there in any part of some windows in which it is not in force.
    fn stays(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &[Window],
        when: &str,
        judgement: &mut Judgement,
    ) -> Result<bool, AnalysisError> {
        for window in windows {
            for source in sources {
                if let Some(why) = self.lingers(*source, row, window, when)? {
                    judgement.fail(Proof::Refuted, row, why);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What each stretch showed in which the fault was in force with this severity.
    fn stretches(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &[Window],
    ) -> Result<Vec<Stretch>, AnalysisError> {
        let mut stretches = Vec::new();
        for window in windows {
            for segment in &window.segments {
                let (from, to) = segment.settled(Class::of(&row.asked.subject));
                let length_ns = to.saturating_sub(from);
                let mut stretch =
                    Stretch { from_ns: segment.between.0, length_ns, judged: false, unseen: None, why: None };
                let (mut looked, mut seen) = (false, false);
                for source in sources.iter().filter(|source| !matches!(source, Source::Checksums)) {
                    let alone = self.alone(*source, row, window, segment)?;
                    looked |= !matches!(alone, Alone::Hidden);
                    seen |= !matches!(alone, Alone::Hidden | Alone::Nothing);
                    match alone {
                        Alone::Hidden | Alone::Nothing | Alone::Few => {}
                        Alone::Agrees => stretch.judged = true,
                        Alone::Contradicts(why) => {
                            stretch.judged = true;
                            stretch.why = stretch.why.or(Some(format!("{}{why}", self.period(row, segment))));
                        }
                    }
                }
                let unseen =
                    || format!("{}there is no evidence of it, as there is of others", self.period(row, segment));
                stretch.unseen = (looked && !seen).then(unseen);
                stretches.push(stretch);
            }
        }
        stretches.sort_by_key(|stretch| stretch.from_ns);
        Ok(stretches)
    }

    /// What speaks against a fault in those of its stretches that were not judged alone: that a long one has no evidence at all, or
    /// what all of them lack together.
    fn unjudged(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &Windows,
        judgement: &mut Judgement,
    ) -> Result<(), AnalysisError> {
        let unseen = judgement.unseen().find_map(|stretch| stretch.unseen.clone());
        let alone = judgement.stretches.iter().all(|stretch| stretch.judged);
        if let Some(why) = unseen {
            judgement.fail(Proof::Unproven, row, why);
        }
        for source in sources.iter().filter(|source| !alone && !matches!(source, Source::Checksums)) {
            if let Some((verdict, why)) = self.together(*source, row, &windows.during)? {
                judgement.fail(verdict, row, why);
                if verdict == Proof::Refuted {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// "period 3 of 6 (12.0 s to 14.0 s): "; nothing, where there is but one that nothing else cuts.
    fn period(&self, row: &Row<'_>, segment: &Segment) -> String {
        let (from, to) = segment.between;
        let periods = &self.series.fault(row.fault).periods;
        let within = |period: &&Period| {
            period.injected.is_some_and(|stamp| stamp.at_ns <= from)
                && period.healed.is_none_or(|stamp| stamp.at_ns >= to)
        };
        let number = periods.iter().position(|period| within(&period)).map_or(1, |at| at + 1);
        format!("period {number} of {} ({:.1} s to {:.1} s): ", periods.len(), from as f64 / 1e9, to as f64 / 1e9)
    }

    fn during(&self, sources: &[Source<'a>], row: &Row<'_>, windows: &Windows) -> Result<Judgement, AnalysisError> {
        let mut judgement = Judgement::default();
        let (mut lacking, mut untold, mut told, mut seen) = (Vec::new(), None, false, false);
        let mut supported: Vec<Source<'_>> = Vec::new();
        let mut shown = None;
        // Of a clock that is to be wrong, who asks the lab's own servers reads what the lab itself wrote.
        let is_clock = matches!(row.asked.quantity, Quantity::ClockOffset | Quantity::ClockDrift);
        let mut by_database = !is_clock || !row.asked.hit || row.asked.asked == 0.0;
        for (at, window) in windows.during.iter().enumerate() {
            for source in sources {
                let Some(observation) = self.observe(*source, row, window)? else { continue };
                seen = true;
                if observation.contradicts() {
                    judgement.refute(row, &observation, "");
                    self.show(sources, row, windows, window, &observation, &mut judgement)?;
                    return Ok(judgement);
                }
                let due = self.due(*source, row, window)?;
                if !observation.enough {
                    lacking.push((*source, due, self.lacking(&observation, row)));
                    continue;
                }
                supported.push(*source);
                told |= observation.tells;
                by_database |= observation.tells && *source == Source::Witness(DATABASE);
                if !observation.tells && observation.target.tells {
                    untold = untold.or_else(|| Some(cannot_tell(row, &observation)));
                }
                // The window to be shown: the first that tells, with the source that does.
                let better = shown.as_ref().is_none_or(|(_, other): &(usize, Observation<'_>)| {
                    // Of witnesses the one who knows it most exactly.
                    let closer = matches!(other.source, Source::Witness(_)) && observation.allowed < other.allowed;
                    observation.tells && (!other.tells || closer)
                });
                // For how long a node was held is not the share of the processors that was asked.
                if better && *source != Source::Witness(HELD) {
                    shown = Some((at, observation));
                }
            }
        }
        if let Some((at, observation)) = &shown {
            self.show(sources, row, windows, &windows.during[*at], observation, &mut judgement)?;
        } else if let Some(window) = windows.during.first() {
            judgement.sources = self.seen(sources, row, windows, window)?;
            judgement.expected = row.asked.asked;
            judgement.allowed = row.asked.tolerance;
        }
        // Who has to have enough, has to have it somewhere; if nobody has, the first that has not is named.
        let missed =
            lacking.iter().find(|(source, due, _)| (*due || supported.is_empty()) && !supported.contains(source));
        let missing = match missed {
            _ if windows.during.is_empty() => Some("it was never in force with this severity".to_owned()),
            Some((_, _, why)) => Some(why.clone()),
            _ if told && !by_database => Some(format!(
                "{} say nothing about it; SNTP alone does not show what the node's processes see",
                said(Source::Witness(DATABASE), row.asked.quantity).0
            )),
            _ if told => None,
            _ if seen => untold.or_else(|| Some(self.nothing_told(row))),
            // A subject of which other faults hide all that this one could have changed.
            _ if !row.asked.hit || row.asked.asked == 0.0 => {
                judgement.why = Some("not judged: other faults hide it, or there is nothing to limit".to_owned());
                None
            }
            _ if sources.is_empty() => Some("nothing was recorded for it".to_owned()),
            _ => Some("other faults in force hide it all the time".to_owned()),
        };
        // Whoever can have been limited, and was not, has no governor that could say so.
        let free = row.asked.quantity == Quantity::ProcessorShare && !row.asked.hit;
        if let Some(why) = missing.filter(|_| !free) {
            judgement.fail(Proof::Unproven, row, why);
        }
        Ok(judgement)
    }

    /// Whether a source has to have enough in a window.
    fn due(&self, source: Source<'a>, row: &Row<'_>, window: &Window) -> Result<bool, AnalysisError> {
        Ok(match source {
            // Of what is too brief for them, the packets of the load may tell.
            Source::Probes if window.segments.iter().all(|segment| segment.length_ns() < BRIEF_NS) => {
                let class = Class::of(&row.asked.subject);
                let length = |window: &Window| {
                    let spans = window.segments.iter().map(|segment| segment.sent(class));
                    spans.map(|(from, to)| to.saturating_sub(from)).sum::<u64>() as f64
                };
                let before = self.measure(source, row.asked.quantity, self.before)?;
                before.samples as f64 * length(window) >= ENOUGH as f64 * length(self.before)
            }
            Source::Probes => true,
            Source::Counters => {
                let lengths = window.segments.iter().map(|segment| {
                    let (from, to) = segment.settled(Class::Pairs);
                    to.saturating_sub(from)
                });
                row.asked.hit && row.asked.quantity != Quantity::Rate && lengths.max().unwrap_or(0) >= READING_NS
            }
            // Where several look, one may have been unable to: a database that is down stamps nothing.
            Source::Checksums | Source::Cpu | Source::Witness(_) => false,
        })
    }

    fn after(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &Windows,
        judgement: &mut Judgement,
    ) -> Result<(), AnalysisError> {
        let (mut lacking, mut supported, mut seen) = (None, false, false);
        // That a node does not take less than it may says nothing of a limit; its governor does.
        for source in sources.iter().filter(|source| **source != Source::Cpu) {
            for window in &windows.after {
                let Some(observation) = self.observe(*source, row, window)? else { continue };
                seen = true;
                if observation.contradicts() {
                    judgement.refute(row, &observation, "although the fault was healed");
                    return Ok(());
                }
                if observation.enough {
                    supported = true;
                    // The first windows after the healing tell most of it; later ones are other faults' business.
                    break;
                }
                lacking = lacking.or_else(|| Some(self.lacking_after(&observation, row)));
            }
        }
        let nothing = || format!("there is no evidence from after the healing ({ENOUGH} samples are needed)");
        let excused = row.asked.quantity == Quantity::ProcessorShare
            || ((!row.asked.hit || row.asked.asked == 0.0) && !seen && windows.healed);
        if !supported && !excused && judgement.verdict.is_none() {
            judgement.fail(Proof::Unproven, row, lacking.unwrap_or_else(nothing));
        }
        Ok(())
    }

    fn show(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &Windows,
        window: &Window,
        observation: &Observation<'_>,
        judgement: &mut Judgement,
    ) -> Result<(), AnalysisError> {
        judgement.expected = observation.target.expected;
        judgement.measured = observation.measured;
        judgement.allowed = observation.allowed;
        judgement.change = observation.target.change;
        judgement.together = window.forces.iter().map(|force| force.0).filter(|fault| *fault != row.fault).collect();
        judgement.sources = self.seen(sources, row, windows, window)?;
        Ok(())
    }

    fn seen(
        &self,
        sources: &[Source<'a>],
        row: &Row<'_>,
        windows: &Windows,
        window: &Window,
    ) -> Result<Vec<SourceSeen>, AnalysisError> {
        let quantity = row.asked.quantity;
        let mut rows = Vec::new();
        for source in sources {
            let before = self.measure(*source, quantity, self.before)?;
            let during = self.measure(*source, quantity, window)?;
            let observation = self.observe(*source, row, window)?;
            let mut after = Measure::default();
            for window in &windows.after {
                after = self.measure(*source, quantity, window)?;
                if after.samples >= enough(*source, quantity) {
                    break;
                }
            }
            let least = enough(*source, quantity);
            let change = |of: &Measure| {
                let enough = before.samples >= least && of.samples >= least;
                of.value.zip(before.value).filter(|_| enough).map(|(value, before)| value - before)
            };
            rows.push(SourceSeen {
                source: source.name().into_owned(),
                before: before.value,
                during: during.value,
                after: after.value,
                change: change(&during),
                after_change: change(&after),
                expected: observation.as_ref().map(|one| one.target.expected),
                allowed: observation.as_ref().map(|one| one.allowed),
                samples: [before.samples, during.samples, after.samples],
                error: before.error.hypot(during.error),
                tells: observation.is_some_and(|one| one.enough && one.tells),
            });
        }
        Ok(rows)
    }

    fn lacking(&self, observation: &Observation<'a>, row: &Row<'_>) -> String {
        let before = self.measure(observation.source, row.asked.quantity, self.before).unwrap_or_default();
        too_few(
            observation.source,
            row.asked.quantity,
            [("before", before.samples), ("during", observation.during.samples)],
        )
    }

    fn lacking_after(&self, observation: &Observation<'a>, row: &Row<'_>) -> String {
        let before = self.measure(observation.source, row.asked.quantity, self.before).unwrap_or_default();
        too_few(
            observation.source,
            row.asked.quantity,
            [("before", before.samples), ("after", observation.during.samples)],
        )
    }

    fn nothing_told(&self, row: &Row<'_>) -> String {
        match row.asked.quantity {
            Quantity::ProcessorShare => "it never needed more of the processors than it was allowed".to_owned(),
            _ => "nothing that was measured distinguishes the fault from no fault".to_owned(),
        }
    }
}
