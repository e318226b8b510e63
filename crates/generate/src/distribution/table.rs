//! The table of `print dist=`.

use std::fmt::Write as _;

use super::Spec;
use crate::java::fixed;

/// The table that cassandra-stress prints for a distribution: the values that 10 % … 100 % of the samples do not exceed,
/// and which share of the largest value each is. Ends with a line break.
pub fn print_table(spec: &Spec) -> String {
    let distribution = spec.build(0);
    let hundredth = distribution.inverse_cumulative(1.0) as f64 / 100.0;
    let mut table = String::from("% of samples    Range       % of total\n");
    for p in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0] {
        let value = distribution.inverse_cumulative(p);
        let (samples, share) = (fixed(p * 100.0, 1), fixed(value as f64 / hundredth, 1));
        let _ = writeln!(table, "{samples:<16}{value:<12}{share:>12}");
    }
    table
}
