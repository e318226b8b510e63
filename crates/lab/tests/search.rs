//! Searches against made-up responses of which the truth is known, without a lab: which trial comes next, and what is found.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{collections::BTreeSet, f64::consts::TAU, path::Path};

use brownout_analysis::{
    CapacityOutcome, Lesson, ThresholdFindings, ThresholdOutcome,
    search::{Amount, DangerZone, MaxRate},
};
use brownout_base::random::Random;
use brownout_lab::{
    Design,
    experiment::Source,
    planner::{self, Next, Planner, Settled, Which},
};
use brownout_record::{Arm, SearchDescription};

const FILE: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults:
  - slow: { host: n2, delay: 10ms }
objective: { p95: 100ms }
";
const ZONE: &str = "search: { danger-zone: faults.0.slow.delay, between: [10%, 50%], from: 1ms, to: 1s }\n";
const RATE: &str = "search: { max-rate: { p99: 20ms }, precision: 10% }\n";

fn source(text: &str) -> Source {
    Source::from_text(Path::new("some.yaml"), text.to_owned()).unwrap()
}

fn design(search: &str, seed: u64) -> Design {
    Design::new(&source(&format!("{FILE}{search}seed: {seed}\n"))).unwrap()
}

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (TAU * random.fraction()).cos()
}

/// A lab that answers at once: ln(fault phase ÷ baseline) by the delay in ms, with noise.
struct Fake<'a> {
    random: Random,
    noise: f64,
    response: &'a dyn Fn(f64) -> f64,
}

impl Fake<'_> {
    fn run(&mut self, next: &Next) -> Lesson {
        let noise = self.noise * normal(&mut self.random);
        let level = match &next.cell {
            Which::Of(level) => level.clone(),
            Which::Known(cell) => format!("cell {cell}"),
        };
        let value =
            if next.arm == Arm::Fault { (self.response)(Amount::Time.read(&level).unwrap() / 1e6) } else { 0.0 };
        Lesson { level, arm: next.arm, log_ratio: Some(value + noise), kept: None }
    }
}

/// All trials of a search, in their order.
fn searched(planner: &Planner, mut run: impl FnMut(&Next) -> Lesson) -> Vec<(Next, Lesson)> {
    let (mut made, mut settled) = (Vec::new(), Settled::new());
    while let Some(next) = planner.next(&settled) {
        let lesson = run(&next);
        settled.insert(next.number, Some(lesson.clone()));
        made.push((next, lesson));
        assert!(made.len() <= planner.most_trials(), "a search has an end");
    }
    made
}

fn lessons(made: &[(Next, Lesson)]) -> Vec<Lesson> {
    made.iter().map(|(_, lesson)| lesson.clone()).collect()
}

/// A search for a danger zone, and what it has found.
fn zone(seed: u64, noise: f64, response: &dyn Fn(f64) -> f64) -> (Vec<(Next, Lesson)>, Vec<ThresholdFindings>) {
    let mut fake = Fake { random: Random::new(seed), noise, response };
    let made = searched(&Planner::new(&design(ZONE, seed)), |next| fake.run(next));
    let found = DangerZone::new("1ms", "1s", &[0.1, 0.5]).unwrap().thresholds(&lessons(&made));
    (made, found)
}

#[test]
fn the_intervals_hold_where_the_loss_passes_with_a_third_of_a_grids_trials() {
    const RUNS: u64 = 100;
    let mut random = Random::new(5);
    let (mut held, mut told) = ([0, 0], 0);
    for seed in 1..=RUNS {
        // A closed loop loses D ÷ (c + D).
        let half = 10f64.powf(1.0 + 1.2 * random.fraction());
        let (made, found) = zone(seed, 0.01, &|delay| -(delay / half).ln_1p());
        let faulty = made.iter().filter(|(next, _)| next.arm == Arm::Fault).count();
        assert!(faulty * 3 <= 65 && made.len() - faulty == 6, "{faulty} of the 65 trials of a grid");
        for (at, one) in found.iter().enumerate() {
            let truth = half * one.loss / (1.0 - one.loss);
            let ms = |level: &Option<String>| level.as_ref().map(|level| Amount::Time.read(level).unwrap() / 1e6);
            held[at] += u64::from(
                ms(&one.low).is_none_or(|low| low <= truth) && ms(&one.high).is_none_or(|high| high >= truth),
            );
            told += u64::from(one.outcome == ThresholdOutcome::Between);
        }
    }
    assert!(held.iter().all(|held| *held >= 95), "{held:?} of {RUNS} hold it");
    assert!(told >= RUNS * 2 * 9 / 10, "{told} of {} are intervals", RUNS * 2);
}

