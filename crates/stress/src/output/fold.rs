//! From the engine's buckets to intervals.
//!
//! A bucket holds the operations that *were to start* in it, and is handed out again and again until all have ended. A
//! row that is printed every second can only hold what *ended* in that second, as cassandra-stress's does. So every
//! bucket is compared with its previous state, and the difference is what ended in between. Nothing is counted twice
//! and nothing is lost: the intervals add up to the buckets. Series by intended start (`csv`, `record`) use the buckets
//! as they are.

use std::collections::BTreeMap;

use brownout_load::{Bucket, Histogram, OperationCounts, Outcome, Series, histogram};
use brownout_record::{decode_histogram, encode_histogram};

use super::{Findings, Interval, Late, Measure, Operation, Total};

/// Turns buckets into intervals, and keeps the total of the intervals.
pub struct Fold {
    measure: Measure,
    /// The last state of buckets that may still change, by their start.
    seen: BTreeMap<u64, Seen>,
    /// Names that have occurred: every later interval has them.
    names: Vec<String>,
    /// Names of operations with conditional statements; their count of unapplied ones alone does not show that.
    conditional: Vec<String>,
    total: Total,
}

impl Fold {
    /// Begins a run.
    pub fn new(start_ns: u64, measure: Measure) -> Self {
        Fold {
            measure,
            seen: BTreeMap::new(),
            names: Vec::new(),
            conditional: Vec::new(),
            total: Total::new(start_ns, measure),
        }
    }

    /// The same, where the statements of these operations are conditional (LWT).
    pub fn with_conditional(self, names: Vec<String>) -> Self {
        Fold { conditional: names, ..self }
    }

    /// The interval from the last one's end (at first: the start of the run) to `end_ns`, made of what these freshly
    /// drained buckets contain beyond their previous state; it then becomes part of the total.
    pub fn interval(&mut self, end_ns: u64, buckets: &[Bucket]) -> Interval {
        let interval = self.difference(end_ns, buckets);
        self.total.add(&interval);
        interval
    }

    /// The same for the time in which nothing was due any more and open operations were awaited.
    pub fn drain(&mut self, end_ns: u64, buckets: &[Bucket]) -> Interval {
        let interval = self.difference(end_ns, buckets);
        self.total.add_drain(&interval);
        interval
    }

    fn difference(&mut self, end_ns: u64, buckets: &[Bucket]) -> Interval {
        let start_ns = self.total.interval.end_ns();
        let mut interval = Interval::new(start_ns, end_ns.saturating_sub(start_ns), self.measure);
        for name in &self.names {
            interval.operation(name);
        }
        for bucket in buckets {
            // The first one may have begun before the run.
            let from_ns = bucket.start_ns.max(self.total.interval.start_ns);
            let length_ns = bucket.start_ns.saturating_add(bucket.length_ns).saturating_sub(from_ns);
            match Late::of(bucket, length_ns) {
                Some(late) => self.total.late.insert(from_ns, late),
                None => self.total.late.remove(&from_ns),
            };
            let before = self.seen.remove(&bucket.start_ns).unwrap_or_default();
            before.difference(bucket, &mut interval);
            if !bucket.over {
                self.seen.insert(bucket.start_ns, Seen::of(bucket));
            }
        }
        if let [only] = &mut interval.operations[..] {
            only.withheld = interval.withheld;
        }
        for operation in interval.operations.iter_mut().filter(|own| self.conditional.contains(&own.name)) {
            operation.conditional = operation.count(Outcome::Ok);
        }
        if self.names.len() < interval.operations.len() {
            self.names = interval.operations.iter().map(|operation| operation.name.clone()).collect();
        }
        interval
    }

    /// All intervals so far.
    pub fn total(&self) -> &Total {
        &self.total
    }

    /// The same, to add the balance sheet and warnings.
    pub fn total_mut(&mut self) -> &mut Total {
        &mut self.total
    }

    /// Ends the run.
    pub fn into_total(self) -> Total {
        self.total
    }
}

/// How a bucket was when it was last seen. Histograms are kept encoded: some hundred bytes instead of some hundred
/// kilobytes, and a database that stands still may leave a minute of buckets open.
#[derive(Default)]
struct Seen {
    scheduled: u64,
    sent: u64,
    never_sent: u64,
    withheld: u64,
    late_starts: u64,
    findings: Findings,
    lateness: Vec<u8>,
    series: BTreeMap<(String, String, Outcome), SeenSeries>,
    operations: BTreeMap<String, SeenCounts>,
}

