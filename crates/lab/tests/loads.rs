//! Reads and writes as loads of their own: what a plan makes of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_lab::{Plan, experiment::Source};
use brownout_record::{LoadDescription, LoadPart};

fn plan(load: &str) -> Result<Plan, brownout_lab::experiment::FileError> {
    let text = format!(
        "load:\n{load}phases: {{ warm-up: 20s, baseline: 5s, fault: 10s, recovery: 5s }}\nfaults: [{{ slow: {{ host: n2, delay: 50ms }} }}]\n\
         objective: {{ p99: 1s }}\n"
    );
    Plan::new(&Source::from_text(Path::new("some.yaml"), text)?)
}

fn load(text: &str) -> LoadDescription {
    plan(text).unwrap().description("").load
}

#[test]
fn rates_of_their_own_add_up_and_are_told_apart() {
    let load = load("  mix: { read: 300/s, write: 100/s }\n");
    assert!(
        load.text.starts_with("open loop, 400/s, constant arrivals; read 300/s, write 100/s over "),
        "{}",
        load.text
    );
    assert_eq!((load.rate, load.threads), (Some(400.0), None));
    let part = |operation: &str, rate| LoadPart { operation: operation.to_owned(), rate: Some(rate), threads: None };
    assert_eq!(load.parts, [part("read", 300.0), part("write", 100.0)]);
    assert!(load.closed_beside_open().is_empty());
}

#[test]
fn a_closed_load_beside_an_open_one_has_the_rate_of_the_open_one_and_no_threads_of_all() {
    let load = load("  mix: { read: 300/s, write: { threads: 4 } }\n");
    let text = "open loop, 300/s, constant arrivals beside closed loop, 4 threads; read 300/s, write 4 threads over ";
    assert!(load.text.starts_with(text), "{}", load.text);
    assert_eq!((load.rate, load.threads), (Some(300.0), None));
    let closed: Vec<&str> = load.closed_beside_open().iter().map(|part| part.operation.as_str()).collect();
    assert_eq!(closed, ["write"]);
}

#[test]
fn users_of_all_operations_add_up() {
    let load = load("  mix: { read: { threads: 8 }, write: { threads: 4 } }\n");
    assert!(load.text.starts_with("closed loop, 12 threads; read 8 threads, write 4 threads over "), "{}", load.text);
    assert_eq!((load.rate, load.threads), (None, Some(12)));
    assert!(load.closed_beside_open().is_empty());
}

#[test]
fn the_plan_says_whose_timestamps_decide_and_anything_else_is_an_error_with_its_line() {
    let with = |timestamps: &str| format!("  rate: 100/s\n  timestamps: {timestamps}\n");
    assert!(load(&with("coordinator")).text.contains(", timestamps by the coordinators;"));
    assert_eq!(load(&with("client")).text, load("  rate: 100/s\n").text);
    let refused = plan(&with("server")).err().unwrap().to_string();
    assert!(refused.contains("some.yaml:3") && refused.contains("coordinator"), "{refused}");
}

#[test]
fn clocks_are_asked_of_each_other_only_where_the_file_says_so() {
    let with = |network: &str| {
        let text = format!(
            "{network}load: {{ rate: 100/s }}\nphases: {{ warm-up: 20s, baseline: 5s }}\nobjective: {{ p99: 1s }}\n"
        );
        Plan::new(&Source::from_text(Path::new("some.yaml"), text).unwrap()).unwrap().needs().clock_matrix
    };
    assert!(with("network: { clock-matrix: true }\n"));
    assert!(!with(""));
}

#[test]
fn weights_are_one_load_as_before() {
    let load = load("  mix: { read: 3, write: 1 }\n  rate: 100/s\n");
    assert!(load.text.starts_with("open loop, 100/s, constant arrivals; 3 reads to 1 writes over "), "{}", load.text);
    assert_eq!((load.rate, load.threads, load.parts.len()), (Some(100.0), None, 0));
}