#[test]
fn a_response_that_goes_back_is_told_with_its_place() {
    // Around 10 ms it degrades, at 100 ms it seems to have healed, and from there on it degrades again.
    let response = |delay: f64| {
        let at = delay.log10();
        -(-(at - 1.0_f64).powi(2) / 0.08).exp() - 0.4 * (at - 2.2).max(0.0)
    };
    let told = (1..=40).filter(|seed| {
        let (_, found) = zone(*seed, 0.01, &response);
        let back = &found[0].back;
        assert!(back.iter().all(|level| response(Amount::Time.read(level).unwrap() / 1e6) > 0.9f64.ln()), "{back:?}");
        !back.is_empty()
    });
    assert!(told.count() >= 30);
    let (_, monotone) = zone(1, 0.01, &|delay| -(delay / 30.0).ln_1p());
    assert!(monotone.iter().all(|one| one.back.is_empty()));
}

#[test]
fn what_is_not_reached_and_what_is_passed_at_once_are_told() {
    let (_, none) = zone(3, 0.005, &|_| 0.0);
    assert!(none.iter().all(|one| one.outcome == ThresholdOutcome::NotReached), "{none:?}");
    assert_eq!((none[0].low.as_deref(), none[0].high.as_deref()), (Some("1s"), None));
    let (_, all) = zone(4, 0.005, &|_| -2.0);
    assert!(
        all.iter().all(|one| one.outcome == ThresholdOutcome::Below && one.high.as_deref() == Some("1ms")),
        "{all:?}"
    );
}

#[test]
fn a_search_that_goes_on_after_any_trial_goes_on_where_it_was() {
    let (made, _) = zone(7, 0.02, &|delay| -(delay / 30.0).ln_1p());
    let orders: BTreeSet<Vec<String>> = (1..5)
        .map(|seed| zone(seed, 0.0, &|_| 0.0).0.iter().map(|(_, lesson)| lesson.level.clone()).collect())
        .collect();
    assert_eq!(orders.len(), 4, "each seed has an order of its own");
    let rates = searched(&Planner::new(&design(RATE, 7)), |next| kept(next, 900.0));
    for (search, made) in [(ZONE, made), (RATE, rates)] {
        for done in 0..=made.len() {
            let settled: Settled =
                made[..done].iter().map(|(next, lesson)| (next.number, Some(lesson.clone()))).collect();
            let next = Planner::new(&design(search, 7)).next(&settled);
            assert_eq!(next.as_ref(), made.get(done).map(|(next, _)| next), "after {done}");
        }
    }
}

#[test]
fn trials_that_are_never_valid_end_a_search_and_tell_nothing() {
    for valid in [0, 2, 6] {
        let mut without = 0;
        let made = searched(&Planner::new(&design(ZONE, 2)), |next| {
            without += u32::from(next.arm == Arm::None);
            let told = next.arm == Arm::None && without <= valid;
            Lesson { level: "1ms".to_owned(), arm: next.arm, log_ratio: told.then_some(0.0), kept: None }
        });
        let found = DangerZone::new("1ms", "1s", &[0.1]).unwrap().thresholds(&lessons(&made));
        assert_eq!(found[0].outcome, ThresholdOutcome::Undetermined, "{valid} valid ones");
        assert!(made.len() >= 19 && made.len() <= 27, "{}", made.len());
    }
}

