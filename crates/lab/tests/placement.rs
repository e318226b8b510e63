//! What the plan tells the record about where rows lie, who is asked for them and how far hosts stand apart.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;

use brownout_lab::{Plan, experiment::Source};
use brownout_record::Placement;

fn placement(text: &str) -> Placement {
    let source = Source::from_text(Path::new("experiment.yaml"), text.to_owned()).unwrap();
    Plan::new(&source).unwrap().description("Cassandra").placement.unwrap()
}

const LAN: &str = "\
cluster: { cassandra: '5.0', nodes: 3 }
load: { replication: 2, consistency: quorum, mix: { read: 3, write: 1 }, population: 5000, rate: 100/s }
phases: { warm-up: 20s, baseline: 5s }
objective: { p99: 100ms }
";

#[test]
fn without_sites_nodes_share_the_ring_evenly_and_nothing_lies_between_them() {
    let found = placement(LAN);
    let names: Vec<&str> = found.ring.iter().map(|node| node.node.as_str()).collect();
    assert_eq!((names.as_slice(), found.asked.len()), (["n1", "n2", "n3"].as_slice(), 3));
    assert_eq!(found.ring.iter().map(|node| node.token).collect::<Vec<_>>()[0], i64::MIN);
    assert!(found.ring.iter().all(|node| node.site == "datacenter1"));
    assert_eq!((found.coordinators.as_str(), found.distances.len()), ("token-aware", 0));
    let operations: Vec<_> =
        found.operations.iter().map(|one| (one.operation.as_str(), one.reads, one.share)).collect();
    assert_eq!(operations, [("read", true, Some(0.75)), ("write", false, Some(0.25))]);
    let read = &found.operations[0];
    assert_eq!((read.consistency.as_str(), read.rows, read.copies["datacenter1"]), ("quorum", 5000, 2));
    let robin = placement(&LAN.replace("population: 5000", "population: 5000, coordinators: round-robin"));
    assert_eq!(robin.coordinators, "round-robin");
}

#[test]
fn sites_have_copies_of_their_own_and_distances_between_them() {
    let far = format!(
        "network:
  sites: {{ east: {{ hosts: [n1, n3] }}, west: {{ hosts: n2 }} }}
  links:
    - {{ from: east, to: west, delay: 40ms, jitter: 5ms }}
{}",
        LAN.replace("replication: 2", "replication: 1, replication-of: { east: 2 }, coordinators: local")
    );
    let found = placement(&far);
    let copies = &found.operations[0].copies;
    assert_eq!((copies["east"], copies["west"]), (2, 1));
    assert_eq!(found.ring.iter().map(|node| node.site.as_str()).collect::<Vec<_>>(), ["east", "west", "east"]);
    // The load stands in the first site, and asks there.
    assert_eq!(found.asked, ["n1", "n3"]);
    let pairs: Vec<(&str, &str)> = found.distances.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
    assert_eq!(pairs, [("load", "n2"), ("n1", "n2"), ("n3", "n2")], "one way, as written");
    assert!(found.distances.iter().all(|one| (one.delay_ns, one.least_ns) == (40_000_000, 35_000_000)));
}
