//! Tables of the studies virtual-network and topologies-and-clocks, and those of etcd, are made from findings alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{fs, path::Path};

use brownout_studies::{
    stored::{
        Baseline, Cell, ClockPair, Clocks, Effect, FORMAT, Lost, Phase, Predicted, Processors, Series, Stored, Writes,
    },
    study::Study,
};

const MS: f64 = 1e6;

/// A table of a study, made of its own published figures and of these findings.
fn table(study: &str, name: &str, findings: &[Stored]) -> String {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let directory = tempfile::tempdir().unwrap();
    for stored in findings {
        fs::write(directory.path().join(format!("{}.json", stored.name)), stored.text().unwrap()).unwrap();
    }
    let study = Study::read(&repository.join("studies").join(study), Some(directory.path())).unwrap();
    study.table(name).unwrap_or_else(|| panic!("no table {name}"))
}

/// The row of a table that begins so, as cells.
fn row(text: &str, begins: &[&str]) -> Vec<String> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.find(|cells| begins.iter().zip(cells).all(|(one, cell)| one == cell))
        .unwrap_or_else(|| panic!("{begins:?} in {text}"))
}

fn stored(name: &str, cells: Vec<Cell>) -> Stored {
    Stored { format: FORMAT, name: name.to_owned(), cells, ..Stored::default() }
}

fn levels(all: &[&str]) -> Vec<String> {
    all.iter().map(|level| (*level).to_owned()).collect()
}

fn phase(name: &str, delivered: f64, mean_ms: f64) -> Phase {
    let time = |factor: f64| Some(factor * mean_ms * MS);
    Phase {
        name: name.to_owned(),
        delivered,
        good: delivered,
        mean_ns: time(1.0),
        p50_ns: time(0.5),
        p95_ns: time(2.0),
        p99_ns: time(3.0),
        ..Phase::default()
    }
}

/// A transport at a width, in three blocks that differ by a tenth from each other; `times` what native does.
fn transport(name: &str, width: &str, times: [f64; 3]) -> Cell {
    let baseline = |(at, times): (usize, f64)| Baseline {
        block: at as u32 + 1,
        throughput: [1_000.0, 1_100.0, 900.0][at] * times,
        mean_ns: Some(50.0 * MS / times),
        p99_ns: None,
        processors: Some(Processors {
            cores: 2.0,
            busy: 0.9,
            nodes: 0.63,
            instrument: 0.18,
            load: 0.09,
            emulator: 0.045,
            overlay: if name == "native" { 0.0 } else { 0.018 },
        }),
    };
    Cell {
        levels: levels(&[name, width]),
        trials: 3,
        baselines: times.into_iter().enumerate().map(baseline).collect(),
        ..Cell::default()
    }
}

fn transports() -> Vec<Cell> {
    let of = |width: &str| {
        vec![
            transport("native", width, [1.0; 3]),
            transport("WireGuard", width, [0.95, 0.951, 0.949]),
            transport("TLS of nodes", width, [0.9, 0.91, 0.89]),
        ]
    };
    of("32B").into_iter().chain(of("64B")).collect()
}

#[test]
fn the_published_percentages_stand_with_the_means_of_their_rows() {
    let text = table("virtual-network", "published", &[]);
    assert_eq!(row(&text, &["1", "unencrypted"])[2..], ["-8.2%", "+0.8%", "-2.3%", "-2.3%", "-6.7%", "-3.7%", "-3.7%"]);
    assert_eq!(row(&text, &["3", "encrypted"])[7..], ["+30.0%", "+29.9%"]);
}

#[test]
fn transports_are_compared_block_by_block_with_what_was_published_above() {
    let text = table("virtual-network", "closed-r3-quorum", &[stored("closed-r3-quorum", transports())]);
    let ours = row(&text, &["WireGuard v. native"]);
    // Blocks lie a tenth apart, and their differences a thousandth.
    assert_eq!(ours[1], "3");
    assert!(ours[2].starts_with("-5.0% (-5.") && ours[2].ends_with("-4.8%)"), "{ours:?}");
    assert_eq!(row(&text, &["published: virtual network v. unencrypted"])[2..], ["-4.5%", "-4.7%", "-4.2%"]);
    assert!(row(&text, &["WireGuard v. TLS of nodes"])[4].starts_with("+5.6% ("), "{text}");
    assert_eq!(row(&text, &["WireGuard v. OpenVPN"])[1..], ["0", "–", "–", "–"], "of what was not run nothing is said");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("published")).collect();
    assert_eq!(lines.len(), 3, "each published row once: {text}");
}

