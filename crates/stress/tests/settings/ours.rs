//! What cassandra-stress does not have.

use std::{path::Path, time::Duration};

use brownout_stress::settings::{Open, Rate, Settings, Shape};

use super::parse;

#[test]
fn words_of_ours_are_taken_out_wherever_they_stand() {
    let line = [
        "write",
        "--flush",
        "n=1",
        "--record",
        "run 1.db",
        "-rate",
        "--dry-run",
        "threads=2",
        "--nodetool=nodetool -h {host}",
    ];
    let settings = Settings::parse(&line).expect("taken out");
    assert_eq!(settings.rate, Rate::Threads { threads: 2, limit: None });
    let extras = settings.extras;
    assert!(extras.flush && extras.dry_run && !extras.compact && !extras.wait_compactions && !extras.apache);
    assert_eq!(extras.record.as_deref(), Some(Path::new("run 1.db")), "blanks and all");
    assert_eq!(extras.nodetool.as_deref(), Some("nodetool -h {host}"));
    let more = parse("write n=1 --compact --wait-compactions --apache --tick 1ms").extras;
    assert!(more.compact && more.wait_compactions && more.apache);
    assert_eq!((more.tick, extras.tick), (Some(Duration::from_millis(1)), None));
    assert!(Settings::parse(&["write", "n=1", "--tick", "2s"]).is_err(), "no open loop any more");
    assert_eq!(settings.words.join(" "), "write n=1 -rate threads=2");
}

#[test]
fn the_section_of_ours_says_what_cassandra_stress_cannot() {
    let block = parse(
        "write n=1 seed=5 generator=v2 -rate open=100/s arrivals=poisson -insert batch-size=7 -node pin=a -log json=j csv=c \
         hdrfile=h prometheus=:1 --flush --wait-compactions --record r --tick 250us",
    )
    .block();
    let (_, ours) = block.split_once("Brownout:\n").expect("a section of ours");
    assert_eq!(
        ours,
        "  Loop: open, 100/s\n  Arrivals: poisson\n  Generator: v2\n  Seed: 5\n  Rows In A Batch: 7\n  Coordinator: a\n  HDR \
         File: h\n  JSON File: j\n  CSV File: c\n  Prometheus: http://127.0.0.1:1/metrics\n  Record: r\n  Tick: 250µs\n  First: \
         flush, wait for compactions\n\n"
    );
    assert!(matches!(parse("read -rate open=5/s").rate, Rate::Open(Open { shape: Shape::Constant(_), .. })));
}
