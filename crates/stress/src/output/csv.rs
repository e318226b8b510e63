//! `-log csv=`: a series by intended start.
//!
//! One line for each interval, operation and coordinator, and one with the operation `total` for what belongs to no
//! coordinator: scheduled, sent, never sent, and the client's own lateness. An operation belongs to the interval of its
//! intended start, however late it ended; so a line is written when all operations of its interval have ended, and, if
//! some of them timed out, when their late answers have come or a minute has passed.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use brownout_load::{Bucket, Outcome};
use brownout_record::{Latencies, Percentile, Population};

use super::{SHOWN, add_ended, ms, number::fixed, percentile};

/// The columns. Times are seconds and milliseconds as their names say.
pub const HEADER: &str = "start_unix_s,length_s,operation,coordinator,scheduled,sent,never_sent,ok,failed,timed_out,late,\
                          wait_p50_ms,wait_p99_ms,wait_max_ms,service_p50_ms,service_p99_ms,service_max_ms,\
                          response_p50_ms,response_p95_ms,response_p99_ms,response_p999_ms,response_max_ms,\
                          client_late_p99_ms,client_late_starts,\
                          response_ok_p50_ms,response_ok_p99_ms,response_due_p50_ms,response_due_p99_ms,client_stood_still_s,\
                          withheld";

/// Writes the series.
pub struct Csv<W: Write> {
    to: W,
    /// One moment on both clocks: CLOCK_MONOTONIC in ns, Unix time in ms.
    unix_ms_at: (u64, u64),
    /// Lines of intervals that may still change, by their start.
    open: BTreeMap<u64, String>,
}

impl<W: Write> Csv<W> {
    /// Writes the header. `now_ns` (CLOCK_MONOTONIC) and `now_unix_ms` are one moment on both clocks.
    pub fn begin(mut to: W, now_ns: u64, now_unix_ms: u64) -> io::Result<Self> {
        writeln!(to, "{HEADER}")?;
        Ok(Csv { to, unix_ms_at: (now_ns, now_unix_ms), open: BTreeMap::new() })
    }

    /// Takes the buckets of a drain, and writes what cannot change any more.
    pub fn buckets(&mut self, buckets: &[Bucket]) -> io::Result<()> {
        for bucket in buckets {
            let lines = self.lines(bucket);
            if bucket.over {
                self.open.remove(&bucket.start_ns);
                self.to.write_all(lines.as_bytes())?;
            } else {
                self.open.insert(bucket.start_ns, lines);
            }
        }
        self.to.flush()
    }

    /// Writes all that is left.
    pub fn end(mut self) -> io::Result<()> {
        for lines in self.open.values() {
            self.to.write_all(lines.as_bytes())?;
        }
        self.to.flush()
    }

    fn lines(&self, bucket: &Bucket) -> String {
        let (at_ns, at_ms) = self.unix_ms_at;
        let start_ms = at_ms as f64 + (bucket.start_ns as f64 - at_ns as f64) / 1e6;
        let begin = format!("{},{}", fixed(start_ms / 1e3, 3), fixed(bucket.length_ns as f64 / 1e9, 3));
        let mut groups: BTreeMap<(&str, &str), Group> = BTreeMap::new();
        for series in &bucket.series {
            let group = groups.entry((&series.statement, &series.coordinator)).or_default();
            match series.outcome {
                Outcome::Ok => group.ok += series.count,
                Outcome::TimedOut => group.timed_out += series.count,
                Outcome::Late => group.late += series.count,
                Outcome::Failed(_) => group.failed += series.count,
            }
            for (latencies, times) in [
                (&mut group.wait, &series.wait),
                (&mut group.service, &series.service),
                (&mut group.response, &series.response),
            ] {
                add_ended(latencies, series.outcome, series.count, times);
            }
        }
        // Those never sent belong to no coordinator.
        for counts in bucket.operations.iter().filter(|counts| counts.never_sent > 0) {
            groups.entry((&counts.operation, "")).or_default().never_send(counts.never_sent);
        }
        let mut lines = String::new();
        let mut total = Group::default();
        for ((operation, coordinator), group) in &groups {
            let name = [quoted(operation), quoted(coordinator)].join(",");
            let never_sent = if coordinator.is_empty() { group.never_sent.to_string() } else { String::new() };
            let (fields, populations) = (group.fields(), group.populations());
            lines.push_str(&format!("{begin},{name},,,{never_sent},{fields},,,{populations},,\n"));
            total.add(group);
        }
        total.response.add_never_sent(bucket.withheld);
        let late = &bucket.lateness;
        let late_p99 = if late.is_empty() { String::new() } else { milliseconds(percentile(late, 99.0)) };
        lines.push_str(&format!(
            "{begin},total,,{},{},{},{},{late_p99},{},{},{},{}\n",
            bucket.scheduled,
            bucket.sent,
            bucket.never_sent,
            total.fields(),
            bucket.late_starts,
            total.populations(),
            fixed(bucket.stood_still_ns as f64 / 1e9, 3),
            bucket.withheld
        ));
        lines
    }
}

