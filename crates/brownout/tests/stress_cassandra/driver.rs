//! `-mode driver`: the same operations on the data path of an application.

use super::{
    Section,
    commands::number,
    common::cassandra::Cassandra,
    profiles::types,
    ran::{ends, good},
};

pub const SECTIONS: &[Section] = &[
    ("the driver writes and reads what our own connections read and write", both_ways),
    ("the driver writes, asks for and compares every type", every_type),
    ("what the driver cannot do is refused by name", refused),
];

const DRIVER: &[&str] = &["-mode", "driver", "cql3"];
const COUNT: u64 = 500;

fn both_ways(node: &Cassandra) {
    let keyspace = ["-schema", "keyspace=stress_driver"];
    let run = |command: &[&str], mode: &[&str]| {
        let n = format!("n={COUNT}");
        let command = [command, &[&n, "no-warmup", "-rate", "threads=8"], mode, &keyspace].concat();
        let ran = good(node, &command);
        assert_eq!(ran.balance("answered_ok"), COUNT, "{command:?}");
    };
    run(&["write"], DRIVER);
    assert_eq!(number(node, "SELECT count(*) FROM stress_driver.standard1") as u64, COUNT);
    run(&["read"], &[]);
    run(&["write"], &[]);
    run(&["read"], DRIVER);
    run(&["mixed"], DRIVER);
    run(&["counter_write"], DRIVER);
    run(&["counter_read"], DRIVER);
    // An open loop, and rows that are not what they should be.
    let open = ["read", "duration=2s", "no-warmup", "-rate", "open=200/s", "-pop", "seq=1..500"];
    let ran = good(node, &[&open[..], DRIVER, &keyspace].concat());
    assert!(ran.balance("answered_ok") >= 390, "{}", ran.out);
    node.cql(&["TRUNCATE stress_driver.standard1"]);
    let ran = ends(node, &[&["read", "n=20", "no-warmup", "-rate", "threads=2"], DRIVER, &keyspace].concat(), 1);
    assert!(ran.err.contains("Data returned was not validated"), "{}\n{}", ran.out, ran.err);
}

fn every_type(node: &Cassandra) {
    let profile = types(node);
    node.cql(&["DROP KEYSPACE IF EXISTS stress_types"]);
    for ops in ["ops(insert=1)", "ops(one=1)", "ops(mixed_rows=1)", "ops(newest=1)", "ops(validate=1)"] {
        let words = ["user", &profile, ops, "n=100", "no-warmup", "-pop", "seq=1..100", "-rate", "threads=5"];
        good(node, &[&words[..], DRIVER].concat());
    }
    // What the driver wrote is what our own connections would have written.
    good(
        node,
        &["user", &profile, "ops(validate=1)", "n=100", "no-warmup", "-pop", "seq=1..100", "-rate", "threads=5"],
    );
}

fn refused(node: &Cassandra) {
    for (mode, said) in [
        (&["-mode", "driver", "unprepared"][..], "prepares every statement"),
        (&["-mode", "driver", "protocolVersion=5"], "version 5"),
    ] {
        let ran = ends(node, &[&["write", "n=1"], mode].concat(), 2);
        assert!(ran.err.contains(said), "{mode:?}: {}", ran.err);
    }
}