#[test]
fn by_the_clock_the_mean_response_is_compared_and_nothing_was_published_of_it() {
    let text = table("virtual-network", "open-r1", &[stored("open-r1", transports())]);
    assert!(!text.contains("published"), "{text}");
    assert!(row(&text, &["WireGuard v. native"])[2].starts_with("+5.3% ("), "{text}");
}

#[test]
fn one_block_has_a_change_and_no_interval() {
    let mut cells = transports();
    cells.iter_mut().for_each(|cell| cell.baselines.truncate(1));
    let text = table("virtual-network", "closed-r1", &[stored("closed-r1", cells)]);
    assert_eq!(row(&text, &["WireGuard v. native"])[1..3], ["1", "-5.0%"]);
}

#[test]
fn processors_are_told_by_operation_and_beside_native() {
    let text = table("virtual-network", "processors", &[stored("closed-r3-one", transports())]);
    let native = row(&text, &["closed-r3-one", "native"]);
    // 0.9 of two processors for 1,000, 1,100 and 900 operations a second: 1.81 ms in the mean.
    assert_eq!(native[2..7], ["1,000", "50.0ms", "90%", "processors", "1.81ms"]);
    // Seven tenths of it are the nodes', and so on.
    assert_eq!(native[7..], ["1.27ms", "181us", "90.6us", "–", "90.6us", "181us", "0%"]);
    let wireguard = row(&text, &["closed-r3-one", "WireGuard"]);
    // Its thread's are a fiftieth of 1.91 ms, the probes' three hundredths.
    assert!(wireguard[10].starts_with("38.") && wireguard[11].starts_with("57."), "{wireguard:?}");
    assert_eq!(wireguard[13], "+5.3%");
}

#[test]
fn three_cities_follow_from_their_distances() {
    let text = table("topologies-and-clocks", "published", &[]);
    let far = row(&text, &["Utah, Wisconsin, Clemson", "read"]);
    assert_eq!(far[2..8], ["368", "369", "381", "27.1ms", "26.3ms", "26.3ms"]);
    assert_eq!(row(&text, &["one host", "write"])[2..4], ["–", "–"], "its figures are not in the text");

    let cell = Cell {
        levels: levels(&["Utah, Wisconsin, Clemson", "read"]),
        threads: Some(10),
        trials: 3,
        phases: vec![phase("baseline", 365.0, 27.4)],
        ..Cell::default()
    };
    let text = table("topologies-and-clocks", "closed", &[stored("closed", vec![cell])]);
    let ours = row(&text, &["Utah, Wisconsin, Clemson", "read"]);
    assert_eq!(ours[2..], ["368", "27.1ms", "3", "365", "365", "381", "27.4ms", "13.7ms", "54.8ms", "82.2ms"]);
}

fn pair(host: &str, server: &str, round_trip_ms: f64, offset_ms: f64, drift_ppb: f64) -> ClockPair {
    ClockPair {
        host: host.to_owned(),
        server: server.to_owned(),
        round_trip_ns: round_trip_ms * MS,
        offset_ns: offset_ms * MS,
        bound_ns: round_trip_ms / 2.0 * MS,
        drift_ppb: Some(drift_ppb),
    }
}

