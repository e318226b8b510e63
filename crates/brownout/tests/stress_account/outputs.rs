//! What each output of a run tells, compared with the latencies of its JSON.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use brownout_record::{Histogram, Latencies, Percentile, Population, Run, percentile};
use serde_json::Value;

use crate::{
    figures::{
        Figure, PERCENTS, Reference, Told, compare, decoded, line_of_percentiles, object_of_percentiles, operation,
        reference,
    },
    stress::{BROWNOUT, Done},
};

const SHOWN: Population = Population::OkAndTimedOut;

/// A line of the account, by its name.
pub fn line<'a>(done: &'a Done, name: &str) -> Option<&'a str> {
    let line = done.out.lines().find(|line| line.split_once(':').is_some_and(|(found, _)| found.trim() == name));
    line.and_then(|line| line.split_once(':')).map(|(_, text)| text.trim())
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

pub fn number(text: &str) -> f64 {
    text.trim().replace(',', "").parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// JSON tells percentiles of what it tells histograms of.
pub fn populations(what: &str, done: &Done) {
    let own = reference(done);
    for of in Population::ALL {
        let told = &operation(done)["populations"][of.name()];
        assert_eq!(told["count"], own.response.count(of), "{what}: {of}: {done}");
        for latency in ["service", "response"] {
            compare(what, done, own.latency(latency), object_of_percentiles(latency, of, &told[latency]));
        }
    }
}

pub fn account(what: &str, done: &Done) {
    let own = reference(done);
    let [ok, shown, due] = Population::ALL.map(|of| own.response.count(of));
    for (name, latency, of, there) in [
        ("WRITE wait (held back)", "wait", SHOWN, shown > 0),
        ("WRITE service (answering)", "service", SHOWN, shown > 0),
        ("WRITE response (both)", "response", SHOWN, shown > 0),
        ("WRITE response, ok", "response", Population::Ok, ok > 0 && ok < shown),
        ("WRITE response, all due", "response", Population::Due, shown < due),
    ] {
        let text = line(done, name);
        assert_eq!(text.is_some(), there, "{what}: {name}: {done}");
        let figures = text.map(|text| line_of_percentiles(name, of, text));
        compare(what, done, own.latency(latency), figures.into_iter().flatten());
    }
    // A node that times everything out has its times, too.
    let node = line(done, "WRITE@127.0.0.1").unwrap_or_else(|| panic!("{what}: no line of the node: {done}"));
    let errors = done.sheet("failed") + done.sheet("timed_out");
    let counts = format!("{} answered, {} errors", grouped(ok), grouped(errors));
    let (told, times) = node.split_once("; response ").unwrap_or((node, ""));
    assert_eq!((told, !times.is_empty()), (&counts[..], shown > 0), "{what}: {node}: {done}");
    let of_node = Reference::of(&operation(done)["coordinators"]["127.0.0.1"], 0);
    let figures = (shown > 0).then(|| line_of_percentiles("WRITE@127.0.0.1", SHOWN, times));
    compare(what, done, &of_node.response, figures.into_iter().flatten());
}

/// Requests, and those of them that were other attempts.
pub fn attempts(what: &str, done: &Done, retries: u64) {
    let (requests, sent) = (operation(done)["requests"].as_u64().unwrap(), done.sheet("sent"));
    let each = requests as f64 / sent as f64;
    let text = line(done, "WRITE requests").unwrap_or_else(|| panic!("{what}: no requests: {done}"));
    assert!(text.ends_with(&format!("{each:.2} each")), "{what}: {text}");
    let told = &operation(done)["attempts"];
    if retries == 0 {
        assert_eq!((requests, &told["count"]), (sent, &Value::from(0)), "{what}: {done}");
        return;
    }
    assert!(requests > sent, "{what}: nothing was tried again: {done}");
    let own = Reference::of(&told["outcomes"], 0);
    assert_eq!((&told["count"], own.service.count(Population::Due)), (&requests.into(), requests), "{what}: {done}");
    for of in Population::ALL {
        let told = &told["populations"][of.name()];
        assert_eq!(told["count"], own.service.count(of), "{what}: attempts, {of}: {done}");
        compare(what, done, &own.service, object_of_percentiles("attempts", of, &told["service"]));
    }
    // Who timed out did so in its last attempt, which took at least as long as is told.
    assert_eq!(told["outcomes"]["timed-out"]["count"], done.sheet("timed_out"), "{what}: {done}");
    let name = "WRITE attempts (each)";
    let text = line(done, name).unwrap_or_else(|| panic!("{what}: no {name}: {done}"));
    assert!(text.contains('≥'), "{what}: {text}");
    compare(what, done, &own.service, line_of_percentiles(name, SHOWN, text));
    let text = line(done, "WRITE attempts").unwrap();
    let operations = format!("{} requests for {} operations; failed: ", grouped(requests), grouped(sent));
    assert!(text.starts_with(&operations), "{what}: {text}: {operations}");
}

/// The rows of all operations together, by column.
fn rows_of(done: &Done) -> Vec<Vec<&str>> {
    let rows = done.out.lines().filter(|line| line.starts_with("total,"));
    rows.map(|line| line.split(',').map(str::trim).collect()).collect()
}

/// Of the mean of rows.
const MEAN: usize = 5;
/// Columns of rows, and which percentile they hold.
const COLUMNS: [(usize, f64); 5] = [(6, 50.0), (7, 95.0), (8, 99.0), (9, 99.9), (10, 100.0)];

/// Every row shows the times that the log's histogram of the same interval holds. [`hdr`] says that all of these are the
/// run's.
pub fn rows(what: &str, done: &Done, file: &Path) {
    let tag = if done.json["measure"] == "response" { "Tag=WRITE-rt," } else { "Tag=WRITE-st," };
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(tag));
    let mut intervals: Vec<Histogram> = lines.map(|line| decoded(line.rsplit(',').next().unwrap())).collect();
    let mut rows = rows_of(done);
    // Tenths of a millisecond are shown: shorter times look like none.
    intervals.retain(|times| times.max() >= 50_000);
    rows.retain(|row| number(row[10]) > 0.0);
    assert_eq!(rows.len(), intervals.len(), "{what}: {text}: {done}");
    for (row, times) in rows.iter().zip(&intervals) {
        let percentiles = COLUMNS.map(|(column, percent)| (column, percentile(times, percent) as f64));
        for (column, ns) in [(MEAN, times.mean())].into_iter().chain(percentiles) {
            let same = (number(row[column]) - ns / 1e6).abs() <= 0.051;
            assert!(same, "{what}: column {column} of {row:?} should be {ns} ns: {done}");
        }
    }
}

