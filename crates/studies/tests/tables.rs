//! Tables are made from findings alone, and a README in which a number has changed is seen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{fs, path::Path};

use brownout_studies::{
    readme::filled,
    stored::{Cell, Crossing, Effect, FORMAT, Phase, Predicted, Proof, Series, Source, Stored, Without, Zone},
    study::Study,
};

const MS: f64 = 1e6;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn phase(name: &str, delivered: f64, mean_ms: f64) -> Phase {
    let time = |factor: f64| Some(factor * mean_ms * MS);
    Phase {
        name: name.to_owned(),
        delivered,
        good: delivered,
        mean_ns: time(1.0),
        p50_ns: time(0.5),
        p99_ns: time(3.0),
        ..Phase::default()
    }
}

fn cell(levels: &[&str], threads: u32, fault: (f64, f64)) -> Cell {
    Cell {
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        threads: Some(threads),
        replication: 1,
        trials: 3,
        phases: vec![phase("baseline", 8_000.0, 8.0), phase("fault", fault.0, fault.1)],
        predicted: Some(Predicted { figure: "throughput".to_owned(), share: 1.0 / 3.0, least: 0.8, most: 0.8 }),
        series: Some(Series {
            trial: 4,
            fault: (2.0, 4.0),
            seconds: vec![0.0, 1.0, 2.0, 3.0],
            delivered: vec![Some(8_000.0), Some(8_000.0), Some(fault.0), None],
            mean_ms: vec![Some(8.0), Some(8.0), Some(fault.1), None],
            p99_ms: vec![Some(20.0), Some(20.0), Some(90.0), None],
            elections: vec![2.5],
        }),
        ..Cell::default()
    }
}

fn stored(name: &str, factors: &[&str], cells: Vec<Cell>) -> Stored {
    Stored {
        format: FORMAT,
        name: name.to_owned(),
        command: format!("brownout run {name}.yaml"),
        factors: factors.iter().map(|factor| (*factor).to_owned()).collect(),
        valid: 3 * cells.len() as u32,
        without: Some(Without {
            trials: 3,
            phases: vec![phase("baseline", 8_000.0, 8.0), phase("fault", 7_900.0, 8.1)],
            ..Without::default()
        }),
        cells,
        ..Stored::default()
    }
}

/// A study with made-up findings; its README has all tables.
fn study(directory: &Path, findings: &[Stored]) {
    fs::create_dir_all(directory.join("findings")).unwrap();
    let published = repository().join("studies/slow-and-flaky/published.json");
    fs::copy(published, directory.join("published.json")).unwrap();
    let names = [
        "published",
        "one-slow-node",
        "two-slow-nodes",
        "ratios",
        "loss",
        "loss-proof",
        "tolerance",
        "danger-zones",
        "provenance",
        "plots",
    ];
    let tables = names.map(|name| format!("## {name}\n\n<!-- table: {name} -->\n<!-- end -->\n\nsaid by hand\n"));
    fs::write(directory.join("README.md"), tables.concat()).unwrap();
    for stored in findings {
        fs::write(directory.join("findings").join(format!("{}.json", stored.name)), stored.text().unwrap()).unwrap();
    }
}

fn slow() -> Stored {
    let effect = Effect {
        figure: "delivered".to_owned(),
        outcome: "worse".to_owned(),
        change: Some(-0.77),
        interval: Some((-0.79, -0.75)),
        blocks: 3,
    };
    let cells = vec![
        cell(&["n2", "2ms"], 64, (7_950.0, 8.05)),
        Cell { effects: vec![effect], ..cell(&["n2", "100ms"], 64, (1_850.0, 34.6)) },
        cell(&["n2 and n3", "100ms"], 64, (940.0, 68.1)),
    ];
    stored("slow", &["slow", "delay"], cells)
}

fn made(findings: &[Stored]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    study(directory.path(), findings);
    Study::read(directory.path(), None).unwrap().write().unwrap();
    let text = fs::read_to_string(directory.path().join("README.md")).unwrap();
    (directory, text)
}

/// The row of a table that begins so, as cells.
fn row(text: &str, table: &str, begins: &[&str]) -> Vec<String> {
    let from = text.find(&format!("<!-- table: {table} -->")).unwrap();
    let rows = text[from..].split("<!-- end -->").next().unwrap().lines();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut rows = rows.filter(|line| line.starts_with('|')).map(cells);
    rows.find(|cells| begins.iter().zip(cells).all(|(one, cell)| one == cell))
        .unwrap_or_else(|| panic!("{table}: {begins:?} in {text}"))
}

