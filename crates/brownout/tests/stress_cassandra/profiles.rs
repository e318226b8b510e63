//! Profiles: every type written, asked for and compared.

use std::{fs, path::PathBuf};

use scylla::value::{CqlValue, Row};

use super::{
    Section,
    commands::number,
    common::{cassandra::Cassandra, repository},
    ran::{assert_due, ends, good},
};

pub const SECTIONS: &[Section] = &[
    ("every type is written, asked for and compared", every_type),
    ("rows that were changed or removed are found by validate, with their key", tampered),
    ("rows that were changed or removed are found by queries that compare, with their key", checked),
    ("what cassandra-stress's own rules make is written, asked for and compared", compat),
    ("several profiles run each at the rate of its operations", several_at_their_rates),
];

const PARTITIONS: u64 = 300;

/// A profile of the repository, changed, in the node's directory.
fn profile(node: &Cassandra, name: &str, changes: &[(&str, &str)]) -> String {
    let mut text = fs::read_to_string(repository().join("crates/stress/profiles").join(name)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no '{from}'");
        text = text.replace(from, to);
    }
    let path: PathBuf = node.directory().join(name);
    fs::write(&path, text).unwrap();
    format!("profile={}", path.display())
}

/// `every-type.yaml`; where there are vectors, with vectors.
pub fn types(node: &Cassandra) -> String {
    types_and(node, &[])
}

/// The same with more changes.
fn types_and(node: &Cassandra, more: &[(&str, &str)]) -> String {
    let columns = "a_nested map<";
    let with_vectors = format!("a_vector vector<float, 3>, a_vector_of_texts vector<text, 2>, {columns}");
    let changes = [(columns, with_vectors.as_str())];
    profile(node, "every-type.yaml", &[if node.has_vectors() { &changes[..] } else { &[] }, more].concat())
}

fn every_type(node: &Cassandra) {
    let profile = types(node);
    let pop = format!("seq=1..{PARTITIONS}");
    let n = format!("n={PARTITIONS}");
    let run = |ops: &str| good(node, &["user", &profile, ops, &n, "no-warmup", "-pop", &pop, "-rate", "threads=7"]);
    let written = run("ops(insert=1)");
    let rows = written.of("insert", "rows");
    // The clustering columns have 1 to 6 and 1 to 4 values: 8.75 rows on average.
    assert!((PARTITIONS * 7..PARTITIONS * 11).contains(&rows), "{rows}");
    assert_eq!(number(node, "SELECT count(*) FROM stress_types.everything") as u64, rows);
    let partitions = node.cql(&["SELECT DISTINCT part, side, shared FROM stress_types.everything"]);
    assert_eq!(partitions.len() as u64, PARTITIONS);
    assert!(partitions.iter().all(|row| row.columns[2].is_some()), "static columns are written");
    // Booleans and UUIDs are real ones.
    let some = node.cql(&["SELECT a_boolean, a_uuid FROM stress_types.everything LIMIT 200"]);
    let yes = some.iter().filter(|row| row.columns[0] == Some(CqlValue::Boolean(true))).count();
    assert!((40..=160).contains(&yes), "{yes} of 200 booleans are true");
    assert!(some.iter().all(|row| matches!(row.columns[1], Some(CqlValue::Uuid(id)) if id.get_version_num() == 4)));

    let one = run("ops(one=1)");
    assert_eq!((one.of("one", "ended"), one.of("one", "rows")), (PARTITIONS, PARTITIONS));
    // Each value from a row of its own: rarely those of a row that there is.
    let mixed = run("ops(mixed_rows=1)");
    assert_eq!(mixed.of("mixed_rows", "ended"), PARTITIONS);
    assert!(mixed.of("mixed_rows", "rows") <= PARTITIONS);
    let newest = run("ops(newest=1)");
    let newest_rows = newest.of("newest", "rows");
    assert!((PARTITIONS..=3 * PARTITIONS).contains(&newest_rows), "{newest_rows}");
    let pages = run("ops(pages=1)");
    assert_eq!((pages.of("pages", "ended"), pages.of("pages", "rows")), (PARTITIONS, rows));
    let count = pages.operation("pages")["pages"]["count"].as_u64().unwrap();
    // Two rows a page: at least half as many pages as rows; at most one more, and an empty last one, for each partition.
    assert!((rows.div_ceil(2)..=rows / 2 + 2 * PARTITIONS).contains(&count), "{count} pages of {rows} rows");
    let change = run("ops(change=1)");
    assert_eq!((change.of("change", "ended"), change.of("change", "not_applied")), (PARTITIONS, 0), "{}", change.out);
    let all = run("ops(all=1)");
    assert_eq!(all.of("all", "rows"), rows, "the ranges of tokens cover the table once: {}", all.out);

    // Nothing of the above has changed a value: it is exactly what was written.
    for rate in ["threads=1", "threads=7", "open=400/s"] {
        let ran = good(node, &["user", &profile, "ops(validate=1)", &n, "no-warmup", "-pop", &pop, "-rate", rate]);
        assert_eq!(ran.of("validate", "ended"), PARTITIONS, "{rate}: {}", ran.out);
        assert_eq!(ran.of("validate", "partitions"), PARTITIONS, "{rate}: each has rows in what is asked: {}", ran.out);
        assert_eq!((ran.found("mismatched"), ran.found("missing")), (0, 0));
    }
    let mix = run("ops(insert=1,one=2,newest=1,pages=1,change=1,validate=2)");
    assert_eq!(mix.operations().len(), 6);
    assert_eq!((mix.found("mismatched"), mix.found("missing")), (0, 0));
}

