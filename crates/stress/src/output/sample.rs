//! Intervals with known content, for tests.

use brownout_load::{Attempts, Balance, Bucket, ErrorClass, Histogram, OperationCounts, Outcome, Series, histogram};

use super::{Fold, Interval, Measure, Total};

const MS: u64 = 1_000_000;

/// Statement, coordinator, outcome, and latencies: (wait, service) in ms.
pub(crate) type Sample<'a> = (&'a str, &'a str, Outcome, &'a [(u64, u64)]);

/// A bucket of one second.
pub(crate) fn bucket(start_ns: u64, settled: bool, samples: &[Sample<'_>]) -> Bucket {
    let series = samples.iter().map(|(statement, coordinator, outcome, latencies)| {
        let mut series = Series {
            statement: (*statement).to_owned(),
            coordinator: (*coordinator).to_owned(),
            outcome: *outcome,
            count: latencies.len() as u64,
            wait: histogram(),
            service: histogram(),
            response: histogram(),
        };
        for (wait, service) in *latencies {
            series.wait.record(wait * MS).unwrap();
            series.service.record(service * MS).unwrap();
            series.response.record((wait + service) * MS).unwrap();
        }
        series
    });
    let series: Vec<Series> = series.collect();
    let sent = series.iter().filter(|series| series.outcome != Outcome::Late).map(|series| series.count).sum();
    let count =
        |outcome| -> u64 { series.iter().filter(|series| series.outcome == outcome).map(|series| series.count).sum() };
    let awaited = count(Outcome::TimedOut) > count(Outcome::Late);
    Bucket {
        start_ns,
        length_ns: 1_000 * MS,
        settled,
        over: settled && !awaited,
        scheduled: sent,
        sent,
        never_sent: 0,
        withheld: 0,
        series,
        watches: Vec::new(),
        operations: Vec::new(),
        lateness: histogram(),
        late_starts: 0,
        stood_still_ns: 0,
        stale: 0,
        empty: 0,
        missing: 0,
        mismatched: 0,
        looked_for: 0,
        lost: 0,
        rerouted: 0,
    }
}

/// One second: four reads on two coordinators, three writes of which one timed out and one failed.
pub(super) fn mixed() -> (Interval, Total) {
    let mut fold = Fold::new(5_000 * MS, Measure::Response);
    let series: &[Sample<'_>] = &[
        ("READ", "n1", Outcome::Ok, &[(0, 1), (0, 2)]),
        ("READ", "n2", Outcome::Ok, &[(1, 2), (1, 3)]),
        ("WRITE", "n1", Outcome::Ok, &[(2, 8)]),
        ("WRITE", "n2", Outcome::TimedOut, &[(3, 500)]),
        ("WRITE", "n2", Outcome::Failed(ErrorClass::Overloaded), &[(0, 1)]),
    ];
    let counts = |operation: &str, touched| OperationCounts {
        operation: operation.to_owned(),
        never_sent: 0,
        requests: touched,
        partitions: touched,
        rows: touched,
        not_applied: 0,
        pages: histogram(),
        attempts: Attempts::default(),
    };
    let operations = vec![counts("READ", 4), counts("WRITE", 2)];
    let interval = fold.interval(6_000 * MS, &[Bucket { operations, ..bucket(5_000 * MS, true, series) }]);
    (interval, fold.into_total())
}

/// A histogram of times in ms.
pub(super) fn times(all_ms: &[u64]) -> Histogram<u64> {
    let mut times = histogram();
    all_ms.iter().for_each(|time| times.record(time * MS).unwrap());
    times
}

/// The balance sheet of [`mixed`].
pub(super) fn balance() -> Balance {
    Balance {
        scheduled: 7,
        sent: 7,
        answered_ok: 5,
        failed: 1,
        timed_out: 1,
        failures: [(ErrorClass::Overloaded, 1)].into(),
        ..Balance::default()
    }
}
