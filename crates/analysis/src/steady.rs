//! Whether every period of a fault, and every part of a period, shows what all of them together do.
//!
//! A median does not see a fault that was gone for a third of the time, nor a share one that was gone for a tenth. So
//! each period is judged by itself, in three ways: as the whole is; by its single measurements, of which 95 % have
//! to show what was asked; and, where there is only a share to look at, part by part, each of which may lack as much as
//! the period may.

use brownout_record::Quantity;

use crate::{
    AnalysisError,
    distribution::Distribution,
    judgement::{Observation, Proof, Row, enough, refutation},
    measure::{Measure, Source, is_share},
    observe::{SubjectEvidence, Window},
    segments::{CUT, Class, Segment},
    stalls::LATE_PROBE_NS,
    stats,
    target::{Bound, clumping},
    words::{said, show},
};

/// Of its own samples a period may lack what was asked in this share.
pub(crate) const LACKING: f64 = 0.05;
/// So few measurements that lie elsewhere are accidents, however short the period.
const ACCIDENTS: u64 = 2;
/// Of fewer measurements the accidents would be more than the share that may be lacking: then all have to agree, or the period says
/// nothing by itself.
const SETTLED: u64 = 40;
/// Fewer measurements than this say nothing of a period by themselves.
const LEAST_ALONE: u64 = 5;
/// A period is cut into parts of these shares of it, each half over the next.
const PARTS: [f64; 2] = [0.1, 0.2];
/// Of single delays: the first percentile of the normal distribution, in standard deviations.
const P1: f64 = 2.3263;

/// What one period showed a source.
pub(crate) enum Alone {
    /// The source cannot say anything, whatever it measured: other faults hide it.
    Hidden,
    /// It measured next to nothing.
    Nothing,
    /// Too little to be judged by itself, and nothing against it.
    Few,
    /// What was asked.
    Agrees,
    /// Something else, in words.
    Contradicts(String),
}

/// Whether measurements lie elsewhere than where 95 % of them have to be.
enum Lacking {
    /// No more than may.
    None,
    /// More, but so few that they may be accidents.
    Doubtful,
    /// Too many, in words.
    Much(String),
}

/// Single measurements that lie elsewhere than asked, in one stretch or in several.
#[derive(Clone, Copy)]
struct Elsewhere {
    /// How many lie below `low`.
    below: u64,
    count: u64,
    /// How many lie above `high`, of those that nothing held up.
    above: u64,
    of: u64,
    /// As many may lie below, or above, on average.
    may_below: f64,
    may_above: f64,
    /// Some really skip what is asked.
    skips: bool,
    low: f64,
    high: f64,
}

impl Elsewhere {
    fn and(self, other: Elsewhere) -> Elsewhere {
        Elsewhere {
            below: self.below + other.below,
            count: self.count + other.count,
            above: self.above + other.above,
            of: self.of + other.of,
            may_below: self.may_below + other.may_below,
            may_above: self.may_above + other.may_above,
            skips: self.skips || other.skips,
            ..self
        }
    }

    /// On which side too many lie, in words, if `accidents` of them may always.
    fn beyond(&self, source: Source<'_>, row: &Row<'_>, accidents: u64) -> Option<String> {
        let most = |mean: f64, count: u64| {
            // With few measurements one more than the mean is no wonder where some may really skip it.
            let doubt = if self.skips { stats::share_half_width(mean as u64, count) * count as f64 } else { 0.0 };
            ((mean + doubt) as u64).max(accidents)
        };
        let hits = row.asked.hit && row.asked.asked != 0.0;
        let tell = |outside: u64, count: u64, side: &str, limit: f64| {
            let (who, verb) = said(source, row.asked.quantity);
            format!(
                "{who}{} {verb} {outside} of {count} {side} {}, and at most 5% may be",
                if hits { "" } else { " (spared)" },
                show(row.asked.quantity, limit)
            )
        };
        if self.below > most(self.may_below, self.count) {
            return Some(tell(self.below, self.count, "below", self.low));
        }
        (self.above > most(self.may_above, self.of)).then(|| tell(self.above, self.of, "above", self.high))
    }
}

