//! The `Results:` block, and the table at the end of a run in steps.

use super::{
    Operation, Rows, Total,
    number::{count, fixed, grouped},
    rows::Figures,
};

/// The last line of a run that completed as instructed.
pub const END: &str = "END";
/// The last line of any other run.
pub const FAILURE: &str = "FAILURE";

/// The `Results:` block: line for line cassandra-stress's, from the two empty lines before it to the one after it,
/// which separates it from `END`, `FAILURE` or the next step.
///
/// What only this tool reports ([`super::account()`]) goes before it: scripts read what stands between `Results:` and
/// `END`, or the last 16 lines.
pub fn results(total: &Total) -> String {
    let mut out = String::from("\n\nResults:\n");
    for (name, text) in figures(total) {
        out.push_str(&format!("{name:<26}: {text}\n"));
    }
    out.push('\n');
    out
}

/// The lines of the block: name and text.
pub(super) fn figures(total: &Total) -> Vec<(String, String)> {
    let interval = &total.interval;
    let all = interval.all();
    let figures = |operation: &Operation| Figures::of(operation, total.due_ns(), interval.measure);
    let own = figures(&all);
    let of_each = |text: &dyn Fn(&Operation) -> String| each(&interval.operations, text);
    let rate = |name: &str, unit: &str, rate: fn(Figures) -> f64| {
        let each = of_each(&|operation| format!("{} {unit}", grouped(rate(figures(operation)), 0)));
        (name.to_owned(), format!("{:>8} {unit:<5} {each}", grouped(rate(own), 0)))
    };
    let mut lines = vec![
        rate("Op rate", "op/s", |figures| figures.operations),
        rate("Partition rate", "pk/s", |figures| figures.partitions),
        rate("Row rate", "row/s", |figures| figures.rows),
    ];
    for (place, name) in
        ["mean", "median", "95th percentile", "99th percentile", "99.9th percentile", "max"].into_iter().enumerate()
    {
        let each = of_each(&|operation| format!("{} ms", grouped(figures(operation).latencies_ms[place], 1)));
        lines.push((format!("Latency {name}"), format!("{:>6} ms {each}", fixed(own.latencies_ms[place], 1))));
    }
    let partitions = of_each(&|operation| count(operation.partitions));
    lines.push(("Total partitions".to_owned(), format!("{:>10} {partitions}", count(all.partitions))));
    let errors = of_each(&|operation| count(operation.errors()));
    lines.push(("Total errors".to_owned(), format!("{:>10} {errors}", count(interval.errors()))));
    // What cassandra-stress prints when it cannot reach JMX.
    for (name, text) in [
        ("Total GC count", "0"),
        ("Total GC memory", "0.000 KiB"),
        ("Total GC time", "   0.0 seconds"),
        ("Avg GC time", "   NaN ms"),
        ("StdDev GC time", "   0.0 ms"),
    ] {
        lines.push((name.to_owned(), text.to_owned()));
    }
    let time = hours_minutes_seconds(total.due_ns() / 1_000_000_000);
    lines.push(("Total operation time".to_owned(), time));
    lines
}

/// `[READ: 5, WRITE: 5]`, in the order of the names.
fn each(operations: &[Operation], text: &dyn Fn(&Operation) -> String) -> String {
    let parts: Vec<String> =
        operations.iter().map(|operation| format!("{}: {}", operation.name, text(operation))).collect();
    format!("[{}]", parts.join(", "))
}

/// `HH:mm:ss`; more than two digits of hours if there are.
fn hours_minutes_seconds(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The table at the end of a run in steps: the header and each step's rows, with the step's name (`16 threadCount`) in
/// front of every line.
pub fn steps(rows: Rows, steps: &[(String, Total)]) -> Vec<String> {
    let width = steps.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = vec![rows.header(&format!("{:>width$}, ", "id"))];
    for (name, total) in steps {
        lines.extend(rows.step(&format!("{name:>width$}, "), total));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn the_results_block_is_cassandra_stress_s() {
        let (_, total) = sample::mixed();
        let expected = "

Results:
Op rate                   :        7 op/s  [READ: 4 op/s, WRITE: 3 op/s]
Partition rate            :        6 pk/s  [READ: 4 pk/s, WRITE: 2 pk/s]
Row rate                  :        6 row/s [READ: 4 row/s, WRITE: 2 row/s]
Latency mean              :   87.2 ms [READ: 2.5 ms, WRITE: 256.5 ms]
Latency median            :    3.0 ms [READ: 2.0 ms, WRITE: 10.0 ms]
Latency 95th percentile   :  503.1 ms [READ: 4.0 ms, WRITE: 503.1 ms]
Latency 99th percentile   :  503.1 ms [READ: 4.0 ms, WRITE: 503.1 ms]
Latency 99.9th percentile :  503.1 ms [READ: 4.0 ms, WRITE: 503.1 ms]
Latency max               :  503.1 ms [READ: 4.0 ms, WRITE: 503.1 ms]
Total partitions          :          6 [READ: 4, WRITE: 2]
Total errors              :          2 [READ: 0, WRITE: 2]
Total GC count            : 0
Total GC memory           : 0.000 KiB
Total GC time             :    0.0 seconds
Avg GC time               :    NaN ms
StdDev GC time            :    0.0 ms
Total operation time      : 00:00:01

";
        assert_eq!(results(&total), expected);
    }

    #[test]
    fn the_table_of_steps_names_every_step_on_every_line() {
        let (_, total) = sample::mixed();
        let lines = steps(
            Rows::default(),
            &[("4 threadCount".to_owned(), total.clone()), ("16 threadCount".to_owned(), total)],
        );
        assert_eq!(lines.len(), 7);
        assert!(lines[0].starts_with("            id, type       total ops,"), "{}", lines[0]);
        assert!(lines[1].starts_with(" 4 threadCount, READ,              4,"), "{}", lines[1]);
        assert!(lines[6].starts_with("16 threadCount, total,             7,"), "{}", lines[6]);
    }

    #[test]
    fn hours_beyond_a_day_are_hours() {
        assert_eq!(hours_minutes_seconds(90_061), "25:01:01");
    }
}