/// The one row is of the whole run, and shows its times.
pub fn only_row(what: &str, done: &Done) {
    let rows = rows_of(done);
    assert_eq!(rows.len(), 1, "{what}: {done}");
    let own = reference(done);
    let own = own.latency(done.json["measure"].as_str().unwrap());
    let figure = |(column, percent): (usize, f64)| {
        let told = Told::Ms(number(rows[0][column]), 0.051);
        Figure { place: format!("column {column} of the row"), of: SHOWN, percent, told }
    };
    compare(what, done, own, COLUMNS.map(figure));
    let (told, mean) = (number(rows[0][MEAN]), own.times(SHOWN).mean() / 1e6);
    assert!((told - mean).abs() <= 0.051, "{what}: the mean is {mean}, told {told}: {done}");
}

pub fn rows_and_results(what: &str, done: &Done) {
    let rows = rows_of(done);
    let total = &done.json["total"];
    let errors: f64 = rows.iter().map(|row| number(row[13])).sum();
    assert_eq!(errors as u64, total["errors"].as_u64().unwrap(), "{what}: {done}");
    let ended = rows.iter().map(|row| number(row[1]) as u64).max().unwrap_or(0);
    assert_eq!(ended, total["ended"].as_u64().unwrap(), "{what}: {done}");
    let own = reference(done);
    let figure =
        |place: &str, percent, ms| Figure { place: place.to_owned(), of: SHOWN, percent, told: Told::Ms(ms, 0.051) };
    let result = |(name, percent)| {
        let text = line(done, name).unwrap_or_else(|| panic!("{what}: no {name}: {done}"));
        figure(name, percent, number(text.split(" ms").next().unwrap()))
    };
    let results = [
        ("Latency median", 50.0),
        ("Latency 95th percentile", 95.0),
        ("Latency 99th percentile", 99.0),
        ("Latency 99.9th percentile", 99.9),
        ("Latency max", 100.0),
    ];
    let largest = rows.iter().map(|row| number(row[10])).fold(0.0, f64::max);
    let figures = results.map(result).into_iter().chain([figure("the largest of all rows", 100.0, largest)]);
    compare(what, done, own.latency(done.json["measure"].as_str().unwrap()), figures);
    let rate = number(line(done, "Op rate").unwrap().split(" op/s").next().unwrap());
    let expected = total["operations_per_second"].as_f64().unwrap();
    assert!((rate - expected).abs() <= 1.0, "{what}: {rate} op/s, {expected}: {done}");
}

