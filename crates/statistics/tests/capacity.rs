//! Searches for the largest rate that keeps an objective, against made-up systems of which that rate is known: how often the
//! interval holds it, how often a promise is kept, and how many steps it takes.

#![allow(clippy::panic, reason = "a test ends by panicking")]

use std::f64::consts::{LN_2, TAU};

use brownout_base::random::Random;
use brownout_statistics::{
    capacity::{Answer, Capacity, Estimate, Next, Search, StepOutcome},
    median,
};

const SEARCH: Search =
    Search { from: 1_000.0, lowest: 1.0, highest: 1e6, precision: 0.05, most_steps: 24, attempts: 4 };

/// In so many searches 19 of 20 steps at the safe rate keep the objective.
const PROMISED: f64 = 0.85;

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (TAU * random.fraction()).cos()
}

/// A system: how likely a step keeps the objective at ln(rate ÷ threshold), and what disturbs its steps.
struct System {
    name: &'static str,
    kept: fn(f64) -> f64,
    /// Shares of steps that keep it, or miss it, by accident.
    accidents: (f64, f64),
    /// The threshold moves from step to step: its standard deviation, and how much of it stays (autoregressive).
    moves: (f64, f64),
    /// The interval holds the threshold in at least this share of searches.
    held: f64,
    /// In half of them the answer is no farther from it than this.
    off: f64,
}

const SHARP: System = System {
    name: "sharp",
    kept: |at| f64::from(at < 0.0),
    accidents: (0.0, 0.0),
    moves: (0.0, 0.0),
    held: 0.95,
    off: 0.005,
};

const SYSTEMS: &[System] = &[
    SHARP,
    System { name: "blurred by 15 %", kept: |at| logistic(at, 0.15), held: 0.93, off: 0.06, ..SHARP },
    System {
        name: "blurred by 5 %, accidents",
        kept: |at| logistic(at, 0.05),
        accidents: (0.02, 0.02),
        off: 0.03,
        ..SHARP
    },
    System { name: "many false passes", kept: |at| logistic(at, 0.02), accidents: (0.05, 0.0), off: 0.015, ..SHARP },
    System {
        name: "steeper above than below, many false misses",
        kept: |at| (-LN_2 * (at / 0.05).exp()).exp(),
        accidents: (0.0, 0.05),
        off: 0.03,
        ..SHARP
    },
    // Steps that follow one another are alike, and tell less than as many that are not.
    System { name: "moves by 5 %, slowly", moves: (0.05, 0.8), held: 0.90, off: 0.03, ..SHARP },
];

fn logistic(at: f64, blur: f64) -> f64 {
    1.0 / (1.0 + (at / blur).exp())
}

impl System {
    /// A whole search where this is the threshold; its answer, and how many steps it took.
    fn search(&self, random: &mut Random, threshold: f64) -> (Answer, usize) {
        self.search_drifting(random, threshold, 0.0)
    }

    /// The same where ln(threshold) changes by `drift` from each step to the next.
    fn search_drifting(&self, random: &mut Random, threshold: f64, drift: f64) -> (Answer, usize) {
        let (passes, misses) = self.accidents;
        let (deviation, stays) = self.moves;
        let (mut moved, mut steps) = (deviation * normal(random), 0);
        let mut capacity = Capacity::new(SEARCH);
        loop {
            let rate = match capacity.next() {
                Next::Try(rate) => rate,
                Next::End(answer) => return (answer, steps),
            };
            let chance =
                passes + (1.0 - passes - misses) * (self.kept)((rate / threshold).ln() - moved - drift * steps as f64);
            capacity.learn(rate, if random.chance(chance) { StepOutcome::Kept } else { StepOutcome::Missed });
            moved = moved * stays + (1.0 - stays * stays).sqrt() * deviation * normal(random);
            steps += 1;
        }
    }

    /// The share of steps at this rate that keep it, accidents and movements aside.
    fn keeps(&self, rate: f64, threshold: f64) -> f64 {
        (self.kept)((rate / threshold).ln())
    }
}

/// Three standard errors of a share that was counted so often.
fn error(share: f64, count: usize) -> f64 {
    3.0 * (share * (1.0 - share) / count as f64).sqrt()
}