impl<'a> SubjectEvidence<'a> {
    /// What one stretch of a window shows by itself.
    pub(crate) fn alone(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        segment: &Segment,
    ) -> Result<Alone, AnalysisError> {
        let quantity = row.asked.quantity;
        let before = self.measure(source, quantity, self.before)?;
        let Some(mut whole) = self.stretch(source, row, window, segment)? else { return Ok(Alone::Hidden) };
        let during = whole.during;
        let least = enough(source, quantity).min(LEAST_ALONE);
        let known = before.samples >= enough(source, quantity) || !self.needs_before(source, row);
        if known && self.none_shows(row, &whole) {
            return Ok(Alone::Contradicts(refutation(row, &whole, "")));
        }
        if during.samples < least || !known {
            return Ok(match during.samples {
                // It does not look here at all.
                0 if !known => Alone::Hidden,
                some if known && 10 * some < enough(source, quantity) => Alone::Nothing,
                _ => Alone::Few,
            });
        }
        // What cannot be distinguished from no fault does not speak for one.
        let judged = whole.enough && (whole.tells || !whole.target.tells);
        // A short period is heard against, if not for, what was asked.
        whole.enough = true;
        if whole.contradicts()
            && !is_chance(row, &whole, &before, self.asks.clumping(quantity, &window.forces))
            && !self.is_late_release(row, &whole, segment)?
        {
            return Ok(Alone::Contradicts(refutation(row, &whole, "")));
        }
        let mut doubtful = false;
        for lacking in
            [self.too_many_missing(source, row, &whole), self.samples_elsewhere(source, row, window, segment, &whole)?]
        {
            match lacking {
                Lacking::None => {}
                Lacking::Doubtful => doubtful = true,
                Lacking::Much(why) => return Ok(Alone::Contradicts(why)),
            }
        }
        let one = (std::slice::from_ref(segment), &window.forces[..]);
        if let Some(why) = self.clustered(source, row, one, LACKING)? {
            return Ok(Alone::Contradicts(why));
        }
        if let Some(why) = self.parts_elsewhere(source, row, window, segment, &before)? {
            return Ok(Alone::Contradicts(why));
        }
        Ok(if judged && !doubtful { Alone::Agrees } else { Alone::Few })
    }

    /// Whether packets came later than asked by no more than the emulator says itself that it released them late.
    fn is_late_release(
        &self,
        row: &Row<'_>,
        whole: &Observation<'_>,
        segment: &Segment,
    ) -> Result<bool, AnalysisError> {
        let more = whole.measured.map_or(0.0, |measured| measured - whole.target.expected);
        if row.asked.quantity != Quantity::OneWayDelay || more < 0.0 {
            return Ok(false);
        }
        Ok(more <= whole.allowed + self.series.released_late(std::slice::from_ref(segment))?)
    }