pub fn csv(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut sums: BTreeMap<(bool, &str), u64> = BTreeMap::new();
    let mut endless = false;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), head.len(), "{what}: {line}");
        let total = fields[2] == "total";
        for (name, value) in head.iter().zip(&fields) {
            if ["scheduled", "sent", "never_sent", "withheld", "ok", "failed", "timed_out", "late"].contains(name) {
                *sums.entry((total, name)).or_default() += value.parse::<u64>().unwrap_or(0);
            }
        }
        endless |= total && fields.contains(&"inf");
    }
    for (name, sheet) in [
        ("scheduled", "scheduled"),
        ("sent", "sent"),
        ("never_sent", "never_sent"),
        ("withheld", "withheld"),
        ("ok", "answered_ok"),
        ("failed", "failed"),
        ("timed_out", "timed_out"),
        ("late", "late"),
    ] {
        assert_eq!(sums[&(true, name)], done.sheet(sheet), "{what}: {name}: {text}\n{done}");
        if !["scheduled", "sent", "withheld"].contains(&name) {
            assert_eq!(sums[&(false, name)], done.sheet(sheet), "{what}: {name} by operation: {text}\n{done}");
        }
    }
    // Where more than a hundredth is beyond every limit, it is in some interval.
    let response = reference(done).response;
    assert_eq!(endless, response.count(SHOWN) < response.count(Population::Due), "{what}: {text}");
}

/// Series and record put operations into the same intervals, and their latencies are those of the same operations.
pub fn intervals(what: &str, csv: &Path, record: &Path) {
    let text = fs::read_to_string(csv).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let mut lines: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .filter(|line: &Vec<&str>| line[2] == "total")
        .collect();
    lines.sort_by(|one, other| number(one[0]).total_cmp(&number(other[0])));
    let run = Run::open(record).unwrap();
    let mut buckets = run.load(1).unwrap();
    buckets.sort_by_key(|bucket| bucket.starts_ns);
    let rows = run.latencies(1, 0..i64::MAX as u64).unwrap();
    assert_eq!(lines.len(), buckets.len(), "{what}: {text}");
    for (line, bucket) in lines.iter().zip(&buckets) {
        let field = |name: &str| line[head.iter().position(|known| *known == name).unwrap()];
        let mut response = Latencies::new();
        for row in rows.iter().filter(|row| row.starts_ns == bucket.starts_ns) {
            match row.outcome.as_str() {
                "ok" => response.add_ok(&row.response),
                "timed-out" => response.add_timed_out(&row.response),
                "late" => {}
                _ => response.add_failed(row.count),
            }
        }
        assert_eq!(field("withheld"), bucket.withheld.to_string(), "{what}: {text}");
        response.add_never_sent(bucket.never_sent + bucket.withheld);
        for (name, of, percent) in [
            ("response_p50_ms", Population::OkAndTimedOut, 50.0),
            ("response_p99_ms", Population::OkAndTimedOut, 99.0),
            ("response_max_ms", Population::OkAndTimedOut, 100.0),
            ("response_ok_p50_ms", Population::Ok, 50.0),
            ("response_ok_p99_ms", Population::Ok, 99.0),
            ("response_due_p50_ms", Population::Due, 50.0),
            ("response_due_p99_ms", Population::Due, 99.0),
        ] {
            let (found, expected) = (field(name), response.percentile(of, percent));
            let same = match expected {
                None => found.is_empty(),
                Some(Percentile::Never) => found == "inf",
                Some(Percentile::Is(ns) | Percentile::AtLeast(ns)) => {
                    found.parse::<f64>().is_ok_and(|ms| (ms - ns as f64 / 1e6).abs() < 0.0011)
                }
            };
            assert!(same, "{what}: {name} is {found}, and by the record {expected:?}: {text}");
        }
    }
}

