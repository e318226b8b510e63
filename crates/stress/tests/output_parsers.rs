//! What other programs do with cassandra-stress's output works with ours, our own lines in it included.
//!
//! The parsers are written after the rules of public ones: that of cassandra-stress's own `-graph` (state machine over the
//! header, `Results:`, an empty line, `END`), line-wise dictionaries between `Results:` and `END`, searches for a key
//! anywhere in the text, progress rows by their first word, and the last 16 lines as `tail -16` takes them.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;

use brownout_load::{Attempts, Balance, Bucket, ErrorClass, OperationCounts, Outcome, Series, histogram};
use brownout_stress::output::{END, Fold, Measure, Rows, account, results};

const SECOND: u64 = 1_000_000_000;

fn series(operation: &str, coordinator: &str, outcome: Outcome, count: u64, ms: u64) -> Series {
    let mut times = histogram();
    times.record_n(ms * 1_000_000, count).unwrap();
    let mut wait = histogram();
    wait.record_n(1_000, count).unwrap();
    Series {
        statement: operation.to_owned(),
        coordinator: coordinator.to_owned(),
        outcome,
        count,
        wait,
        service: times.clone(),
        response: times,
    }
}

/// A run with everything that the account has a line for.
fn printed() -> String {
    let rows = Rows { empty: true, ..Rows::default() };
    let mut text = format!("Running [WRITE, READ] with 4 threads 3 seconds\n{}\n", rows.header(""));
    let mut fold = Fold::new(0, Measure::Response);
    for second in 0..3 {
        let mut lateness = histogram();
        lateness.record_n(2_000_000, 50).unwrap();
        let bucket = Bucket {
            start_ns: second * SECOND,
            length_ns: SECOND,
            settled: true,
            over: true,
            scheduled: 12_006,
            sent: 12_005,
            never_sent: 1,
            withheld: 0,
            series: vec![
                series("READ", "10.0.0.1:9042", Outcome::Ok, 6_000, 3),
                series("WRITE", "10.0.0.2:9042", Outcome::Ok, 6_000, 5),
                series("WRITE", "10.0.0.2:9042", Outcome::TimedOut, 3, 500),
                series("WRITE", "10.0.0.2:9042", Outcome::Late, 2, 700),
                series("WRITE", "10.0.0.1:9042", Outcome::Failed(ErrorClass::Overloaded), 2, 1),
            ],
            watches: Vec::new(),
            operations: vec![OperationCounts {
                operation: "WRITE".to_owned(),
                never_sent: 1,
                requests: 6_005,
                partitions: 0,
                rows: 0,
                not_applied: 0,
                pages: histogram(),
                attempts: Attempts::default(),
            }],
            lateness,
            late_starts: 50,
            stood_still_ns: 0,
            stale: 1,
            empty: 2,
            missing: 3,
            mismatched: 4,
            looked_for: 0,
            lost: 0,
            rerouted: 5,
        };
        let interval = fold.interval((second + 1) * SECOND, &[bucket]);
        for row in rows.interval(&interval, fold.total()) {
            text += &format!("{row}\n");
        }
    }
    let total = fold.total_mut();
    total.balance = Balance {
        scheduled: 36_018,
        sent: 36_015,
        never_sent: 3,
        withheld: 7,
        answered_ok: 36_000,
        failed: 6,
        timed_out: 9,
        late: 6,
        connections_lost: 1,
        garbage: 1,
        failures: [(ErrorClass::Overloaded, 6)].into(),
        ..Balance::default()
    };
    total.remarks.push("30 % of the reads were served by memtables alone".to_owned());
    total.warnings.push("reads were served by memtables alone: op rate, latency mean, total errors".to_owned());
    for line in account(total) {
        text += &format!("{line}\n");
    }
    text + &results(total) + END + "\n"
}

#[test]
fn the_parser_of_graphs_finds_every_row_and_every_figure() {
    let (mut mode, mut rows, mut figures) = ("start", 0, BTreeMap::new());
    let header = Rows::default().header("");
    let text = printed();
    assert!(text.contains("in intervals that began after 0.0 1.0 2.0 s"), "{text}");
    for line in text.lines() {
        match line {
            line if line == header => mode = "metrics",
            "Results:" => mode = "aggregates",
            "" if mode == "aggregates" => mode = "next",
            "END" | "FAILURE" => break,
            line if mode == "metrics" && line.split(',').count() == 19 => rows += 1,
            line if mode == "aggregates" => {
                let (name, value) = line.split_once(':').unwrap();
                figures.insert(name.trim().to_lowercase(), value.trim().to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(mode, "next");
    assert_eq!(rows, 9);
    assert_eq!(figures.len(), 17);
    assert_eq!(figures["op rate"], "12,005 op/s  [READ: 6,000 op/s, WRITE: 6,005 op/s]");
    assert_eq!(figures["total errors"], "18 [READ: 0, WRITE: 18]");
}

#[test]
fn a_dictionary_of_lines_reads_numbers_even_if_the_run_never_says_end() {
    let text = printed().replace("END\n", "FAILURE\n");
    let mut found = BTreeMap::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("Results:")).skip(1);
    for line in lines.map(str::trim).filter(|line| !line.is_empty() && *line != "FAILURE") {
        let (name, value) = line.split_once(':').unwrap();
        found.insert(name.trim().to_lowercase(), value.split_whitespace().next().unwrap().replace(',', ""));
    }
    assert_eq!(found["op rate"].parse::<f64>().unwrap(), 12_005.0);
    assert_eq!(found["latency 99th percentile"], "5.0");
    assert_eq!(found["total operation time"], "00:00:03");
}

#[test]
fn a_key_of_the_results_is_nowhere_else_in_the_text() {
    let text = printed();
    let own: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("total,")).take_while(|line| *line != "Results:").collect();
    let own: Vec<&str> = own.into_iter().filter(|line| line.contains(" : ")).collect();
    assert!(own.len() > 20, "{own:#?}");
    for key in [
        "Op rate",
        "Partition rate",
        "Row rate",
        "Latency mean",
        "Latency median",
        "Latency 95th",
        "Latency 99th",
        "Latency 99.9th",
        "Latency max",
        "Total partitions",
        "Total errors",
        "GC ",
        "Total operation time",
        "op/s",
        "pk/s",
        "row/s",
        "stderr",
        "END",
        "FAILURE",
        "Results",
        "Running",
        "Exception",
        "Error",
    ] {
        for line in own.iter().filter(|line| !line.starts_with("Warning")) {
            assert!(!line.contains(key), "'{key}' is in: {line}");
        }
    }
    for line in own {
        let (name, value) = line.split_once(':').unwrap();
        assert!(!value.trim().is_empty(), "{line}");
        assert!(!name.starts_with("total,") && line.split(',').count() < 19, "{line}");
    }
}

#[test]
fn rows_are_found_by_their_first_word() {
    let text = printed();
    let totals: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("total,"))
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    assert_eq!(totals.len(), 3);
    assert_eq!((totals[2][1], totals[2][2], totals[2][11], totals[2][13]), ("36015", "12005", "3.0", "6"));
}

#[test]
fn the_last_lines_are_the_results_and_the_last_is_the_end() {
    let text = printed();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[lines.len() - 1], "END");
    assert!(lines[lines.len() - 16].starts_with("Latency mean"), "{}", lines[lines.len() - 16]);
}
