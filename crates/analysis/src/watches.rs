//! How far watches lag behind the puts that they tell of, as the load saw it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Latencies, Response, TrialEvidence, evidence::phase};

/// The watches of one node in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchLag {
    /// The phase, by the intended start of the puts.
    pub phase: String,
    /// The node that was watched.
    pub node: String,
    /// Events that came within the load's time-out.
    pub events: u64,
    /// Those that did not, though their put was acknowledged.
    pub missing: u64,
    /// From a put's intended start until the watch told of it; missing ones count at the time-out.
    pub lag: Option<Response>,
}

/// What was seen in the measured phases; empty where nothing was watched.
pub(crate) fn watches(evidence: &TrialEvidence) -> Vec<WatchLag> {
    let length_ns = evidence.intervals.first().map_or(0, |interval| interval.length_ns);
    let windows = evidence.phases.iter().filter(|window| phase::MEASURED.contains(&window.name.as_str()));
    let mut all = Vec::new();
    for window in windows {
        let mut by_node: BTreeMap<&str, (u64, u64, Latencies)> = BTreeMap::new();
        for row in evidence.watches.iter().filter(|row| window.holds(row.starts_ns, length_ns)) {
            let (events, missing, latencies) = by_node.entry(&row.coordinator).or_default();
            match row.outcome.as_str() {
                "ok" => *events += row.count,
                "timed-out" => *missing += row.count,
                _ => {}
            }
            latencies.add_row(row);
        }
        all.extend(by_node.into_iter().map(|(node, (events, missing, latencies))| WatchLag {
            phase: window.name.clone(),
            node: node.to_owned(),
            events,
            missing,
            lag: latencies.response(),
        }));
    }
    all
}