/// The log's histograms, put together by their tags, are those of the whole run.
pub fn hdr(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("#[Population: ok+timed-out; ok in -ok]"), "{what}: {text}");
    let own = reference(done);
    let [ok, shown, due] = Population::ALL.map(|of| own.response.count(of));
    let beyond = text.lines().filter_map(|line| line.strip_prefix("#[WRITE: "));
    let beyond: u64 = beyond.map(|line| number(line.split(' ').next().unwrap()) as u64).sum();
    assert_eq!(beyond, due - shown, "{what}: {text}");
    // By tag and interval, which is its start and its length: the last but one may be shorter than a start is exact.
    let mut lines: BTreeMap<&str, BTreeMap<(&str, &str), Histogram>> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("Tag=")) {
        let fields: Vec<&str> = line.split(',').collect();
        let times = decoded(fields[4]);
        assert!((number(fields[3]) - times.max() as f64 / 1e6).abs() <= 0.0011, "{what}: {line}");
        lines.entry(fields[0]).or_default().insert((fields[1], fields[2]), times);
    }
    let of_tag = |tag: &str| lines.get(tag).cloned().unwrap_or_default();
    let measured = done.json["measure"].as_str().unwrap();
    let kind = if measured == "response" { "rt" } else { "st" };
    // An interval has a histogram of those answered ok alone only where others were due.
    let mut answered = of_tag(&format!("WRITE-{kind}"));
    answered.extend(of_tag(&format!("WRITE-{kind}-ok")));
    answered.retain(|_, times| !times.is_empty());
    let scheduled = kind == "rt" && shown > 0;
    for (tag, times, latency, of, there) in [
        ("WRITE-st", of_tag("WRITE-st"), "service", SHOWN, shown > 0),
        ("WRITE-rt", of_tag("WRITE-rt"), "response", SHOWN, scheduled),
        ("WRITE-wt", of_tag("WRITE-wt"), "wait", SHOWN, scheduled),
        ("@127.0.0.1", of_tag(&format!("WRITE-{kind}@127.0.0.1")), measured, SHOWN, shown > 0),
        ("-ok", answered, measured, Population::Ok, ok > 0),
    ] {
        assert_eq!(!times.is_empty(), there, "{what}: {tag}: {text}");
        let all = merged(times.values());
        assert!(!there || all.len() == own.latency(latency).count(of), "{what}: {tag}: {} of {done}", all.len());
        let figure =
            |(_, percent)| Figure { place: tag.to_owned(), of, percent, told: Told::Ns(percentile(&all, percent)) };
        compare(what, done, own.latency(latency), PERCENTS.map(figure).into_iter().filter(|_| there));
    }
}

fn merged<'a>(times: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut all = Histogram::new(3).unwrap();
    times.for_each(|times| all.add(times).unwrap());
    all
}

