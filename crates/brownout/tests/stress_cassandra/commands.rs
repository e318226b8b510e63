//! The commands that need no profile.

use scylla::value::CqlValue;

use super::{
    Section,
    common::cassandra::Cassandra,
    ran::{assert_due, ends, good},
};

pub const SECTIONS: &[Section] = &[
    ("what is written is read back and compared", written_and_read),
    ("a duration is kept by every command", durations),
    ("counters count", counters),
    ("a row that was changed or removed is found, with its key", tampered),
];

/// The first value of the first row, a number.
pub fn number(node: &Cassandra, statement: &str) -> i64 {
    let rows = node.cql(&[statement]);
    match rows[0].columns[0] {
        Some(CqlValue::BigInt(number)) => number,
        Some(CqlValue::Counter(counter)) => counter.0,
        Some(CqlValue::Int(number)) => number.into(),
        ref other => panic!("{statement}: {other:?}"),
    }
}

/// The first value of the first row, bytes.
fn blob(node: &Cassandra, statement: &str) -> String {
    let rows = node.cql(&[statement]);
    match &rows[0].columns[0] {
        Some(CqlValue::Blob(bytes)) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        other => panic!("{statement}: {other:?}"),
    }
}

fn written_and_read(node: &Cassandra) {
    let written = good(node, &["write", "n=4000", "-rate", "threads=16"]);
    // Nothing of the warm-up is counted, and it wrote rows of the run.
    assert_eq!(written.of("WRITE", "ended"), 4000);
    assert!(written.out.contains("Warming up WRITE with 1000 iterations..."), "{}", written.out);
    assert_eq!(number(node, "SELECT count(*) FROM keyspace1.standard1"), 4000);
    assert_eq!(written.line("Total partitions"), "4,000 [WRITE: 4,000]");

    let read = good(node, &["read", "n=4000", "no-warmup", "-pop", "seq=1..4000", "-rate", "threads=16"]);
    assert_eq!((read.of("READ", "ended"), read.of("READ", "rows")), (4000, 4000));
    assert_eq!((read.found("mismatched"), read.found("missing"), read.found("empty")), (0, 0, 0));
    assert_eq!(read.line("Row rate").matches("READ").count(), 1);

    let mixed = good(
        node,
        &["mixed", "ratio(write=1,read=3)", "n=4000", "no-warmup", "-pop", "seq=1..4000", "-rate", "threads=8"],
    );
    let (reads, writes) = (mixed.of("READ", "ended"), mixed.of("WRITE", "ended"));
    assert_eq!(reads + writes, 4000);
    // Runs of 5.5 on average: of some 730 runs, five standard deviations of the share are 8 %.
    assert!((2600..=3400).contains(&reads), "{reads} of 4000 are reads, three of four were asked");
    assert_eq!(number(node, "SELECT count(*) FROM keyspace1.standard1"), 4000);
}

fn durations(node: &Cassandra) {
    good(node, &["write", "n=500", "no-warmup", "-rate", "threads=8"]);
    good(node, &["counter_write", "n=500", "no-warmup", "-rate", "threads=8"]);
    for command in ["write", "read", "mixed", "counter_write", "counter_read"] {
        let ran = good(
            node,
            &[
                command,
                "duration=1500ms",
                "no-warmup",
                "-pop",
                "seq=1..500",
                "-rate",
                "open=200/s",
                "-errors",
                "ignore",
            ],
        );
        // Intended starts at 0, 5 ms, …, 1495 ms, whatever became of the operations.
        assert_due(ran.balance("scheduled"), 300, command);
    }
    let closed = good(node, &["read", "duration=1s", "no-warmup", "-pop", "seq=1..500", "-rate", "threads=4"]);
    assert!(closed.seconds() >= 1.0, "{}", closed.seconds());
    assert!(closed.of("READ", "ended") > 4);
}

fn counters(node: &Cassandra) {
    node.cql(&["DROP TABLE IF EXISTS keyspace1.counter1"]);
    let words = ["counter_write", "n=3000", "no-warmup", "add=fixed(2)", "-pop", "seq=1..1000", "-rate", "threads=10"];
    let written = good(node, &words);
    assert_eq!(written.of("COUNTER_WRITE", "ended"), 3000);
    assert_eq!(number(node, "SELECT count(*) FROM keyspace1.counter1"), 1000);
    // Three rounds of increments by two.
    assert_eq!(number(node, "SELECT min(\"C0\") FROM keyspace1.counter1"), 6);
    assert_eq!(number(node, "SELECT max(\"C4\") FROM keyspace1.counter1"), 6);
    let read = good(node, &["counter_read", "n=1000", "no-warmup", "-pop", "seq=1..1000", "-rate", "threads=10"]);
    assert_eq!((read.of("COUNTER_READ", "ended"), read.of("COUNTER_READ", "rows")), (1000, 1000));
}

fn tampered(node: &Cassandra) {
    node.cql(&["TRUNCATE keyspace1.standard1"]);
    good(node, &["write", "n=400", "no-warmup", "-rate", "threads=8"]);
    let key = blob(node, "SELECT key FROM keyspace1.standard1 LIMIT 1");
    let was = blob(node, &format!("SELECT \"C3\" FROM keyspace1.standard1 WHERE key = 0x{key}"));
    let read = ["read", "n=400", "no-warmup", "-pop", "seq=1..400", "-rate", "threads=8"];
    let ignoring = [&read[..], &["-errors", "ignore"]].concat();

    node.cql(&[&format!("UPDATE keyspace1.standard1 SET \"C3\" = 0xdeadbeef WHERE key = 0x{key}")]);
    let ran = ends(node, &read, 1);
    assert!(ran.err.to_uppercase().contains(&key) && ran.out.ends_with("\nFAILURE\n"), "{}{}", ran.out, ran.err);
    assert!(ran.err.to_uppercase().contains("DEADBEEF"), "what came is told: {}", ran.err);
    let ran = ends(node, &ignoring, 0);
    ran.assert_balances();
    assert_eq!((ran.found("mismatched"), ran.found("missing"), ran.balance("failed")), (1, 0, 1), "{}", ran.out);
    assert_eq!(ran.of("READ", "errors"), 1);
    assert!(ran.line("Wrong content").starts_with("1 read"), "{}", ran.out);

    node.cql(&[&format!("UPDATE keyspace1.standard1 SET \"C3\" = 0x{was} WHERE key = 0x{key}")]);
    assert_eq!(good(node, &read).of("READ", "ended"), 400);

    node.cql(&[&format!("DELETE FROM keyspace1.standard1 WHERE key = 0x{key}")]);
    let ran = ends(node, &read, 1);
    assert!(ran.err.to_uppercase().contains(&key), "{}{}", ran.out, ran.err);
    let ran = ends(node, &ignoring, 0);
    assert_eq!((ran.found("mismatched"), ran.found("missing"), ran.balance("failed")), (0, 1, 1), "{}", ran.out);
    assert!(ran.line("Missing rows").starts_with("1 read"), "{}", ran.out);
    // Without a look at the content, only what is not there at all is found.
    let ran = ends(node, &[&read[..], &["-errors", "ignore", "skip-read-validation"]].concat(), 0);
    assert_eq!((ran.found("mismatched"), ran.found("missing")), (0, 0), "{}", ran.out);
}
