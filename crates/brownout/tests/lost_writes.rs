//! A wrong clock loses acknowledged writes where the coordinators' clocks say which write is the last one, and nowhere else: as
//! many as arithmetic says. That it loses some, among all other faults, is told by the run of faults.rs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{brownout, experiment, require_root, undisturbed};
use serde_json::Value;

const ROWS: f64 = 300.0;
const WRITES_PER_SECOND: f64 = 150.0;
const AHEAD_S: f64 = 1.0;

/// Acknowledged writes of a phase that a later read looked for, and how many it did not find.
fn counted(findings: &Value, phase: &str) -> (u64, u64) {
    let phases = findings["trials"][0]["phases"].as_array().unwrap();
    let counts = &phases.iter().find(|one| one["name"] == phase).unwrap()["counts"];
    (counts["looked_for"].as_u64().unwrap(), counts["lost"].as_u64().unwrap())
}

fn run(timestamps: &str) -> Option<Value> {
    require_root();
    let file = experiment("skewed-clock.yaml");
    let (_, _, findings) = undisturbed(|out| {
        brownout(&[
            "run",
            file.to_str().unwrap(),
            "--json",
            "--out",
            out.to_str().unwrap(),
            "--set=trials=1",
            "--set=attempts=1",
            "--set=phases={warm-up: 20s, baseline: 11s, fault: 15s, recovery: 11s}",
            &format!("--set=load.population={ROWS}"),
            &format!("--set=load.rate={}/s", 2.0 * WRITES_PER_SECOND),
            &format!("--set=faults=[{{clock: {{host: n2, offset: {AHEAD_S}s}}}}]"),
            &format!("--set=load.timestamps={timestamps}"),
            "--set=network.clock-matrix=true",
        ])
    })?;
    assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["trials"][0]["faults"][0]);
    Some(findings)
}

/// What a host has learned of another's clock in a phase: its offset and the bound of that, ns.
fn offset(findings: &Value, phase: &str, host: &str, server: &str) -> (f64, f64) {
    let clocks = findings["trials"][0]["clocks"].as_array().unwrap();
    let pairs = clocks.iter().find(|matrix| matrix["phase"] == phase).unwrap()["pairs"].as_array().unwrap();
    let pair = pairs.iter().find(|pair| pair["host"] == host && pair["server"] == server);
    let pair = pair.unwrap_or_else(|| panic!("{host} → {server} in {pairs:?}"));
    (pair["offset_ns"].as_f64().unwrap(), pair["bound_ns"].as_f64().unwrap())
}

#[test]
#[ignore = "a cluster with a wrong clock is tested with all faults; what that costs in writes takes a run of its own: make test-long"]
fn a_coordinator_that_is_ahead_loses_as_many_writes_of_others_as_arithmetic_says() {
    let Some(findings) = run("coordinator") else { return };
    let (looked_for, lost) = counted(&findings, "baseline");
    assert!(looked_for > 200 && lost == 0, "{lost} of {looked_for}");
    // n2 coordinates a third. A write through another is lost if n2 has coordinated one of the same row in the second before.
    let per_row = WRITES_PER_SECOND / ROWS;
    let share = 2.0 / 3.0 * (1.0 - (-per_row / 3.0 * AHEAD_S).exp());
    let (looked_for, lost) = counted(&findings, "fault");
    let measured = lost as f64 / looked_for as f64;
    assert!((share / 2.0..share * 2.0).contains(&measured), "{lost} of {looked_for}, by arithmetic {share:.3}");

    // All that ask n2 see it ahead, n2 sees all others behind, and nobody sees more than the bound of it elsewhere.
    for (host, server, ahead_s) in
        [("load", "n2", AHEAD_S), ("n1", "n2", AHEAD_S), ("n2", "n3", -AHEAD_S), ("n1", "n3", 0.0), ("n3", "load", 0.0)]
    {
        for (phase, truth_ns) in [("baseline", 0.0), ("fault", ahead_s * 1e9)] {
            let (offset_ns, bound_ns) = offset(&findings, phase, host, server);
            let told = format!("{phase}, {host} → {server}: {offset_ns} ± {bound_ns}");
            assert!(bound_ns > 0.0 && (offset_ns - truth_ns).abs() <= bound_ns + 1e6, "{told}");
        }
    }
}

#[test]
#[ignore = "the same cluster once more, for what clients' timestamps are good for: make test-long"]
fn with_the_clients_own_timestamps_a_wrong_clock_loses_nothing() {
    let Some(findings) = run("client") else { return };
    for phase in ["baseline", "fault", "recovery"] {
        let (looked_for, lost) = counted(&findings, phase);
        assert!(looked_for > 200 && lost == 0, "{phase}: {lost} of {looked_for}");
    }
}
