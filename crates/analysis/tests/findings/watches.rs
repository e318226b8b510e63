//! How far watches lag, in made-up runs: baseline 0 s to 20 s, fault to 40 s, recovery to 60 s.

use crate::scenario::{MS, SECOND, Scenario};
use brownout_analysis::{WatchLag, findings};
use brownout_record::{EncodedTimes, Histogram, LatencyRow};

/// What the watch on a node saw of the puts of a second: so many, all after so long.
fn saw(second: u64, node: &str, outcome: &str, count: u64, ms: u64) -> LatencyRow {
    let mut times = Histogram::new(3).unwrap();
    times.record_n(ms * MS, count).unwrap();
    let times = EncodedTimes::from(&times);
    LatencyRow {
        starts_ns: second * SECOND,
        statement: "watch".to_owned(),
        coordinator: node.to_owned(),
        outcome: outcome.to_owned(),
        count,
        wait: times.clone(),
        service: times.clone(),
        response: times,
    }
}

fn lags(watches: Vec<LatencyRow>) -> Vec<WatchLag> {
    let directory = tempfile::tempdir().unwrap();
    let run = Scenario { watches, ..Scenario::default() }.run(directory.path());
    findings(&run).unwrap().trials[0].watches.clone()
}

#[test]
fn the_lag_of_watches_is_told_by_phase_and_node_and_those_that_miss_a_put_count_at_the_time_out() {
    let mut rows: Vec<LatencyRow> = (2..60).map(|second| saw(second, "n1", "ok", 100, 2)).collect();
    rows.extend((2..20).map(|second| saw(second, "n2", "ok", 100, 3)));
    for second in 20..40 {
        rows.extend([saw(second, "n2", "ok", 40, 400), saw(second, "n2", "timed-out", 60, 2_000)]);
    }
    // It came after all, and is there already as timed out.
    rows.push(saw(30, "n2", "late", 60, 3_000));
    let found = lags(rows);
    let of = |phase: &str, node: &str| found.iter().find(|one| one.phase == phase && one.node == node).unwrap();
    let near = |one: &WatchLag, ms: u64| (one.lag.unwrap().p50.value_ns as f64 / (ms * MS) as f64 - 1.0).abs() < 0.01;
    assert!(near(of("fault", "n1"), 2) && near(of("baseline", "n2"), 3), "{found:?}");
    let slow = of("fault", "n2");
    assert!(slow.events > 700 && 2 * slow.missing == 3 * slow.events, "{slow:?}");
    let lag = slow.lag.unwrap();
    assert!(lag.count == slow.events + slow.missing && lag.p50.at_least, "{lag:?}");
    assert!(found.iter().all(|one| one.phase != "recovery" || one.node == "n1"));
    assert!(lags(Vec::new()).is_empty());
}
