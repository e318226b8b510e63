//! The HdrHistogram log: `-log hdrfile=`.
//!
//! Format 1.3 of HdrHistogram's interval logs, as `HistogramLogWriter` of HdrHistogram 2.1 writes it: a legend and, per
//! line, a tag, the start in seconds since the base time, the length in seconds, the largest value in ms, and the
//! histogram (V2, deflated, base64), in nanoseconds with three significant digits.
//!
//! Tags are cassandra-stress's `OP-st` (service), `OP-rt` (response) and `OP-wt` (wait; the last two only where there is a
//! schedule), of operations answered in time and right or timed out; beside them, for each coordinator, `OP-rt@node`
//! (`OP-st@node` without a schedule), and `OP-err` with the service times of failures, `OP-late` with the response times of
//! answers that came after the time-out.

use std::io::{self, Write};

use brownout_load::{Histogram, Outcome, histogram};
use brownout_record::Population;
use chrono::DateTime;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::{Cell, Interval, Measure, Operation, SHOWN, number::fixed};

/// Writes a log, interval by interval.
pub struct HdrLog<W: Write> {
    to: W,
    /// Whether operations have an intended start.
    scheduled: bool,
    /// One moment on both clocks: CLOCK_MONOTONIC in ns, Unix time in ms.
    unix_ms_at: (u64, u64),
    base_ms: u64,
}

