//! The command language, beside what cassandra-stress itself printed (`golden/`).

use brownout_stress::settings::{Invocation, Settings};

const BLOCKS: &str = include_str!("../golden/blocks.txt");
const REFUSALS: &str = include_str!("../golden/refusals.txt");

/// Words of a golden line; its quotes were the shell's.
fn words(line: &str) -> Vec<String> {
    line.replace('"', "").split(' ').map(str::to_owned).collect()
}

/// What cassandra-stress has no lines for comes last, in a section of its own.
fn theirs(block: &str) -> &str {
    block.split_once("Brownout:\n").expect("a section of ours").0
}

#[test]
fn the_block_of_settings_is_that_of_cassandra_stress_line_for_line() {
    let mut first: Option<Vec<&str>> = None;
    let mut compared = 0;
    for section in BLOCKS.split("$ ").filter(|section| !section.trim().is_empty()) {
        let (line, golden) = section.split_once('\n').expect("a command line");
        let settings = Settings::parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        let block = settings.block();
        let golden: Vec<&str> = golden.lines().filter(|line| !line.is_empty()).collect();
        // Of all blocks but the first, only what is not in the first was printed.
        let ours = theirs(&block).lines();
        let ours: Vec<&str> = match &first {
            Some(first) => ours.filter(|line| !first.contains(line)).collect(),
            None => ours.collect(),
        };
        assert_eq!(ours, golden, "{line}");
        first.get_or_insert(golden);
        compared += 1;
    }
    assert!(compared >= 40, "{compared} blocks compared");
}

#[test]
fn what_cassandra_stress_refuses_is_refused_with_its_words() {
    let mut compared = 0;
    for section in REFUSALS.split("\n$ ").skip(1) {
        let (line, golden) = section.split_once('\n').unwrap_or((section, ""));
        let error = Invocation::parse(&words(line)).expect_err(line).to_string();
        assert!(error.starts_with(golden.trim_end()), "{line}\n  theirs: {golden}\n  ours: {error}");
        assert!(!golden.is_empty(), "{line}");
        compared += 1;
    }
    assert!(compared >= 45, "{compared} refusals compared");
}
