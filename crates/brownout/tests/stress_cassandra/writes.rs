//! Ways to write: batches, increments, conditions, visits; and how many replicas must answer.

use std::fs;

use super::{
    Section,
    commands::number,
    common::cassandra::Cassandra,
    ran::{assert_due, ends, good, start},
};

pub const SECTIONS: &[Section] = &[
    ("rows travel in the batches asked for", batches),
    ("increments of a profile are counted, by themselves and in batches", counters),
    ("rows written in several visits are all written", visits),
    ("a condition that does not hold is not applied, and counted", conditions),
    ("where no row is chosen it ends instead of looking for ever", nothing_chosen),
    ("consistency is that of each query", consistency),
];

/// A profile in the node's directory.
pub fn profile(node: &Cassandra, name: &str, text: &str) -> String {
    let path = node.directory().join(name);
    fs::write(&path, text).unwrap();
    format!("profile={}", path.display())
}

const WRITES: &str = "
keyspace: stress_writes
keyspace_definition: |
  CREATE KEYSPACE IF NOT EXISTS stress_writes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
";

fn readings(node: &Cassandra) -> String {
    profile(
        node,
        "readings.yaml",
        &format!(
            "{WRITES}
table: readings
table_definition: CREATE TABLE readings (sensor bigint, at int, value double, note text static, PRIMARY KEY (sensor, at))
generator: v2
columnspec:
  - {{ name: at, cluster: fixed(8) }}
queries:
  all: {{ cql: 'SELECT * FROM readings WHERE sensor = ?', fields: samerow }}
  once: {{ cql: 'INSERT INTO readings (sensor, at, value) VALUES (?, ?, ?) IF NOT EXISTS', fields: samerow }}
  two: {{ cql: 'SELECT * FROM readings WHERE sensor = ?', fields: samerow, consistencyLevel: two }}
"
        ),
    )
}

fn batches(node: &Cassandra) {
    let profile = readings(node);
    for (words, operations) in [
        // Eight rows a partition.
        (&["batchtype=NONE"][..], 8 * 50),
        (&["batchtype=UNLOGGED"], 50),
        (&["batchtype=UNLOGGED", "batch-size=3"], 3 * 50),
        (&["batchtype=LOGGED"], 50),
        (&["batchtype=LOGGED", "batch-size=8"], 50),
        (&["batchtype=LOGGED", "partitions=fixed(5)"], 10),
    ] {
        let all = [&["user", &profile, "ops(insert=1)", "n=50", "no-warmup", "-rate", "threads=5", "-insert"], words];
        let ran = good(node, &all.concat());
        assert_eq!((ran.of("insert", "ended"), ran.of("insert", "rows")), (operations, 400), "{words:?}: {}", ran.out);
        assert_eq!(ran.of("insert", "partitions"), 50, "{words:?}: {}", ran.out);
        assert_eq!(number(node, "SELECT count(*) FROM stress_writes.readings"), 400, "{words:?}");
        let ran = good(
            node,
            &["user", &profile, "ops(validate=1)", "n=50", "no-warmup", "-pop", "seq=1..50", "-rate", "threads=5"],
        );
        assert_eq!((ran.of("validate", "ended"), ran.found("mismatched")), (50, 0), "{words:?}");
        node.cql(&["TRUNCATE stress_writes.readings"]);
    }
    // A batch of increments of what is no counter is refused by the server, and told.
    let all = ["user", &profile, "ops(insert=1)", "n=5", "no-warmup", "-rate", "threads=1", "-insert"];
    let ran = ends(node, &[&all[..], &["batchtype=COUNTER", "-errors", "retries=0"]].concat(), 1);
    ran.assert_balances();
    assert_eq!(ran.json["balance"]["failures"]["invalid"], ran.balance("failed"), "{}", ran.out);
}

fn counters(node: &Cassandra) {
    let profile = profile(
        node,
        "hits.yaml",
        &format!(
            "{WRITES}
table: hits
table_definition: CREATE TABLE hits (page bigint, day int, seen counter, bought counter, PRIMARY KEY (page, day))
generator: v2
columnspec:
  - {{ name: day, cluster: fixed(4) }}
  - {{ name: seen, population: fixed(3) }}
  - {{ name: bought, population: fixed(1) }}
insert: {{ batchtype: NONE }}
queries:
  day: {{ cql: 'SELECT seen FROM hits WHERE page = ? AND day = ?', fields: samerow }}
"
        ),
    );
    let words = ["user", &profile, "ops(insert=1)", "n=40", "no-warmup", "-pop", "seq=1..40", "-rate", "threads=4"];
    for (round, (batch, operations)) in [
        (&[][..], 160),
        (&["-insert", "batchtype=COUNTER"], 40),
        (&["-insert", "batchtype=COUNTER", "batch-size=2"], 80),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = good(node, &[&words[..], batch].concat());
        assert_eq!(ran.of("insert", "ended"), operations, "{batch:?}: {}", ran.out);
        let rounds = round as i64 + 1;
        assert_eq!(number(node, "SELECT count(*) FROM stress_writes.hits"), 160);
        for of in ["min", "max"] {
            assert_eq!(number(node, &format!("SELECT {of}(seen) FROM stress_writes.hits")), 3 * rounds, "{batch:?}");
            assert_eq!(number(node, &format!("SELECT {of}(bought) FROM stress_writes.hits")), rounds, "{batch:?}");
        }
    }
    for ops in ["ops(day=1)", "ops(validate=1)"] {
        let ran = good(node, &["user", &profile, ops, "n=40", "no-warmup", "-pop", "seq=1..40", "-rate", "threads=4"]);
        assert_eq!(ran.balance("answered_ok"), 40, "{ops}");
    }
}