/// What a system that keeps the objective up to this rate shows.
fn kept(next: &Next, limit: f64) -> Lesson {
    let Which::Of(level) = &next.cell else { panic!("a search for a rate names it: {next:?}") };
    let kept = Amount::Rate.read(level).unwrap() <= limit;
    Lesson { level: level.clone(), arm: next.arm, log_ratio: None, kept: Some(kept) }
}

#[test]
fn the_interval_holds_the_largest_rate_wherever_the_search_begins() {
    for limit in [30.0, 170.0, 399.0, 401.0, 950.0, 12_345.0] {
        let planner = Planner::new(&design(RATE, 1));
        let made = searched(&planner, |next| kept(next, limit));
        let found = MaxRate::new("400/s", &MaxRate::highest("400/s").unwrap(), 0.1).unwrap().answer(&lessons(&made));
        let (low, high) = found.interval.unwrap();
        assert_eq!(found.outcome, CapacityOutcome::Threshold);
        assert!(low <= limit * 1.005 && limit <= high * 1.005, "{low} … {high} for {limit}");
        assert!(made.iter().all(|(next, _)| next.arm == Arm::Fault));
    }
    let made = searched(&Planner::new(&design(RATE, 1)), |next| kept(next, 1.0));
    assert!(made.iter().all(|(_, lesson)| Amount::Rate.read(&lesson.level).unwrap() >= 12.5), "five times halved");
}

#[test]
fn a_rate_without_a_valid_trial_ends_a_search_for_rates() {
    let planner = Planner::new(&design(RATE, 1));
    let made =
        searched(&planner, |next| Lesson { kept: kept(next, 1e9).kept.filter(|_| next.number < 3), ..kept(next, 1e9) });
    assert_eq!(made.len(), 3);
    let found = MaxRate::new("400/s", "1k/s", 0.1).unwrap().answer(&lessons(&made));
    assert_eq!((found.outcome, found.rate), (CapacityOutcome::Undetermined, Some(800.0)));
}

#[test]
fn a_severity_is_a_cell_of_which_the_file_could_be_written_by_hand() {
    let mut design = design(ZONE, 1);
    let first: Vec<_> = design.cell_rows(|_| String::new()).into_iter().map(|row| row.levels[0].clone()).collect();
    assert_eq!(first, ["1ms", "1s"], "the ends are known beforehand");
    let cell = design.cell_of("31.6ms").unwrap();
    assert_eq!((cell, design.cell_of("31.6ms").unwrap(), design.cell_of("1s").unwrap()), (2, 2, 1));
    let row = design.cell_row(cell, |_| String::new());
    let by_hand = Design::new(&source(&FILE.replace("10ms", "31.6ms"))).unwrap().cell_row(0, |_| String::new());
    assert_eq!(row.description.faults, by_hand.description.faults);
    assert_eq!((row.cell, row.compared_with), (3, 1), "trials without a fault are of the first cell");
    let described = planner::description(&design, None, 1);
    assert_eq!((described.trials, described.without_fault), (27, 6));
    assert!(described.search.is_some());
}

#[test]
fn a_variable_may_be_what_is_searched_and_a_limit_is_worse_the_lower_it_is() {
    let text = FILE.replace("10ms", "\"${delay}\"") + "search: { danger-zone: delay, from: 2ms, to: 200ms }\n";
    let design = Design::new(&source(&text)).unwrap();
    assert_eq!(design.cells.len(), 2);
    let text = FILE
        .replace("slow: { host: n2, delay: 10ms }", "rate: { host: n2, rate: 10mbit }")
        .replace("baseline: 10s, fault: 20s, recovery: 10s", "baseline: 20s, fault: 20s, recovery: 20s")
        + "search: { danger-zone: faults.0.rate.rate, from: 100mbit, to: 1mbit }\n";
    let planner = Planner::new(&Design::new(&source(&text)).unwrap());
    let made = searched(&planner, |next| {
        let Which::Of(level) = &next.cell else {
            return Lesson { level: String::new(), arm: next.arm, log_ratio: Some(0.0), kept: None };
        };
        let loss = if Amount::BitRate.read(level).unwrap() < 8e6 { 0.7f64 } else { 0.0 };
        Lesson { level: level.clone(), arm: next.arm, log_ratio: Some((1.0 - loss).ln()), kept: None }
    });
    let found = DangerZone::new("100mbit", "1mbit", &[0.5]).unwrap().thresholds(&lessons(&made));
    let mbit = |level: &Option<String>| Amount::BitRate.read(level.as_ref().unwrap()).unwrap() / 1e6;
    assert!(mbit(&found[0].low) >= 8.0 && mbit(&found[0].high) < 8.0, "{found:?}");
}

