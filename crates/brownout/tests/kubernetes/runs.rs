//! Whole runs on pods.

use std::{collections::BTreeSet, fs, path::Path};

use brownout_record::{Event, Run, TrialState};
use serde_json::Value;

use super::{
    cluster::{Following, etcd, kubectl, nothing_of_ours, permitted, run_as_jane, slow_follower, until},
    common::{both, json, only_run},
};

/// Short, as far as a proof allows, and easy: a whole Kubernetes is on this machine.
const SHORT: [&str; 4] = [
    "--set=trials=1",
    "--set=attempts=1",
    "--set=load.rate=80/s",
    "--set=phases={warm-up: 16s, baseline: 8s, fault: 12s, recovery: 6s}",
];

/// The findings of a run of the example.
fn findings(more: &[&str]) -> Value {
    etcd();
    permitted();
    findings_of(&slow_follower(), more)
}

/// The findings of a run. Kubernetes' own programs may disturb it: of its size nothing is asked here.
fn findings_of(file: &Path, more: &[&str]) -> Value {
    let out = tempfile::tempdir().unwrap();
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
fn a_fault_that_nobody_injects_is_refuted() {
    let findings = findings(&["--sabotage"]);
    assert_eq!(verdicts(&findings), ["refuted"], "{}", findings["trials"][0]["faults"]);
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_slow_machine_is_all_its_pods() {
    let findings = findings(&["--set=faults=[{slow: {host: node2, delay: 50ms}}]"]);
    assert_eq!(verdicts(&findings), ["proven"], "{}", findings["trials"][0]["faults"]);
    let words = [
        "get",
        "pods",
        "--namespace=db",
        "--field-selector=spec.nodeName=node2",
        "--output=jsonpath={.items[*].metadata.name}",
    ];
    let there: BTreeSet<String> = kubectl(&words).split_whitespace().map(str::to_owned).collect();
    let rows = findings["trials"][0]["faults"][0]["rows"].as_array().unwrap();
    let hit = rows.iter().filter(|row| row["hit"] == true).filter_map(|row| row["subject"]["from"].as_str());
    assert_eq!(hit.map(str::to_owned).collect::<BTreeSet<_>>(), there, "{rows:?}");
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn the_leader_slowed_and_a_pod_cut_off_are_proven() {
    let faults = "--set=faults=[{slow: {host: leader, delay: 50ms}, length: 8s}, {partition: {isolate: etcd-1}, start: 12s, length: 6s}]";
    let phases = "--set=phases={warm-up: 16s, baseline: 8s, fault: 24s, recovery: 10s}";
    let findings = findings(&[faults, phases]);
    assert_eq!(verdicts(&findings), ["proven", "proven"], "{}", findings["trials"][0]["faults"]);
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_cluster_of_its_own_is_made_and_removed() {
    etcd();
    permitted();
    let text = fs::read_to_string(slow_follower()).unwrap();
    let text = text.replace("{ namespace: db, selector: \"app=etcd\", loads: 2 }", "{ own: { memory: 512Mi } }");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.yaml");
    fs::write(&file, text).unwrap();
    assert_eq!(verdicts(&findings_of(&file, &[])), ["proven"]);
}

/// The StatefulSet makes another pod of the same name.
#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_pod_that_is_deleted_in_mid_fault_is_attached_again_and_kubernetes_words_are_on_the_time_line() {
    etcd();
    permitted();
    let (file, out) = (slow_follower(), tempfile::tempdir().unwrap());
    let phases = "--set=phases={warm-up: 16s, baseline: 8s, fault: 40s, recovery: 8s}";
    let words = ["run", file.to_str().unwrap(), "--json", "--out", out.path().to_str().unwrap()];
    let fault = "--set=faults=[{slow: {host: etcd-2, delay: 50ms}}]";
    let mut following = Following::start(&[&words[..], &SHORT, &[phases, fault]].concat());
    following.until_in_fault();
    kubectl(&["delete", "pod", "etcd-2", "--namespace=db", "--grace-period=1"]);
    let (code, told) = following.end();
    // What it shows is no result of the fault: nobody has asked for the end of the node.
    assert_eq!(code, Some(3), "{told}");
    assert_attached_again(out.path(), "etcd-2");
    nothing_of_ours();
}

fn assert_attached_again(out: &Path, host: &str) {
    let run = Run::open(&only_run(out)).unwrap();
    let events = run.events_of(1).unwrap();
    let first = |kind: &str, words: &str| {
        let is_it = |event: &&Event| event.kind == kind && event.subject == host && event.text.contains(words);
        events.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} of {host} with {words}: {events:?}"))
    };
    let (died, back) = (first("node-died", ""), first("reattached", ""));
    assert!(died.at_ns < back.at_ns, "{died:?} {back:?}");
    let killed = first("kubernetes", "Killing");
    assert!(killed.at_ns.abs_diff(died.at_ns) < 5_000_000_000, "{killed:?} {died:?}");
    // It is measured again, and late again.
    let healed_ns = run.faults(1).unwrap()[0].healed().unwrap().at_ns;
    let probes = run.probes(1).unwrap();
    let sent = probes.iter().filter(|row| row.from == host && row.to == "etcd-0").flat_map(|row| &row.samples);
    let again: Vec<_> =
        sent.filter(|one| (back.at_ns..healed_ns.saturating_sub(500_000_000)).contains(&one.sent_ns)).collect();
    let late = again.iter().filter(|one| one.delay_ns.is_some_and(|delay| delay > 45_000_000)).count();
    assert!(again.len() > 30 && late * 10 > again.len() * 9, "{late} of {} are late", again.len());
}

/// A node that takes no new pods, until this is dropped.
struct Cordoned(String);

impl Cordoned {
    fn of(node: &str) -> Cordoned {
        kubectl(&["cordon", node]);
        Cordoned(node.to_owned())
    }
}

impl Drop for Cordoned {
    fn drop(&mut self) {
        kubectl(&["uncordon", &self.0]);
    }
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_pod_that_comes_back_on_another_node_is_found_there_by_the_next_attempt_and_by_a_run_that_is_resumed() {
    etcd();
    permitted();
    let node_of = |pod: &str| kubectl(&["get", "pod", pod, "--namespace=db", "--output=jsonpath={.spec.nodeName}"]);
    let (file, out) = (slow_follower(), tempfile::tempdir().unwrap());
    let words = ["run", file.to_str().unwrap(), "--json", "--out", out.path().to_str().unwrap()];
    let fault = "--set=faults=[{slow: {host: etcd-1, delay: 50ms}}]";
    let mut following = Following::start(&[&words[..], &SHORT, &[fault, "--set=attempts=2"]].concat());
    following.until_in_fault();
    let before = node_of("etcd-1");
    let cordoned = Cordoned::of(&before);
    kubectl(&["delete", "pod", "etcd-1", "--namespace=db", "--grace-period=1"]);
    let (code, told) = following.end();
    let after = node_of("etcd-1");
    assert_ne!(after, before);
    assert!(told.contains(&format!("etcd-1 was on {before} and is on {after}")), "{told}");
    assert!(matches!(code, Some(0 | 1 | 3)), "{told}");
    let run = only_run(out.path());
    assert_slow_there(&run, 2, &after);

    // Back again, between two sessions of the run.
    drop(cordoned);
    let cordoned = Cordoned::of(&after);
    kubectl(&["delete", "pod", "etcd-1", "--namespace=db", "--grace-period=1"]);
    until("etcd-1 is ready again", || {
        kubectl(&["get", "statefulset", "etcd", "--namespace=db", "--output=jsonpath={.status.readyReplicas}"]) == "3"
    });
    drop(cordoned);
    let more = run_as_jane(&["extend", run.to_str().unwrap(), "--trials=+1"]);
    assert!(matches!(more.status.code(), Some(0 | 1 | 3)), "{}", both(&more));
    assert_ne!(node_of("etcd-1"), after);
    assert_slow_there(&run, 3, &node_of("etcd-1"));
    nothing_of_ours();
}

/// A trial was made to its end, with etcd-1 on that node, and slow there.
fn assert_slow_there(run: &Path, trial: u32, node: &str) {
    let run = Run::open(run).unwrap();
    let row = run.trials().unwrap().into_iter().find(|row| row.trial == trial).unwrap();
    assert_eq!(row.state, TrialState::Done, "{:?}", run.events_of(trial).unwrap());
    let machines = run.machines(trial).unwrap();
    let there = machines.iter().find(|machine| machine.hosts.iter().any(|host| host == "etcd-1"));
    assert_eq!(there.unwrap().machine, node);
    let fault = &run.faults(trial).unwrap()[0];
    let (from_ns, to_ns) = (fault.injected().unwrap().at_ns + 1_000_000_000, fault.healed().unwrap().at_ns);
    let probes = run.probes(trial).unwrap();
    let sent = probes.iter().filter(|row| row.from == "etcd-1" && row.to == "etcd-0").flat_map(|row| &row.samples);
    let sent: Vec<_> = sent.filter(|one| (from_ns..to_ns - 500_000_000).contains(&one.sent_ns)).collect();
    let late = sent.iter().filter(|one| one.delay_ns.is_some_and(|delay| delay > 45_000_000)).count();
    assert!(sent.len() > 30 && late * 10 > sent.len() * 9, "{late} of {} are late", sent.len());
}

/// The job makes another pod, for the next trial.
#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn what_a_load_was_still_to_send_when_its_pod_was_deleted_is_never_sent() {
    etcd();
    permitted();
    let (file, out) = (slow_follower(), tempfile::tempdir().unwrap());
    let phases = "--set=phases={warm-up: 16s, baseline: 8s, fault: 20s, recovery: 8s}";
    let words = ["run", file.to_str().unwrap(), "--json", "--out", out.path().to_str().unwrap()];
    let mut following = Following::start(&[&words[..], &SHORT, &[phases]].concat());
    following.until_in_fault();
    let pods = kubectl(&["get", "pods", "--namespace=brownout", "--output=name"]);
    let first =
        pods.lines().find(|pod| pod.contains("/load-") && pod.contains("-0-")).unwrap_or_else(|| panic!("{pods}"));
    kubectl(&["delete", first, "--namespace=brownout", "--grace-period=1", "--wait=false"]);
    let (code, told) = following.end();
    assert_eq!(code, Some(3), "half of the load is missing: {told}");
    assert!(told.contains("load_0 is lost"), "{told}");
    let run = Run::open(&only_run(out.path())).unwrap();
    assert_eq!(run.trials().unwrap()[0].state, TrialState::Done, "{told}");
    let lost = run.events_of(1).unwrap().into_iter().find(|event| event.kind == "load-lost").unwrap();
    let load = run.load(1).unwrap();
    let after = load.iter().filter(|row| row.starts_ns >= lost.at_ns + lost.error_ns);
    assert!(
        after.clone().count() > 10 && after.clone().all(|row| row.scheduled == 80 && row.never_sent >= 40),
        "{load:?}"
    );
    nothing_of_ours();
}
