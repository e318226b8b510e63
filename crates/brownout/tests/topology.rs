//! A cluster on three sites: data centres follow them, a local quorum stays in one, a flapping way between two is proven. What a
//! cluster on two sites shows in less than a minute is shown by that of many_tables.rs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{brownout, experiment, require_root, undisturbed};
use serde_json::Value;

/// The second of three sites is this far away, one way; the fault is between the same two.
const FAR_NS: f64 = 34e6;
/// And the third from the first: 73 ms, less a jitter of 1 %.
const FARTHEST_NS: f64 = 72e6;

fn phase<'a>(of: &'a Value, name: &str) -> &'a Value {
    of["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap()
}

fn p50(findings: &Value, name: &str) -> f64 {
    phase(&findings["trials"][0], name)["response"]["p50"]["value_ns"].as_f64().unwrap()
}

fn run(consistency: &str) -> Option<Value> {
    let file = experiment("three-sites.yaml");
    let (_, _, findings) = undisturbed(|out| {
        brownout(&[
            "run",
            file.to_str().unwrap(),
            "--json",
            "--out",
            out.to_str().unwrap(),
            "--set=trials=1",
            "--set=attempts=1",
            "--set=phases={warm-up: 20s, baseline: 11s, fault: 14s, recovery: 11s}",
            "--set=load.population=2_000",
            "--set=faults.0.flap={on: 2s, off: 1s}",
            &format!("--set=load.consistency={consistency}"),
        ])
    })?;
    assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["trials"][0]["faults"][0]);
    Some(findings)
}

#[test]
#[ignore = "clusters in two data centres, and distances on links, are tested by themselves: make test-long"]
fn a_local_quorum_does_not_feel_the_distance_between_sites_nor_a_fault_there() {
    require_root();
    let Some(local) = run("local-quorum") else { return };
    assert!(p50(&local, "baseline") < FAR_NS, "{}", p50(&local, "baseline"));
    assert!(p50(&local, "fault") < FAR_NS, "{}", p50(&local, "fault"));
}

#[test]
#[ignore = "the same cluster once more, for the consistency that the network alone determines: make test-long"]
fn a_quorum_feels_the_distance_between_sites() {
    require_root();
    let Some(quorum) = run("quorum") else { return };
    // There and back.
    assert!(p50(&quorum, "baseline") >= 2.0 * FAR_NS, "{}", p50(&quorum, "baseline"));
}

#[test]
#[ignore = "the same cluster once more, for the level that waits for every site: make test-long"]
fn an_each_quorum_waits_for_the_farthest_site() {
    require_root();
    let Some(each) = run("each-quorum") else { return };
    // There and back, to the third site, which a quorum does without.
    assert!(p50(&each, "baseline") >= 2.0 * FARTHEST_NS, "{}", p50(&each, "baseline"));
}
