//! What cannot be done to containers is said before anything is done to them.

use std::{fs, path::Path};

use super::{
    apart::apart,
    common::{both, brownout, experiment, json, require_root},
    hosts::{Idle, three},
};

const ETCD: &str = "etcd: '3', nodes: 3";
const SLOW: &str = "slow: { host: n2, delay: 40ms }";

/// What `check` says of a fault on these processes, and its exit code.
fn check(directory: &Path, pids: &str, cluster: &str, fault: &str) -> (Option<i32>, String) {
    let path = directory.join("attached.yaml");
    let text = format!(
        "ground: {{ containers: {{ pids: [{pids}] }} }}\n\
         cluster: {{ {cluster} }}\n\
         load: {{ population: 500, rate: 100/s }}\n\
         phases: {{ warm-up: 16s, baseline: 8s, fault: 11s, recovery: 8s }}\n\
         faults:\n  - {fault}\n\
         trials: 1\nwithout-fault: 0\nobjective: {{ p95: 2s }}\n"
    );
    fs::write(&path, text).unwrap();
    let output = brownout(&["check", path.to_str().unwrap()]);
    (output.status.code(), both(&output))
}

#[test]
fn what_containers_lack_is_refused_before_anything_begins() {
    require_root();
    apart(&what_containers_lack_is_refused_before_anything_begins, || {
        let hosts = three();
        let idle: Vec<Idle> = hosts.iter().map(Idle::within).collect();
        let pids = idle.iter().map(|one| one.pid().to_string()).collect::<Vec<_>>().join(", ");
        let directory = tempfile::tempdir().unwrap();
        let check = |cluster: &str, fault: &str| check(directory.path(), &pids, cluster, fault);

        let (code, said) = check(ETCD, SLOW);
        assert_eq!(code, Some(0), "{said}");
        for host in &hosts {
            assert!(said.contains(&host.address.to_string()), "{}: {said}", host.address);
        }
        let refused = |cluster: &str, fault: &str, words: &[&str]| {
            let (code, said) = check(cluster, fault);
            assert!(matches!(code, Some(2 | 4)), "{fault}: {code:?}: {said}");
            assert!(words.iter().all(|word| said.contains(word)), "{fault}: {words:?} are not all in: {said}");
        };
        // Nobody started them with a clock of their own or a disk that can be slow; nobody can start a bare process again.
        let cassandra = "cassandra: '5.0', nodes: 3";
        refused(cassandra, "clock: { host: n2, offset: 5s }", &["clock", "brownout wrap"]);
        refused(cassandra, "disk: { host: n2, delay: 20ms }", &["disk"]);
        refused(ETCD, "kill: { host: n2 }", &["kill"]);
        refused("etcd: '3', nodes: 4", SLOW, &["nodes", "3"]);
        refused(ETCD, "slow: { host: n4, delay: 40ms }", &["n4"]);
        refused("etcd: '3', nodes: 3, settings: { heartbeat-interval: 50 }", SLOW, &["settings"]);

        // The same file as of a lab, put on this ground by hand: what means nothing here is told, and not used.
        let lab = experiment("slow-replica.yaml");
        let ground = format!("--ground=containers: {{ pids: [{pids}] }}");
        let output = brownout(&["check", lab.to_str().unwrap(), &ground]);
        let said = both(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        for key in ["network.congestion-control", "cluster.jit"] {
            assert!(said.contains(key), "{key} is not told: {said}");
        }
    });
}

#[test]
fn who_shares_the_machines_network_and_who_has_ended_is_refused_by_name() {
    require_root();
    apart(&who_shares_the_machines_network_and_who_has_ended_is_refused_by_name, || {
        let directory = tempfile::tempdir().unwrap();
        // This process: its network is that of the machine, where a fault would hit everybody. And a number that none has.
        for pid in [std::process::id().to_string(), "4000000".to_owned()] {
            let (code, said) = check(directory.path(), &pid, "etcd: '3'", "slow: { host: n1, delay: 40ms }");
            assert!(matches!(code, Some(2 | 4)) && said.contains(&pid), "{code:?}: {said}");
        }
    });
}

#[test]
fn ground_shows_each_host_with_what_can_be_done_to_it_and_why_not() {
    require_root();
    apart(&ground_shows_each_host_with_what_can_be_done_to_it_and_why_not, || {
        let hosts = three();
        let idle: Vec<Idle> = hosts.iter().map(Idle::within).collect();
        let pids = idle.iter().map(|one| one.pid().to_string()).collect::<Vec<_>>().join(",");
        let listed = json(&brownout(&["ground", "--pids", &pids, "--json"]));
        let told = listed["hosts"].as_array().unwrap();
        assert_eq!(told.len(), 3, "{listed}");
        for (index, (told, host)) in told.iter().zip(&hosts).enumerate() {
            assert_eq!(told["alias"], format!("n{}", index + 1));
            assert_eq!(told["addresses"][0], host.address.to_string(), "{told}");
            let can: Vec<&str> = told["can"].as_array().unwrap().iter().filter_map(|what| what.as_str()).collect();
            assert!(["links", "pause", "cpu"].iter().all(|what| can.contains(what)), "{told}");
            let cannot = told["cannot"].as_array().unwrap();
            for what in ["restart", "disk", "clock"] {
                let refused = cannot.iter().find(|refused| refused["what"] == what);
                let why = refused.unwrap_or_else(|| panic!("{what} is not refused: {told}"))["why"].as_str().unwrap();
                assert!(!why.is_empty(), "{told}");
            }
        }
        let by_name: Vec<String> = hosts.iter().map(|host| host.namespace.display().to_string()).collect();
        let listed = json(&brownout(&["ground", "--netns", &by_name.join(","), "--json"]));
        assert_eq!(listed["hosts"][2]["addresses"][0], hosts[2].address.to_string(), "{listed}");
        assert_eq!(brownout(&["ground"]).status.code(), Some(2), "who is meant has to be said");
    });
}