    /// What a source says of one stretch as a whole; none where it cannot say anything.
    fn stretch(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        segment: &Segment,
    ) -> Result<Option<Observation<'a>>, AnalysisError> {
        let one = std::slice::from_ref(segment);
        let quantity = row.asked.quantity;
        let before = self.measure(source, quantity, self.before)?;
        let during = self.series_measure(source, quantity, one, &window.forces)?;
        let own = self.series.distribution(source, quantity, one, &[])?;
        let widen = error_of_one(quantity, &during, &before, own.as_ref()) + row.leeway.within(one);
        self.observation(source, row, &window.forces, &during, widen)
    }

    /// What lies elsewhere in all stretches together, where single ones are too short to say so: refuted, if there is enough of it to
    /// be no accident; unproven, if it may be one and may be none.
    pub(crate) fn together(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        windows: &[Window],
    ) -> Result<Option<(Proof, String)>, AnalysisError> {
        let mut all: Option<Elsewhere> = None;
        for window in windows {
            if let Some(why) = self.clustered(source, row, (&window.segments, &window.forces), LACKING)? {
                return Ok(Some((Proof::Refuted, format!("of all periods, {why}"))));
            }
            for segment in &window.segments {
                let Some(whole) = self.stretch(source, row, window, segment)? else { continue };
                let Some(one) = self.elsewhere(source, row, window, segment, &whole)? else { continue };
                all = Some(all.map_or(one, |all| all.and(one)));
            }
        }
        let Some(all) = all else { return Ok(None) };
        if all.count >= SETTLED {
            return Ok(all
                .beyond(source, row, ACCIDENTS)
                .map(|why| (Proof::Refuted, format!("of all periods, {why}"))));
        }
        let why = all.beyond(source, row, 1);
        Ok(why.map(|why| {
            (Proof::Unproven, format!("{why}; more of them ({SETTLED}) would say whether it is an accident"))
        }))
    }

    /// Where all is to be lost, or silent, every sample shows it or does not.
    fn too_many_missing(&self, source: Source<'a>, row: &Row<'_>, whole: &Observation<'_>) -> Lacking {
        let all = row.asked.hit && row.asked.asked.abs() >= CUT;
        let share = is_share(row.asked.quantity) || matches!(row.asked.quantity, Quantity::Answers | Quantity::Running);
        let missing = whole.measured.map(|measured| whole.target.deviation(measured)).filter(|_| all && share);
        let allowed = (LACKING + self.before_error(source, row)).max(row.asked.tolerance);
        match missing.filter(|missing| *missing > allowed) {
            None => Lacking::None,
            Some(missing) if missing * whole.during.samples as f64 > ACCIDENTS as f64 + 0.5 => {
                Lacking::Much(refutation(row, whole, ""))
            }
            Some(_) => Lacking::Doubtful,
        }
    }

    /// Not one of several looks saw a process stand still, or stay silent: however short the stretch, that is no accident.
    fn none_shows(&self, row: &Row<'_>, whole: &Observation<'_>) -> bool {
        let stands = matches!(row.asked.quantity, Quantity::Answers | Quantity::Running) && row.asked.asked <= -CUT;
        let missing = whole.measured.filter(|_| stands).map(|measured| whole.target.deviation(measured));
        whole.during.samples >= ACCIDENTS && missing.is_some_and(|missing| missing >= CUT)
    }

    fn before_error(&self, source: Source<'a>, row: &Row<'_>) -> f64 {
        // What does not answer always cannot stop answering.
        let before = self.measure(source, row.asked.quantity, self.before).unwrap_or_default();
        before.value.map_or(0.0, |value| (1.0 - value).clamp(0.0, 1.0).min(value))
    }

    fn samples_elsewhere(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        segment: &Segment,
        whole: &Observation<'_>,
    ) -> Result<Lacking, AnalysisError> {
        let Some(one) = self.elsewhere(source, row, window, segment, whole)? else { return Ok(Lacking::None) };
        if let Some(why) = one.beyond(source, row, ACCIDENTS) {
            return Ok(Lacking::Much(why));
        }
        let more = one.below as f64 > one.may_below || one.above as f64 > one.may_above;
        Ok(if more && one.count < SETTLED { Lacking::Doubtful } else { Lacking::None })
    }

    /// Single measurements that are not where 95 % of them have to be.
    fn elsewhere(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        segment: &Segment,
        whole: &Observation<'_>,
    ) -> Result<Option<Elsewhere>, AnalysisError> {
        let quantity = row.asked.quantity;
        let forces = &window.forces;
        if self.asks.drifting(forces).next().is_some() && quantity == Quantity::ClockOffset {
            return Ok(None);
        }
        let segments = std::slice::from_ref(segment);
        let Some(during) = self.series.distribution(source, quantity, segments, &[])? else { return Ok(None) };
        let Some(before) = self.series.distribution(source, quantity, &self.before.segments, &[])? else {
            return Ok(None);
        };
        let (Some(first), Some(usual), Some(last)) =
            (before.quantile(0.01), before.quantile(0.5), before.quantile(0.99))
        else {
            return Ok(None);
        };
        let expected = whole.target.expected + if whole.target.change { usual } else { 0.0 };
        let spread = self.asks.sum(Quantity::DelaySpread, forces, None);
        let (low, high) = match quantity {
            // Nobody says that trains cannot be slow now and then; but none can be much faster than the limit.
            Quantity::Rate => (f64::NEG_INFINITY, (expected.max(1.0) * usual.max(expected).max(1.0)).sqrt()),
            Quantity::LargestPacket => (f64::NEG_INFINITY, expected + whole.allowed),
            // A busy disk may be slower for a while than anybody asked, and that is no fault's doing.
            Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime | Quantity::MetadataTime => {
                (expected - whole.allowed - (usual - first) - P1 * during.upper_deviation(), f64::INFINITY)
            }
            Quantity::OneWayDelay => {
                let own = if row.asked.hit { P1 * during.upper_deviation() } else { 0.0 };
                (
                    expected - whole.allowed - (usual - first) - own.max(spread),
                    expected + whole.allowed + (last - usual) + LATE_PROBE_NS as f64 + 3.0 * spread,
                )
            }
            _ => (expected - whole.allowed - (usual - first), expected + whole.allowed + (last - usual)),
        };
        let skips = self.skipping(quantity, window);
        let count = during.count();
        let below = if whole.target.bound == Bound::AtMost { 0 } else { during.below(low) };
        let (mut above, mut of) =
            if whole.target.bound == Bound::AtLeast { (0, count) } else { (during.above(high), count) };
        if above as f64 > LACKING * count as f64 {
            // What the instrument itself held up, by the kernel's own account, says nothing.
            if let Some(punctual) = self.series.distribution(source, quantity, segments, self.starved)? {
                (above, of) = (punctual.above(high), punctual.count());
            }
        }
        Ok(Some(Elsewhere {
            below,
            count,
            above,
            of,
            may_below: (LACKING + skips) * count as f64,
            may_above: LACKING * of as f64,
            skips: skips > 0.0,
            low,
            high,
        }))
    }

    /// The share that is let pass by what is in force itself: packets that skip a delay, operations that are not made to wait.
    fn skipping(&self, quantity: Quantity, window: &Window) -> f64 {
        let of = |quantity| self.asks.share(quantity, &window.forces, None);
        let waits = |quantity| {
            if self.asks.any(quantity, &window.forces, None) { 1.0 - of(quantity) } else { 0.0 }
        };
        match quantity {
            Quantity::OneWayDelay => of(Quantity::Reordered),
            Quantity::ReadTime => waits(Quantity::ReadDelayed),
            Quantity::WriteTime => waits(Quantity::WriteDelayed),
            Quantity::SyncTime => waits(Quantity::SyncDelayed),
            Quantity::MetadataTime => waits(Quantity::MetadataDelayed),
            _ => 0.0,
        }
    }

    /// A part of a period, long enough to be judged, that lacks more than the whole may.
    fn parts_elsewhere(
        &self,
        source: Source<'a>,
        row: &Row<'_>,
        window: &Window,
        segment: &Segment,
        before: &Measure,
    ) -> Result<Option<String>, AnalysisError> {
        let quantity = row.asked.quantity;
        let parted = is_share(quantity)
            || matches!(
                quantity,
                Quantity::Answers | Quantity::Running | Quantity::ProcessorShare | Quantity::ClockDrift | Quantity::Rate
            )
            // Histograms of the emulator are judged by their single packets.
            || matches!(quantity, Quantity::OneWayDelay | Quantity::DelaySpread) && source == Source::Probes;
        let Some(clumps) = clumps(row, before).filter(|_| parted) else { return Ok(None) };
        // Of bursts that were recorded, every observation knows.
        let unknown = if row.asked.burst.is_some() { 0.0 } else { clumps.sqrt() - 1.0 };
        for share in PARTS {
            for part in segment.parts(Class::of(&row.asked.subject), share) {
                let one = std::slice::from_ref(&part);
                let during = self.series_measure(source, quantity, one, &window.forces)?;
                // Packets that are hit in bursts say less than as many that are hit each by itself.
                if (during.samples as f64) < enough(source, quantity) as f64 * clumps || during.leans {
                    continue;
                }
                if let Some(why) = self.clustered(source, row, (one, &window.forces), LACKING / share)? {
                    return Ok(Some(why));
                }
                let own = match quantity {
                    Quantity::OneWayDelay => self.series.distribution(source, quantity, one, &[])?,
                    _ => None,
                };
                let widen = error_of_one(quantity, &during, before, own.as_ref())
                    + during.error * unknown
                    + row.leeway.within(one)
                    + LACKING / share * row.asked.asked.abs();
                let found = self.observation(source, row, &window.forces, &during, widen)?;
                if let Some(found) = found.filter(Observation::contradicts) {
                    let (from, to) = part.between;
                    let seconds = |at: u64| at as f64 / 1e9;
                    let when = format!("from {:.1} s to {:.1} s", seconds(from), seconds(to));
                    return Ok(Some(refutation(row, &found, &when)));
                }
            }
        }
        Ok(None)
    }
}

