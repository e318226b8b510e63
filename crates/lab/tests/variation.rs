//! What `vary:` makes of an experiment file.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_lab::{Plan, experiment::Source};

const FILE: &str = r#"
load: { rate: 400/s, population: 1_000, consistency: "${consistency}" }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults:
  - slow: { host: n2, delay: "${delay}" }
objective: { p95: 100ms }
vary:
"#;

fn source(vary: &str) -> Source {
    Source::from_text(Path::new("some.yaml"), format!("{FILE}{vary}")).unwrap()
}

/// The cells, in words.
fn cells(vary: &str) -> Vec<String> {
    let variation = source(vary).variation().unwrap();
    (0..variation.cells.len()).map(|cell| variation.words(cell)).collect()
}

fn complaint(vary: &str) -> String {
    let source = source(vary);
    let all = source.variation().and_then(|variation| {
        (0..variation.cells.len()).try_for_each(|cell| Plan::new(&source.of_cell(&variation, cell)?).map(drop))
    });
    all.unwrap_err().to_string()
}

#[test]
fn all_combinations_are_cells_and_each_has_its_plan() {
    let source = source("  delay: [1ms, 10ms, 100ms]\n  consistency: [one, quorum]\n");
    let variation = source.variation().unwrap();
    let words: Vec<String> = (0..variation.cells.len()).map(|cell| variation.words(cell)).collect();
    assert_eq!(words.len(), 6);
    assert_eq!(
        (words[0].as_str(), words[5].as_str()),
        ("delay 1ms, consistency one", "delay 100ms, consistency quorum")
    );
    for (cell, words) in words.iter().enumerate() {
        let plan = Plan::new(&source.of_cell(&variation, cell).unwrap()).unwrap();
        let told = format!("{} {}", plan.faults[0].fault().unwrap().text(), plan.load.consistency_words());
        for word in words.replace(',', "").split(' ').filter(|word| !["delay", "consistency"].contains(word)) {
            assert!(told.to_lowercase().contains(word), "{words}: {told}");
        }
    }
}

#[test]
fn levels_are_lists_ranges_or_values_with_names() {
    let few = "  consistency: [one]\n";
    assert_eq!(
        cells(&format!("  delay: 1ms..100ms log 3\n{few}")),
        ["delay 1ms, consistency one", "delay 10ms, consistency one", "delay 100ms, consistency one"]
    );
    assert_eq!(
        cells(&format!("  delay: {{ lan: 1ms, wan: 100ms }}\n{few}")),
        ["delay lan, consistency one", "delay wan, consistency one"]
    );
}

#[test]
fn a_factor_may_be_a_key_of_the_file_there_or_not() {
    let text = FILE.replace("\"${consistency}\"", "one").replace("\"${delay}\"", "10ms");
    let vary = "  faults.0.slow.delay: [20ms, 30ms]\n  network.topology: { near: lan }\n  load.value-size: [1KiB]\n";
    let source = Source::from_text(Path::new("some.yaml"), format!("{text}{vary}")).unwrap();
    let variation = source.variation().unwrap();
    let plan = Plan::new(&source.of_cell(&variation, 1).unwrap()).unwrap();
    assert!(plan.faults[0].fault().unwrap().text().contains("30ms"), "{}", plan.faults[0].fault().unwrap().text());
    assert_eq!(variation.words(1), "faults.0.slow.delay 30ms, network.topology near, load.value-size 1KiB");
    // The file itself is as it was.
    assert!(source.of_cell(&variation, 0).unwrap().experiment().is_ok());
}

#[test]
fn a_variable_may_be_a_part_of_a_value_and_a_value_may_have_keys() {
    let text = FILE
        .replace("population: 1_000", "population: \"${thousands}_000\"")
        .replace("{ host: n2, delay: \"${delay}\" }", "\"${fault}\"")
        .replace("\"${consistency}\"", "one");
    let vary = "  thousands: [1, 2]\n  fault: { slow: { host: n1, delay: 5ms }, slower: { host: n1, delay: 50ms } }\n";
    let source = Source::from_text(Path::new("some.yaml"), format!("{text}{vary}")).unwrap();
    let variation = source.variation().unwrap();
    assert_eq!(variation.words(3), "thousands 2, fault slower");
    let experiment = source.of_cell(&variation, 3).unwrap().experiment().unwrap();
    assert!(format!("{:?}", experiment.faults).contains("50000000"), "{:?}", experiment.faults);
    assert!(format!("{:?}", experiment.load).contains("2000"), "{:?}", experiment.load);
}