#[test]
fn the_interval_holds_the_threshold_and_promises_are_kept_as_often_as_they_say() {
    const SEARCHES: usize = 200;
    let mut beyond = Vec::new();
    for (number, system) in SYSTEMS.iter().enumerate() {
        let mut random = Random::new(number as u64);
        let (mut held, mut kept, mut off, mut steps) = (0, 0, Vec::new(), Vec::new());
        for _ in 0..SEARCHES {
            // From a fortieth to five times what the search begins with.
            let threshold = SEARCH.from * (200f64.ln() * random.fraction()).exp() / 40.0;
            let (answer, taken) = system.search(&mut random, threshold);
            let Answer::Threshold(estimate) = answer else { continue };
            let (low, high) = estimate.interval;
            held += usize::from(low <= threshold && threshold <= high);
            kept += usize::from(system.keeps(estimate.safe, threshold) >= 0.95);
            off.push((estimate.rate / threshold).ln().abs());
            steps.push(taken as f64);
        }
        let [held, kept] = [held, kept].map(|count| count as f64 / SEARCHES as f64);
        let [off, steps, most] = [median(&off), median(&steps), steps.into_iter().fold(0.0, f64::max)];
        let told = format!(
            "{}: held {:.1} %, promises kept {:.1} %, off by {:.2} %, {steps} steps, at most {most}",
            system.name,
            held * 100.0,
            kept * 100.0,
            off * 100.0,
        );
        println!("{told}");
        // Twice at each of six rates on the way down, and one that is kept (accidents aside).
        let is_long = most > (16 + SEARCH.most_steps) as f64 || (system.name == SHARP.name && steps > 22.0);
        let is_rare = |share: f64, promised: f64| share < promised - error(promised, SEARCHES);
        if is_long || is_rare(held, system.held) || is_rare(kept, PROMISED) || off > system.off {
            beyond.push(told);
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}

#[test]
fn a_threshold_that_drifts_is_found_on_its_way() {
    const SEARCHES: usize = 100;
    let mut random = Random::new(9);
    let mut between = 0;
    for _ in 0..SEARCHES {
        let threshold = SEARCH.from * (1.0 + 4.0 * random.fraction());
        let (answer, steps) = SYSTEMS[3].search_drifting(&mut random, threshold, -0.005);
        let end = threshold * (-0.005 * steps as f64).exp();
        between +=
            usize::from(matches!(answer, Answer::Threshold(found) if end < found.rate && found.rate < threshold));
    }
    println!("{between} of {SEARCHES}");
    assert!(between >= 90, "{between} of {SEARCHES}");
}

/// Whoever offers rates above `most` is late; what is kept below the threshold is kept always.
fn sharp(search: Search, threshold: f64, most: f64, accidents: &[StepOutcome]) -> (Next, Vec<f64>) {
    let (mut capacity, mut tried) = (Capacity::new(search), Vec::new());
    while let Next::Try(rate) = capacity.next() {
        let verdict = match accidents.get(tried.len()) {
            Some(verdict) => *verdict,
            None if rate <= threshold => StepOutcome::Kept,
            None if rate > most => StepOutcome::Unusable,
            None => StepOutcome::Missed,
        };
        tried.push(rate);
        capacity.learn(rate, verdict);
    }
    (capacity.next(), tried)
}

fn threshold(end: Next) -> Estimate {
    match end {
        Next::End(Answer::Threshold(estimate)) => estimate,
        other => panic!("{other:?}"),
    }
}

const ANY: f64 = f64::INFINITY;

#[test]
fn a_climb_doubles_until_a_rate_has_missed_twice_and_offers_no_more() {
    let (end, tried) = sharp(SEARCH, 5_000.0, ANY, &[]);
    assert_eq!(tried[..5], [1e3, 2e3, 4e3, 8e3, 8e3]);
    assert!(tried.iter().all(|rate| *rate <= 8e3), "{tried:?}");
    let Estimate { rate, interval, safe } = threshold(end);
    assert!(
        (rate / 5e3 - 1.0).abs() < 0.02 && interval.0 < 5e3 && interval.1 > 5e3 && safe < 5e3,
        "{rate} {interval:?}"
    );
    // One pause does not end it; what is too much to begin with is halved.
    let (_, tried) = sharp(SEARCH, 5_000.0, ANY, &[StepOutcome::Missed]);
    assert_eq!(tried[..4], [1e3, 1e3, 2e3, 4e3]);
    let (_, tried) = sharp(SEARCH, 300.0, ANY, &[]);
    assert_eq!(tried[..5], [1e3, 1e3, 500.0, 500.0, 250.0]);
}

#[test]
fn an_accident_of_the_climb_does_not_shut_the_threshold_out() {
    let mut accidents = [StepOutcome::Missed; 7];
    // 1,600 and 800 missed twice; 400 is kept by accident.
    accidents[4] = StepOutcome::Kept;
    let (end, tried) = sharp(Search { from: 1_600.0, ..SEARCH }, 110.0, ANY, &accidents[..5]);
    assert_eq!(tried[4], 400.0);
    let Estimate { interval, .. } = threshold(end);
    assert!(interval.0 < 110.0 && interval.1 > 110.0, "{interval:?}");
}

#[test]
fn the_ends_of_a_search_are_kept_to_and_said() {
    let narrow = Search { from: 100.0, lowest: 50.0, highest: 300.0, ..SEARCH };
    let (end, tried) = sharp(narrow, 1e4, ANY, &[]);
    assert_eq!((end, tried), (Next::End(Answer::Always { highest: 300.0 }), vec![100.0, 200.0, 300.0]));
    let (end, tried) = sharp(narrow, 1.0, ANY, &[]);
    assert_eq!((end, tried), (Next::End(Answer::Never { lowest: 50.0 }), vec![100.0, 100.0, 50.0, 50.0]));
    // Two pauses at the highest: it is offered again until it is known that it keeps, and nothing above.
    let pauses = [StepOutcome::Kept, StepOutcome::Kept, StepOutcome::Missed, StepOutcome::Missed];
    let (end, tried) = sharp(narrow, 1e4, ANY, &pauses);
    assert_eq!(end, Next::End(Answer::Always { highest: 300.0 }));
    assert!(tried.len() < 20 && tried.iter().all(|rate| *rate <= 300.0), "{tried:?}");
    let (end, tried) = sharp(narrow, 1.0, ANY, &[StepOutcome::Missed, StepOutcome::Missed, StepOutcome::Kept]);
    assert_eq!(end, Next::End(Answer::Never { lowest: 50.0 }));
    assert!(tried.len() < 20 && tried.iter().all(|rate| *rate >= 50.0), "{tried:?}");
    // The first rate is tried, wherever it is.
    let (end, _) = sharp(Search { from: 20.0, ..narrow }, 1.0, ANY, &[]);
    assert_eq!(end, Next::End(Answer::Never { lowest: 20.0 }));
}

#[test]
fn what_a_late_client_missed_teaches_nothing_and_after_four_times_there_is_no_answer() {
    let (end, tried) = sharp(SEARCH, 3_000.0, 3_500.0, &[]);
    assert_eq!(end, Next::End(Answer::Undetermined { at_least: Some(2_000.0), tried: 4_000.0 }));
    assert_eq!(tried, [1e3, 2e3, 4e3, 4e3, 4e3, 4e3]);
    // Fewer times do not matter, in the climb and after it.
    let mut late = Capacity::new(SEARCH);
    let mut punctual = late.clone();
    for step in 0..12 {
        let (Next::Try(rate), same) = (late.next(), punctual.next()) else { break };
        assert_eq!(same, Next::Try(rate), "step {step}");
        (0..SEARCH.attempts - 1).for_each(|_| late.learn(rate, StepOutcome::Unusable));
        assert_eq!(late.next(), same, "step {step}");
        let verdict = if rate <= 3_000.0 { StepOutcome::Kept } else { StepOutcome::Missed };
        [&mut late, &mut punctual].into_iter().for_each(|search| search.learn(rate, verdict));
    }
    assert!(late.estimate().is_some() && late.estimate() == punctual.estimate());
    assert_eq!(late.highest_kept(), punctual.highest_kept());
}

#[test]
fn a_search_is_taken_up_again_by_learning_its_steps_again() {
    let mut random = Random::new(4);
    let (mut before, mut steps) = (Capacity::new(SEARCH), Vec::new());
    loop {
        let mut again = Capacity::new(SEARCH);
        steps.iter().for_each(|(rate, verdict)| again.learn(*rate, *verdict));
        assert_eq!((again.next(), again.estimate()), (before.next(), before.estimate()));
        let Next::Try(rate) = before.next() else { break };
        let kept = random.chance(logistic((rate / 3_000.0).ln(), 0.05));
        steps.push((rate, if kept { StepOutcome::Kept } else { StepOutcome::Missed }));
        before.learn(rate, steps[steps.len() - 1].1);
    }
    assert!(steps.len() > 10, "{steps:?}");
}