/// What a figure of one period, beside those of all, may err for having few measurements: of a median 1.2533 σ ÷ √n, of a
/// spread about as much as it is itself, with the heavy tails that a distribution may have.
pub(crate) fn error_of_one(quantity: Quantity, during: &Measure, before: &Measure, own: Option<&Distribution>) -> f64 {
    let root = (during.samples.max(1) as f64).sqrt();
    match (quantity, own) {
        (Quantity::DelaySpread, _) => {
            let spread = |measure: &Measure| measure.value.unwrap_or(0.0);
            4.5 * spread(during).max(spread(before)) / root
        }
        // A size passes or does not: sizes that differ are no noise of one figure.
        (Quantity::LargestPacket, _) => 0.0,
        (_, Some(own)) => stats::Z * 1.2533 * own.upper_deviation() / root,
        _ => 0.0,
    }
}

/// Whether a share of few cases may be what it is by chance. The half-width that is allowed is that of a normal distribution,
/// and too narrow for them: of five packets of which each is lost with a chance of 20 %, four are lost in one case of 150.
/// Packets that are hit in bursts count as so many fewer as their share varies more ([`clumping`]).
pub(crate) fn is_chance(row: &Row<'_>, whole: &Observation<'_>, before: &Measure, clumps: f64) -> bool {
    /// As often as what is allowed of many cases may err: see [`stats::Z`].
    const CHANCE: f64 = 1e-5;
    /// From here on a normal distribution is as good.
    const MANY: u64 = 10_000;
    let during = &whole.during;
    let Some((measured, value)) = whole.measured.zip(during.value).filter(|_| is_share(row.asked.quantity)) else {
        return false;
    };
    let count = ((during.samples as f64 / clumps).round() as u64).max(1);
    if count > MANY {
        return false;
    }
    let (was, doubt) = if whole.target.change { (before.value.unwrap_or(0.0), before.error) } else { (0.0, 0.0) };
    // What is tolerated beside the doubt of counting.
    let tolerated = doubt + (whole.allowed - doubt.hypot(during.error * clumps.sqrt())).max(0.0);
    let off = measured - whole.target.expected;
    let share = was + whole.target.expected + tolerated.min(off.abs()).copysign(off);
    let hits = (value * count as f64).round().max(0.0) as u64;
    stats::chance_of(hits, count, share.clamp(0.0, 1.0)) > CHANCE
}