#[test]
fn published_throughputs_stand_beside_what_the_law_of_little_has_for_them() {
    let (_directory, text) = made(&[]);
    let wanted = |nodes: &str, delay: &str, cells: &[&str]| {
        let row = row(&text, "published", &[nodes, delay]);
        assert_eq!(row[2..2 + cells.len()], *cells, "{row:?}");
    };
    wanted("0", "none", &["41,765", "42,667", "–", "1.0"]);
    wanted("1", "2ms", &["26,911", "26,667", "96,000", "0.64"]);
    wanted("1", "20ms", &["8,598", "8,767", "9,600", "0.21"]);
    wanted("1", "100ms", &["1,870", "1,888", "1,920", "0.045"]);
    wanted("2", "100ms", &["700", "–", "750"]);
}

#[test]
fn nothing_is_made_up_where_nothing_was_measured() {
    let (_directory, text) = made(&[]);
    for table in ["one-slow-node", "two-slow-nodes", "loss", "tolerance", "provenance", "plots"] {
        let wanted = format!("<!-- table: {table} -->\n*Not measured yet.*\n<!-- end -->");
        assert!(text.contains(&wanted), "{table}: {text}");
    }
    assert_eq!(
        row(&text, "danger-zones", &["delay", "reads"])[2..],
        ["0.2ms … 3ms", "not measured yet", "not measured yet", "0"]
    );
    assert_eq!(text.matches("said by hand").count(), 10, "what stands beside the tables stays");
}

#[test]
fn measured_throughput_stands_beside_the_published_one_with_both_ratios() {
    let (_directory, text) = made(&[slow()]);
    // 64 ÷ 34.6 ms, 1,850 ÷ 8,000, the prediction, and 64 ÷ (100 ms ÷ 3).
    assert_eq!(
        row(&text, "one-slow-node", &["100ms"])[1..10],
        ["1,870", "0.045", "3", "1,850", "1,850", "0.23", "-79% … -75%", "0.20", "1,920"]
    );
    assert_eq!(row(&text, "one-slow-node", &["none"])[1..7], ["41,765", "1.0", "3", "7,900", "7,901", "0.99"]);
    // Two of three nodes: 64 ÷ (100 ms × 2 ÷ 3).
    let two = row(&text, "two-slow-nodes", &["100ms"]);
    assert_eq!((two[1].as_str(), two[4].as_str(), two[9].as_str()), ("700", "940", "960"));
    let ours = row(&text, "ratios", &["measured, 64 threads", "100ms"]);
    assert_eq!(ours[2..], ["8.0ms", "12", "0.23", "0.19"]);
    assert_eq!(row(&text, "ratios", &["published, 64 threads", "20ms"])[3..], ["13", "0.21", "0.18"]);
    assert_eq!(text.matches("measured, 64 threads").count(), 2, "two slow nodes are another curve");
}

#[test]
fn a_ping_of_fifty_thousand_stands_beside_the_published_one_of_three() {
    let proof = Proof {
        text: "80% of everything n2 sends is lost".to_owned(),
        quantity: "loss".to_owned(),
        proven: 3,
        trials: 3,
        asked: 0.8,
        sources: vec![
            Source { name: "probes".to_owned(), seen: 0.7991, samples: 31_500 },
            Source { name: "counters".to_owned(), seen: 0.8004, samples: 52_000 },
        ],
        spared: Some(0.0),
    };
    let lossy = Cell { proofs: vec![proof], ..cell(&["80%"], 64, (12.0, 5_300.0)) };
    let (_directory, text) = made(&[stored("flaky", &["loss"], vec![lossy])]);
    assert_eq!(row(&text, "loss-proof", &["published: flaky cassandra_b"])[1..4], ["80.0%", "0.00%", "3"]);
    let ours = row(&text, "loss-proof", &["80% of everything n2 sends is lost"]);
    assert_eq!(ours[1..], ["80.0%", "79.9%", "31,500", "80.0%", "52,000", "0.00%", "3 of 3 trials"]);
    assert_eq!(row(&text, "loss", &["80%"])[3..6], ["12", "12", "0.0015"]);
}