#[derive(Default)]
struct Group {
    ok: u64,
    failed: u64,
    timed_out: u64,
    late: u64,
    never_sent: u64,
    wait: Latencies,
    service: Latencies,
    response: Latencies,
}

impl Group {
    fn add(&mut self, other: &Group) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.late += other.late;
        self.never_sent += other.never_sent;
        self.wait.add(&other.wait);
        self.service.add(&other.service);
        self.response.add(&other.response);
    }

    fn never_send(&mut self, count: u64) {
        self.never_sent += count;
        self.response.add_never_sent(count);
    }

    /// Response times of operations answered ok, and of all that were due: `inf` is beyond every limit.
    fn populations(&self) -> String {
        let mut fields = Vec::new();
        for of in [Population::Ok, Population::Due] {
            for share in [50.0, 99.0] {
                fields.push(match self.response.percentile(of, share) {
                    Some(found) => found.ns().map_or_else(|| "inf".to_owned(), milliseconds),
                    None => String::new(),
                });
            }
        }
        fields.join(",")
    }

    /// From `ok` to `response_max_ms`; latencies are empty where there are none.
    fn fields(&self) -> String {
        let mut fields = [self.ok, self.failed, self.timed_out, self.late].map(|count| count.to_string()).to_vec();
        let short: &[f64] = &[50.0, 99.0, 100.0];
        let long: &[f64] = &[50.0, 95.0, 99.0, 99.9, 100.0];
        for (times, percentiles) in [(&self.wait, short), (&self.service, short), (&self.response, long)] {
            for share in percentiles {
                let at = times.percentile(SHOWN, *share).and_then(Percentile::ns);
                fields.push(at.map_or_else(String::new, milliseconds));
            }
        }
        fields.join(",")
    }
}

fn milliseconds(ns: u64) -> String {
    fixed(ms(ns as f64), 3)
}

/// A field of RFC 4180: quoted if it contains a field or line separator.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    const SECOND: u64 = 1_000_000_000;

    fn text(steps: &[Vec<Bucket>]) -> (String, String) {
        let mut bytes = Vec::new();
        let mut csv = Csv::begin(&mut bytes, 10 * SECOND, 1_700_000_000_000).unwrap();
        for buckets in steps {
            csv.buckets(buckets).unwrap();
        }
        let before = csv.to.len();
        csv.end().unwrap();
        let rest = bytes.split_off(before);
        (String::from_utf8(bytes).unwrap(), String::from_utf8(rest).unwrap())
    }

    #[test]
    fn an_interval_has_a_line_for_each_operation_and_coordinator_and_the_total() {
        let mut bucket = sample::bucket(
            10 * SECOND,
            true,
            &[("READ", "n1", Outcome::Ok, &[(1, 4), (1, 4)]), ("READ", "n,2", Outcome::Ok, &[(0, 9)])],
        );
        bucket.never_sent = 1;
        bucket.scheduled = 4;
        let (written, _) = text(&[vec![bucket]]);
        let lines: Vec<&str> = written.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "1700000000.000,1.000,READ,\"n,2\",,,,1,0,0,0,0.000,0.000,0.000,9.003,9.003,9.003,9.003,9.003,9.003,9.003,9.003,,,9.003,9.003,9.003,9.003,,",
                "1700000000.000,1.000,READ,n1,,,,2,0,0,0,1.000,1.000,1.000,4.002,4.002,4.002,5.001,5.001,5.001,5.001,5.001,,,5.001,5.001,5.001,5.001,,",
                "1700000000.000,1.000,total,,4,3,1,3,0,0,0,1.000,1.000,1.000,4.002,9.003,9.003,5.001,9.003,9.003,9.003,9.003,,0,5.001,9.003,5.001,9.003,0.000,0",
            ]
        );
        assert_eq!(HEADER.split(',').count(), lines[2].split(',').count());
    }

    #[test]
    fn a_line_is_written_once_when_it_cannot_change_any_more() {
        let open = || sample::bucket(10 * SECOND, false, &[("READ", "n1", Outcome::Ok, &[(0, 1)])]);
        let awaited = || sample::bucket(10 * SECOND, true, &[("READ", "n1", Outcome::TimedOut, &[(0, 500)])]);
        let (written, rest) = text(&[vec![open()], vec![awaited()]]);
        assert_eq!((written.lines().count(), rest.lines().count()), (1, 2));
        assert!(rest.contains("READ,n1,,,,0,0,1,0,"), "{rest}");
        // An open interval is waited for however long it takes, late answers as long as the engine waits for them.
        let (written, rest) = text(&[vec![open()], vec![]]);
        assert_eq!((written.lines().count(), rest.lines().count()), (1, 2));
        let (written, rest) = text(&[vec![awaited()], vec![Bucket { over: true, ..awaited() }]]);
        assert_eq!((written.lines().count(), rest.lines().count()), (3, 0));
    }
}
