//! What the last seconds of a load looked like, for the one who watches.

use std::collections::BTreeMap;

use brownout_load::{Bucket, Outcome, Series};
use brownout_record::{Latencies, Percentile, Population};

use crate::progress::OperationTick;

/// Operations of the last bucket that is over, by name.
pub fn by_operation(buckets: &[Bucket], now_ns: u64) -> Vec<OperationTick> {
    let over = buckets.iter().filter(|bucket| bucket.start_ns + bucket.length_ns <= now_ns);
    over.max_by_key(|bucket| bucket.start_ns).map(|bucket| ticks(&bucket.series)).unwrap_or_default()
}

fn ticks(series: &[Series]) -> Vec<OperationTick> {
    let mut operations: BTreeMap<&str, Latencies> = BTreeMap::new();
    for series in series {
        match series.outcome {
            Outcome::Ok => operations.entry(&series.statement).or_default().add_ok(&series.response),
            Outcome::TimedOut => operations.entry(&series.statement).or_default().add_timed_out(&series.response),
            Outcome::Late | Outcome::Failed(_) => drop(operations.entry(&series.statement).or_default()),
        }
    }
    operations.into_iter().map(tick).collect()
}

fn tick((name, latencies): (&str, Latencies)) -> OperationTick {
    let (ok, both) = (latencies.count(Population::Ok), latencies.count(Population::OkAndTimedOut));
    let median = latencies.percentile(Population::OkAndTimedOut, 50.0).and_then(Percentile::ns);
    OperationTick { name: name.to_owned(), ok, timed_out: both - ok, p50_ns: median.unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use brownout_load::{ErrorClass, histogram};

    use super::*;

    fn series(statement: &str, outcome: Outcome, responses: &[u64]) -> Series {
        let mut response = histogram();
        responses.iter().for_each(|ns| response.record(*ns).unwrap());
        let (statement, coordinator) = (statement.to_owned(), "n1".to_owned());
        let count = response.len();
        Series { statement, coordinator, outcome, count, wait: histogram(), service: histogram(), response }
    }

    #[test]
    fn an_operation_shows_what_was_answered_and_what_timed_out_with_the_median_of_both() {
        let seen = ticks(&[
            series("read", Outcome::Ok, &[10, 20]),
            series("read", Outcome::TimedOut, &[1_000]),
            // Counted as timed out already.
            series("read", Outcome::Late, &[1_500]),
            series("write", Outcome::Ok, &[1, 2, 3]),
            series("write", Outcome::Failed(ErrorClass::Unavailable), &[900, 900, 900, 900]),
            series("scan", Outcome::TimedOut, &[500]),
            series("never", Outcome::Failed(ErrorClass::Unavailable), &[900]),
        ]);
        let seen: Vec<_> = seen.iter().map(|one| (one.name.as_str(), one.ok, one.timed_out, one.p50_ns)).collect();
        assert_eq!(seen, [("never", 0, 0, 0), ("read", 2, 1, 20), ("scan", 0, 1, 500), ("write", 3, 0, 2)]);
    }
}
