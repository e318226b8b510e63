//! What is on the node's disk: sizes of partitions and compressibility as asked, told by nodetool.

use std::fs;

use super::{Section, common::cassandra::Cassandra, ran::good, writes::profile};

pub const SECTIONS: &[Section] = &[
    ("partitions have the sizes asked for, and others are told", sizes),
    ("tables compress as far as asked, each under one compressor", |node| compressibility(node, false)),
];

/// What takes long and repeats.
pub const LONG: &[Section] =
    &[("tables compress as far as asked under every compressor", |node| compressibility(node, true))];

fn sized(node: &Cassandra, table: &str, sizes: &str) -> String {
    profile(
        node,
        &format!("{table}.yaml"),
        &format!(
            "
keyspace: stress_sizes
keyspace_definition: |
  CREATE KEYSPACE IF NOT EXISTS stress_sizes WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}
table: {table}
table_definition: CREATE TABLE {table} (part bigint, at timeuuid, kind text, body blob, PRIMARY KEY (part, at))
partition_sizes: {sizes}
columnspec:
  - {{ name: kind, size: uniform(4..12) }}
  - {{ name: body, size: uniform(50..150) }}
insert: {{ batchtype: UNLOGGED, batch-size: 50 }}
"
        ),
    )
}

fn sizes(node: &Cassandra) {
    let nodetool = node.nodetool_program();
    let nodetool = ["--nodetool", nodetool.to_str().unwrap()];
    let insert = |profile: &str| {
        let words = ["user", profile, "ops(insert=1)", "n=400", "no-warmup", "-rate", "threads=8"];
        let ran = good(node, &words);
        assert_eq!(ran.of("insert", "partitions"), 400, "{}", ran.out);
    };
    let verify = |profile: &str, code: i32| {
        let output = node.run(&[&["verify-sizes", profile], &nodetool[..]].concat());
        let (out, err) = (super::common::text(&output.stdout), super::common::text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
        assert!(out.ends_with(if code == 0 { "\nEND\n" } else { "\nFAILURE\n" }), "{out}");
        out
    };

    let bytes = sized(node, "by_bytes", "{ 50%: 2KiB, 95%: 20KiB, max: 40KiB }");
    insert(&bytes);
    let out = verify(&bytes, 0);
    let shares: Vec<&str> = out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for share in ["50%", "75%", "95%", "98%", "99%", "min", "max"] {
        assert!(shares.contains(&share), "{share}: {out}");
    }
    let line = |out: &str, share: &str| {
        let line = out.lines().map(str::trim).find(|line| line.starts_with(&format!("{share} ")));
        line.unwrap_or_else(|| panic!("{share}: {out}")).to_owned()
    };
    // The same table is not what another profile asks.
    let other = sized(node, "by_bytes", "{ 50%: 4KiB, 95%: 20KiB, max: 40KiB }");
    let out = verify(&other, 1);
    assert!(out.lines().any(|line| line.trim_start().starts_with("50%") && line.contains("NOT MET")), "{out}");
    assert!(out.lines().any(|line| line.trim_start().starts_with("95%") && !line.contains("NOT MET")), "{out}");

    let rows = sized(node, "by_rows", "{ 50%: 6 rows, 90%: 60 rows, max: 150 rows }");
    insert(&rows);
    let out = verify(&rows, 0);
    // Asked, but nodetool has no such line.
    let unprinted = line(&out, "90%");
    assert!(unprinted.contains("60 rows") && unprinted.ends_with("none  nodetool does not print it"), "{out}");
    assert!(line(&out, "min").ends_with("not judged") && line(&out, "max").ends_with("not judged"), "{out}");

    // What nodetool printed of one table, as a target for another.
    let printed = node.directory().join("production.txt");
    fs::write(&printed, node.nodetool(&["tablehistograms", "stress_sizes", "by_rows"])).unwrap();
    let saved = sized(node, "like_production", &format!("{{ tablehistograms: '{}' }}", printed.display()));
    insert(&saved);
    verify(&saved, 0);
}

const COMPRESSORS: [&str; 3] = ["LZ4Compressor", "SnappyCompressor", "ZstdCompressor"];

/// What a table is made of: the end of its name, its columns, what its profile says of them, ratios that are asked for.
/// `RATIO` is where a ratio is written, of the table or of a column.
const COMPRESSED: [(&str, &str, &str, &[f64]); 4] = [
    (
        "plain",
        "note text, body blob, number double",
        "compress: RATIO
columnspec:
  - { name: at, cluster: fixed(10) }
  - { name: note, size: uniform(100..300) }
  - { name: body, size: uniform(200..800) }",
        &[0.2, 0.5],
    ),
    (
        "nested",
        "prefs map<int, text>, tags frozen<list<text>>, pair tuple<int, blob>",
        "compress: RATIO
columnspec:
  - { name: at, cluster: fixed(10) }
  - { name: prefs, size: uniform(1..3), element_size: uniform(100..300) }
  - { name: tags, size: uniform(1..3), element_size: uniform(50..200) }
  - { name: pair, element_size: uniform(100..200) }",
        &[0.2, 0.5],
    ),
    (
        // Keys of maps must differ, and stay as they are.
        "map",
        "prefs map<text, text>",
        "compress: RATIO
columnspec:
  - { name: at, cluster: fixed(10) }
  - { name: prefs, size: uniform(2..4), element_size: uniform(100..300) }",
        &[0.6],
    ),
    (
        // Nearly all of the table is this column.
        "column",
        "prefs map<int, text>",
        "columnspec:
  - { name: at, cluster: fixed(10) }
  - { name: prefs, size: uniform(2..4), element_size: uniform(300..600), compress: RATIO }",
        &[0.3],
    ),
];

fn compressed(node: &Cassandra, table: &str, class: &str, columns: &str, content: &str) -> String {
    profile(
        node,
        &format!("{table}.yaml"),
        &format!(
            "
keyspace: stress_compress
keyspace_definition: |
  CREATE KEYSPACE IF NOT EXISTS stress_compress WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}
table: {table}
table_definition: |
  CREATE TABLE {table} (part bigint, at int, {columns}, PRIMARY KEY (part, at)) WITH compression = {{'class': '{class}'}}
insert: {{ batchtype: UNLOGGED }}
{content}
"
        ),
    )
}