pub fn page(what: &str, done: &Done, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("/* stats start */").unwrap();
    let (stats, _) = rest.split_once("/* stats end */").unwrap();
    let stats = stats.trim().trim_start_matches("stats =").trim_end_matches(';');
    let test = &serde_json::from_str::<Value>(stats).unwrap()["stats"][0];
    assert_eq!(test["population"], done.json["population"], "{what}");
    let intervals = test["intervals"].as_array().unwrap();
    let ended = intervals.iter().filter_map(|row| row[1].as_u64()).max().unwrap();
    assert_eq!(ended, done.json["total"]["ended"].as_u64().unwrap(), "{what}: {done}");
    let errors: u64 = intervals.iter().map(|row| row[13].as_u64().unwrap()).sum();
    assert_eq!(errors, done.json["total"]["errors"].as_u64().unwrap(), "{what}: {done}");
    // Latencies are those of the rows: of whatever interval something ended in.
    let printed = done.out.lines().filter(|line| line.starts_with("total,"));
    let printed: Vec<Vec<f64>> = printed.map(|line| line.split(',').skip(1).map(number).collect()).collect();
    let drawn = intervals.iter().map(|row| row.as_array().unwrap().iter().skip(1));
    let drawn: Vec<Vec<f64>> = drawn.map(|row| row.map(|value| value.as_f64().unwrap_or(0.0)).collect()).collect();
    let latencies = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let mut ended = 0.0;
        let mut some = rows.to_vec();
        some.retain(|row| std::mem::replace(&mut ended, row[0]) < row[0]);
        some.into_iter().map(|row| row[4..10].to_vec()).collect()
    };
    let (printed, drawn) = (latencies(&printed), latencies(&drawn));
    assert_eq!(printed.len(), drawn.len(), "{what}: {done}");
    for (printed, drawn) in printed.iter().flatten().zip(drawn.iter().flatten()) {
        assert!((printed - drawn).abs() <= 0.051, "{what}: {drawn} is printed as {printed}: {done}");
    }
}

pub fn record(what: &str, done: &Done, file: &Path) {
    let run = Run::open(file).unwrap();
    let load = run.load(1).unwrap();
    let sum = |count: fn(&brownout_record::LoadRow) -> u64| load.iter().map(count).sum::<u64>();
    let counts = [sum(|row| row.scheduled), sum(|row| row.sent), sum(|row| row.never_sent), sum(|row| row.withheld)];
    let sheet = ["scheduled", "sent", "never_sent", "withheld"].map(|name| done.sheet(name));
    assert_eq!(counts, sheet, "{what}: {done}");
    let by_operation = load.iter().flat_map(|row| &row.never_sent_by_operation).map(|(_, count)| count).sum::<u64>();
    assert_eq!(by_operation, done.sheet("never_sent"), "{what}: {done}");
    let rows = run.latencies(1, 0..i64::MAX as u64).unwrap();
    let (own, recorded) =
        (reference(done), Reference::of_rows(rows.iter(), done.sheet("never_sent") + done.sheet("withheld")));
    for latency in ["wait", "service", "response"] {
        for of in Population::ALL.into_iter().filter(|of| latency != "wait" || *of == SHOWN) {
            let times = recorded.latency(latency);
            let figure = |(name, percent)| {
                let told = Told::Exactly(times.percentile(of, percent));
                Figure { place: format!("record, {latency} {name}"), of, percent, told }
            };
            compare(what, done, own.latency(latency), PERCENTS.map(figure));
        }
    }
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows {
        let outcome = row.outcome.split(':').next().unwrap().to_owned();
        *ended.entry(outcome).or_default() += row.count;
    }
    for (outcome, sheet) in [("ok", "answered_ok"), ("failed", "failed"), ("timed-out", "timed_out"), ("late", "late")]
    {
        assert_eq!(ended.get(outcome).copied().unwrap_or(0), done.sheet(sheet), "{what}: {outcome}: {done}");
    }
}