#[test]
fn a_matrix_goes_on_with_the_first_trial_that_is_missing() {
    let vary = "vary: { faults.0.slow.delay: [1ms, 10ms] }\ntrials: 3\n";
    let Planner::Matrix(matrix) = Planner::new(&design(vary, 1)) else { panic!("nothing is searched") };
    assert_eq!(matrix.trials().len(), 9, "two cells and one without a fault, three times");
    let settled: Settled = [1, 2, 3, 5, 6].into_iter().map(|number| (number, None)).collect();
    let next = matrix.next(&settled).unwrap();
    assert_eq!((next.number, next.cell), (4, Which::Known(matrix.trials()[3].cell)));
    assert_eq!(matrix.next(&(1..=9).map(|number| (number, None)).collect()), None);
}

#[test]
fn no_rate_is_searched_that_no_lab_can_offer() {
    let to = |rate: &str| {
        let design = Design::new(&source(&format!("{FILE}{RATE}").replace("400/s", rate)));
        let design = design.unwrap_or_else(|error| panic!("{error}"));
        let search = planner::description(&design, None, 1).search;
        let Some(SearchDescription::MaxRate { to, .. }) = &search else { panic!("a rate is searched: {search:?}") };
        Amount::Rate.read(to).unwrap()
    };
    assert!(to("400/s") > 400_000.0);
    assert_eq!((to("2k/s"), to("1000k/s")), (1e6, 1e6));
}