fn compressibility(node: &Cassandra, all: bool) {
    let mut tables = Vec::new();
    let wanted = COMPRESSED
        .into_iter()
        .flat_map(|(name, columns, content, ratios)| ratios.iter().map(move |ratio| (name, columns, content, *ratio)));
    for (at, (name, columns, content, ratio)) in wanted.enumerate() {
        let chosen = |number: &usize| all || *number == at % COMPRESSORS.len();
        for (_, class) in COMPRESSORS.into_iter().enumerate().filter(|(number, _)| chosen(number)) {
            let table = format!("{class}_{name}{:.0}", ratio * 10.0).to_lowercase();
            let content = content.replace("RATIO", &ratio.to_string());
            let profile = compressed(node, &table, class, columns, &content);
            let ran = good(node, &["user", &profile, "ops(insert=1)", "n=400", "no-warmup", "-rate", "threads=8"]);
            assert_eq!(ran.of("insert", "rows"), 4000);
            let validate = ["user", &profile, "ops(validate=1)", "n=50", "no-warmup", "-pop", "seq=1..50"];
            good(node, &[&validate[..], &["-rate", "threads=4"]].concat());
            tables.push((table, ratio));
        }
    }
    node.nodetool(&["flush", "stress_compress"]);
    // Memtables of Zstd are flushed by LZ4 (`flush_compression: fast`); the table's own compressor follows with compaction.
    node.nodetool(&["compact", "stress_compress"]);
    let stats = node.nodetool(&["tablestats", "stress_compress"]);
    for (table, asked) in &tables {
        let part = stats.split("Table: ").find(|part| part.starts_with(&format!("{table}\n"))).unwrap();
        let line = part.lines().find_map(|line| line.trim().strip_prefix("SSTable Compression Ratio: ")).unwrap();
        let got: f64 = line.trim().replace(',', ".").parse().unwrap();
        eprintln!("{table}: asked {asked}, nodetool tells {got}");
        assert!((got - asked).abs() <= 0.03, "{table}: asked {asked}, nodetool tells {got}");
    }
}
