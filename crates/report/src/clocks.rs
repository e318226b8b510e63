//! How far hosts and their clocks are apart: the same rows for the terminal and for the page.

use brownout_analysis::{ClockMatrix, ClockPair, TrialFindings};
use brownout_units::format_ns;

use crate::{
    markup::{cell, table},
    page::Page,
    table::{Paint, Table},
};

/// On the terminal: of so many trials, and so many pairs. The page has all.
const TRIALS_SHOWN: usize = 1;
const PAIRS_SHOWN: usize = 21;
/// Drifts below are none, ns per s: a part in 100,000.
const LEAST_DRIFT: f64 = 1e4;

const CAPTION: &str = "Round trip; what the clock that is asked shows more, ± the bound of that";

impl Page {
    /// Of trials whose hosts asked each other, each with what it is called.
    pub(crate) fn clocks<'a>(&mut self, trials: impl Iterator<Item = (String, &'a TrialFindings)>) {
        let told: Vec<_> = trials.filter(|(_, trial)| !trial.clocks.is_empty()).collect();
        for (name, trial) in told.iter().take(TRIALS_SHOWN) {
            self.section(&format!("How far hosts and their clocks are apart, {name}"));
            self.line(Paint::Dim, &format!("  {CAPTION}"));
            let rows = rows(&trial.clocks);
            let left_out = rows.len().saturating_sub(PAIRS_SHOWN);
            let mut table = Table::new(&headings(&trial.clocks));
            rows.into_iter().take(PAIRS_SHOWN).for_each(|row| table.row(Paint::Plain, row));
            self.table(&table);
            if left_out > 0 {
                self.line(Paint::Dim, &format!("  … and {left_out} more pairs, in the report"));
            }
        }
        if told.len() > TRIALS_SHOWN {
            let left_out = told.len() - TRIALS_SHOWN;
            self.line(Paint::Dim, &format!("  the same of {left_out} more trials is in the report"));
        }
    }
}

/// The same for the page; none if nobody asked.
pub(crate) fn html(trial: &TrialFindings) -> Option<String> {
    let rows = rows(&trial.clocks).into_iter().map(|row| ("", row.into_iter().map(cell).collect()));
    (!trial.clocks.is_empty()).then(|| table("", CAPTION, &headings(&trial.clocks), rows.collect()))
}

fn headings(clocks: &[ClockMatrix]) -> Vec<&str> {
    ["asks → is asked"].into_iter().chain(clocks.iter().map(|matrix| matrix.phase.as_str())).collect()
}

/// One for each pair, in whichever phase it was seen; the way back says the same, and is left out.
fn rows(clocks: &[ClockMatrix]) -> Vec<Vec<String>> {
    let all = || clocks.iter().flat_map(|matrix| &matrix.pairs);
    let is_told = |host: &str, server: &str| all().any(|pair| pair.host == host && pair.server == server);
    let mut pairs: Vec<(&str, &str)> = all().map(|pair| (pair.host.as_str(), pair.server.as_str())).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|(host, server)| host < server || !is_told(server, host));
    let row = |(host, server): (&str, &str)| {
        let of = |matrix: &ClockMatrix| {
            let pair = matrix.pairs.iter().find(|pair| pair.host == host && pair.server == server);
            pair.map_or_else(|| "–".to_owned(), words)
        };
        [format!("{host} → {server}")].into_iter().chain(clocks.iter().map(of)).collect()
    };
    pairs.into_iter().map(row).collect()
}

fn words(pair: &ClockPair) -> String {
    let sign = if pair.offset_ns > 0.0 { "+" } else { "" };
    let (round_trip, offset, bound) =
        (format_ns(pair.round_trip_ns), format_ns(pair.offset_ns), format_ns(pair.bound_ns));
    let drift = pair.drift_ppb.filter(|drift| drift.abs() >= LEAST_DRIFT);
    let drift = drift.map_or_else(String::new, |drift| format!(", {:+.0}ppm", drift / 1e3));
    format!("{round_trip}; {sign}{offset} ± {bound}{drift}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(host: &str, server: &str, offset_ns: f64, drift_ppb: Option<f64>) -> ClockPair {
        ClockPair {
            host: host.to_owned(),
            server: server.to_owned(),
            exchanges: 10,
            round_trip_ns: 26.3e6,
            offset_ns,
            bound_ns: 13.15e6,
            drift_ppb,
        }
    }

    #[test]
    fn each_pair_has_one_row_and_one_cell_of_each_phase() {
        let both = [pair("load", "n1", 2e3, None), pair("n1", "load", -2e3, None)];
        let baseline = both.into_iter().chain([pair("n2", "n1", 0.0, Some(9.0))]).collect();
        let clocks = [
            ClockMatrix { phase: "baseline".to_owned(), pairs: baseline },
            ClockMatrix { phase: "fault".to_owned(), pairs: vec![pair("load", "n1", 50e6, Some(5e6))] },
        ];
        assert_eq!(headings(&clocks), ["asks → is asked", "baseline", "fault"]);
        assert_eq!(
            rows(&clocks),
            [
                ["load → n1", "26.3ms; +2.00us ± 13.2ms", "26.3ms; +50.0ms ± 13.2ms, +5000ppm"],
                ["n2 → n1", "26.3ms; 0.00ns ± 13.2ms", "–"],
            ]
        );
        assert!(rows(&[]).is_empty());
    }
}