fn visits(node: &Cassandra) {
    let profile = readings(node);
    for visits in ["fixed(1)", "fixed(4)", "uniform(1..8)"] {
        node.cql(&["TRUNCATE stress_writes.readings"]);
        let visits = format!("visits={visits}");
        let words = ["user", &profile, "ops(insert=1)", "n=400", "no-warmup", "-pop", "seq=1..50", "no-wrap"];
        let insert = ["-rate", "threads=5", "-insert", "batchtype=UNLOGGED", "revisit=uniform(1..20)", &visits];
        let ran = good(node, &[&words[..], &insert].concat());
        assert_eq!(ran.of("insert", "rows"), 400, "{visits}: {}", ran.out);
        assert_eq!(number(node, "SELECT count(*) FROM stress_writes.readings"), 400, "{visits}");
        let ran = good(
            node,
            &["user", &profile, "ops(validate=1)", "n=50", "no-warmup", "-pop", "seq=1..50", "-rate", "threads=5"],
        );
        assert_eq!((ran.of("validate", "ended"), ran.found("mismatched"), ran.found("missing")), (50, 0, 0));
    }
}

fn conditions(node: &Cassandra) {
    let profile = readings(node);
    node.cql(&["TRUNCATE stress_writes.readings"]);
    let words =
        ["user", &profile, "ops(once=1)", "n=60", "no-warmup", "-pop", "seq=1..60", "no-wrap", "-rate", "threads=3"];
    let ran = good(node, &words);
    assert_eq!((ran.of("once", "ended"), ran.of("once", "not_applied")), (60, 0), "{}", ran.out);
    let rows = number(node, "SELECT count(*) FROM stress_writes.readings");
    assert_eq!(rows, 60);
    // The whole partitions are there now, so whichever row is drawn exists.
    good(node, &["user", &profile, "ops(insert=1)", "n=60", "no-warmup", "-rate", "threads=3"]);
    let ran = good(node, &words);
    assert_eq!((ran.of("once", "ended"), ran.of("once", "not_applied")), (60, 60), "{}", ran.out);
    assert!(ran.line("once applied").starts_with('0'), "{}", ran.out);
}

fn nothing_chosen(node: &Cassandra) {
    let profile = readings(node);
    node.cql(&["TRUNCATE stress_writes.readings"]);
    for ops in ["ops(insert=1)", "ops(all=1)", "ops(validate=1)"] {
        let words = ["user", &profile, ops, "n=5", "no-warmup", "-pop", "seq=1..5", "-rate", "threads=2", "-insert"];
        let ran = ends(node, &[&words[..], &["select-ratio=fixed(0)/1"]].concat(), 0);
        assert_eq!(ran.balance("scheduled"), 0, "{ops}: {}", ran.out);
    }
    assert_eq!(number(node, "SELECT count(*) FROM stress_writes.readings"), 0);
}

fn consistency(node: &Cassandra) {
    let profile = readings(node);
    good(node, &["user", &profile, "ops(insert=1)", "n=20", "no-warmup", "-rate", "threads=3"]);
    let words = ["user", &profile, "ops(all=50/s,two=50/s)", "duration=1s", "no-warmup", "-pop", "seq=1..20"];
    let ran = start(node, &[&words[..], &["-errors", "ignore", "retries=0"]].concat()).end();
    assert!(ran.code == Some(0) || ran.was_late(), "{:?}: {}{}", ran.code, ran.out, ran.err);
    ran.assert_balances();
    // One node cannot be two.
    assert_eq!((ran.of("all", "errors"), ran.of("two", "errors")), (0, ran.of("two", "ended")), "{}", ran.out);
    assert_due(ran.of("two", "ended"), 50, "two");
    assert_eq!(ran.json["balance"]["failures"]["unavailable"], ran.of("two", "ended"), "{}", ran.json["balance"]);
    // The same by the command's consistency; the query's own is stronger.
    let ran = ends(
        node,
        &["user", &profile, "cl=ALL", "ops(all=1)", "n=20", "no-warmup", "-pop", "seq=1..20", "-rate", "threads=1"],
        0,
    );
    assert_eq!(ran.of("all", "errors"), 0);
}
