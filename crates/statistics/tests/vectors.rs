//! The rules against vectors from another program (plain Python over SciPy): `vectors.json`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use brownout_statistics::{
    ALPHA, Comparison, FLOOR, Method, Outcome, SETTLED_HALF, Zone, benjamini_hochberg, change_over, change_point,
    compare, deviation, difference, effect_factor, effect_factor_at, enough_blocks, estimate, has_settled, log_odds,
    log_odds_floor, mann_kendall, median_over_trials, plan, prediction_limits, recovery, student,
};
use serde_json::Value;

/// A vector by its name.
fn vector(name: &str) -> (Value, Value) {
    let all: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let found = all.into_iter().find(|vector| vector["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no vector is called {name}"));
    (found["input"].clone(), found["output"].clone())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

/// As exactly as the vectors are written: four digits.
#[track_caller]
fn assert_is(found: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    let apart = (found - expected).abs();
    assert!(apart <= 1e-4 * expected.abs().max(1.0), "{found} instead of {expected}");
}

#[track_caller]
fn assert_compared(found: &Comparison, expected: &Value) {
    let shown = &found.estimate;
    let method = if shown.method == Method::Student { "t" } else { "signed-rank" };
    let outcome = match found.outcome {
        Outcome::More => "more",
        Outcome::Less => "less",
        Outcome::NoDifference => "no-difference",
        Outcome::Inconclusive => "inconclusive",
    };
    assert_eq!((method, outcome), (expected["method"].as_str().unwrap(), expected["outcome"].as_str().unwrap()));
    assert_eq!(shown.blocks as u64, expected["n"].as_u64().unwrap());
    for (found, name) in [
        (shown.effect, "estimate"),
        (shown.low, "low"),
        (shown.high, "high"),
        (shown.p, "p"),
        (shown.smallest_seen, "mde"),
        (found.within.0, "low90"),
        (found.within.1, "high90"),
        (found.no_larger_than, "no_larger_than"),
    ] {
        assert_is(found, &expected[name]);
    }
    for (found, expected) in found.differences.iter().zip(expected["differences"].as_array().unwrap()) {
        assert_is(*found, expected);
    }
    match (found.changed, expected.get("changed_p")) {
        (Some(found), Some(expected)) => assert_is(found, expected),
        (found, expected) => assert!(found.is_none() && expected.is_none(), "{found:?} instead of {expected:?}"),
    }
}

#[test]
fn students_quantiles() {
    let (input, output) = vector("Student quantiles");
    let (p, freedom) = (numbers(&input["p"]), numbers(&input["nu"]));
    for freedom in freedom {
        for (p, expected) in p.iter().zip(output[freedom.to_string()].as_array().unwrap()) {
            assert_is(student(*p, freedom as usize), expected);
        }
    }
}

#[test]
fn the_smallest_effect_that_is_seen_is_so_many_standard_deviations() {
    let (_, output) = vector("mde factor");
    for (blocks, factor) in output.as_object().unwrap() {
        assert_is(effect_factor(blocks.parse().unwrap()), factor);
    }
    // No gap where the approximation begins.
    assert!(effect_factor(8) < effect_factor(7) && effect_factor(8) > 0.9 * effect_factor(7));
}

#[test]
fn one_of_several_questions_takes_a_larger_effect_or_more_blocks() {
    for blocks in 2..=20 {
        // By itself it is what the table says; the way to it is another.
        let alone = effect_factor_at(blocks, ALPHA * (1.0 - 1e-9));
        assert!((alone / effect_factor(blocks) - 1.0).abs() < 0.03, "{blocks} blocks: {alone}");
        let [of_4, of_20] = [4.0, 20.0].map(|cells| effect_factor_at(blocks, ALPHA / cells));
        assert!(alone < of_4 && of_4 < of_20, "{blocks} blocks: {alone}, {of_4}, {of_20}");
    }
    let needed = |cells: f64| enough_blocks(0.05, 0.02, ALPHA / cells, 2, 200).unwrap();
    assert_eq!(needed(1.0), 4, "three see 3.264 deviations, four 2.128");
    assert!(needed(1.0) < needed(4.0) && needed(4.0) < needed(20.0));
    for cells in [1.0, 4.0, 20.0] {
        let blocks = needed(cells);
        assert!(effect_factor_at(blocks, ALPHA / cells) <= 2.5 * 1.03, "{blocks} blocks tell it");
        assert!(effect_factor_at(blocks - 1, ALPHA / cells) > 2.5 * 0.97, "and one fewer do not");
    }
}

#[test]
fn more_blocks_than_there_are_are_asked_for_and_no_more_than_anyone_runs() {
    assert_eq!(enough_blocks(1.0, 0.01, ALPHA, 5, 200), Some(6));
    assert_eq!(enough_blocks(1.0, 0.0, ALPHA, 2, 200), Some(3));
    assert_eq!(enough_blocks(0.001, 1.0, ALPHA, 2, 200), None);
    assert_eq!(enough_blocks(1.0, 0.01, ALPHA, 200, 200), None);
}

#[test]
fn a_cell_against_trials_without_a_fault() {
    for name in [
        "5 blocks, 3 no-fault arms, +3 %, sd 1 %",
        "5 blocks, 1 arm, no effect",
        "2 blocks, 3 arms, +10 %: t cannot, the pool can",
        "10 blocks, 3 arms, +3 %, one trial of the cell and one no-fault trial spoilt",
        "8 blocks, 1 arm, no effect, sd 0.2 %: no difference larger than X",
        "all equal: the floor",
    ] {
        let (input, output) = vector(name);
        let margin = input["margin"].as_f64().unwrap();
        let found = compare(&numbers(&input["cell"]), &rows(&input["arms"]), margin, FLOOR, 1).unwrap();
        assert_compared(&found, &output);
    }
}

#[test]
fn what_is_not_complete_is_not_judged() {
    let cell = [1.0, 1.1];
    assert!(compare(&cell, &[], 0.01, FLOOR, 1).is_none(), "without trials without a fault there is no verdict");
    assert!(compare(&cell, &[vec![1.0]], 0.01, FLOOR, 1).is_none());
    assert!(compare(&cell[..1], &[vec![1.0]], 0.01, FLOOR, 1).is_none());
    assert!(compare(&[1.0, f64::NAN], &[vec![1.0, 1.0]], 0.01, FLOOR, 1).is_none());
}

#[test]
fn shares_are_compared_by_their_odds() {
    let (input, output) = vector("shares: logit with one half added");
    let total = input["total"].as_u64().unwrap();
    let counts = |value: &Value| -> Vec<u64> { numbers(value).into_iter().map(|count| count as u64).collect() };
    let odds = |counts: &[u64]| -> Vec<f64> { counts.iter().map(|bad| log_odds(*bad, total)).collect() };
    let cell = counts(&input["bad_cell"]);
    let arms: Vec<Vec<u64>> = input["bad_arms"].as_array().unwrap().iter().map(counts).collect();
    let floor = log_odds_floor(&cell, &arms.concat());
    assert_is(floor, &output["floor"]);
    for (found, expected) in odds(&cell).iter().zip(output["logit_cell"].as_array().unwrap()) {
        assert_is(*found, expected);
    }
    let arms: Vec<Vec<f64>> = arms.iter().map(|arm| odds(arm)).collect();
    assert_compared(&compare(&odds(&cell), &arms, 1.01f64.ln(), floor, 1).unwrap(), &output);
}

#[test]
fn a_fault_against_its_own_baseline() {
    let (input, output) =
        vector("fault against its own baseline, less the same of no-fault trials (order effect +1 %, loss 3 %)");
    let ratio = |fault: &[f64], baseline: &[f64]| -> Vec<f64> {
        fault.iter().zip(baseline).map(|(fault, baseline)| (fault / baseline).ln()).collect()
    };
    let cell = ratio(&numbers(&input["fault_cell"]), &numbers(&input["baseline_cell"]));
    let (fault, baseline) = (rows(&input["fault_phase_arms"]), rows(&input["baseline_arms"]));
    let arms: Vec<Vec<f64>> = fault.iter().zip(&baseline).map(|(fault, baseline)| ratio(fault, baseline)).collect();
    assert_compared(&compare(&cell, &arms, 1.01f64.ln(), FLOOR, 1).unwrap(), &output);
}

#[test]
fn separate_runs_are_two_independent_samples() {
    for name in ["three against five", "two against two", "one side scatters tenfold"] {
        let (input, output) = vector(&format!("separate runs: {name}"));
        let found = difference(&numbers(&input["a"]), &numbers(&input["b"]), FLOOR).unwrap();
        for (found, expected) in
            [(found.effect, "effect"), (found.error, "error"), (found.freedom, "freedom"), (found.p, "p")]
        {
            assert_is(found, &output[expected]);
        }
        for (alpha, expected) in [(0.05, "interval95"), (0.10, "interval90"), (0.01, "interval99")] {
            let (low, high) = found.interval(alpha);
            assert_is(low, &output[expected][0]);
            assert_is(high, &output[expected][1]);
        }
        let ends = numbers(&output["interval90"]);
        assert!((found.no_larger_than() - ends[0].abs().max(ends[1].abs())).abs() < 1e-4);
        for (alpha, expected) in [(0.05, "smallest_seen"), (0.01, "smallest_seen_99")] {
            let expected = output[expected].as_f64().unwrap();
            let found = found.smallest_seen(alpha);
            assert!((found / expected - 1.0).abs() < 0.005, "{name}: {found} instead of {expected}");
        }
    }
}

#[test]
fn separate_runs_that_are_too_few_or_no_numbers_have_no_difference() {
    assert!(difference(&[1.0], &[1.0, 1.1, 1.2], FLOOR).is_none());
    assert!(difference(&[1.0, f64::NEG_INFINITY], &[1.0, 1.1], FLOOR).is_none());
    // What does not scatter at all still has the error of clocks and histograms.
    let equal = difference(&[1.0; 3], &[1.0; 3], FLOOR).unwrap();
    assert_eq!((equal.error, equal.freedom, equal.p), (FLOOR, 4.0, 1.0));
}

#[test]
fn one_trial_differs_or_not() {
    for name in ["one trial", "one trial, nothing"] {
        let (input, output) = vector(name);
        let (low, high) = prediction_limits(&numbers(&input["free"]), 0.01).unwrap();
        assert_is(low, &output["low"]);
        assert_is(high, &output["high"]);
        let one = input["x"].as_f64().unwrap();
        assert_eq!(!(low..=high).contains(&one), output["outside"].as_bool().unwrap(), "{name}");
    }
    assert!(prediction_limits(&[1.0, 1.1, 1.2], 0.01).is_none());
}

#[test]
fn a_pilot_tells_how_many_trials_it_takes() {
    let (input, output) = vector("planning from a pilot of 3 blocks x 3 no-fault trials, 3 % to be seen");
    let (arms, effect) = (input["M"].as_u64().unwrap() as usize, input["delta"].as_f64().unwrap());
    let found = plan(&rows(&input["free_blocks"]), arms, effect).unwrap();
    assert_is(found.deviation, &output["s"]);
    assert_is(found.of_difference, &output["sd_difference"]);
    assert_eq!(
        (found.freedom as u64, found.blocks.map(|n| n as u64)),
        (output["nu"].as_u64().unwrap(), output["trials"].as_u64(),)
    );
    for (blocks, effect) in output["visible"].as_object().unwrap() {
        assert_is(found.visible(blocks.parse().unwrap()), effect);
    }
}

#[test]
fn of_many_cells_few_false_ones_are_selected() {
    let (input, output) = vector("many cells");
    let found = benjamini_hochberg(&numbers(&input["p"]), ALPHA);
    let selected: Vec<usize> = numbers(&output["selected"]).into_iter().map(|place| place as usize).collect();
    assert_eq!(found.selected, selected);
    for (found, expected) in found.adjusted.iter().zip(output["adjusted"].as_array().unwrap()) {
        assert_is(*found, expected);
    }
    assert_is(found.interval_alpha, &output["interval_alpha"]);
}

/// The value of a curve at a place, which the vector gives for some.
fn value_at(input: &Value, output: &Value, at: f64) -> f64 {
    let known = |places: &Value, values: &Value| {
        let places = numbers(places);
        places.iter().position(|place| (place - at).abs() < 1e-3).map(|place| numbers(values)[place])
    };
    known(&input["places"], &input["values_at_places"])
        .or_else(|| known(&output["picks_after_the_scan"], &output["values_at_picks"]))
        .unwrap_or_else(|| panic!("nobody asked for {at}"))
}

#[test]
fn a_zone_is_found_where_it_is_and_with_as_many_trials() {
    for name in [
        "search: closed loop, c = 1.86 ms, no noise",
        "search: steep, c = 20 ms",
        "search: rises, falls and rises again",
        "search: never above 40 %",
    ] {
        const MOST: usize = 21;
        let (input, output) = vector(name);
        let mut zone = Zone::new((-1.0, 3.0), &[0.1, 0.5], &numbers(&input["free"]));
        for at in zone.scan() {
            zone.learn(at, value_at(&input, &output, at));
        }
        let mut picked = Vec::new();
        while let Some(at) = (zone.trials() < MOST).then(|| zone.next(MOST - zone.trials())).flatten() {
            picked.push(at);
            zone.learn(at, value_at(&input, &output, at));
        }
        assert_eq!(zone.trials() as u64, output["trials"].as_u64().unwrap(), "{name}: {picked:?}");
        for (found, expected) in picked.iter().zip(output["picks_after_the_scan"].as_array().unwrap()) {
            assert_is(*found, expected);
        }
        assert_is(zone.deviation(), &output["sigma"]);
        for (threshold, key) in ["10%", "50%"].into_iter().enumerate() {
            let (found, expected) = (zone.crossing(threshold), &output[key]);
            for (found, expected) in [(found.low, &expected["low"]), (found.high, &expected["high"])] {
                match found {
                    Some(found) => assert_is(found, expected),
                    None => assert!(expected.is_null(), "{name}: nothing instead of {expected}"),
                }
            }
            let back = numbers(&expected["back_below"]);
            assert_eq!(found.back.len(), back.len(), "{name}: {:?} instead of {back:?}", found.back);
        }
    }
}

#[test]
fn one_spoilt_trial_makes_no_side_sure() {
    let (input, output) = vector("search: sides of a spoilt trial and a reversal");
    let mut zone = Zone::new((-1.0, 3.0), &[0.1, 0.5], &numbers(&input["free"]));
    for (at, values) in input["points"].as_object().unwrap() {
        for value in numbers(values) {
            zone.learn(at.parse().unwrap(), value);
        }
    }
    // The note's deviation, 0.0106, is of all trials together. Those with a fault scatter by more, and are taken to: half of them lie
    // farther than 0.01 from the middle of their three.
    assert!((zone.deviation() - 1.4826 * 1.5_f64.sqrt() * 0.01).abs() < 1e-9, "{}", zone.deviation());
    let found = zone.crossing(0);
    assert_is(found.low.unwrap(), &output["10%"]["low"]);
    assert_is(found.high.unwrap(), &output["10%"]["high"]);
    assert_eq!(found.back, numbers(&output["10%"]["back_below"]));
    assert_is(zone.next(10).unwrap(), &output["next"]);
}

/// The first interval by whose end a warm-up is over: when latency has settled over the last 40.
fn warm_up_ends(p50: &[f64]) -> Option<usize> {
    (2 * SETTLED_HALF..=p50.len()).find(|end| has_settled(&p50[end - 2 * SETTLED_HALF..*end]))
}

#[test]
fn a_warm_up_ends_when_it_no_longer_gets_faster() {
    let (input, output) = vector("warm-up");
    let end = warm_up_ends(&numbers(&input["p50_ns"])).unwrap();
    assert_eq!(end as u64, output["stop_after_seconds"].as_u64().unwrap());
    assert_eq!(warm_up_ends(&[5.0; 39]), None);
    assert_eq!(warm_up_ends(&[5.0; 40]), Some(40));
}

#[test]
fn a_drift_within_baselines_is_judged_over_trials() {
    let (input, output) = vector("drift within baselines, over trials");
    let slopes: Vec<f64> = rows(&input["p50_ns"]).iter().map(|values| change_over(values)).collect();
    for (found, expected) in slopes.iter().zip(output["slopes"].as_array().unwrap()) {
        assert_is(*found, expected);
    }
    let found = estimate(&slopes, ALPHA, FLOOR, 1).unwrap();
    let test = &output["test"];
    assert_is(deviation(&slopes), &test["sd"]);
    for (found, name) in [(found.effect, "estimate"), (found.low, "low"), (found.high, "high"), (found.p, "p")] {
        assert_is(found, &test[name]);
    }
}

#[test]
fn a_drift_over_the_run_is_a_trend() {
    let (input, output) = vector("drift over the run");
    let found = mann_kendall(&numbers(&input["v"])).unwrap();
    assert_eq!(found.score, output["s"].as_i64().unwrap());
    assert_is(found.p, &output["p"]);
}

#[test]
fn a_change_is_where_the_values_before_and_after_it_lie_farthest_apart() {
    let step = [1.00, 1.02, 0.99, 1.01, 1.21, 1.19, 1.22, 1.20, 1.18];
    assert_eq!(change_point(&step), Some(4));
    // Of a steady rise it is the middle; one value alone is no part.
    assert_eq!(change_point(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some(3));
    assert_eq!(change_point(&[9.0, 1.0, 1.0, 1.0]), Some(2));
    assert_eq!(change_point(&[1.0, 1.1, 2.0]), None);
}

#[test]
fn a_recovery_ends_with_its_relapses() {
    for name in ["recovery with a relapse and a stalled second", "no recovery"] {
        let (input, output) = vector(name);
        let found = recovery(&numbers(&input["base"]), &numbers(&input["rec"])).unwrap();
        assert_is(found.floor, &output["floor"]);
        assert_is(found.lost, &output["lost_seconds"]);
        let whole = |name: &str| output[name].as_f64().map(|seconds| seconds as usize);
        assert_eq!((found.first, found.last), (whole("first"), whole("last")), "{name}");
        assert_eq!(found.has_relapsed(), output["relapsed"].as_bool().unwrap());
    }
}

#[test]
fn times_over_trials_have_the_median_of_all_of_them() {
    for name in ["median over trials", "median over five"] {
        let (input, output) = vector(name);
        let times: Vec<Option<f64>> = input["v"].as_array().unwrap().iter().map(Value::as_f64).collect();
        let found = median_over_trials(&times).unwrap();
        for (found, expected) in [(found.median, "median"), (found.low, "low"), (found.high, "high")] {
            if output[expected] == "inf" {
                assert!(found.is_infinite(), "{found}");
            } else {
                assert_is(found, &output[expected]);
            }
        }
        assert_is(found.confidence, &output["confidence"]);
    }
}
