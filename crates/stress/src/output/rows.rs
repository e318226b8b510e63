//! Header and progress rows, byte for byte those of cassandra-stress in the C locale.

use super::{
    Interval, Measure, Operation, Total, Uncertainty,
    number::fixed,
    percentile,
    snapshot::{ms, per_second},
};

/// Names of the columns; also the `metrics` of a graph.
pub const COLUMNS: [&str; 19] = [
    "type",
    "total ops",
    "op/s",
    "pk/s",
    "row/s",
    "mean",
    "med",
    ".95",
    ".99",
    ".999",
    "max",
    "time",
    "stderr",
    "errors",
    "gc: #",
    "max ms",
    "sum ms",
    "sdv ms",
    "mb",
];

/// Width of the first column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// 10 characters: all releases up to Apache's 4.1, and Scylla's.
    #[default]
    Narrow,
    /// 50 characters: Apache's since 5.0.
    Wide,
}

/// Prints intervals as rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows {
    /// Width of the first column.
    pub width: Width,
    /// Also print intervals in which nothing ended. cassandra-stress leaves them out, so that a stalled database shows
    /// as missing rows; in an open loop a row of zeros is the finding.
    pub empty: bool,
}

impl Rows {
    /// The header, without a line break; `prefix` stands in front of it (`id, ` in the table of a run in steps).
    pub fn header(&self, prefix: &str) -> String {
        let [kind, total, rest @ ..] = COLUMNS;
        let mut line = match self.width {
            Width::Narrow => format!("{prefix}{kind:<10}{total:>10}"),
            Width::Wide => format!("{prefix}{kind:<50}{total:>10}"),
        };
        for (name, width) in rest.iter().zip(REST) {
            line.push_str(&format!(",{name:>width$}"));
        }
        line
    }

    /// The rows of an interval, each without a line break: one for each operation if there is more than one name, and
    /// the `total`. `so_far` includes the interval.
    pub fn interval(&self, interval: &Interval, so_far: &Total) -> Vec<String> {
        if interval.is_empty() && !self.empty {
            return Vec::new();
        }
        self.table("", interval, so_far)
    }

    /// The rows of a step in the table at the end of a run in steps: all figures are those of the whole step. There,
    /// even a single name has a row of its own.
    pub fn step(&self, prefix: &str, total: &Total) -> Vec<String> {
        let interval = &total.interval;
        let mut lines: Vec<String> = interval
            .operations
            .iter()
            .map(|operation| self.row(prefix, operation, operation, interval, total, total.due_ns()))
            .collect();
        let all = interval.all();
        lines.push(self.row(prefix, &all, &all, interval, total, total.due_ns()));
        lines
    }

    fn table(&self, prefix: &str, interval: &Interval, so_far: &Total) -> Vec<String> {
        let (mut lines, length_ns) = (Vec::new(), interval.length_ns);
        if interval.operations.len() > 1 {
            for operation in &interval.operations {
                let before = so_far.interval.operations.iter().find(|known| known.name == operation.name);
                lines.push(self.row(prefix, operation, before.unwrap_or(operation), interval, so_far, length_ns));
            }
        }
        lines.push(self.row(prefix, &interval.all(), &so_far.interval.all(), interval, so_far, length_ns));
        lines
    }

    fn row(
        &self,
        prefix: &str,
        operation: &Operation,
        so_far: &Operation,
        interval: &Interval,
        total: &Total,
        length_ns: u64,
    ) -> String {
        let figures = Figures::of(operation, length_ns, interval.measure);
        // There, seconds are a 32-bit float computed from whole milliseconds.
        let seconds = f64::from((total.interval.length_ns / 1_000_000) as f32 / 1000.0);
        let kind = format!("{},", operation.name);
        let total_ops = so_far.ended();
        let mut line = match self.width {
            Width::Narrow => format!("{prefix}{kind:<10}{total_ops:>10}"),
            Width::Wide => format!("{prefix}{kind:<50}{total_ops:>10}"),
        };
        let rates = [figures.operations, figures.partitions, figures.rows].map(|rate| fixed(rate, 0));
        let latencies = figures.latencies_ms.map(|latency| fixed(latency, 1));
        let rest = [fixed(seconds, 1), stderr(&total.uncertainty), operation.errors().to_string()];
        // Nothing is known about the servers' garbage collectors: there is no JMX.
        let collector = std::array::from_fn::<_, 5, _>(|_| "0".to_owned());
        let fields = rates.into_iter().chain(latencies).chain(rest).chain(collector);
        for (field, width) in fields.zip(REST) {
            line.push_str(&format!(",{field:>width$}"));
        }
        line
    }
}