/// The last state of an operation's counts.
#[derive(Default)]
struct SeenCounts {
    never_sent: u64,
    requests: u64,
    partitions: u64,
    rows: u64,
    not_applied: u64,
    pages: Vec<u8>,
    attempts: BTreeMap<Outcome, Vec<u8>>,
}

struct SeenSeries {
    count: u64,
    wait: Vec<u8>,
    service: Vec<u8>,
    response: Vec<u8>,
}

impl Seen {
    fn of(bucket: &Bucket) -> Self {
        let series = bucket.series.iter().map(|series| (key(series), SeenSeries::of(series)));
        Seen {
            scheduled: bucket.scheduled,
            sent: bucket.sent,
            never_sent: bucket.never_sent,
            withheld: bucket.withheld,
            late_starts: bucket.late_starts,
            findings: findings(bucket),
            lateness: encode_histogram(&bucket.lateness),
            series: series.collect(),
            operations: bucket.operations.iter().map(|own| (own.operation.clone(), SeenCounts::of(own))).collect(),
        }
    }

    /// Adds what the bucket contains beyond this to an interval.
    fn difference(&self, bucket: &Bucket, interval: &mut Interval) {
        interval.scheduled += bucket.scheduled - self.scheduled;
        interval.sent += bucket.sent - self.sent;
        interval.never_sent += bucket.never_sent - self.never_sent;
        interval.withheld += bucket.withheld - self.withheld;
        interval.late_starts += bucket.late_starts - self.late_starts;
        add_new(&self.lateness, &bucket.lateness, &mut interval.lateness);
        let (now, before) = (findings(bucket), self.findings);
        interval.findings.add(&Findings {
            stale: now.stale - before.stale,
            empty: now.empty - before.empty,
            missing: now.missing - before.missing,
            mismatched: now.mismatched - before.mismatched,
            rerouted: now.rerouted - before.rerouted,
        });
        for counts in &bucket.operations {
            let nothing = SeenCounts::default();
            let before = self.operations.get(&counts.operation).unwrap_or(&nothing);
            before.difference(counts, interval.operation(&counts.operation));
        }
        for series in &bucket.series {
            let before = self.series.get(&key(series));
            let new = series.count - before.map_or(0, |before| before.count);
            let operation = interval.operation(&series.statement);
            if new == 0 {
                continue;
            }
            let cell = operation.cell(&series.coordinator, series.outcome);
            cell.count += new;
            let old = |part: fn(&SeenSeries) -> &Vec<u8>| before.map_or(&[][..], |before| part(before));
            add_new(old(|seen| &seen.wait), &series.wait, &mut cell.wait);
            add_new(old(|seen| &seen.service), &series.service, &mut cell.service);
            add_new(old(|seen| &seen.response), &series.response, &mut cell.response);
        }
    }
}

impl SeenCounts {
    fn of(counts: &OperationCounts) -> Self {
        let attempts = counts.attempts.0.iter().map(|(outcome, times)| (*outcome, encode_histogram(times)));
        SeenCounts {
            never_sent: counts.never_sent,
            requests: counts.requests,
            partitions: counts.partitions,
            rows: counts.rows,
            not_applied: counts.not_applied,
            pages: encode_histogram(&counts.pages),
            attempts: attempts.collect(),
        }
    }

    fn difference(&self, counts: &OperationCounts, operation: &mut Operation) {
        operation.never_sent += counts.never_sent - self.never_sent;
        operation.requests += counts.requests - self.requests;
        operation.partitions += counts.partitions - self.partitions;
        operation.rows += counts.rows - self.rows;
        operation.not_applied += counts.not_applied - self.not_applied;
        add_new(&self.pages, &counts.pages, &mut operation.pages);
        for (outcome, times) in &counts.attempts.0 {
            let before = self.attempts.get(outcome).map_or(&[][..], Vec::as_slice);
            add_new(before, times, operation.attempts.entry(*outcome).or_insert_with(histogram));
        }
    }
}

impl SeenSeries {
    fn of(series: &Series) -> Self {
        SeenSeries {
            count: series.count,
            wait: encode_histogram(&series.wait),
            service: encode_histogram(&series.service),
            response: encode_histogram(&series.response),
        }
    }
}

fn key(series: &Series) -> (String, String, Outcome) {
    (series.statement.clone(), series.coordinator.clone(), series.outcome)
}