#[test]
fn a_way_that_is_longer_one_way_looks_like_skew_and_its_bound_says_that_it_may_be_none() {
    let of = |what: &str, during: Vec<ClockPair>| Cell {
        levels: levels(&["one host", what]),
        clocks: vec![
            Clocks {
                phase: "baseline".to_owned(),
                pairs: vec![pair("n1", "n2", 0.2, 0.001, 3.0), pair("n2", "n1", 0.2, -0.001, 3.0)],
            },
            Clocks { phase: "fault".to_owned(), pairs: during },
        ],
        ..Cell::default()
    };
    let back = pair("n2", "n1", 0.2, -50.0, 0.0);
    let skewed = of("n2 is ahead by 50ms", vec![pair("n1", "n2", 0.2, 50.001, 0.0), back]);
    let uneven = of("n1 to n2 takes 40ms more", vec![pair("n1", "n2", 40.2, 20.0, 0.0)]);
    let drifting = of("n2 is fast by 0.5%", vec![pair("n1", "n2", 0.2, 51.0, 5e6)]);
    let unchanged = of("nothing", vec![pair("n1", "n2", 0.2, 0.1, 0.0)]);
    let clocks = stored("clocks", vec![skewed, uneven, drifting, unchanged]);
    let wrong = table("topologies-and-clocks", "clocks-wrong", std::slice::from_ref(&clocks));
    assert_eq!(
        row(&wrong, &["one host", "n2 is ahead by 50ms"])[2..],
        ["n1 → n2", "200us → 200us", "+1.00us → +50.0ms", "± 100us", "–", "49.9ms"]
    );
    let uneven = row(&wrong, &["one host", "n1 to n2 takes 40ms more"]);
    assert_eq!(uneven[4..], ["+1.00us → +20.0ms", "± 20.1ms", "–", "nothing"]);
    assert_eq!(row(&wrong, &["one host", "n2 is fast by 0.5%"])[6], "+5000ppm");
    assert_eq!(wrong.lines().count(), 2 + 3, "one row of each pair, and none of what is as it was: {wrong}");
    let matrix = table("topologies-and-clocks", "clocks", &[clocks]);
    assert_eq!(row(&matrix, &["one host", "n1"])[2..4], ["–", "200us; +1.00us ± 100us"]);
    assert_eq!(matrix.lines().count(), 2 + 2, "a row for each host that asks: {matrix}");
}

#[test]
fn lost_writes_stand_beside_what_arithmetic_says_per_ms_of_skew() {
    let cell = |level: &str, lost: u64| Cell {
        levels: levels(&[level]),
        rate: Some(400.0),
        writes: Some(Writes { rows: 50, share: 0.5 }),
        trials: 2,
        phases: vec![phase("fault", 400.0, 2.0)],
        lost: vec![
            Lost { looked_for: 2_000, lost, seconds: 20.0 },
            Lost { looked_for: 2_000, lost: lost + 40, seconds: 20.0 },
        ],
        ..Cell::default()
    };
    let skew = stored("skew", vec![cell("100ms", 140), cell("-100ms", 140)]);
    let client = stored("skew-client", vec![cell("100ms", 0)]);
    let text = table("topologies-and-clocks", "lost-writes", &[skew, client]);
    // Each row is written 4 times a second. 2/3 × (1 − e^(−4/3 × 0.098)), and 1/3 × (1 − e^(−8/3 × 0.098)).
    assert_eq!(
        row(&text, &["the coordinators", "100ms"])[2..],
        ["2", "4,000", "320", "8.00%", "7.00% … 9.00%", "8.17%", "8.0", "0.80"]
    );
    assert_eq!(row(&text, &["the coordinators", "-100ms"])[7], "7.67%");
    assert_eq!(row(&text, &["the client", "100ms"])[7], "0.00%");
}

#[test]
fn elections_stand_beside_what_a_slow_leader_costs() {
    let effect = |figure: &str, change: f64| Effect {
        figure: figure.to_owned(),
        outcome: "worse".to_owned(),
        change: Some(change),
        interval: Some((change - 0.02, change + 0.02)),
        blocks: 3,
    };
    let cell = |all: &[&str]| Cell {
        levels: levels(all),
        rate: Some(500.0),
        threads: Some(64),
        trials: 3,
        phases: vec![phase("baseline", 500.0, 2.0), phase("fault", 400.0, 80.0)],
        effects: vec![effect("goodput", -0.5), effect("delivered", -0.2)],
        predicted: Some(Predicted { figure: "goodput".to_owned(), share: 1.0, least: 0.4, most: 0.6 }),
        elections: Some(1.0),
        series: Some(Series { elections: vec![12.5], ..Series::default() }),
        ..Cell::default()
    };
    let open = table("slow-and-flaky", "etcd-tolerance", &[stored("etcd", vec![cell(&["leader slow by 1s"])])]);
    assert_eq!(
        row(&open, &["leader slow by 1s"])[4..10],
        ["500 → 400", "-50%", "-52% … -48%", "worse", "-60% … -40%", "1.0"]
    );
    let closed = stored("etcd-closed", vec![cell(&["reads", "leader slow by 10ms"])]);
    let closed = table("slow-and-flaky", "etcd-throughput", &[closed]);
    assert_eq!(row(&closed, &["reads", "leader slow by 10ms"])[3..8], ["500", "400", "-20%", "-22% … -18%", "800"]);
    let zones = table("slow-and-flaky", "etcd-zones", &[]);
    assert_eq!(row(&zones, &["delay", "leader"])[2..4], ["0.5ms … 2ms", "not measured yet"]);
}
