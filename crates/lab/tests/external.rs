//! Experiments on clusters that run already: what their plans say, and what they are refused.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_lab::{
    Design,
    experiment::{FileError, Source},
};

const FILE: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 10s }
objective: { p95: 100ms }
trials: 2
";
const EXTERNAL: &str = "cluster: { external: [10.0.0.5:9042, db-2:9043, 10.0.0.7:9042] }\n";

fn made(more: &str) -> Result<Design, FileError> {
    Design::new(&Source::from_text(Path::new("some.yaml"), format!("{FILE}{more}"))?)
}

#[test]
fn a_plan_names_the_nodes_where_they_were_asked_and_makes_no_network_up() {
    let design = made(EXTERNAL).unwrap();
    let description = design.first().description("Cassandra 5.0.9");
    let hosts: Vec<(&str, &str, &str)> =
        description.hosts.iter().map(|host| (host.name.as_str(), host.address.as_str(), host.role.as_str())).collect();
    let nodes = [("n1", "10.0.0.5:9042", "node"), ("n2", "db-2:9043", "node"), ("n3", "10.0.0.7:9042", "node")];
    assert_eq!(hosts[..3], nodes);
    assert_eq!(hosts[3..], [("load", "", "load")]);
    assert!(description.external && description.network.is_empty() && description.overlay.is_empty());
    assert_eq!((description.placement, description.encryption), (None, Vec::new()));
    let tested = brownout_analysis::UnderTest::planned(&design.first().description("Cassandra 5.0.9"));
    assert!(tested.database.contains("n2 (db-2:9043)") && tested.database.ends_with("which ran before"), "{tested:?}");
}

#[test]
fn an_external_cluster_is_that_of_all_cells_and_serves_one_trial_at_a_time() {
    let refused = |more: &str| made(more).err().unwrap().to_string();
    let error = refused(&format!("{EXTERNAL}parallel: 2\n"));
    assert!(error.contains("one trial at a time"), "{error}");
    let error = refused(&format!("{EXTERNAL}parallel: auto\n"));
    assert!(error.contains("one trial at a time"), "{error}");
    let mixed = "vary:\n  where: { lab: {}, there: { cluster.external: ['10.0.0.5:9042', 'b:9042', 'c:9042'] } }\n";
    let error = refused(mixed);
    assert!(error.contains("compare their runs"), "{error}");
    assert!(made(&format!("{EXTERNAL}vary:\n  load.rate: [100/s, 200/s]\n")).is_ok(), "the load may vary");
}
