//! One place, one quantity, one severity of one fault: was there to be seen what had to be?

use std::{cell::RefCell, collections::HashMap};

use brownout_record::Quantity;

use crate::{
    AnalysisError, Proof,
    place::{Eye, Measure, Place},
    proof::{ENOUGH, SourceSeen},
    ruling::{Row, Ruling, Statement, cannot_tell, enough, tells, too_few},
    segments::{Class, Force, Segment},
    target::{Asks, HELD, Question},
    words::said,
};

/// The witness that tells what a node's own process takes for the time.
const DATABASE: &str = "database";

/// Counters are read about once a second: a stretch of this length holds a whole reading, ns.
const READING_NS: u64 = 2_500_000_000;

/// Segments with the same things in force.
pub(crate) struct Scene {
    /// Of its own in the trial.
    pub(crate) id: usize,
    pub(crate) segments: Vec<Segment>,
    pub(crate) forces: Vec<Force>,
}

/// The scenes in which one severity of one fault has to show itself.
pub(crate) struct Scenes {
    pub(crate) during: Vec<Scene>,
    /// Between its periods, when it is not there.
    pub(crate) pauses: Vec<Scene>,
    /// After its last healing, in order of time.
    pub(crate) after: Vec<Scene>,
    /// It was healed for good.
    pub(crate) healed: bool,
}

/// A place, with all that was measured in it so far.
pub(crate) struct Court<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) asks: Asks<'a>,
    /// Before the first injection of any fault.
    pub(crate) before: &'a Scene,
    known: RefCell<HashMap<(Eye<'a>, Quantity, usize), Measure>>,
}

impl<'a> Court<'a> {
    pub(crate) fn new(place: Place<'a>, asks: Asks<'a>, before: &'a Scene) -> Self {
        Court { place, asks, before, known: RefCell::default() }
    }

    fn measure(&self, eye: Eye<'a>, quantity: Quantity, scene: &Scene) -> Result<Measure, AnalysisError> {
        if let Some(known) = self.known.borrow().get(&(eye, quantity, scene.id)) {
            return Ok(*known);
        }
        let measure = match self.asks.drifting(&scene.forces).next().filter(|_| quantity == Quantity::ClockOffset) {
            Some(drift) => self.place.offset_at_drift(eye, &scene.segments, drift),
            None => self.place.measure(eye, quantity, &scene.segments)?,
        };
        self.known.borrow_mut().insert((eye, quantity, scene.id), measure);
        Ok(measure)
    }