/// The keys of a partition, as CQL has them.
fn some_partition(node: &Cassandra, number: usize) -> (i64, String) {
    let rows = node.cql(&["SELECT DISTINCT part, side FROM stress_types.everything"]);
    match &rows[number].columns[..] {
        [Some(CqlValue::BigInt(part)), Some(CqlValue::Text(side))] => (*part, side.clone()),
        other => panic!("{other:?}"),
    }
}

/// Sets a column of all rows of a partition, so that any part of it shows it.
fn change(node: &Cassandra, of: &str, column: &str, value: &str) {
    let rows = node.cql(&[&format!("SELECT at, name FROM stress_types.everything WHERE {of}")]);
    let update = |row: &Row| {
        let [Some(CqlValue::Timestamp(at)), Some(CqlValue::Text(name))] = &row.columns[..] else { panic!("{row:?}") };
        let row = format!("{of} AND at = {} AND name = '{}'", at.0, name.replace('\'', "''"));
        format!("UPDATE stress_types.everything SET {column} = {value} WHERE {row}")
    };
    let updates: Vec<String> = rows.iter().map(update).collect();
    node.cql(&strs(&updates));
}

fn tampered(node: &Cassandra) {
    let profile = types(node);
    let words = ["user", &profile, "ops(validate=1)", "n=100", "no-warmup", "-pop", "seq=1..100", "-rate", "threads=4"];
    let ignoring = [&words[..], &["-errors", "ignore"]].concat();
    node.cql(&["TRUNCATE stress_types.everything"]);
    let insert = ["user", &profile, "ops(insert=1)", "n=100", "no-warmup", "-rate", "threads=4"];
    good(node, &insert);
    assert_eq!(good(node, &words).of("validate", "ended"), 100);

    // One partition is wrong each time.
    for (column, value) in [
        ("a_text", "'tampered'"),
        ("a_map", "{'tampered': 1}"),
        ("a_list", "[1, 2, 3]"),
        ("a_varint", "0"),
        ("a_person", "null"),
        ("a_tuple", "(1, 'tampered', 2.0)"),
    ] {
        let (part, side) = some_partition(node, 3);
        change(node, &format!("part = {part} AND side = '{side}'"), column, value);
        let told = |err: &str| {
            assert!(err.contains(&format!("[{part}|")) && err.contains(&side), "{column}, {part}: {err}");
            assert!(err.contains(&format!("column {column}: value mismatch")), "{err}");
        };
        // Whatever is wrong ends a run that is not to ignore it.
        if column == "a_text" {
            told(&ends(node, &words, 1).err);
        }
        let ran = ends(node, &ignoring, 0);
        ran.assert_balances();
        told(&ran.err);
        assert_eq!(
            (ran.of("validate", "ended"), ran.found("mismatched")),
            (100, 1),
            "{column}: {}{}",
            ran.out,
            ran.err
        );
        good(node, &insert);
    }
    good(node, &words);

    // A static column, a row too many, a partition that is gone.
    let (part, side) = some_partition(node, 5);
    let of = format!("part = {part} AND side = '{side}'");
    node.cql(&[&format!("UPDATE stress_types.everything SET shared = 7 WHERE {of}")]);
    let ran = ends(node, &ignoring, 0);
    assert_eq!(ran.found("mismatched"), 1, "{}", ran.err);
    assert!(ran.err.contains("column shared: value mismatch"), "{}", ran.err);
    node.cql(&[&format!("DELETE FROM stress_types.everything WHERE {of}")]);
    let ran = ends(node, &ignoring, 0);
    assert_eq!((ran.found("mismatched"), ran.found("missing")), (0, 1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(&format!("[{part}|")), "{}", ran.err);
    good(node, &insert);
    good(node, &words);
}

/// Queries whose rows are compared: one row, all of a partition in pages, the first of it, rows behind one of them, and a
/// row that may be none.
const CHECKED: &str = "
queries:
  row: { cql: 'SELECT a_map, ttl(an_int), a_text, a_text AS note FROM everything WHERE part = ? AND side = ? AND at = ? AND name = ?', fields: samerow, check: true }
  rows: { cql: 'SELECT * FROM everything WHERE part = ? AND side = ?', fields: samerow, page_size: 2, check: true }
  first: { cql: 'SELECT name, a_text, at, shared FROM everything WHERE part = ? AND side = ? LIMIT 1', check: true }
  under: { cql: 'SELECT a_text, name FROM everything WHERE part = ? AND side = ? AND at = ?', fields: samerow, check: true }
  behind: { cql: 'SELECT * FROM everything WHERE part = ? AND side = ? AND at <= ?', fields: samerow, check: true }
  any: { cql: 'SELECT a_text FROM everything WHERE part = ? AND side = ? AND at = ? AND name = ?', fields: multirow, check: true }
";

fn checked(node: &Cassandra) {
    let profile = types_and(node, &[("\nqueries:\n", CHECKED)]);
    let run = |ops: &str, more: &[&str]| {
        let words = ["user", &profile, ops, "n=100", "no-warmup", "-pop", "seq=1..100", "-rate", "threads=4"];
        [&words[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let good = |ops: &str, more: &[&str]| good(node, &strs(&run(ops, more)));
    let ends = |ops: &str, more: &[&str], code: i32| ends(node, &strs(&run(ops, more)), code);
    good("ops(insert=1)", &[]);
    node.cql(&["TRUNCATE stress_types.everything"]);
    let ran = good("ops(insert=1)", &[]);
    assert!(ran.err.contains("change may change rows that queries with check: compare"), "{}", ran.err);
    const QUERIES: [&str; 6] = ["row", "rows", "first", "under", "behind", "any"];
    let alone = |query: &str| format!("ops({query}=1)");
    for query in QUERIES {
        assert_eq!(good(&alone(query), &[]).of(query, "ended"), 100);
        good(&alone(query), &["-mode", "driver"]);
    }
    good("ops(row=1,rows=1,first=1,under=1,behind=1,any=1)", &["-mode", "unprepared"]);

    let (part, side) = some_partition(node, 3);
    let of = format!("part = {part} AND side = '{side}'");
    change(node, &of, "a_text", "'tampered'");
    for query in ["row", "rows", "first", "under", "behind"] {
        let ran = ends(&alone(query), &[], 1);
        assert!(ran.err.contains(&format!("[{part}|")) && ran.err.contains(&side), "{query}, {part}: {}", ran.err);
        assert!(ran.err.contains("column a_text: value mismatch"), "{query}: {}", ran.err);
        let ran = ends(&alone(query), &["-errors", "ignore"], 0);
        ran.assert_balances();
        assert_eq!((ran.of(query, "ended"), ran.found("mismatched")), (100, 1), "{query}: {}{}", ran.out, ran.err);
        good(&alone(query), &["-errors", "skip-read-validation"]);
    }

    // A row that nobody has written.
    good("ops(insert=1)", &[]);
    node.cql(&[&format!(
        "INSERT INTO stress_types.everything (part, side, at, name) VALUES ({part}, '{side}', 1, 'nobody')"
    )]);
    let ran = ends("ops(rows=1)", &["-errors", "ignore"], 0);
    assert_eq!(ran.found("mismatched"), 1, "{}", ran.err);
    assert!(ran.err.contains("nobody has written a row"), "{}", ran.err);

    // A partition that is gone.
    node.cql(&[&format!("DELETE FROM stress_types.everything WHERE {of}")]);
    for query in ["row", "rows", "first", "under"] {
        let ran = ends(&alone(query), &["-errors", "ignore"], 0);
        assert_eq!((ran.found("mismatched"), ran.found("missing")), (0, 1), "{query}: {}", ran.err);
        assert!(ran.err.contains(&format!("[{part}|")), "{}", ran.err);
    }
    good("ops(insert=1)", &[]);
    good("ops(rows=1)", &[]);
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn compat(node: &Cassandra) {
    let profile = profile(node, "compat.yaml", &[]);
    let words = |ops: &'static str| {
        ["user", &profile, ops, "n=200", "no-warmup", "-pop", "seq=1..200", "contents=sorted", "-rate", "threads=5"]
    };
    let written = good(node, &words("ops(insert=1)"));
    let rows = number(node, "SELECT count(*) FROM stress_compat.events");
    assert!((400..=2000).contains(&rows), "{rows}");
    assert_eq!(written.of("insert", "partitions"), 200);
    let row = good(node, &words("ops(row=1)"));
    assert_eq!((row.of("row", "ended"), row.of("row", "rows")), (200, 200), "{}", row.out);
    let all_rows = good(node, &words("ops(rows=1)"));
    assert_eq!(all_rows.of("rows", "rows") as i64, rows);
    let all = good(node, &words("ops(all=1)"));
    assert_eq!(all.of("all", "rows") as i64, rows);
    let ran = good(node, &words("ops(validate=1)"));
    assert_eq!((ran.of("validate", "ended"), ran.of("validate", "rows") as i64), (200, rows), "{}", ran.out);

    let found = node.cql(&["SELECT device, day, at, kind FROM stress_compat.events LIMIT 1"]);
    let [
        Some(CqlValue::Text(device)),
        Some(CqlValue::Int(day)),
        Some(CqlValue::BigInt(at)),
        Some(CqlValue::Text(kind)),
    ] = &found[0].columns[..]
    else {
        panic!("{found:?}");
    };
    let quoted = |text: &str| text.replace('\'', "''");
    let of = format!("device = '{}' AND day = {day}", quoted(device));
    let row = format!("{of} AND at = {at} AND kind = '{}'", quoted(kind));
    node.cql(&[&format!("UPDATE stress_compat.events SET reading = 0.5 WHERE {row}")]);
    let ran = ends(node, &words("ops(validate=1)"), 1);
    assert!(ran.err.contains("column reading: value mismatch") && ran.err.contains(&format!("|{day}]")), "{}", ran.err);
    node.cql(&[&format!("DELETE FROM stress_compat.events WHERE {row}")]);
    let ran = ends(node, &words("ops(validate=1)"), 1);
    assert!(ran.err.contains("row empty/missing") && ran.err.contains(&format!("|{day}]")), "{}", ran.err);
}

fn several_at_their_rates(node: &Cassandra) {
    let (one, other) = (types(node), profile(node, "compat.yaml", &[]));
    let profiles = format!("{one},{}", other.trim_start_matches("profile="));
    let ops = "ops(types.insert=50/s,types.one=30/s,compat.rows=100/s,compat.insert=20/s)";
    let ran = good(node, &["user", &profiles, ops, "duration=3s", "no-warmup", "-pop", "seq=1..200"]);
    for (name, per_second) in [("types.insert", 50), ("types.one", 30), ("compat.rows", 100), ("compat.insert", 20)] {
        assert_due(ran.of(name, "ended"), 3 * per_second, name);
    }
}