/// Widths of the columns after the first two.
const REST: [usize; 17] = [8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 9, 7, 7, 8, 8, 8, 8];

fn stderr(uncertainty: &Uncertainty) -> String {
    fixed(uncertainty.value(), 5)
}

/// The figures of one row, before they are rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    /// Per second.
    pub(super) operations: f64,
    /// Per second.
    pub(super) partitions: f64,
    /// Per second.
    pub(super) rows: f64,
    /// Mean, median, 95th, 99th and 99.9th percentile, largest.
    pub(super) latencies_ms: [f64; 6],
}

impl Figures {
    pub(super) fn of(operation: &Operation, length_ns: u64, measure: Measure) -> Self {
        let latency = operation.latency(measure);
        let at = |share: f64| ms(percentile(&latency, share) as f64);
        Figures {
            operations: per_second(operation.ended(), length_ns),
            partitions: per_second(operation.partitions, length_ns),
            rows: per_second(operation.rows, length_ns),
            latencies_ms: [ms(latency.mean()), at(50.0), at(95.0), at(99.0), at(99.9), ms(latency.max() as f64)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn the_header_is_cassandra_stress_s() {
        assert_eq!(
            Rows::default().header(""),
            "type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,    .999,     max,   \
             time,   stderr, errors,  gc: #,  max ms,  sum ms,  sdv ms,      mb"
        );
        let wide = Rows { width: Width::Wide, ..Rows::default() };
        assert_eq!(wide.header("")[..62], format!("{:<50}{:>10},", "type", "total ops") + " ");
        assert!(Rows::default().header("             id, ").starts_with("             id, type       total ops,"));
    }

    #[test]
    fn a_mixed_interval_has_a_row_for_each_name_and_the_total() {
        let (interval, total) = sample::mixed();
        let lines = Rows::default().interval(&interval, &total);
        assert_eq!(
            lines,
            [
                "READ,              4,       4,       4,       4,     2.5,     2.0,     4.0,     4.0,     4.0,     4.0,    \
                 1.0,  0.00000,      0,      0,       0,       0,       0,       0",
                "WRITE,             3,       3,       2,       2,   256.5,    10.0,   503.1,   503.1,   503.1,   503.1,    \
                 1.0,  0.00000,      2,      0,       0,       0,       0,       0",
                "total,             7,       7,       6,       6,    87.2,     3.0,   503.1,   503.1,   503.1,   503.1,    \
                 1.0,  0.00000,      2,      0,       0,       0,       0,       0",
            ]
        );
    }

    #[test]
    fn an_interval_without_operations_is_a_row_only_if_asked() {
        let (_, mut total) = sample::mixed();
        let mut empty = Interval::new(total.interval.end_ns(), 1_000_000_000, Measure::Service);
        empty.operation("READ");
        empty.operation("WRITE");
        total.add(&empty);
        assert!(Rows::default().interval(&empty, &total).is_empty());
        let lines = Rows { empty: true, ..Rows::default() }.interval(&empty, &total);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].starts_with("total,             7,       0,       0,       0,     0.0,"), "{}", lines[2]);
    }

    #[test]
    fn every_row_has_as_many_fields_as_the_header() {
        let (interval, total) = sample::mixed();
        for line in Rows::default().interval(&interval, &total) {
            assert_eq!(line.split(',').count(), COLUMNS.len(), "{line}");
            assert!(line.split(',').skip(1).all(|field| field.trim().parse::<f64>().is_ok()), "{line}");
        }
    }
}
