//! The text of a run is that of cassandra-stress, byte for byte; see `output_golden/README.md`.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use brownout_load::{Attempts, Bucket, OperationCounts, Outcome, Series, histogram};
use brownout_stress::output::{Fold, Measure, Rows, Total, results, steps};

const SECOND: u64 = 1_000_000_000;

/// The minimal standard generator, as in `Printed.java`.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0
    }
}

fn series(operation: &str, outcome: Outcome) -> Series {
    Series {
        statement: operation.to_owned(),
        coordinator: "n1".to_owned(),
        outcome,
        count: 0,
        wait: histogram(),
        service: histogram(),
        response: histogram(),
    }
}

/// The operations of one second. Those with an error are timed out: their latencies count, as all do there.
fn bucket(second: u64, generator: &mut Generator) -> Bucket {
    let names = ["READ", "WRITE"];
    let outcomes = [Outcome::Ok, Outcome::TimedOut];
    let mut all: Vec<Series> = names.iter().flat_map(|name| outcomes.map(|outcome| series(name, outcome))).collect();
    for _ in 0..30_000 + 5_000 * second {
        let operation = usize::from(generator.next().is_multiple_of(3));
        let wait = generator.next() % 400_000;
        let mut service = 100_000 + generator.next() % 5_000_000;
        if generator.next().is_multiple_of(1000) {
            service *= 40;
        }
        let series = &mut all[operation * 2 + usize::from(generator.next().is_multiple_of(10_000))];
        series.count += 1;
        series.wait.record(wait).unwrap();
        series.service.record(service).unwrap();
        series.response.record(wait + service).unwrap();
    }
    let counts = |place: usize| {
        let ended = all[2 * place].count + all[2 * place + 1].count;
        OperationCounts {
            never_sent: 0,
            requests: ended,
            operation: names[place].to_owned(),
            partitions: 2 * ended,
            rows: 3 * ended,
            not_applied: 0,
            pages: histogram(),
            attempts: Attempts::default(),
        }
    };
    Bucket {
        start_ns: second * SECOND,
        length_ns: SECOND,
        settled: true,
        over: true,
        scheduled: 30_000 + 5_000 * second,
        sent: 30_000 + 5_000 * second,
        never_sent: 0,
        withheld: 0,
        operations: vec![counts(0), counts(1)],
        series: all,
        watches: Vec::new(),
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

fn run(measure: Measure, printed: &mut String) -> Total {
    let rows = Rows::default();
    let mut line = |text: &str| {
        printed.push_str(text);
        printed.push('\n');
    };
    line(&rows.header(""));
    let mut generator = Generator(1);
    let mut fold = Fold::new(0, measure);
    for second in 0..3 {
        let interval = fold.interval((second + 1) * SECOND, &[bucket(second, &mut generator)]);
        rows.interval(&interval, fold.total()).iter().for_each(|row| line(row));
    }
    printed.push_str(&results(fold.total()));
    fold.into_total()
}

#[test]
fn rows_summary_and_steps_are_those_of_cassandra_stress() {
    let mut printed = String::new();
    let fixed = run(Measure::Response, &mut printed);
    let throttled = run(Measure::Service, &mut printed);
    let named = [("4 threadCount".to_owned(), fixed), ("104 threadCount".to_owned(), throttled)];
    for line in steps(Rows::default(), &named) {
        printed.push_str(&line);
        printed.push('\n');
    }
    let expected = include_str!("output_golden/printed.txt");
    for (number, (ours, theirs)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(printed, expected);
}