/// How much more a share varies for the bursts in which packets are hit ([`clumping`]): of runs that did not record them as far as the
/// tolerance says; none if nobody can say what a short part shows.
fn clumps(row: &Row<'_>, before: &Measure) -> Option<f64> {
    /// In runs that did not record bursts the tolerance of a share is a tenth of it for each packet of a mean burst, and half of it at most.
    const OF_BURST: f64 = 0.1;
    /// Of bursts of nearly five packets.
    const MOST: f64 = 8.8;
    if !is_share(row.asked.quantity) {
        return Some(1.0);
    }
    let asked = row.asked.asked.abs();
    let told = |tolerance: f64| 2.0 * (tolerance / (OF_BURST * asked)).max(1.0) - 1.0;
    let clumps = match row.asked.burst {
        Some(_) => Some(clumping(row.asked)),
        None if row.asked.hit && asked > 0.0 => Some(told(row.asked.tolerance)).filter(|clumps| *clumps < MOST),
        None => Some(1.0),
    };
    // Of what the network loses by itself nobody has recorded in which bursts.
    let own = before.value.unwrap_or(0.0) > 0.01;
    clumps.filter(|_| row.asked.hit || !own)
}

#[cfg(test)]
mod tests {
    use brownout_record::{Expectation, Subject};

    use super::*;
    use crate::target::Target;

    /// Of probes of a link that loses 20 %, and lost none before: whether the share contradicts at all, and whether it may be
    /// chance.
    fn lost(hits: u64, count: u64) -> (bool, bool) {
        let subject = Subject::pair("n2", "n1");
        let asked =
            Expectation { subject, quantity: Quantity::Loss, hit: true, asked: 0.2, tolerance: 0.02, burst: None };
        let row = Row { fault: 0, asked: &asked, least: 0.2, disturbing: &[], leeway: crate::judgement::Leeway::None };
        let (before, during) = (Measure::share(0, 1_500), Measure::share(hits, count));
        let target = Target { change: true, expected: 0.2, without: 0.0, bound: Bound::Both, slack: 0.0, tells: true };
        let whole = Observation {
            source: Source::Probes,
            target,
            during,
            measured: during.value,
            allowed: asked.tolerance + before.error.hypot(during.error),
            enough: true,
            tells: true,
        };
        (whole.contradicts(), is_chance(&row, &whole, &before, 1.0))
    }

    #[test]
    fn a_few_packets_of_a_short_period_may_be_lost_by_chance_and_many_may_not() {
        assert_eq!(lost(4, 5), (true, true), "one period in 150, and a run has dozens");
        assert_eq!(lost(1, 5), (false, true));
        for (hits, count) in [(10, 10), (25, 40), (0, 100), (0, 80), (900, 1_500)] {
            assert_eq!(lost(hits, count), (true, false), "{hits} of {count}");
        }
        // A period of few packets that lost none says nothing; all periods together do.
        assert_eq!(lost(0, 40), (false, true));
    }

    #[test]
    fn the_longer_the_bursts_the_more_a_share_varies() {
        let of = |asked, burst| {
            let subject = Subject::pair("n2", "n1");
            clumping(&Expectation { subject, quantity: Quantity::Loss, hit: true, asked, tolerance: 0.0, burst })
        };
        assert_eq!(of(0.2, None), 1.0);
        // Each by itself, they are in runs of 1.25.
        assert!((of(0.2, Some(1.25)) - 1.0).abs() < 1e-9);
        assert!((of(0.2, Some(10.0)) - 15.0).abs() < 1e-9 && (of(0.1, Some(20.0)) - 35.0).abs() < 1e-9);
    }
}