#[test]
fn what_cannot_be_searched_is_told_with_its_place_and_the_remedy() {
    let file = |search: &str| format!("{FILE}search: {search}\n");
    let delay = "danger-zone: faults.0.slow.delay";
    for (text, parts) in [
        (
            format!("{}vary: {{ load.rate: [1/s] }}\n", file(&format!("{{ {delay} }}"))),
            &["some.yaml:7:", "take vary: or search: out"][..],
        ),
        (format!("{}trials: 3\n", file(&format!("{{ {delay} }}"))), &["some.yaml:7:", "take trials: or search: out"]),
        (format!("{}without-fault: 3\n", file(&format!("{{ {delay} }}"))), &["some.yaml:7:", "take without-fault:"]),
        (
            file("{ dangerzone: faults.0.slow.delay }"),
            &["some.yaml:6:", "unknown key 'dangerzone'", "did you mean 'danger-zone'"],
        ),
        (file("{ max-rate: { p98: 20ms } }"), &["some.yaml:6:", "search.max-rate", "unknown key 'p98'"]),
        (file("{}"), &["some.yaml:6:", "write what is searched", "danger-zone: faults.0.slow.delay"]),
        (file(&format!("{{ {delay}, max-rate: {{ p99: 20ms }} }}")), &["write what is searched"]),
        (
            file("{ danger-zone: faults.0.slow.host }"),
            &["some.yaml:6:", "'n2' is not a number with a unit", "faults.0.slow.delay"],
        ),
        (file("{ danger-zone: faults.0.slow }"), &["is not a severity", "what it has below it"]),
        (file("{ danger-zone: load.rate }"), &["some.yaml:6:", "'load.rate' is not the severity of a fault"]),
        (file("{ danger-zone: delay }"), &["${delay} is not in the file", "name a severity"]),
        (file("{ danger-zone: faults.0.slow.jitter }"), &["the range has to be written", "from: the mildest value"]),
        (file("{ danger-zone: faults.0.slow.jitter, from: 1ms }"), &["faults.0.slow.jitter", "exceeds the delay"]),
        (
            file(&format!("{{ {delay}, from: 1s, to: 1ms }}")),
            &["some.yaml:6:", "from: 1s has to be below to: 1ms; exchange"],
        ),
        (file(&format!("{{ {delay}, from: 1s }}")), &["search.from", "has to be below to: 1s"]),
        (file(&format!("{{ {delay}, from: 10ms, to: 15ms }}")), &["too narrow", "a factor of 2"]),
        (file(&format!("{{ {delay}, from: 0ms }}")), &["search.from", "write a value above 0"]),
        (file(&format!("{{ {delay}, from: 1% }}")), &["search.from", "'1%' is not an amount like 10ms"]),
        (file(&format!("{{ {delay}, to: soon }}")), &["search.to", "'soon' is not an amount like 10ms"]),
        (
            file(&format!("{{ {delay}, between: [50%, 10%] }}")),
            &["some.yaml:6:", "search.between", "ascending, such as [10%, 50%]"],
        ),
        (file(&format!("{{ {delay}, between: [0%, 50%] }}")), &["search.between", "between 0% and 100%"]),
        (file(&format!("{{ {delay}, between: [50%, 100%] }}")), &["search.between", "between 0% and 100%"]),
        (file(&format!("{{ {delay}, between: [] }}")), &["search.between", "1 to 4 shares"]),
        (
            file(&format!("{{ {delay}, between: [10] }}")),
            &["some.yaml:6:", "search.between", "'10' is not a percentage"],
        ),
        (file(&format!("{{ {delay}, precision: 5% }}")), &["search.precision", "take it out"]),
        (file("{ max-rate: { p99: 20ms }, between: [10%] }"), &["search.between", "take it out"]),
        (file("{ max-rate: {} }"), &["search.max-rate", "such as { p99: 20ms }"]),
        (file("{ max-rate: { p99: 20ms, p50: 5ms } }"), &["search.max-rate", "one percentile"]),
        (file("{ max-rate: { p99: 20ms }, from: 30% }"), &["search.from", "'30%' is not a rate"]),
        (file("{ max-rate: { p99: 20ms }, to: 100/s }"), &["search.to", "is below from: 400/s"]),
        (file("{ max-rate: { p99: 20ms }, to: 2000k/s }"), &["some.yaml:6:", "search.to", "2000k/s is beyond"]),
        (file("{ max-rate: { p99: 20ms }, precision: 1% }"), &["search.precision", "from 2% to 50%"]),
        (
            file("{ max-rate: { p99: 20ms } }").replace("rate: 400/s, ", ""),
            &["the first rate is missing", "from: 100/s"],
        ),
        (
            file("{ max-rate: { p99: 20ms } }").replace("rate: 400/s", "threads: 8"),
            &["some.yaml:1:", "load.threads", "closed loop"],
        ),
        (
            file("{ max-rate: { p99: 20ms } }").replace("400/s", "30%"),
            &["some.yaml:1:", "load.rate", "'30%' is not a rate"],
        ),
    ] {
        let Err(error) = Design::new(&source(&text)) else { panic!("this is no mistake: {text}") };
        let said = error.to_string();
        for part in parts {
            assert!(said.contains(part), "'{part}' is not in: {said}\n{text}");
        }
    }
}

#[test]
fn severities_have_a_range_of_their_own_where_none_is_written() {
    for (fault, key, ends) in [
        ("slow: { host: n2, delay: 10ms }", "faults.0.slow.delay", ["1ms", "1s"]),
        ("flaky: { host: n2, loss: 5% }", "faults.0.flaky.loss", ["0.1%", "80%"]),
    ] {
        let text = FILE.replace("slow: { host: n2, delay: 10ms }", fault).replace("fault: 20s", "fault: 60s");
        let made = Design::new(&source(&format!("{text}search: {{ danger-zone: {key} }}\n")));
        let rows = made.unwrap_or_else(|error| panic!("{error}")).cell_rows(|_| String::new());
        assert_eq!(rows.iter().map(|row| row.levels[0].as_str()).collect::<Vec<_>>(), ends);
    }
}