fn findings(bucket: &Bucket) -> Findings {
    Findings {
        stale: bucket.stale,
        empty: bucket.empty,
        missing: bucket.missing,
        mismatched: bucket.mismatched,
        rerouted: bucket.rerouted,
    }
}

/// Adds what `now` contains beyond `before` (empty: nothing).
fn add_new(before: &[u8], now: &Histogram<u64>, to: &mut Histogram<u64>) {
    let before = if before.is_empty() { Ok(histogram()) } else { decode_histogram(before) };
    // We encoded it ourselves, and a bucket only grows, so neither step can fail.
    let Ok(before) = before else { return };
    if before.is_empty() {
        let _ = to.add(now);
        return;
    }
    let mut new = now.clone();
    if new.subtract(&before).is_ok() {
        let _ = to.add(&new);
    }
}

#[cfg(test)]
mod tests {
    use brownout_load::{Attempts, ErrorClass};
    use brownout_record::{Percentile, Population};

    use super::*;
    use crate::output::sample;

    #[test]
    fn an_operation_is_in_the_interval_in_which_it_ended_and_in_no_other() {
        let mut fold = Fold::new(0, Measure::Response);
        let early = sample::bucket(0, false, &[("READ", "n1", Outcome::Ok, &[(1, 5), (1, 7)])]);
        let first = fold.interval(1_000_000_000, std::slice::from_ref(&early));
        assert_eq!(first.ended(), 2);

        // The same bucket, a second later: a third read of it has ended, and one has failed.
        let class = Outcome::Failed(ErrorClass::Overloaded);
        let later = sample::bucket(
            0,
            true,
            &[("READ", "n1", Outcome::Ok, &[(1, 5), (1, 7), (2, 1400)]), ("READ", "n1", class, &[(0, 1)])],
        );
        let second = fold.interval(2_000_000_000, &[later]);
        assert_eq!((second.start_ns, second.length_ns), (1_000_000_000, 1_000_000_000));
        assert_eq!((second.ended(), second.errors()), (2, 1));
        let read = &second.operations[0];
        assert_eq!(read.latency(Measure::Response).len(), 1);
        assert!(read.largest_ns(Measure::Response).abs_diff(1_402_000_000) < 2_000_000);

        // Nothing changed: the name stays, without operations.
        let third = fold.interval(3_000_000_000, &[]);
        assert!(third.is_empty());
        assert_eq!(third.operations.len(), 1);
        assert_eq!(fold.total().interval.ended(), 4);
        assert_eq!(fold.total().interval.length_ns, 3_000_000_000);
        assert!(fold.seen.is_empty());
    }

    #[test]
    fn what_operations_did_is_in_the_interval_in_which_it_was_told() {
        let counts = |rows, attempts, failed| OperationCounts {
            operation: "insert".to_owned(),
            never_sent: failed,
            requests: attempts,
            partitions: rows,
            rows,
            not_applied: 1,
            pages: sample::times(&[7]),
            attempts: Attempts(
                [
                    (Outcome::Ok, sample::times(&vec![3; (attempts - failed) as usize])),
                    (Outcome::TimedOut, sample::times(&vec![9; failed as usize])),
                    (Outcome::Failed(ErrorClass::Overloaded), sample::times(&vec![2; failed as usize])),
                    (Outcome::Late, sample::times(&vec![20; failed as usize])),
                ]
                .into(),
            ),
        };
        let mut fold = Fold::new(0, Measure::Service);
        let bucket = |operations| Bucket { operations, ..sample::bucket(0, false, &[]) };
        let first = fold.interval(1_000_000_000, &[bucket(vec![counts(10, 12, 2)])]);
        let second = fold.interval(2_000_000_000, &[bucket(vec![counts(15, 18, 3)])]);
        let (first, second) = (&first.operations[0], &second.operations[0]);
        let failed = |of: &Operation| of.attempts[&Outcome::Failed(ErrorClass::Overloaded)].len();
        assert_eq!((first.rows, first.attempts_ended(), failed(first), first.pages.len()), (10, 14, 2, 1));
        assert_eq!((second.rows, second.attempts_ended(), failed(second), second.pages.len()), (5, 7, 1, 0));
        assert_eq!((second.partitions, second.not_applied), (5, 0));
        // Attempts have the populations of operations: who timed out took at least that long, and a late answer is in it.
        let attempts = second.attempt_latencies();
        assert_eq!(Population::ALL.map(|of| attempts.count(of)), [5, 6, 7]);
        let largest = attempts.percentile(Population::OkAndTimedOut, 100.0);
        assert!(matches!(largest, Some(Percentile::AtLeast(9_000_000..9_010_000))), "{largest:?}");
        assert_eq!((first.never_sent, second.never_sent), (2, 1));
    }