/// What is found in a record.
pub fn found(file: &Path) -> Value {
    let shown = Command::new(BROWNOUT).args(["show", file.to_str().unwrap(), "--json"]).output().unwrap();
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// `brownout show --json` of the record: its one phase is made of the intervals that lie wholly in it.
pub fn shown(what: &str, done: &Done, file: &Path) {
    let findings = found(file);
    assert_eq!(findings["trials"][0]["balance"]["withheld"], done.sheet("withheld"), "{what}: {findings}");
    let phases = findings["cells"][0]["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == "baseline").unwrap();
    let [starts_ns, length_ns] = ["starts_ns", "duration_ns"].map(|name| phase[name].as_u64().unwrap());
    let run = Run::open(file).unwrap();
    let mut load = run.load(1).unwrap();
    load.retain(|row| row.starts_ns >= starts_ns && row.starts_ns + row.length_ns <= starts_ns + length_ns);
    // In which nothing was due, there is no row.
    assert!(phase["intervals"].as_u64().unwrap() >= load.len() as u64, "{what}: {phase}");
    let mut rows = run.latencies(1, 0..i64::MAX as u64).unwrap();
    rows.retain(|row| load.iter().any(|interval| interval.starts_ns == row.starts_ns));
    let [never_sent, withheld] =
        [load.iter().map(|row| row.never_sent).sum::<u64>(), load.iter().map(|row| row.withheld).sum()];
    let ended = |outcome: &str| -> u64 {
        rows.iter().filter(|row| row.outcome.split(':').next() == Some(outcome)).map(|row| row.count).sum()
    };
    for (name, count) in [
        ("scheduled", load.iter().map(|row| row.scheduled).sum()),
        ("never_sent", never_sent),
        ("withheld", withheld),
        ("ok", ended("ok")),
        ("failed", ended("failed")),
        ("timed_out", ended("timed-out")),
        ("late", ended("late")),
    ] {
        assert_eq!(phase["counts"][name], count, "{what}: {name}: {phase}");
    }
    let parts = phase["statements"].as_array().unwrap();
    // In a closed loop all of a run may have been intended in intervals that the phase's ends cut.
    let names: Vec<&Value> = parts.iter().map(|part| &part["name"]).collect();
    let there = if rows.is_empty() && never_sent == 0 { vec![] } else { vec!["WRITE"] };
    assert_eq!(names, there, "{what}: {phase}");
    let own = Reference::of_rows(rows.iter(), never_sent + withheld);
    for (place, part) in parts.iter().map(|part| ("WRITE", part)).chain([("all", phase)]) {
        if place == "WRITE" {
            assert_eq!(part["never_sent"], never_sent, "{what}: {phase}");
        }
        for latency in ["wait", "service", "response"] {
            let place = format!("{place}, {latency}");
            assert_eq!(part[latency].is_object(), own.response.count(SHOWN) > 0, "{what}: {place}: {phase}");
            // That a wait is only the least, where its operation timed out, is more careful than it has to be.
            let exact = |figure: Figure| match figure.told {
                Told::Exactly(Some(Percentile::AtLeast(ns))) if latency == "wait" => {
                    Figure { told: Told::Ns(ns), ..figure }
                }
                _ => figure,
            };
            let figures = object_of_percentiles(&place, SHOWN, &part[latency]).into_iter().map(exact);
            compare(what, done, own.latency(latency), figures);
        }
    }
    let due = own.response.count(Population::Due);
    assert_eq!(phase["due"]["count"].as_u64().unwrap_or(0), due, "{what}: {phase}");
    compare(what, done, &own.response, object_of_percentiles("due", Population::Due, &phase["due"]));
}

/// Every scrape of the endpoint tells what some row told: how many had ended by then, and how many of them in vain.
pub fn metrics(what: &str, done: &Done, scrapes: &[String]) {
    let mut told = vec![(0, 0)];
    for row in done.out.lines().filter(|line| line.starts_with("total,")) {
        let row: Vec<&str> = row.split(',').collect();
        let errors = told.last().unwrap().1 + number(row[13]) as u64;
        told.push((number(row[1]) as u64, errors));
    }
    let mut last = (0, 0);
    for text in scrapes {
        let of = |family: &str, wanted: &dyn Fn(&str) -> bool| -> u64 {
            let rest = |line: &&str| line.strip_prefix("brownout_stress_")?.strip_prefix(family)?.chars().next();
            let lines = text.lines().filter(|line| matches!(rest(line), Some('{' | ' ')) && wanted(line));
            lines.map(|line| number(line.rsplit(' ').next().unwrap()) as u64).sum()
        };
        let any = |_: &str| true;
        let is_ok = |line: &str| line.contains("outcome=\"ok\"");
        let ended = of("operations_total", &|line| !line.contains("outcome=\"late\""));
        let ok = of("operations_total", &is_ok);
        last = (ended, ended - ok + of("never_sent_total", &any));
        assert!(told.contains(&last), "{what}: {last:?} is in no row: {text}: {done}");
        for family in ["wait_seconds_count", "service_seconds_count", "response_seconds_count"] {
            assert_eq!((of(family, &any), of(family, &is_ok)), (ended, ok), "{what}: {family}: {text}");
        }
    }
    assert!(last.0 + last.1 > 0, "{what}: no scrape tells of an operation: {scrapes:?}");
}