#[test]
fn levels_of_a_key_may_hold_a_variable_that_varies_after_them() {
    let slow = |host: &str| format!("[slow: {{ host: {host}, delay: \"${{delay}}\" }}]");
    let vary = format!(
        "  consistency: [one]\n  faults: {{ here: {}, there: {} }}\n  delay: [5ms, 50ms]\n",
        slow("n2"),
        slow("n3")
    );
    let source = source(&vary);
    let variation = source.variation().unwrap();
    let plan = Plan::new(&source.of_cell(&variation, 3).unwrap()).unwrap();
    let text = plan.faults[0].fault().unwrap().text();
    assert!(text.contains("n3") && text.contains("50ms"), "{text}");
}

#[test]
fn combinations_are_taken_out_and_added() {
    let all = "  delay: [1ms, 10ms]\n  consistency: [one, quorum]\n";
    assert_eq!(
        cells(&format!(
            "{all}  exclude: [{{ delay: 10ms, consistency: one }}]\n  include: [{{ delay: 1s, consistency: all }}]\n"
        )),
        [
            "delay 1ms, consistency one",
            "delay 1ms, consistency quorum",
            "delay 10ms, consistency quorum",
            "delay 1s, consistency all"
        ]
    );
}

#[test]
fn what_is_excluded_of_very_many_combinations_leaves_all_others() {
    let ms = |range: std::ops::RangeInclusive<u32>| range.map(|ms| format!("{ms}ms")).collect::<Vec<_>>();
    let excluded = ms(2..=29).iter().map(|delay| format!("{{ delay: {delay} }}")).collect::<Vec<_>>().join(", ");
    let all = format!(
        "  delay: [{}]\n  consistency: [one, quorum]\n  load.timeout: [{}]\n  exclude: [{excluded}]\n",
        ms(1..=30).join(", "),
        ms(1..=40).join(", ")
    );
    // 2,400 combinations, and the last ones stay.
    let cells = cells(&all);
    assert_eq!(cells.len(), 2 * 2 * 40);
    assert_eq!(cells.last().map(String::as_str), Some("delay 30ms, consistency quorum, load.timeout 40ms"));
}

#[test]
fn a_file_without_vary_has_one_cell() {
    let text = FILE.replace("\"${consistency}\"", "one").replace("\"${delay}\"", "10ms").replace("vary:\n", "");
    let source = Source::from_text(Path::new("some.yaml"), text).unwrap();
    let variation = source.variation().unwrap();
    assert_eq!((variation.cells.len(), variation.words(0).as_str()), (1, ""));
    assert!(Plan::new(&source.of_cell(&variation, 0).unwrap()).is_ok());
}

#[test]
fn what_cannot_vary_is_told_with_its_place_and_the_remedy() {
    let few = "  consistency: [one]\n";
    for (vary, parts) in [
        (format!("  dilay: [1ms]\n{few}"), &["some.yaml:8:", "vary.dilay", "did you mean delay?"][..]),
        (few.to_owned(), &["some.yaml:5:", "${delay} stands for nothing", "vary: { delay: [VALUE, …] }"]),
        (format!("  delay: []\n{few}"), &["vary.delay", "there is no level"]),
        (format!("  delay: [1ms, 1ms]\n{few}"), &["'1ms' is there twice"]),
        (format!("  delay: 1ms..9ms\n{few}"), &["1ms..9ms", "0.1ms..100ms log 7"]),
        (format!("  delay: [1ms, soon]\n{few}"), &["some.yaml:8:", "soon"]),
        (
            format!("  delay: [1ms]\n{few}  include: [{{ delay: 2ms }}]\n"),
            &["vary.include.0", "consistency is missing"],
        ),
        (format!("  delay: [1ms]\n{few}  exclude: [{{ delay: 2ms }}]\n"), &["delay has no level '2ms'; it has 1ms"]),
        (
            format!("  delay: [1ms]\n{few}  exclude: [{{ dely: 1ms }}]\n"),
            &["'dely' is not a factor", "delay, consistency"],
        ),
        (format!("  delay: [1ms]\n{few}  exclude: [{{ delay: 1ms }}]\n"), &["0 combinations cannot be run"]),
        (
            format!("  delay: [1ms]\n{few}  faults.0.slow: [{{ host: n1, delay: 5ms }}]\n"),
            &["vary.faults.0.slow", "the file has '${delay}' there, which the factor delay gives its value"],
        ),
        (
            format!("  delay: [1ms]\n{few}  load: {{ some: {{ rate: 1/s }} }}\n  load.rate: [1/s]\n"),
            &["vary.load", "the factor load.rate sets 'load.rate'"],
        ),
        (
            format!("  delay: 1ms..900ms even 300\n{few}  load.connections: 1..90 even 30\n"),
            &["combinations cannot be run"],
        ),
    ] {
        let said = complaint(&vary);
        for part in parts {
            assert!(said.contains(part), "'{part}' is not in: {said}");
        }
    }
}