    #[test]
    fn conditional_statements_are_counted_even_if_all_are_applied() {
        let mut fold = Fold::new(0, Measure::Response).with_conditional(vec!["claim".to_owned()]);
        let bucket = |answered: &[(u64, u64)]| {
            let class = Outcome::Failed(ErrorClass::Overloaded);
            let series: &[sample::Sample<'_>] = &[
                ("claim", "n1", Outcome::Ok, answered),
                ("claim", "n1", class, &[(0, 1)]),
                ("read", "n1", Outcome::Ok, &[(0, 1)]),
            ];
            sample::bucket(0, false, series)
        };
        let first = fold.interval(1_000_000_000, &[bucket(&[(0, 1), (0, 2)])]);
        let claim = &first.operations[0];
        assert_eq!((claim.conditional, claim.applied(), first.operations[1].conditional), (2, 2, 0));
        let second = fold.interval(2_000_000_000, &[bucket(&[(0, 1), (0, 2), (0, 3)])]);
        assert_eq!(second.operations[0].conditional, 1);
        assert_eq!((fold.total().interval.operations[0].conditional, fold.total().interval.all().conditional), (3, 3));
        let account = crate::output::account(fold.total()).join("\n");
        assert!(account.contains("claim applied             : 3 of 3 answered (100.0 %)"), "{account}");
        assert!(!account.contains("read applied"), "{account}");
    }

    #[test]
    fn lateness_is_time_and_not_a_number_of_rows() {
        const SECOND: u64 = 1_000_000_000;
        let mut fold = Fold::new(0, Measure::Response);
        let bucket = |second: u64, still_ns| Bucket {
            stood_still_ns: still_ns,
            ..sample::bucket(second * SECOND, true, &[("READ", "n1", Outcome::Ok, &[(0, 1)])])
        };
        fold.interval(SECOND, &[bucket(0, SECOND / 20)]);
        // Ten seconds of standstill are one row.
        let still: Vec<Bucket> = (1..11).map(|second| bucket(second, SECOND)).collect();
        fold.interval(12 * SECOND, &still);
        fold.interval(20 * SECOND, &(11..20).map(|second| bucket(second, 0)).collect::<Vec<_>>());
        let total = fold.total();
        assert_eq!((total.intervals, total.late_intervals().count()), (3, 10));
        // A twentieth of a second makes no interval late, and was lost all the same.
        assert_eq!(total.late_ns(), 10 * SECOND + SECOND / 20);
        assert!(total.too_late() && total.stood_still_too_long());
        // With users alone, a hiccup is no reason to refuse a run that was over in it.
        for (still_ns, too_long) in [(SECOND / 12, false), (SECOND / 8, true)] {
            let mut fold = Fold::new(0, Measure::Service);
            fold.interval(SECOND / 4, &[bucket(0, still_ns)]);
            assert_eq!(fold.total().stood_still_too_long(), too_long, "{still_ns} of {}", fold.total().due_ns());
        }
    }

