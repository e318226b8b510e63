//! What a short look says of a fault on one subject, without a baseline: by the same rules as the proof of a run.

use brownout_record::Expectation;

use crate::{
    judgement::{Leeway, Observation, Row, enough, tells},
    measure::{Measure, Source},
    segments::Force,
    target::{Asks, HELD, Question},
};

/// What one who asked a clock was told of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glimpse {
    /// Whether it shows what was asked; none: it cannot tell.
    pub shows: Option<bool>,
    /// The median of the offsets, ns; none: nothing was told.
    pub value: Option<f64>,
    /// The true value lies within this of it, ns.
    pub error: f64,
}

/// What a node that is limited did in a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worked {
    /// The share of the processors' time that it used.
    pub used: f64,
    /// The true share lies within this of it.
    pub error: f64,
    /// The share of the time for which its limit held it.
    pub held: f64,
    /// Periods of the limit that the look lasted for.
    pub periods: u64,
}

/// Whether a clock is wrong as was asked, by offsets from a clock that is right, each with the bound within which it is known, ns.
pub fn clock_glimpse(asked: &Expectation, told: &[(f64, f64)]) -> Glimpse {
    let during = Measure::bounded(told.iter().copied());
    let shows = shows(asked, Source::Witness("clock"), 0.0, &during);
    Glimpse { shows, value: during.value, error: during.error }
}

/// Whether a limit of processor time shows: the node took all that it may, or was held, and took no more. None: it never
/// wanted more than it is allowed.
pub fn limit_glimpse(asked: &Expectation, worked: &Worked) -> Option<bool> {
    let Worked { used, error, held, periods } = *worked;
    // A look begins and ends in the middle of periods: it may have most of what one allows too much, or too little.
    let error = error + asked.asked / periods.max(1) as f64;
    let used = Measure { told: held, error, ..Measure::exact(Some(used), periods) };
    let held = Measure::exact(Some(held), periods);
    // Without a limit it can have them all.
    let seen = [(Source::Cpu, used), (Source::Witness(HELD), held)].map(|(by, during)| shows(asked, by, 1.0, &during));
    if seen.contains(&Some(false)) { Some(false) } else { seen.into_iter().flatten().next() }
}

/// Whether one who looks sees what was asked, of a subject that else shows this.
fn shows(asked: &Expectation, source: Source<'_>, before: f64, during: &Measure) -> Option<bool> {
    let force: Force = (0, 0);
    let (asks, forces) = (Asks::new(vec![(force, asked)]), [force]);
    let usual = Measure::exact(Some(before), during.samples);
    let question = Question {
        asks: &asks,
        source,
        quantity: asked.quantity,
        forces: &forces,
        fault: force.0,
        before: &usual,
        during,
    };
    let target = question.target()?;
    let measured = during.value? - if target.change { before } else { 0.0 };
    let allowed = asked.tolerance + during.error + target.slack;
    let observation = Observation {
        source,
        target,
        during: *during,
        measured: Some(measured),
        allowed,
        enough: during.samples >= enough(source, asked.quantity),
        tells: false,
    };
    if observation.contradicts() {
        return Some(false);
    }
    let row = Row { fault: force.0, asked, least: asked.asked.abs(), disturbing: &[], leeway: Leeway::None };
    (observation.enough && tells(&row, &observation, measured)).then_some(true)
}

#[cfg(test)]
mod tests {
    use brownout_record::{Quantity, Subject};

    use super::*;

    fn asked(quantity: Quantity, asked: f64, tolerance: f64) -> Expectation {
        Expectation { subject: Subject::host("n2"), quantity, hit: true, asked, tolerance, burst: None }
    }

    #[test]
    fn a_clock_is_told_by_the_median_of_three_answers_within_their_bounds() {
        let ahead = asked(Quantity::ClockOffset, 20e6, 5e6);
        let shows = |told: &[(f64, f64)]| clock_glimpse(&ahead, told).shows;
        assert_eq!(shows(&[(20e6, 1e6), (21e6, 1e6), (900e6, 1e6)]), Some(true));
        assert_eq!(shows(&[(20e6, 1e6), (21e6, 1e6)]), None, "too few");
        assert_eq!(shows(&[(1e6, 1e6); 3]), Some(false));
        assert_eq!(shows(&[(1e6, 18e6); 3]), None, "within what is known, it may be either");
        assert_eq!(clock_glimpse(&ahead, &[]), Glimpse { shows: None, value: None, error: 0.0 });
    }

    #[test]
    fn a_limit_is_told_by_a_node_that_takes_all_of_it_or_is_held() {
        let limit = asked(Quantity::ProcessorShare, 0.5, 0.05);
        let shows = |used, held| limit_glimpse(&limit, &Worked { used, error: 0.02, held, periods: 12 });
        assert_eq!([shows(0.48, 0.0), shows(0.2, 0.3), shows(0.2, 0.0)], [Some(true), Some(true), None]);
        assert_eq!([shows(0.7, 0.0), shows(0.7, 0.3)], [Some(false); 2], "it took more");
        assert_eq!(shows(0.1, 0.9), Some(false), "what holds it so long allows less");
    }
}