    /// What a source says of a scene; none where it cannot say anything.
    fn state(&self, eye: Eye<'a>, row: &Row<'_>, scene: &Scene) -> Result<Option<Statement<'a>>, AnalysisError> {
        let quantity = row.asked.quantity;
        let disturbed = scene.forces.iter().any(|(other, _)| *other != row.fault && row.disturbing.contains(other));
        if disturbed && !self.asks.any(quantity, &scene.forces, None) {
            return Ok(None);
        }
        let before = self.measure(eye, quantity, self.before)?;
        let during = self.measure(eye, quantity, scene)?;
        let question = Question {
            asks: &self.asks,
            eye,
            quantity,
            forces: &scene.forces,
            fault: row.fault,
            before: &before,
            during: &during,
        };
        let Some(target) = question.target() else { return Ok(None) };
        let least = enough(eye, quantity);
        let enough = during.samples >= least && (before.samples >= least || !question.needs_before());
        let measured = if target.change {
            during.value.zip(before.value).map(|(during, before)| during - before)
        } else {
            during.value
        };
        let error = match (target.change, quantity) {
            // Bounds add; errors of independent counts add as squares.
            (true, Quantity::ClockOffset | Quantity::ClockDrift) => before.error + during.error,
            (true, _) => before.error.hypot(during.error),
            (false, _) => during.error,
        };
        let allowed = row.asked.tolerance + question.others_tolerance() + error + target.slack;
        // What speaks for the fault need not be beyond the doubt that is given to what speaks against it.
        let narrow = match quantity {
            Quantity::ClockOffset | Quantity::ClockDrift => allowed,
            _ => allowed - error * (1.0 - crate::stats::TELLING),
        };
        let mut statement = Statement { eye, target, during, measured, allowed: narrow, enough, tells: false };
        statement.tells = measured.is_some_and(|measured| tells(row, &statement, measured));
        Ok(Some(Statement { allowed, ..statement }))
    }

    pub(crate) fn judge(&self, row: &Row<'_>, scenes: &Scenes) -> Result<Ruling, AnalysisError> {
        let eyes = self.place.eyes(row.asked.quantity);
        let mut ruling = self.during(&eyes, row, scenes)?;
        if ruling.verdict == Some(Proof::Refuted) {
            return Ok(ruling);
        }
        for scene in &scenes.pauses {
            for eye in &eyes {
                let Some(statement) = self.state(*eye, row, scene)?.filter(Statement::contradicts) else { continue };
                ruling.refute(row, &statement, "while it was not in force");
                return Ok(ruling);
            }
        }
        self.after(&eyes, row, scenes, &mut ruling)?;
        ruling.verdict = ruling.verdict.or(Some(Proof::Proven));
        Ok(ruling)
    }

    fn during(&self, eyes: &[Eye<'a>], row: &Row<'_>, scenes: &Scenes) -> Result<Ruling, AnalysisError> {
        let mut ruling = Ruling::default();
        let (mut lacking, mut untold, mut told, mut seen) = (Vec::new(), None, false, false);
        let mut supported: Vec<Eye<'_>> = Vec::new();
        let mut shown = None;
        // Of a clock that is to be wrong, who asks the lab's own servers reads what the lab itself wrote.
        let is_clock = matches!(row.asked.quantity, Quantity::ClockOffset | Quantity::ClockDrift);
        let mut by_database = !is_clock || !row.asked.hit || row.asked.asked == 0.0;
        for (at, scene) in scenes.during.iter().enumerate() {
            for eye in eyes {
                let Some(statement) = self.state(*eye, row, scene)? else { continue };
                seen = true;
                if statement.contradicts() {
                    ruling.refute(row, &statement, "");
                    self.show(eyes, row, scenes, scene, &statement, &mut ruling)?;
                    return Ok(ruling);
                }
                let due = self.due(*eye, row, scene);
                if !statement.enough {
                    lacking.push((*eye, due, self.lacking(&statement, row)));
                    continue;
                }
                supported.push(*eye);
                told |= statement.tells;
                by_database |= statement.tells && *eye == Eye::Witness(DATABASE);
                if !statement.tells && statement.target.tells {
                    untold = untold.or_else(|| Some(cannot_tell(row, &statement)));
                }
                // The scene to be shown: the first that tells, with the source that does.
                let better = shown.as_ref().is_none_or(|(_, other): &(usize, Statement<'_>)| {
                    // Of witnesses the one who knows it most exactly.
                    let closer = matches!(other.eye, Eye::Witness(_)) && statement.allowed < other.allowed;
                    statement.tells && (!other.tells || closer)
                });
                // For how long a node was held is not the share of the processors that was asked.
                if better && *eye != Eye::Witness(HELD) {
                    shown = Some((at, statement));
                }
            }
        }
        if let Some((at, statement)) = &shown {
            self.show(eyes, row, scenes, &scenes.during[*at], statement, &mut ruling)?;
        } else if let Some(scene) = scenes.during.first() {
            ruling.sources = self.sources(eyes, row, scenes, scene)?;
            ruling.expected = row.asked.asked;
            ruling.allowed = row.asked.tolerance;
        }
        // Who has to have enough, has to have it somewhere; if nobody has, the first that has not is named.
        let missed = lacking.iter().find(|(eye, due, _)| (*due || supported.is_empty()) && !supported.contains(eye));
        let missing = match missed {
            _ if scenes.during.is_empty() => Some("it was never in force with this severity".to_owned()),
            Some((_, _, why)) => Some(why.clone()),
            _ if told && !by_database => Some(format!(
                "{} tell nothing of it; SNTP alone does not say what the node's processes see",
                said(Eye::Witness(DATABASE), row.asked.quantity).0
            )),
            _ if told => None,
            _ if seen => untold.or_else(|| Some(self.nothing_told(row))),
            // A place where other faults hide all that this one could have changed.
            _ if !row.asked.hit || row.asked.asked == 0.0 => {
                ruling.why = Some("not judged: other faults hide it, or there is nothing to limit".to_owned());
                None
            }
            _ if eyes.is_empty() => Some("nothing was recorded of it".to_owned()),
            _ => Some("other faults in force hide it all the time".to_owned()),
        };
        // Whoever can have been limited, and was not, has no governor that could say so.
        let free = row.asked.quantity == Quantity::ProcessorShare && !row.asked.hit;
        if let Some(why) = missing.filter(|_| !free) {
            ruling.fail(Proof::Unproven, row, why);
        }
        Ok(ruling)
    }

    /// Whether a source has to have enough in a scene.
    fn due(&self, eye: Eye<'_>, row: &Row<'_>, scene: &Scene) -> bool {
        match eye {
            Eye::Probes => true,
            Eye::Counters => {
                let lengths = scene.segments.iter().map(|segment| {
                    let (from, to) = segment.settled(Class::Pairs);
                    to.saturating_sub(from)
                });
                row.asked.hit && row.asked.quantity != Quantity::Rate && lengths.max().unwrap_or(0) >= READING_NS
            }
            // Where several look, one may have been unable to: a database that is down stamps nothing.
            Eye::Checksums | Eye::Cpu | Eye::Witness(_) => false,
        }
    }

    fn after(
        &self,
        eyes: &[Eye<'a>],
        row: &Row<'_>,
        scenes: &Scenes,
        ruling: &mut Ruling,
    ) -> Result<(), AnalysisError> {
        let (mut lacking, mut supported, mut seen) = (None, false, false);
        // That a node does not take less than it may says nothing of a limit; its governor does.
        for eye in eyes.iter().filter(|eye| **eye != Eye::Cpu) {
            for scene in &scenes.after {
                let Some(statement) = self.state(*eye, row, scene)? else { continue };
                seen = true;
                if statement.contradicts() {
                    ruling.refute(row, &statement, "although the fault was healed");
                    return Ok(());
                }
                if statement.enough {
                    supported = true;
                    // The first scenes after the healing tell most of it; later ones are other faults' business.
                    break;
                }
                lacking = lacking.or_else(|| Some(self.lacking_after(&statement, row)));
            }
        }
        let nothing = || format!("nothing was seen of it after the healing ({ENOUGH} samples are needed)");
        let excused = row.asked.quantity == Quantity::ProcessorShare
            || ((!row.asked.hit || row.asked.asked == 0.0) && !seen && scenes.healed);
        if !supported && !excused && ruling.verdict.is_none() {
            ruling.fail(Proof::Unproven, row, lacking.unwrap_or_else(nothing));
        }
        Ok(())
    }

    fn show(
        &self,
        eyes: &[Eye<'a>],
        row: &Row<'_>,
        scenes: &Scenes,
        scene: &Scene,
        statement: &Statement<'_>,
        ruling: &mut Ruling,
    ) -> Result<(), AnalysisError> {
        ruling.expected = statement.target.expected;
        ruling.measured = statement.measured;
        ruling.allowed = statement.allowed;
        ruling.change = statement.target.change;
        ruling.together = scene.forces.iter().map(|force| force.0).filter(|fault| *fault != row.fault).collect();
        ruling.sources = self.sources(eyes, row, scenes, scene)?;
        Ok(())
    }

    fn sources(
        &self,
        eyes: &[Eye<'a>],
        row: &Row<'_>,
        scenes: &Scenes,
        scene: &Scene,
    ) -> Result<Vec<SourceSeen>, AnalysisError> {
        let quantity = row.asked.quantity;
        let mut sources = Vec::new();
        for eye in eyes {
            let before = self.measure(*eye, quantity, self.before)?;
            let during = self.measure(*eye, quantity, scene)?;
            let statement = self.state(*eye, row, scene)?;
            let mut after = Measure::default();
            for scene in &scenes.after {
                after = self.measure(*eye, quantity, scene)?;
                if after.samples >= enough(*eye, quantity) {
                    break;
                }
            }
            let least = enough(*eye, quantity);
            let change = |of: &Measure| {
                let enough = before.samples >= least && of.samples >= least;
                of.value.zip(before.value).filter(|_| enough).map(|(value, before)| value - before)
            };
            sources.push(SourceSeen {
                source: eye.name().into_owned(),
                before: before.value,
                during: during.value,
                after: after.value,
                change: change(&during),
                after_change: change(&after),
                expected: statement.as_ref().map(|one| one.target.expected),
                allowed: statement.as_ref().map(|one| one.allowed),
                samples: [before.samples, during.samples, after.samples],
                error: before.error.hypot(during.error),
                tells: statement.is_some_and(|one| one.enough && one.tells),
            });
        }
        Ok(sources)
    }

    fn lacking(&self, statement: &Statement<'a>, row: &Row<'_>) -> String {
        let before = self.measure(statement.eye, row.asked.quantity, self.before).unwrap_or_default();
        too_few(statement.eye, row.asked.quantity, [("before", before.samples), ("during", statement.during.samples)])
    }

    fn lacking_after(&self, statement: &Statement<'a>, row: &Row<'_>) -> String {
        let before = self.measure(statement.eye, row.asked.quantity, self.before).unwrap_or_default();
        too_few(statement.eye, row.asked.quantity, [("before", before.samples), ("after", statement.during.samples)])
    }

    fn nothing_told(&self, row: &Row<'_>) -> String {
        match row.asked.quantity {
            Quantity::ProcessorShare => "it never wanted more of the processors than it was allowed".to_owned(),
            _ => "nothing that was seen can tell the fault from none".to_owned(),
        }
    }
}
