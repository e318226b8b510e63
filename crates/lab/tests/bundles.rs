//! Levels that set several keys of an experiment file together.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_lab::{Plan, experiment::Source};

const FILE: &str = r#"
load: { population: 1_000, connections: 3 }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults:
  - slow: { host: n2, delay: "${delay}" }
objective: { p95: 100ms }
vary:
"#;

/// Of each cell what it is and what its load is, in words.
fn loads(file: &str) -> Result<Vec<(String, String)>, String> {
    let told = |error: brownout_lab::experiment::FileError| error.to_string();
    let source = Source::from_text(Path::new("some.yaml"), file.to_owned()).map_err(told)?;
    let variation = source.variation().map_err(told)?;
    let cells = (0..variation.cells.len()).map(|cell| {
        let plan = Plan::new(&source.of_cell(&variation, cell).map_err(told)?).map_err(told)?;
        let load = plan.description("").load.text;
        Ok((variation.words(cell), load.split("; ").next().unwrap().to_owned()))
    });
    cells.collect()
}

fn open_and_closed(file: &str) -> Vec<(String, String)> {
    let pace = "  delay: [1ms, 10ms]\n  pace: { open: { load.rate: 400/s }, closed: { load.threads: 64 } }\n";
    loads(&format!("{file}{pace}")).unwrap()
}

#[test]
fn open_and_closed_are_levels_of_one_factor_beside_another() {
    let told = open_and_closed(FILE);
    let open = "open loop, 400/s, constant arrivals";
    let closed = "closed loop, 64 threads";
    let expected = [
        ("delay 1ms, pace open", open),
        ("delay 1ms, pace closed", closed),
        ("delay 10ms, pace open", open),
        ("delay 10ms, pace closed", closed),
    ];
    assert_eq!(told, expected.map(|(cell, load)| (cell.to_owned(), load.to_owned())));
}

#[test]
fn a_level_sets_all_of_its_keys_and_leaves_the_others_as_the_file_has_them() {
    let vary = "  delay: [1ms]\n  kind:\n    plain: {}\n    few: { load.connections: 1, faults.0.slow.host: n3 }\n    \
                large: { load.value-size: 1KiB }\n";
    let file = FILE.replace("connections: 3", "connections: 3, rate: 100/s");
    let source = Source::from_text(Path::new("some.yaml"), format!("{file}{vary}")).unwrap();
    let variation = source.variation().unwrap();
    let told = |cell| {
        let source = source.of_cell(&variation, cell).unwrap();
        let load = source.experiment().unwrap().load;
        let plan = Plan::new(&source).unwrap();
        let fault = plan.faults[0].fault().unwrap().text().to_owned();
        (load.connections.0, load.value_size.map(|size| size.0), fault.contains("n3"))
    };
    assert_eq!((0..3).map(told).collect::<Vec<_>>(), [(3, None, false), (1, None, true), (3, Some(1024), false)]);
    assert_eq!(variation.words(0), "delay 1ms, kind plain");
}

#[test]
fn levels_that_set_keys_are_excluded_and_included_by_their_names() {
    let vary = "  delay: [1ms, 10ms]\n  pace: { open: { load.rate: 400/s }, closed: { load.threads: 64 } }\n  \
                exclude: [{ pace: closed }]\n  include: [{ delay: 1s, pace: closed }]\n";
    let cells: Vec<String> = loads(&format!("{FILE}{vary}")).unwrap().into_iter().map(|(cell, _)| cell).collect();
    assert_eq!(cells, ["delay 1ms, pace open", "delay 10ms, pace open", "delay 1s, pace closed"]);
}

#[test]
fn a_factor_that_is_named_after_a_key_or_a_variable_has_values_as_before() {
    let whole = "  delay: [1ms]\n  load: { open: { rate: 400/s }, closed: { threads: 64 } }\n";
    let told = loads(&format!("{FILE}{whole}")).unwrap();
    assert_eq!(told[1].0, "delay 1ms, load closed");
    let variable = FILE.replace("load: { population: 1_000, connections: 3 }", "load: \"${pace}\"");
    let told = loads(&format!("{variable}  delay: [1ms]\n  pace: {{ open: {{ rate: 9/s }} }}\n")).unwrap();
    assert!(told[0].1.contains("9/s"), "{told:?}");
}

/// What is under `vary:` beside `delay`, and what is said of it.
const WRONG: &[(&str, &[&str])] = &[
    (
        "pace: { open: { lod.rate: 400/s } }",
        &["some.yaml:9:", "'lod.rate' is not a key", "did you mean 'load'?", "${pace}"],
    ),
    ("pace: { open: { trials: 4 } }", &["'trials' is not a key of the file that may vary"]),
    ("pace: { open: { load.rat: 400/s } }", &["unknown key 'rat'", "'rate'"]),
    ("pace: { open: { load.rate: fast } }", &["some.yaml:9:", "'fast' is not a rate"]),
    ("pace: { open: { faults.3.slow.delay: 1ms } }", &["vary.pace", "'3' is not an element of 'faults'"]),
    ("pace: { open: { load.rate: 4/s }, closed: 64 }", &["some.yaml:9:", "vary.pace.closed", "'closed' sets no key"]),
    ("pace: { open: { load.rate: 4/s }, closed: }", &["'closed' sets no key", "{} is the file as it is"]),
    ("pace: { open: {} }", &["no level sets any key"]),
    ("pace: { one: { load.rate: 4/s }, two: { load.rate: 4/s } }", &["'two' sets the same as 'one'"]),
    ("pace: { one: { load: { rate: 4/s }, load.rate: 5/s } }", &["'load.rate' and 'load' are one in the other"]),
    ("pace: { open: 400/s }", &["${pace} is not in the file", "its levels do not set keys", "{ load.rate: 400/s }"]),
    (
        "pace: { open: { load.rate: 4/s } }\n  load.rate: [4/s, 5/s]",
        &["'load.rate' is set here, and the factor load.rate sets 'load.rate'"],
    ),
    (
        "pace: { open: { load.rate: 4/s } }\n  size: { small: { load: { rate: 5/s } } }",
        &["the factor size sets 'load'"],
    ),
    ("pace: { one: { faults.0.slow: { host: n1, delay: 1ms } } }", &["the file has '${delay}' there"]),
    ("pace: { open: { load.rate: \"${rate}\" } }", &["${rate} stands for nothing"]),
    ("pace: { open: { load.rate: 4/s } }\n  exclude: [{ pace: opne }]", &["pace has no level 'opne'; it has open"]),
    (
        "pace: { open: { load.rate: 4/s } }\n  include: [{ delay: 1s, pace: { load.rate: 5/s } }]",
        &["pace has no level '{load.rate: 5/s}'; it has open"],
    ),
    ("pace: { open: { load.population: 4 } }", &["the amount of load is missing"]),
];

#[test]
fn every_mistake_is_refused_with_what_would_be_right() {
    for (vary, parts) in WRONG {
        let said = loads(&format!("{FILE}  delay: [1ms]\n  {vary}\n")).unwrap_err();
        for part in *parts {
            assert!(said.contains(part), "{vary}: '{part}' is not in: {said}");
        }
    }
}