    #[test]
    fn what_found_no_user_was_due_and_is_beyond_every_limit() {
        let answered: &[sample::Sample<'_>] = &[("READ", "n1", Outcome::Ok, &[(0, 1); 10])];
        let withheld = |withheld, samples| Bucket { withheld, ..sample::bucket(0, false, samples) };
        let mut fold = Fold::new(0, Measure::Response);
        fold.interval(1_000_000_000, &[withheld(0, answered)]);
        fold.interval(2_000_000_000, &[withheld(30, answered)]);
        fold.interval(3_000_000_000, &[withheld(30, answered)]);
        let interval = &fold.total().interval;
        for operation in [&interval.operations[0], &interval.all()] {
            let response = operation.latencies(|cell| &cell.response);
            assert_eq!((response.count(Population::Ok), response.count(Population::Due)), (10, 40));
            assert_eq!(response.percentile(Population::Due, 50.0), Some(Percentile::Never));
            assert_eq!((operation.errors(), operation.never_sent), (0, 0));
        }
        // Of several names nobody knows which.
        let both: &[sample::Sample<'_>] = &[answered[0], ("WRITE", "n1", Outcome::Ok, &[(0, 1)])];
        let mut fold = Fold::new(0, Measure::Response);
        fold.interval(1_000_000_000, &[withheld(9, both)]);
        let interval = &fold.total().interval;
        assert_eq!((interval.all().withheld, interval.operations[0].withheld), (9, 0));
        let account = crate::output::account(fold.total()).join("\n");
        assert!(account.contains("total response, all due   : p50 "), "{account}");
    }

    #[test]
    fn a_pause_is_as_long_however_long_intervals_are() {
        const SECOND: u64 = 1_000_000_000;
        // 100 starts a second; those that were due in the pause were late.
        let told = |start_ns, seconds: u64, late_starts, stood_still_ns| Bucket {
            length_ns: seconds * SECOND,
            lateness: sample::times(&vec![0; 100 * seconds as usize]),
            late_starts,
            stood_still_ns,
            ..sample::bucket(start_ns, true, &[])
        };
        let late_ns = |buckets: &[Bucket]| {
            let mut fold = Fold::new(0, Measure::Response);
            fold.interval(10 * SECOND, buckets);
            (fold.total().late_ns(), fold.total().too_late())
        };
        let pause_ns = SECOND + SECOND / 64;
        assert_eq!(late_ns(&[told(0, 10, 111, pause_ns)]), (pause_ns, false));
        assert_eq!(late_ns(&[told(0, 1, 100, SECOND), told(SECOND, 1, 2, SECOND / 64)]), (pause_ns, false));
        // Starts that are late all the time are no pause.
        assert_eq!(late_ns(&[told(0, 10, 20, 0)]), (10 * SECOND, true));
        assert_eq!(late_ns(&[told(0, 10, 10, 0)]), (0, false));
    }

    #[test]
    fn what_is_waited_for_at_the_end_is_counted_and_makes_no_rate_smaller() {
        const SECOND: u64 = 1_000_000_000;
        let mut fold = Fold::new(0, Measure::Response);
        let answered: &[sample::Sample<'_>] = &[("READ", "n1", Outcome::Ok, &[(0, 1); 9])];
        fold.interval(SECOND, &[sample::bucket(0, false, answered)]);
        let steady = fold.total().uncertainty.value();
        let waited = [answered[0], ("READ", "n1", Outcome::TimedOut, &[(0, 12_000)])];
        let drain = fold.drain(13 * SECOND, &[sample::bucket(0, true, &waited)]);
        assert_eq!((drain.ended(), drain.length_ns), (1, 12 * SECOND));
        fold.total_mut().due_ns = Some(SECOND);
        let total = fold.total();
        assert_eq!((total.rate(), total.interval.ended()), (10.0, 10));
        assert_eq!(total.drain, Some(crate::output::Drain { length_ns: 12 * SECOND, ended: 1 }));
        assert!(total.uncertainty.value().to_bits() == steady.to_bits());
        let account = crate::output::account(total).join("\n");
        assert!(account.contains("Drain                     : 12.0 s after"), "{account}");
        let results = crate::output::results(total);
        assert!(results.contains("Op rate                   :       10 op/s"), "{results}");
    }

    #[test]
    fn a_bucket_is_remembered_until_its_late_answers_have_come() {
        let mut fold = Fold::new(0, Measure::Response);
        let timed_out = sample::bucket(0, true, &[("READ", "n1", Outcome::TimedOut, &[(0, 500)])]);
        fold.interval(1_000_000_000, &[timed_out]);
        assert_eq!(fold.seen.len(), 1);
        let late = sample::bucket(
            0,
            true,
            &[("READ", "n1", Outcome::TimedOut, &[(0, 500)]), ("READ", "n1", Outcome::Late, &[(0, 900)])],
        );
        let second = fold.interval(2_000_000_000, &[late]);
        assert_eq!((second.ended(), second.operations[0].count(Outcome::Late)), (0, 1));
        assert!(fold.seen.is_empty());
        assert_eq!(fold.total().interval.operations[0].count(Outcome::TimedOut), 1);
    }

    #[test]
    fn a_bucket_whose_late_answers_nobody_waits_for_is_forgotten() {
        let mut fold = Fold::new(0, Measure::Response);
        let timed_out =
            |over| Bucket { over, ..sample::bucket(0, true, &[("READ", "n1", Outcome::TimedOut, &[(0, 500)])]) };
        fold.interval(1_000_000_000, &[timed_out(false)]);
        assert_eq!(fold.seen.len(), 1);
        fold.interval(90_000_000_000, &[timed_out(true)]);
        assert!(fold.seen.is_empty());
        assert_eq!(fold.total().interval.operations[0].count(Outcome::TimedOut), 1);
    }
}
