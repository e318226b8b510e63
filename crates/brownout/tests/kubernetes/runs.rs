//! Whole runs on pods.

use serde_json::Value;

use super::{
    cluster::{etcd, nothing_of_ours, permitted, run_as_jane, slow_follower},
    common::{both, json},
};

/// Short, as far as a proof allows, and easy: a whole Kubernetes is on this machine.
const SHORT: [&str; 4] = [
    "--set=trials=1",
    "--set=attempts=1",
    "--set=load.rate=80/s",
    "--set=phases={warm-up: 16s, baseline: 8s, fault: 12s, recovery: 6s}",
];

/// The findings of a run of the example. Kubernetes' own programs may disturb it: of its size nothing is asked here.
fn findings(more: &[&str]) -> Value {
    etcd();
    permitted();
    let (file, out) = (slow_follower(), tempfile::tempdir().unwrap());
    let words = ["run", file.to_str().unwrap(), "--json", "--out", out.path().to_str().unwrap()];
    let output = run_as_jane(&[&words[..], &SHORT, more].concat());
    let findings = json(&output);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", both(&output));
    nothing_of_ours();
    findings
}

fn verdicts(findings: &Value) -> Vec<&str> {
    let faults = findings["trials"][0]["faults"].as_array().unwrap();
    faults.iter().map(|fault| fault["verdict"].as_str().unwrap()).collect()
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_slow_pod_is_proven_and_all_loads_together_have_sent_what_was_due() {
    let findings = findings(&[]);
    let trial = &findings["trials"][0];
    assert_eq!(verdicts(&findings), ["proven"], "{trial}");
    for fault in trial["faults"].as_array().unwrap() {
        let rows = fault["rows"].as_array().unwrap();
        assert!([true, false].iter().all(|hit| rows.iter().any(|row| row["hit"] == *hit)), "hit and spared: {fault}");
    }
    let machines = trial["machines"].as_array().unwrap();
    let sending = |sends: bool| machines.iter().filter(|machine| machine["sends"] == sends).count();
    assert_eq!((sending(false), sending(true)), (3, 2), "{machines:?}");
    for phase in trial["phases"].as_array().unwrap().iter().filter(|phase| phase["name"] != "set-up") {
        let counts = &phase["counts"];
        let count = |name: &str| counts[name].as_u64().unwrap();
        assert_eq!(count("scheduled"), count("sent") + count("never_sent"), "{phase}");
        assert!(count("ok") > 0, "{phase}");
    }
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_slow_machine_is_all_its_pods_and_a_fault_that_nobody_injects_is_refuted() {
    let fault = "--set=faults=[{slow: {host: node2, delay: 50ms}}]";
    let findings = findings(&[fault, "--sabotage"]);
    assert_eq!(verdicts(&findings), ["refuted"], "{}", findings["trials"][0]["faults"]);
}