#[test]
fn tolerance_and_danger_zones_are_told_with_their_intervals() {
    let effect = Effect {
        figure: "goodput".to_owned(),
        outcome: "no-difference".to_owned(),
        change: Some(-0.004),
        interval: Some((-0.009, 0.001)),
        blocks: 3,
    };
    let tolerated = Cell {
        rate: Some(400.0),
        threads: None,
        effects: vec![effect],
        ..cell(&["n2 slow by 100ms"], 1, (400.0, 3.0))
    };
    let zone = Zone {
        factor: "faults.0.slow.delay".to_owned(),
        crossings: vec![
            Crossing { loss: 0.1, low: Some(0.2 * MS), high: Some(0.3 * MS), back: vec![] },
            Crossing { loss: 0.5, low: Some(2.0 * MS), high: None, back: vec![] },
        ],
    };
    let searched = Stored { zone: Some(zone), ..stored("delay-reads", &["faults.0.slow.delay"], Vec::new()) };
    let (_directory, text) = made(&[stored("tolerance", &["faults"], vec![tolerated]), searched]);
    let row_of = row(&text, "tolerance", &["n2 slow by 100ms"]);
    assert_eq!(row_of[5..8], ["-0.4%", "-0.9% … +0.1%", "no difference"]);
    assert_eq!(row(&text, "danger-zones", &["delay", "reads"])[3..5], ["200us … 300us", "above 2.00ms"]);
    assert_eq!(row(&text, "danger-zones", &["delay", "writes"])[3], "not measured yet");
}

#[test]
fn tables_of_ours_with_percentiles_name_their_population() {
    let tolerated = Cell { rate: Some(400.0), threads: None, ..cell(&["n2 slow by 100ms"], 1, (400.0, 3.0)) };
    let tolerance = stored("tolerance", &["faults"], vec![tolerated]);
    let lossy = stored("flaky", &["loss"], vec![cell(&["80%"], 64, (12.0, 5_300.0))]);
    let (_directory, text) = made(&[slow(), tolerance, lossy]);
    for table in ["one-slow-node", "two-slow-nodes", "loss", "tolerance"] {
        let from = text.find(&format!("<!-- table: {table} -->")).unwrap();
        let own = text[from..].split("<!-- end -->").next().unwrap();
        assert!(own.contains("p50") && own.contains("ok+timed-out"), "{table}: {own}");
    }
}

#[test]
fn a_changed_number_a_lost_plot_and_a_plot_too_many_are_seen() {
    let (directory, text) = made(&[slow()]);
    let differences = || Study::read(directory.path(), None).unwrap().differences().unwrap();
    assert_eq!(differences(), Vec::<String>::new());
    let readme = directory.path().join("README.md");
    fs::write(&readme, text.replacen("1,850", "1,851", 1)).unwrap();
    let [told] = differences().try_into().unwrap_or_else(|all| panic!("{all:?}"));
    assert!(told.contains("1,851") && told.contains("1,850"), "{told}");
    fs::write(&readme, text.replace("said by hand", "and said otherwise")).unwrap();
    assert_eq!(differences(), Vec::<String>::new(), "words between tables are nobody's business");

    let plots = directory.path().join("plots");
    let drawn: Vec<_> = fs::read_dir(&plots).unwrap().map(|entry| entry.unwrap().path()).collect();
    // One and two slow nodes, throughput and latency of each.
    assert_eq!(drawn.len(), 4, "{drawn:?}");
    let svg = fs::read_to_string(plots.join("slow-1-throughput.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("100ms") && svg.contains("baseline"), "{svg}");
    fs::rename(&drawn[0], plots.join("of-nothing.svg")).unwrap();
    assert_eq!(differences().len(), 2);
    fs::rename(plots.join("of-nothing.svg"), &drawn[0]).unwrap();
    // Findings that change change the tables.
    let path = directory.path().join("findings/slow.json");
    let findings = fs::read_to_string(&path).unwrap();
    fs::write(&path, findings.replacen("1850.0", "1750.0", 2)).unwrap();
    assert!(!differences().is_empty());
}

#[test]
fn markers_that_cannot_be_followed_are_errors() {
    let table = |name: &str| (name == "known").then(|| "new\n".to_owned());
    let good = "a\n<!-- table: known -->\nold\n<!-- end -->\nb\n";
    assert_eq!(filled(good, table).unwrap(), "a\n<!-- table: known -->\nnew\n<!-- end -->\nb\n");
    for (wrong, why) in [
        ("<!-- table: unknown --><!-- end -->", "no such table"),
        ("<!-- table: known -->\nold\n", "no <!-- end -->"),
        ("<!-- table: known\n-->\nold\n<!-- end -->", "not closed"),
        ("<!-- table: known -->\n<!-- table: known --><!-- end -->", "before its end"),
    ] {
        let error = filled(wrong, table).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

/// What continuous integration checks of the studies themselves.
#[test]
fn the_tables_of_the_studies_are_what_their_findings_say() {
    for name in ["slow-and-flaky", "virtual-network", "topologies-and-clocks"] {
        let study = Study::read(&repository().join("studies").join(name), None).unwrap();
        let differences = study.differences().unwrap();
        assert!(differences.is_empty(), "run brownout-studies tables studies/{name}:\n{}", differences.join("\n"));
    }
}
