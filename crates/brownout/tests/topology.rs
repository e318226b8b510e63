//! A cluster on three sites: data centres follow them, a local quorum stays in one, a flapping way between two is proven.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{brownout, experiment, punctual, require_root};
use serde_json::Value;

fn phase<'a>(of: &'a Value, name: &str) -> &'a Value {
    of["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap()
}

fn p50(findings: &Value, name: &str) -> f64 {
    phase(&findings["trials"][0], name)["response"]["p50"]["value_ns"].as_f64().unwrap()
}

fn run(consistency: &str) -> Value {
    let file = experiment("three-sites.yaml");
    let (_, _, findings) = punctual(|out| {
        brownout(&[
            "run",
            file.to_str().unwrap(),
            "--json",
            "--out",
            out.to_str().unwrap(),
            "--set=trials=1",
            "--set=phases={warm-up: 24s, baseline: 11s, fault: 14s, recovery: 11s}",
            "--set=load.population=2_000",
            "--set=faults.0.flap={on: 2s, off: 1s}",
            &format!("--set=load.consistency={consistency}"),
        ])
    });
    assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["trials"][0]["faults"][0]);
    findings
}

#[test]
fn the_distance_between_sites_is_felt_by_a_quorum_and_not_by_a_local_quorum() {
    require_root();
    let (quorum, local) = (run("quorum"), run("local-quorum"));
    // The second of three sites is 34 ms away, one way; the fault is between the same two.
    assert!(p50(&quorum, "baseline") >= 68e6, "{}", p50(&quorum, "baseline"));
    assert!(p50(&local, "baseline") < 34e6, "{}", p50(&local, "baseline"));
    assert!(p50(&local, "fault") < 34e6, "{}", p50(&local, "fault"));
}
