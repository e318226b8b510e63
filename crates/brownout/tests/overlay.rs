//! Real runs whose databases speak through an overlay: what is done to links below is proven on them and on the ways above
//! that take them, and a run in which nothing was done is refuted on both. The run on WireGuard is etcd.rs's own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{fs, path::Path, process::Output};

use brownout_network::overlay::openvpn_program;
use brownout_record::Run;
use common::{
    Running, both, brownout, delay_row, descendants, experiment, json, kill, only_run, require_root, undisturbed,
    with_command_line,
};
use serde_json::Value;

/// Three nodes of etcd, of which the first is slow: OpenVPN's server, through which all others send each other what they
/// have to say.
fn file(overlay: &str, fault: &str) -> String {
    format!(
        "network: {{ overlay: {overlay} }}\n\
         cluster: {{ etcd: '3', nodes: 3 }}\n\
         load: {{ mix: {{ put: 1, range: 1 }}, population: 500, rate: 100/s }}\n\
         phases: {{ warm-up: 16s, baseline: 8s, fault: 11s, recovery: 8s }}\n\
         faults:\n  - {fault}\n\
         trials: 1\nwithout-fault: 0\nattempts: 3\nobjective: {{ p95: 2s }}\n"
    )
}

fn run(overlay: &str, fault: &str, more: &[&str], out: &Path) -> Output {
    let path = out.join("overlay.yaml");
    fs::write(&path, file(overlay, fault)).unwrap();
    let (path, out) = (path.to_str().unwrap().to_owned(), out.join("runs"));
    let mut arguments = vec!["run", path.as_str(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

/// Runs it, and gives the findings of its last trial's only fault.
fn proven(overlay: &str, fault: &str) -> Option<Value> {
    let (directory, output, findings) = undisturbed(|out| run(overlay, fault, &[], out))?;
    assert_eq!(output.status.code(), Some(0), "{overlay}: {}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{overlay}: {}", findings["verdict"]);
    let trial = findings["trials"].as_array().unwrap().last().unwrap();
    let fault = trial["faults"][0].clone();
    assert_eq!(fault["verdict"], "proven", "{overlay}: {fault}");
    let run = Run::open(&only_run(&directory.path().join("runs"))).unwrap();
    assert_eq!(run.cells().unwrap()[0].description.overlay, overlay);
    let number = run.trials().unwrap().last().unwrap().trial;
    let through: usize = run.overlay_probes(number).unwrap().iter().map(|row| row.samples.len()).sum();
    assert!(through > 1_000, "{overlay}: {through} probes above");
    let used: u64 = run.cpu(number).unwrap().iter().filter(|row| row.subject == "overlay").map(|row| row.busy_ns).sum();
    // The kernel's own VXLAN is nobody's thread.
    assert_eq!(used > 0, overlay != "vxlan", "{overlay}: {used} ns");
    Some(fault)
}

#[test]
#[ignore = "repeats above an overlay what slow_replica.rs shows below it: make test-long"]
fn acknowledged_faults_that_were_not_put_in_force_are_refuted_above_as_well() {
    require_root();
    let Some((_, output, findings)) = undisturbed(|out| {
        run("wireguard", "slow: { host: n2, delay: 40ms }", &["--sabotage", "--set=attempts=1"], out)
    }) else {
        return;
    };
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    let fault = &findings["trials"][0]["faults"][0];
    assert_eq!(fault["verdict"], "refuted", "{fault}");
    assert_eq!(delay_row(fault, "overlay", "n2", "n1")["verdict"], "refuted", "{fault}");
}

#[test]
#[ignore = "the other overlays, each a run of its own: make test-long"]
fn every_overlay_is_proven_on_both_layers() {
    require_root();
    for overlay in ["vxlan", "wireguard+vxlan"] {
        let Some(fault) = proven(overlay, "flaky: { host: n2, loss: 20% }") else { return };
        let rows = fault["rows"].as_array().unwrap();
        let above = rows.iter().filter(|row| row["subject"]["kind"] == "overlay" && row["hit"] == true);
        assert_eq!(above.count(), 3, "{overlay}: {fault}");
    }
    assert!(openvpn_program().is_some(), "this test needs OpenVPN: apt-get install openvpn");
    // n1 passes on what n2 and n3 send each other, though they are as near to each other as ever.
    let Some(fault) = proven("openvpn", "slow: { host: n1, delay: 50ms, direction: both }") else { return };
    for (layer, asked) in [("pair", 0.0), ("overlay", 100e6)] {
        let row = delay_row(&fault, layer, "n2", "n3");
        assert_eq!((row["asked"].as_f64(), row["verdict"].as_str()), (Some(asked), Some("proven")), "{row}");
    }
}

#[test]
#[ignore = "a process that dies is noticed by network/tests/overlay.rs, and a host that failed ends a trial in lab: make test-long"]
fn a_process_of_openvpn_that_dies_ends_the_trial_and_its_host_is_named() {
    require_root();
    assert!(openvpn_program().is_some(), "this test needs OpenVPN: apt-get install openvpn");
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("overlay.yaml");
    fs::write(&path, file("openvpn", "slow: { host: n1, delay: 50ms }")).unwrap();
    let runs = out.path().join("runs");
    let mut running = Running::start(&[path.to_str().unwrap(), "--out", runs.to_str().unwrap(), "--set=attempts=1"]);
    running.wait_for("fault  ");
    // One process a host, in their order.
    let processes = with_command_line(&descendants(running.child.id()), "openvpn");
    assert_eq!(processes.len(), 4, "three nodes and the load: {processes:?}");
    kill(processes[1], libc::SIGKILL);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(3), "{seen}");
    let words = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the network interface of n2 failed (its process of OpenVPN ended: signal: 9"), "{seen}");
}

/// The second site, whose answer a quorum of three takes, is this far away, one way, less the jitter of 1 %.
const FAR_NS: f64 = 33.6e6;

#[test]
#[ignore = "three sites with TLS between nodes and to clients, on WireGuard under loss: make test-long"]
fn three_sites_with_tls_on_wireguard_under_loss_are_valid_proven_on_both_layers_and_named_in_the_report() {
    require_root();
    let file = experiment("three-sites-tls-wireguard.yaml");
    let Some((directory, output, findings)) = undisturbed(|out| {
        let out = out.to_str().unwrap();
        brownout(&["run", file.to_str().unwrap(), "--json", "--out", out, "--set=trials=1"])
    }) else {
        return;
    };
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", both(&output));
    let trials = findings["trials"].as_array().unwrap();
    let trial = trials.iter().find(|trial| trial["validity"] == "valid").unwrap();
    // The sites are there, with their distances.
    let phases = trial["phases"].as_array().unwrap();
    let baseline = phases.iter().find(|phase| phase["name"] == "baseline").unwrap();
    let p50 = baseline["response"]["p50"]["value_ns"].as_f64().unwrap();
    assert!(p50 >= 2.0 * FAR_NS, "{p50} ns");
    // TLS is there, too, by what the nodes have logged: below WireGuard no link shows a marker anyway.
    let encryption = &trial["encryption"];
    assert_eq!(encryption["verdict"], "proven", "{encryption}");
    let links = encryption["links"].as_array().unwrap();
    assert!(links.len() == 12 && links.iter().all(|link| link["encrypted"] == true), "{links:?}");
    let logged = encryption["connections"].as_array().unwrap();
    assert!(logged.iter().all(|connection| connection["encrypted"] == true), "{logged:?}");
    for node in ["n1", "n2", "n3"] {
        let is_to_clients = |connection: &&Value| connection["node"] == node && connection["with"] == "clients";
        assert_eq!(logged.iter().filter(is_to_clients).count(), 1, "{node}: {logged:?}");
    }
    // The loss is what it was to be, below WireGuard and above it, and nowhere else.
    let fault = &trial["faults"][0];
    assert_eq!(fault["verdict"], "proven", "{fault}");
    for layer in ["pair", "overlay"] {
        let is_of_it = |row: &&Value| row["subject"]["kind"] == layer && row["quantity"] == "loss";
        let rows: Vec<&Value> = fault["rows"].as_array().unwrap().iter().filter(is_of_it).collect();
        assert_eq!(rows.len(), 12, "{layer}: {fault}");
        for row in rows {
            let is_hit = row["subject"]["from"] == "n2";
            assert_eq!((row["hit"].as_bool(), row["verdict"].as_str()), (Some(is_hit), Some("proven")), "{row}");
            let asked = if is_hit { 0.05 } else { 0.0 };
            assert!((row["asked"].as_f64().unwrap() - asked).abs() < 1e-6, "{row}");
        }
    }
    what_it_ran_on_is_named(&findings["cells"][0], &only_run(directory.path()));
}

/// Database, version, network, overlay and encryption of the only cell, in its findings and on the page.
fn what_it_ran_on_is_named(cell: &Value, run: &Path) {
    assert!(cell["database"].as_str().unwrap().starts_with("Cassandra 5.0."), "{cell}");
    assert_eq!(cell["overlay"], "wireguard");
    assert_eq!(cell["encryption"], serde_json::json!(["between all nodes", "to clients"]));
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(cell["database"].as_str().unwrap()), "{} is not on the page", cell["database"]);
    let network: Vec<&str> = cell["network"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for line in ["us-east: n1 and the load", "eu-west: n2", "ap-northeast: n3"] {
        assert!(network.contains(&line), "{line} is not in {network:?}");
    }
    assert!(network.iter().any(|line| line.starts_with("us-east ↔ eu-west: ")), "{network:?}");
    let lines = network.iter().map(|line| format!("network: {line}"));
    let others = ["overlay: wireguard", "encryption: between all nodes; to clients"].map(str::to_owned);
    for line in lines.chain(others) {
        assert!(page.contains(&line), "'{line}' is not on the page");
    }
}

#[test]
fn what_an_overlay_means_is_said_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("overlay.yaml");
    fs::write(&path, file("wireguard", "slow: { host: n2, delay: 40ms }")).unwrap();
    let output = brownout(&["check", path.to_str().unwrap()]);
    let said = both(&output);
    assert!(said.contains("overlay     wireguard") && said.contains("up to 1420 bytes"), "{said}");
    let json = json(&brownout(&["check", path.to_str().unwrap(), "--json"]));
    assert!(json.to_string().contains("wireguard"), "{json}");
    fs::write(&path, file("ipsec", "slow: { host: n2, delay: 40ms }")).unwrap();
    let output = brownout(&["check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("wireguard+vxlan"), "{}", both(&output));
}
