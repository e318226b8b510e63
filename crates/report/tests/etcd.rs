//! What the members of etcd say, in the report: who led, how long their fsyncs took. Baseline 6 s to 16 s, fault to 26 s, recovery
//! to 36 s.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use brownout_analysis::{Quantile, Response, WatchLag, findings};
use brownout_record::EvidenceRow;
use brownout_report::{Style, html, summary, svg};
use common::Synthetic;

const MEMBERS: [&str; 3] = ["n1", "n2", "n3"];

fn row(at_ms: u64, node: &str, name: &str, subject: &str, value: f64) -> EvidenceRow {
    EvidenceRow {
        at_ns: at_ms * 1_000_000,
        error_ns: 500_000,
        node: node.to_owned(),
        source: "metrics".to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    }
}

/// n1 leads until 18 s; n3 does from 19.5 s on, and its fsyncs take ten times as long.
fn told() -> Vec<EvidenceRow> {
    let mut all = Vec::new();
    for node in MEMBERS {
        all.push(row(2_900, node, "leader", "n1", 2.0));
        let mut total = 0.0;
        for second in 2..36_u64 {
            let at_ms = second * 1_000 + 900;
            total += if node == "n3" && second >= 20 { 100.0 * 5e6 } else { 100.0 * 0.5e6 };
            all.push(row(at_ms, node, "reading", "", 2e6));
            all.push(row(at_ms, node, "wal-fsyncs", "", second as f64 * 100.0));
            all.push(row(at_ms, node, "wal-fsync-time", "", total));
            all.push(row(at_ms, node, "pending", "proposals", if second == 18 { 40.0 } else { 0.0 }));
        }
    }
    all.extend(["n2", "n3"].map(|node| row(18_000, node, "lost-leader", "n1", 2.0)));
    all.extend(MEMBERS.map(|node| row(19_500, node, "elected", "n3", 3.0)));
    all
}

fn etcd() -> Synthetic {
    Synthetic { trials: 1, planned_trials: 1, database: told, ..Synthetic::default() }
}

#[test]
fn the_terminal_says_who_led_and_for_how_long_nobody_did() {
    let directory = tempfile::tempdir().unwrap();
    let found = findings(&etcd().run(directory.path())).unwrap();
    let text = summary(&found, Style { color: false, width: 120 });
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(line("led by").contains("n1, n3"), "{text}");
    assert!(line("without a leader").contains("1.50s"), "{text}");
    assert!(line("fsync of the log, mean").contains("500us / 500us / "), "{text}");
    assert!(text.contains("n3 led from 19.500s") && text.contains("nobody led from 18.000s"), "{text}");
}

#[test]
fn the_lag_of_watches_says_that_it_is_of_those_too_that_did_not_tell() {
    let directory = tempfile::tempdir().unwrap();
    let run = etcd().run(directory.path());
    let mut found = findings(&run).unwrap();
    let (told, missing) =
        (Quantile { value_ns: 2_000_000, at_least: false }, Quantile { value_ns: 5_000_000_000, at_least: true });
    let lag = Response { count: 4, mean_ns: 1.3e9, p50: told, p95: missing, p99: missing, p999: missing, max: missing };
    let (phase, node) = ("fault".to_owned(), "n1".to_owned());
    found.trials[0].watches = vec![WatchLag { phase, node, events: 3, missing: 1, lag: Some(lag) }];
    for text in [summary(&found, Style { color: false, width: 120 }), html(&run, &found).unwrap()] {
        for name in ["watch lag p50, ok+timed-out", "watch lag p99, ok+timed-out", "puts that no watch reported"] {
            assert!(text.contains(name), "no {name}: {text}");
        }
    }
}

#[test]
fn the_page_draws_changes_of_the_leader_and_the_members_fsyncs() {
    let directory = tempfile::tempdir().unwrap();
    let run = etcd().run(directory.path());
    let found = findings(&run).unwrap();
    let page = html(&run, &found).unwrap();
    for part in ["trial-1-fsyncs", "trial-1-pending", "n3 leads in term 3", "no leader in term 2", "led by"] {
        assert!(page.contains(part), "no {part}");
    }
    let drawn = svg(&run, &found, "trial-1-fsyncs").unwrap().unwrap();
    assert!(MEMBERS.iter().all(|member| drawn.contains(member)), "{drawn}");
    // Nobody counts applies here, and no ring has a leader.
    assert_eq!(svg(&run, &found, "trial-1-applies").unwrap(), None);
    let aside = tempfile::tempdir().unwrap();
    let ring = Synthetic { trials: 1, planned_trials: 1, ..Synthetic::default() }.run(aside.path());
    let found = findings(&ring).unwrap();
    assert_eq!(svg(&ring, &found, "trial-1-fsyncs").unwrap(), None);
}
