//! What the clocks of hosts said of each other, by phase: round trips and offsets between all of them.

use brownout_record::ClockRow;
use serde::Serialize;

use crate::{
    TrialEvidence,
    evidence::{PhaseWindow, phase},
    stats::{median, middle},
};

/// A slope through fewer points says nothing.
const LEAST_FOR_DRIFT: usize = 3;

/// Round trips and clock offsets between hosts in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockMatrix {
    /// `baseline`, `fault`, `recovery`.
    pub phase: String,
    /// Each ordered pair of which there was an answer, in order.
    pub pairs: Vec<ClockPair>,
}

/// What one host has learned of the clock of another. All times are medians over the exchanges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockPair {
    /// Who asked.
    pub host: String,
    /// Who was asked.
    pub server: String,
    /// Exchanges that came to their end.
    pub exchanges: u64,
    /// From question to answer, without the time that the server took, ns.
    pub round_trip_ns: f64,
    /// What the server's clock shows − what the host's shows, ns, if both ways take equally long. If they do not, half of
    /// what they differ by is in it.
    pub offset_ns: f64,
    /// The truth lies within `offset_ns` ± this, however the round trip is spread over the two ways, ns.
    pub bound_ns: f64,
    /// How much the offset grows, ns per s, by least squares; none of fewer than three exchanges.
    pub drift_ppb: Option<f64>,
}

/// The matrices of a trial's measured phases; empty where its hosts were not to ask each other.
pub(crate) fn clock_matrices(evidence: &TrialEvidence) -> Vec<ClockMatrix> {
    let windows = evidence.phases.iter().filter(|window| phase::MEASURED.contains(&window.name.as_str()));
    let of = |window: &PhaseWindow| ClockMatrix { phase: window.name.clone(), pairs: pairs(&evidence.clocks, window) };
    windows.map(of).filter(|matrix| !matrix.pairs.is_empty()).collect()
}

fn pairs(rows: &[ClockRow], window: &PhaseWindow) -> Vec<ClockPair> {
    // An exchange counts if all of it lies in the phase.
    let is_inside = |row: &&ClockRow| window.holds(row.at_ns.saturating_sub(row.round_trip_ns), row.round_trip_ns);
    let inside: Vec<&ClockRow> = rows.iter().filter(is_inside).collect();
    let mut names: Vec<(&str, &str)> = inside.iter().map(|row| (row.host.as_str(), row.server.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(|(host, server)| pair(host, server, &inside)).collect()
}

fn pair(host: &str, server: &str, rows: &[&ClockRow]) -> Option<ClockPair> {
    let own: Vec<&ClockRow> = rows.iter().copied().filter(|row| row.host == host && row.server == server).collect();
    let of = |value: fn(&ClockRow) -> u64| median(&mut own.iter().map(|row| value(row)).collect::<Vec<u64>>());
    Some(ClockPair {
        host: host.to_owned(),
        server: server.to_owned(),
        exchanges: own.len() as u64,
        round_trip_ns: of(|row| row.round_trip_ns)?,
        offset_ns: middle(&mut own.iter().map(|row| row.offset_ns as f64).collect::<Vec<f64>>())?,
        bound_ns: of(|row| row.bound_ns)?,
        drift_ppb: slope(&own),
    })
}

/// Growth of the offset over time, ns per s: least squares.
fn slope(rows: &[&ClockRow]) -> Option<f64> {
    let first = rows.first().filter(|_| rows.len() >= LEAST_FOR_DRIFT)?;
    let points: Vec<(f64, f64)> =
        rows.iter().map(|row| (row.at_ns.saturating_sub(first.at_ns) as f64 / 1e9, row.offset_ns as f64)).collect();
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (xx, xy) = points
        .iter()
        .fold((0.0, 0.0), |(xx, xy), point| (xx + (point.0 - x).powi(2), xy + (point.0 - x) * (point.1 - y)));
    (xx > 0.0).then(|| xy / xx)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn window() -> PhaseWindow {
        PhaseWindow {
            name: phase::FAULT.to_owned(),
            starts_ns: 10 * SECOND,
            ends_ns: 20 * SECOND,
            finished: true,
            ended_by: None,
            measured_from_ns: 10 * SECOND,
            measured_to_ns: 20 * SECOND,
        }
    }

    fn row(second: u64, offset_ns: i64) -> ClockRow {
        ClockRow {
            at_ns: second * SECOND + SECOND / 2,
            host: "n1".to_owned(),
            server: "n2".to_owned(),
            round_trip_ns: 2_000_000 + second,
            offset_ns,
            bound_ns: 1_000_001,
        }
    }

    #[test]
    fn a_pair_has_the_medians_of_its_phase_alone_and_the_slope_of_its_offset() {
        let drifting: Vec<ClockRow> = (0..30).map(|second| row(second, 5_000 * second as i64 - 40_000)).collect();
        let found = pairs(&drifting, &window());
        assert_eq!(found.len(), 1);
        let pair = &found[0];
        assert_eq!((pair.host.as_str(), pair.server.as_str(), pair.exchanges), ("n1", "n2", 10));
        // Of the seconds 10 to 19.
        assert_eq!((pair.round_trip_ns, pair.offset_ns), (2_000_014.5, 32_500.0));
        assert_eq!(pair.bound_ns, 1_000_001.0);
        assert!((pair.drift_ppb.unwrap() - 5_000.0).abs() < 1e-6, "{pair:?}");
    }

    #[test]
    fn each_direction_is_a_pair_and_two_points_have_no_slope() {
        let mut rows = vec![row(11, 7), row(12, 9)];
        rows.push(ClockRow { host: "n2".to_owned(), server: "n1".to_owned(), ..row(13, -8) });
        let found = pairs(&rows, &window());
        let told: Vec<_> = found.iter().map(|one| (one.host.as_str(), one.offset_ns, one.drift_ppb)).collect();
        assert_eq!(told, [("n1", 8.0, None), ("n2", -8.0, None)]);
        assert!(pairs(&[row(3, 1)], &window()).is_empty(), "before the phase");
    }
}