impl<W: Write> HdrLog<W> {
    /// Writes the comments and the legend. `scheduled`: operations have an intended start, so that they can wait.
    /// `now_ns` (CLOCK_MONOTONIC) and `now_unix_ms` are one moment on both clocks; the log's base time is the full
    /// second before it.
    pub fn begin(mut to: W, scheduled: bool, now_ns: u64, now_unix_ms: u64) -> io::Result<Self> {
        let base_ms = now_unix_ms - now_unix_ms % 1000;
        let seconds = fixed(base_ms as f64 / 1000.0, 3);
        let date = DateTime::from_timestamp_millis(base_ms.cast_signed())
            .map(|time| time.format("%a %b %d %H:%M:%S UTC %Y").to_string())
            .unwrap_or_default();
        writeln!(to, "#Logging op latencies for Cassandra Stress")?;
        writeln!(to, "#[Histogram log format version 1.3]")?;
        writeln!(to, "#[BaseTime: {seconds} (seconds since epoch)]")?;
        writeln!(to, "#[StartTime: {seconds} (seconds since epoch), {date}]")?;
        writeln!(to, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        writeln!(to, "#[Population: {SHOWN}; {} in -ok]", Population::Ok)?;
        Ok(HdrLog { to, scheduled, unix_ms_at: (now_ns, now_unix_ms), base_ms })
    }

    /// Writes the lines of an interval; operations that did not occur have no line.
    pub fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        for operation in &interval.operations {
            let name = &operation.name;
            let mut lines = vec![(format!("{name}-st"), operation.latencies(|cell| &cell.service).times(SHOWN))];
            if self.scheduled {
                lines.push((format!("{name}-rt"), operation.latencies(|cell| &cell.response).times(SHOWN)));
                lines.push((format!("{name}-wt"), operation.latencies(|cell| &cell.wait).times(SHOWN)));
            }
            let mut nodes: Vec<&str> = operation.cells.iter().map(|cell| cell.coordinator.as_str()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let kind = match interval.measure {
                Measure::Response => "rt",
                Measure::Service => "st",
            };
            for node in nodes {
                let cells = operation.cells.iter().filter(|cell| cell.coordinator == node).cloned().collect();
                let own = Operation { cells, ..Operation::new(name) };
                lines.push((format!("{name}-{kind}@{node}"), own.latency(interval.measure)));
            }
            let shown = operation.latencies(|cell| cell.latency(interval.measure));
            let failed = |cell: &&Cell| matches!(cell.outcome, Outcome::Failed(_));
            lines.push((format!("{name}-err"), merged(operation, failed, |cell| &cell.service)));
            let late = |cell: &&Cell| cell.outcome == Outcome::Late;
            lines.push((format!("{name}-late"), merged(operation, late, |cell| &cell.response)));
            for (tag, latencies) in lines.into_iter().filter(|(_, latencies)| !latencies.is_empty()) {
                self.line(&tag, interval.start_ns, interval.end_ns(), &latencies)?;
            }
            if shown.count(Population::Ok) < shown.count(Population::Due) {
                // Also if none was answered ok: without this line all would have been.
                let tag = format!("{name}-{kind}-ok");
                self.line(&tag, interval.start_ns, interval.end_ns(), &shown.times(Population::Ok))?;
            }
            // Operations that failed or were never sent have no time and no place in a histogram: among all that were
            // due, they count as beyond every limit.
            let (due, timed) = (shown.count(Population::Due), shown.count(SHOWN));
            if timed < due {
                writeln!(
                    self.to,
                    "#[{name}: {} of {due} due are beyond every limit: failed or never sent]",
                    due - timed
                )?;
            }
        }
        self.to.flush()
    }

    fn line(&mut self, tag: &str, start_ns: u64, end_ns: u64, latencies: &Histogram<u64>) -> io::Result<()> {
        let (start_ms, end_ms) = (self.unix_ms(start_ns), self.unix_ms(end_ns));
        let histogram = encoded(latencies)?;
        writeln!(
            self.to,
            "Tag={},{},{},{},{}",
            tag.replace([',', ' ', '\n', '\r'], "_"),
            fixed((start_ms - self.base_ms as f64) / 1000.0, 3),
            fixed((end_ms - start_ms) / 1000.0, 3),
            fixed(latencies.max() as f64 / 1e6, 3),
            histogram
        )
    }

    fn unix_ms(&self, monotonic_ns: u64) -> f64 {
        let (at_ns, unix_ms) = self.unix_ms_at;
        let since = if monotonic_ns >= at_ns {
            ((monotonic_ns - at_ns) / 1_000_000) as f64
        } else {
            -(((at_ns - monotonic_ns) / 1_000_000) as f64)
        };
        unix_ms as f64 + since
    }
}

fn merged(
    operation: &Operation,
    wanted: impl Fn(&&Cell) -> bool,
    latency: impl Fn(&Cell) -> &Histogram<u64>,
) -> Histogram<u64> {
    let mut all = histogram();
    for cell in operation.cells.iter().filter(wanted) {
        let _ = all.add(latency(cell));
    }
    all
}

/// A histogram as text: HdrHistogram V2, deflated, base64.
pub(super) fn encoded(latencies: &Histogram<u64>) -> io::Result<String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(latencies, &mut bytes)
        .map_err(|error| io::Error::other(format!("a histogram cannot be encoded: {error:?}")))?;
    Ok(base64(&bytes))
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let part = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let word = part(0) << 16 | part(1) << 8 | part(2);
        for place in 0..4 {
            if place <= three.len() {
                out.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{
        Deserializer,
        interval_log::{IntervalLogIterator, LogEntry},
    };

    use super::*;
    use crate::output::sample;

    const AT_NS: u64 = 5_000_000_000;

    fn log(interval: &Interval, scheduled: bool) -> String {
        let mut bytes = Vec::new();
        let mut log = HdrLog::begin(&mut bytes, scheduled, AT_NS, 1_700_000_000_250).unwrap();
        log.interval(interval).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_head_is_that_of_the_java_writer() {
        let (interval, _) = sample::mixed();
        let text = log(&interval, true);
        let head: Vec<&str> = text.lines().take(5).collect();
        assert_eq!(
            head,
            [
                "#Logging op latencies for Cassandra Stress",
                "#[Histogram log format version 1.3]",
                "#[BaseTime: 1700000000.000 (seconds since epoch)]",
                "#[StartTime: 1700000000.000 (seconds since epoch), Tue Nov 14 22:13:20 UTC 2023]",
                "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"",
            ]
        );
    }

    #[test]
    fn another_reader_finds_every_tag_with_its_values_at_its_time() {
        let (interval, _) = sample::mixed();
        let text = log(&interval, true);
        assert!(text.contains("#[Population: ok+timed-out; ok in -ok]"), "{text}");
        assert!(text.contains("#[WRITE: 1 of 3 due are beyond every limit: failed or never sent]"), "{text}");
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(line) = entry.unwrap() else { continue };
            assert_eq!(line.start_timestamp().as_millis(), 250);
            assert_eq!(line.duration().as_millis(), 1000);
            let tag = line.tag().unwrap().as_str().to_owned();
            // The reader leaves the histogram in text form.
            let bytes = from_base64(line.encoded_histogram());
            let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            if tag == "WRITE-rt" {
                assert_eq!((read.len(), read.sigfig()), (2, 3));
                assert!(read.max().abs_diff(503_000_000) < 503_000);
                assert!((line.max() - 503.0).abs() < 0.5);
            }
            tags.push(tag);
        }
        assert_eq!(
            tags,
            [
                "READ-st",
                "READ-rt",
                "READ-wt",
                "READ-rt@n1",
                "READ-rt@n2",
                "WRITE-st",
                "WRITE-rt",
                "WRITE-wt",
                "WRITE-rt@n1",
                "WRITE-rt@n2",
                "WRITE-err",
                "WRITE-rt-ok"
            ]
        );
    }

    #[test]
    fn without_a_schedule_there_are_service_times_alone() {
        let (mut interval, _) = sample::mixed();
        interval.measure = Measure::Service;
        let text = log(&interval, false);
        assert!(text.contains("Tag=READ-st,") && text.contains("Tag=READ-st@n1,"));
        assert!(!text.contains("-rt") && !text.contains("-wt"));
        // throttle= has a schedule, although its rows show service times.
        let text = log(&interval, true);
        for tag in ["READ-st,", "READ-rt,", "READ-wt,", "READ-st@n1,"] {
            assert!(text.contains(&format!("Tag={tag}")), "{tag} is not in {text}");
        }
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    fn from_base64(text: &str) -> Vec<u8> {
        let value = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let mut out = Vec::new();
        for four in text.as_bytes().chunks(4) {
            let own: Vec<u8> = four.iter().filter(|byte| **byte != b'=').map(|byte| value(*byte)).collect();
            let word = own.iter().fold(0_u32, |word, six| word << 6 | u32::from(*six)) << (6 * (4 - own.len()));
            out.extend_from_slice(&word.to_be_bytes()[1..own.len()]);
        }
        out
    }
}
