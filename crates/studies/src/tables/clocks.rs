//! How far hosts and their clocks are apart, asked by NTP over the network: all pairs, and what a wrong clock or an uneven way does.

use crate::{
    stored::{Cell, ClockPair, Stored},
    table::Table,
    words::{NONE, signed_time, time},
};

/// Columns of the matrix; a host that a topology has not stays empty.
const HOSTS: [&str; 5] = ["n1", "n2", "n3", "n4", "load"];
/// Offsets that change by less are as they were, ns.
const LEAST_CHANGE: f64 = 1e6;
/// Drifts below are none, ns per s.
const LEAST_DRIFT: f64 = 1e6;

fn pairs<'a>(cell: &'a Cell, phase: &str) -> &'a [ClockPair] {
    cell.clocks.iter().find(|clocks| clocks.phase == phase).map_or(&[], |clocks| clocks.pairs.as_slice())
}

/// Round trip, offset and bound between all hosts of each topology, nothing being wrong.
pub fn matrices(run: &Stored) -> String {
    let head = ["topology", "asks"].into_iter().chain(HOSTS).map(str::to_owned);
    let mut table = Table::of(head.collect());
    let mut told: Vec<&str> = Vec::new();
    for cell in &run.cells {
        let (Some(topology), found) = (cell.levels.first(), pairs(cell, "baseline")) else { continue };
        if found.is_empty() || told.contains(&topology.as_str()) {
            continue;
        }
        told.push(topology);
        for host in HOSTS.into_iter().filter(|host| found.iter().any(|pair| pair.host == *host)) {
            let of = |server: &str| {
                let pair = found.iter().find(|pair| pair.host == host && pair.server == server);
                pair.map_or_else(
                    || NONE.to_owned(),
                    |pair| {
                        let (round_trip, offset) = (time(Some(pair.round_trip_ns)), signed_time(pair.offset_ns));
                        format!("{round_trip}; {offset} ± {}", time(Some(pair.bound_ns)))
                    },
                )
            };
            let head = [topology.clone(), host.to_owned()].into_iter();
            table.row(head.chain(HOSTS.map(of)));
        }
    }
    table.text()
}

/// The pairs of which a fault changed what clocks say of each other.
pub fn wrong(run: &Stored) -> String {
    let mut table = Table::new([
        "topology",
        "what is wrong",
        "asks → is asked",
        "round trip, before → during",
        "offset, before → during",
        "bound, during",
        "drift",
        "surely apart by",
    ]);
    for cell in &run.cells {
        let (before, during) = (pairs(cell, "baseline"), pairs(cell, "fault"));
        let level = |at: usize| cell.levels.get(at).cloned().unwrap_or_default();
        // The way back says the same, with the other sign.
        for pair in during.iter().filter(|pair| pair.host < pair.server) {
            let same = |one: &&ClockPair| one.host == pair.host && one.server == pair.server;
            let Some(was) = before.iter().find(same) else { continue };
            let drifts = pair.drift_ppb.filter(|drift| drift.abs() >= LEAST_DRIFT);
            if (pair.offset_ns - was.offset_ns).abs() < LEAST_CHANGE && drifts.is_none() {
                continue;
            }
            let surely = pair.offset_ns.abs() - pair.bound_ns;
            table.row([
                level(0),
                level(1),
                format!("{} → {}", pair.host, pair.server),
                format!("{} → {}", time(Some(was.round_trip_ns)), time(Some(pair.round_trip_ns))),
                format!("{} → {}", signed_time(was.offset_ns), signed_time(pair.offset_ns)),
                format!("± {}", time(Some(pair.bound_ns))),
                drifts.map_or_else(|| NONE.to_owned(), |drift| format!("{:+.0}ppm", drift / 1e3)),
                if surely > 0.0 { time(Some(surely)) } else { "nothing".to_owned() },
            ]);
        }
    }
    table.text()
}