#[test]
fn shares_of_the_operations_follow_from_rates_and_from_users_only_a_run_tells() {
    let shares = |mix: &str| -> Vec<(String, Option<f64>)> {
        let placement = plan(mix).unwrap().description("").placement.unwrap();
        placement.operations.into_iter().map(|one| (one.operation, one.share)).collect()
    };
    let both = |read, write| vec![("read".to_owned(), read), ("write".to_owned(), write)];
    assert_eq!(shares("  mix: { read: 300/s, write: 100/s }\n"), both(Some(0.75), Some(0.25)));
    assert_eq!(shares("  mix: { read: 300/s, write: { threads: 4 } }\n"), both(None, None));
    assert_eq!(shares("  mix: { write: { threads: 4 } }\n"), [("write".to_owned(), Some(1.0))]);
    assert_eq!(shares("  mix: { read: 3, write: 1 }\n  rate: 1/s\n"), both(Some(0.75), Some(0.25)));
}

#[test]
fn a_plan_warns_of_closed_parts_by_name() {
    let warned = |mix: &str| plan(mix).unwrap().warnings.join("\n");
    let mixed = warned("  mix: { read: 300/s, write: { threads: 4 } }\n");
    assert!(mixed.contains("write with 4 threads completes 4 ÷ its mean latency"), "{mixed}");
    assert!(mixed.contains("predicts nothing from this") && !mixed.contains("read with"), "{mixed}");
    let closed = warned("  mix: { read: { threads: 2 }, write: { threads: 4 } }\n");
    assert!(closed.contains("read with 2 threads") && closed.contains("the loss that this alone predicts"), "{closed}");
    assert!(!warned("  mix: { read: 300/s, write: 100/s }\n").contains("closed loop"));
}

/// The load, the line of the complaint, and what it says.
const WRONG: &[(&str, usize, &[&str])] = &[
    ("  mix: { read: 300/s }\n  rate: 400/s\n", 3, &["load.rate", "loads of their own (read 300/s)", "leave rate out"]),
    (
        "  mix: { write: { threads: 4 } }\n  threads: 4\n",
        3,
        &["load.threads", "(write 4 threads)", "leave threads out"],
    ),
    (
        "  mix: { read: 300/s, write: 2 }\n",
        2,
        &["load.mix.write", "read is a load of its own (300/s)", "write has a weight"],
    ),
    ("  mix: { read: 2, write: { threads: 4 } }\n", 2, &["load.mix.read", "read has a weight", "{ threads: 4 }"]),
    (
        "  mix: { read: fast }\n  rate: 1/s\n",
        2,
        &["'fast' is neither a weight such as 2, nor a rate", "{ threads: 4 }"],
    ),
    ("  mix: { read: 30% }\n", 2, &["'30%' is neither a weight"]),
    ("  mix: { read: 0/s }\n", 2, &["'0/s'"]),
    ("  mix: { read: { threads: 0 } }\n", 2, &["load.mix.read", "0 threads cannot run; write 1 to 100_000"]),
    ("  mix: { read: { threads: many } }\n", 2, &["many"]),
    ("  mix: { read: { users: 4 } }\n", 2, &["unknown key 'users'", "threads"]),
    ("  mix: { read: [4] }\n", 2, &["a weight such as 2, a rate such as 500/s, or { threads: 4 }"]),
    ("  mix: { read: 900k/s, write: 200k/s }\n", 2, &["load.mix", "together are beyond what one lab can offer"]),
    (
        "  mix: { read: { threads: 60_000 }, write: { threads: 60_000 } }\n",
        2,
        &["120_000 threads together cannot run; at most 100_000"],
    ),
    ("  mix: { read: 300/s }\n  consistency: any\n", 3, &["any is a level for writes only"]),
    ("  rate: 300/s\n  threads: 4\n", 3, &["cannot be combined", "mix: { read: 300/s, write: { threads: 4 } }"]),
    ("  mix: { read: 1, write: 1 }\n", 1, &["the amount of load is missing"]),
];

#[test]
fn every_mistake_is_refused_where_it_stands_with_what_would_be_right() {
    for (load, line, parts) in WRONG {
        let error = plan(load).err().unwrap();
        let said = error.to_string();
        assert_eq!(error.place.map(|(line, _)| line), Some(*line), "{load}: {said}");
        for part in *parts {
            assert!(said.contains(part), "{load}: '{part}' is not in: {said}");
        }
    }
}
