//! The text of the Prometheus endpoint: exposition format 0.0.4.

use std::fmt::Write;

use brownout_load::{Histogram, Outcome};

use super::Total;

/// The current state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Operations sent and not yet answered.
    pub in_flight: u64,
    /// Operations due and not yet sent.
    pub waiting: u64,
}

/// Upper bounds of the latency buckets in µs: three for each factor of ten, 100 µs to 100 s.
const BOUNDS_US: [u64; 19] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
];

/// All metrics of a run so far.
pub fn exposition(total: &Total, now: Now) -> String {
    let mut text = Text(String::new());
    let interval = &total.interval;

    text.head("operations_total", "counter", "Operations by how they ended; late ones are in timed-out, too.");
    for operation in &interval.operations {
        for cell in &operation.cells {
            let labels = labels(&operation.name, &cell.coordinator, Some(cell.outcome));
            text.sample("operations_total", &labels, cell.count);
        }
    }
    for (name, help, value) in [
        ("scheduled_total", "Operations that fell due.", interval.scheduled),
        ("sent_total", "Operations sent.", interval.sent),
        ("never_sent_total", "Operations given up before they could be sent.", interval.never_sent),
        ("withheld_total", "Operations that were due and found no free user.", interval.withheld),
        (
            "late_starts_total",
            "Operations that the client itself sent late: by more than 1 ms and two ticks.",
            interval.late_starts,
        ),
        ("stale_reads_total", "Reads older than an acknowledged write.", interval.findings.stale),
        ("missing_reads_total", "Reads without the row of an acknowledged write.", interval.findings.missing),
        ("mismatched_reads_total", "Reads with content that nobody wrote.", interval.findings.mismatched),
    ] {
        text.head(name, "counter", help);
        text.sample(name, "", value);
    }
    type Count = fn(&super::Operation) -> u64;
    let counts: [(&str, &str, Count); 6] = [
        ("requests_total", "Requests given to connections: pages, steps and attempts.", |operation| operation.requests),
        ("partitions_total", "Partitions read or written.", |operation| operation.partitions),
        ("rows_total", "Rows read or written.", |operation| operation.rows),
        ("applied_total", "Conditional statements that were applied.", |operation| operation.applied()),
        ("not_applied_total", "Conditional statements that were not applied.", |operation| operation.not_applied),
        ("attempts_total", "Requests of operations that may be tried again.", super::Operation::attempts_ended),
    ];
    for (name, help, count) in counts {
        text.head(name, "counter", help);
        for operation in &interval.operations {
            text.sample(name, &format!("operation=\"{}\"", escaped(&operation.name)), count(operation));
        }
    }
    for (name, help, value) in [
        ("in_flight", "Operations sent and not yet answered.", now.in_flight),
        ("waiting", "Operations due and not yet sent.", now.waiting),
    ] {
        text.head(name, "gauge", help);
        text.sample(name, "", value);
    }

    type Times = fn(&super::Cell) -> &Histogram<u64>;
    let times: [(&str, &str, Times); 3] = [
        ("wait_seconds", "Sent - intended start.", |cell| &cell.wait),
        ("service_seconds", "Answered - sent.", |cell| &cell.service),
        ("response_seconds", "Answered - intended start.", |cell| &cell.response),
    ];
    for (name, help, latency) in times {
        text.head(name, "histogram", help);
        for operation in &interval.operations {
            for cell in operation.cells.iter().filter(|cell| cell.outcome != Outcome::Late) {
                let labels = labels(&operation.name, &cell.coordinator, Some(cell.outcome));
                text.histogram(name, &labels, latency(cell));
            }
        }
    }
    text.head(
        "client_lateness_seconds",
        "histogram",
        "Sent - when it could have been: the intended start, or when a user and a connection were free.",
    );
    text.histogram("client_lateness_seconds", "", &interval.lateness);
    text.0
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.push(format_args!("# HELP brownout_stress_{name} {help}\n# TYPE brownout_stress_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &str, value: u64) {
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        self.push(format_args!("brownout_stress_{name}{open}{labels}{close} {value}\n"));
    }

    fn histogram(&mut self, name: &str, labels: &str, times: &Histogram<u64>) {
        let part = if labels.is_empty() { "" } else { "," };
        for bound in BOUNDS_US {
            let below = times.count_between(0, bound * 1_000);
            let le = bound as f64 / 1e6;
            self.push(format_args!("brownout_stress_{name}_bucket{{{labels}{part}le=\"{le}\"}} {below}\n"));
        }
        let (count, sum) = (times.len(), times.mean() * times.len() as f64 / 1e9);
        self.push(format_args!("brownout_stress_{name}_bucket{{{labels}{part}le=\"+Inf\"}} {count}\n"));
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        self.push(format_args!("brownout_stress_{name}_sum{open}{labels}{close} {sum}\n"));
        self.push(format_args!("brownout_stress_{name}_count{open}{labels}{close} {count}\n"));
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = self.0.write_fmt(text);
    }
}

fn labels(operation: &str, coordinator: &str, outcome: Option<Outcome>) -> String {
    let mut text = format!("operation=\"{}\",coordinator=\"{}\"", escaped(operation), escaped(coordinator));
    if let Some(outcome) = outcome {
        text.push_str(&format!(",outcome=\"{}\"", outcome.name()));
    }
    text
}

/// A label's value: backslash, quote and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use brownout_record::Population;

    use super::*;
    use crate::output::sample;

    #[test]
    fn counters_gauges_and_histograms_are_in_the_exposition_format() {
        let (_, total) = sample::mixed();
        let text = exposition(&total, Now { in_flight: 3, waiting: 1 });
        for line in [
            "# TYPE brownout_stress_operations_total counter",
            "brownout_stress_operations_total{operation=\"WRITE\",coordinator=\"n2\",outcome=\"overloaded\"} 1",
            "brownout_stress_scheduled_total 7",
            "brownout_stress_in_flight 3",
            "# TYPE brownout_stress_response_seconds histogram",
            "brownout_stress_response_seconds_bucket{operation=\"READ\",coordinator=\"n1\",outcome=\"ok\",le=\"0.0005\"} 0",
            "brownout_stress_response_seconds_bucket{operation=\"READ\",coordinator=\"n1\",outcome=\"ok\",le=\"0.001\"} 1",
            "brownout_stress_response_seconds_bucket{operation=\"READ\",coordinator=\"n1\",outcome=\"ok\",le=\"+Inf\"} 2",
            "brownout_stress_response_seconds_count{operation=\"READ\",coordinator=\"n1\",outcome=\"ok\"} 2",
            "brownout_stress_client_lateness_seconds_count 0",
        ] {
            assert!(text.lines().any(|own| own == line), "no line {line} in\n{text}");
        }
        // Every sample is `name{labels} number`, and its family was announced before.
        let mut families = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                families.push(rest.split(' ').next().unwrap());
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(families.last().is_some_and(|family| name.starts_with(family)), "{line}");
            }
        }
    }

    #[test]
    fn a_population_is_the_sum_of_its_outcomes() {
        let (_, total) = sample::mixed();
        let text = exposition(&total, Now::default());
        let count = |operation: &str, outcomes: &[&str]| -> u64 {
            let head = format!("brownout_stress_response_seconds_count{{operation=\"{operation}\"");
            let own = text.lines().filter(|line| line.starts_with(&head));
            let wanted = |line: &&str| outcomes.iter().any(|name| line.contains(&format!("outcome=\"{name}\"")));
            own.filter(wanted).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        for operation in &total.interval.operations {
            let response = operation.latencies(|cell| &cell.response);
            for (of, outcomes) in [
                (Population::Ok, &["ok"][..]),
                (Population::OkAndTimedOut, &["ok", "timed-out"][..]),
                (Population::Due, &["ok", "timed-out", "overloaded"][..]),
            ] {
                assert_eq!(count(&operation.name, outcomes), response.count(of), "{} {of}", operation.name);
            }
        }
    }

    #[test]
    fn a_label_is_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
