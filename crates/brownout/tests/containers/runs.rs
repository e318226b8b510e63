//! Runs of an experiment on containers: proven where it hits and where it must not, refuted when it was not put in force, and
//! nothing left in the end, by whomever it was ended.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
    thread,
    time::{Duration, Instant},
};

use super::{
    apart::apart,
    common::{Running, alive, both, brownout, descendants, require_root, undisturbed},
    findings::{LINK_FAULTS, LINK_KINDS, LINK_PHASES, assert_all_are, named, pairs},
    hosts::{Shop, etcd},
};

const PHASES: &str = "{ warm-up: 16s, baseline: 8s, fault: 11s, recovery: 8s }";
const SLOW: &str = "  - slow: { host: n2, delay: 40ms }\n";

/// The processes of a shop, as a file's `ground.containers` has them.
pub fn by_pids(shop: &Shop) -> String {
    format!("pids: [{}]", shop.pids_in_words())
}

/// An experiment on these containers.
pub fn file(directory: &Path, containers: &str, phases: &str, faults: &str) -> PathBuf {
    let path = directory.join("attached.yaml");
    let text = format!(
        "ground: {{ containers: {{ {containers} }} }}\n\
         cluster: {{ etcd: '3', nodes: 3 }}\n\
         load: {{ mix: {{ put: 1, range: 1 }}, population: 500, rate: 300/s, timeout: 2s }}\n\
         phases: {phases}\n\
         faults:\n{faults}\
         trials: 1\nwithout-fault: 0\nattempts: 1\nobjective: {{ p95: 2s }}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

fn run(out: &Path, shop: &Shop, phases: &str, faults: &str, more: &[&str]) -> Output {
    let file = file(out, &by_pids(shop), phases, faults);
    let (file, out) = (file.to_str().unwrap().to_owned(), out.join("runs"));
    let mut arguments = vec!["run", file.as_str(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

#[test]
fn a_slow_container_is_proven_and_its_connections_outlive_all_of_it() {
    require_root();
    // What has to be fetched is fetched where there is a way to it.
    etcd();
    apart(&a_slow_container_is_proven_and_its_connections_outlive_all_of_it, || {
        let mut shop = Shop::open();
        let mut connection = shop.connection(0, 1);
        connection.assert_fast();
        let before = shop.setup();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, PHASES, SLOW, &[])) else { return };
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
        let fault = &findings["trials"][0]["faults"][0];
        assert_eq!(fault["verdict"], "proven", "{fault}");

        // All that the second host sends, to the machine too; the nine other ways are spared.
        let second = named(&findings, shop.hosts[1].address);
        let hit = pairs(fault, "one-way-delay", true);
        assert!(hit.len() == 3 && hit.iter().all(|(from, _)| *from == second), "{second}: {hit:?}");
        assert!(hit.iter().any(|(_, to)| to == "load"), "{hit:?}");
        assert_eq!(pairs(fault, "one-way-delay", false).len(), 9, "{fault}");
        assert_eq!(findings["environment"]["privilege"], "root");
        assert_eq!(findings["trials"][0]["balance"]["balances"], true, "{}", findings["trials"][0]["balance"]);

        connection.assert_fast();
        before.assert_is_back();
        shop.assert_all_live();
    });
}

#[test]
fn sigkill_of_a_run_in_the_middle_of_its_fault_leaves_nothing_and_connections_alive() {
    require_root();
    etcd();
    apart(&sigkill_of_a_run_in_the_middle_of_its_fault_leaves_nothing_and_connections_alive, || {
        let mut shop = Shop::open();
        let mut connection = shop.connection(0, 1);
        connection.assert_fast();
        let before = shop.setup();
        let out = tempfile::tempdir().unwrap();
        let phases = "{ warm-up: 16s, baseline: 5s, fault: 40s, recovery: 6s }";
        let faults = "
  - slow: { host: n2, delay: 200ms }
  - flaky: { host: n3, loss: 20% }
  - pause: { host: n3 }
";
        let file = file(out.path(), &by_pids(&shop), phases, faults);
        let runs = out.path().join("runs");
        let mut running = Running::start(&[file.to_str().unwrap(), "--out", runs.to_str().unwrap()]);
        running.wait_for("fault  ");
        connection.assert_slow(Duration::from_millis(190));
        before.assert_is_changed();
        let processes = descendants(running.child.id());
        running.signal(libc::SIGKILL);
        running.child.wait().unwrap();
        connection.assert_fast();
        before.assert_is_back();
        shop.pids().into_iter().for_each(assert_goes_on);
        assert_all_end(&processes);
        shop.assert_all_live();
    });
}

#[test]
#[ignore = "the proof of a fault whose probes are lost is tested in analysis; here, once more, by a real firewall: make test-long"]
fn where_a_firewall_eats_the_probes_a_fault_is_not_proven_and_the_reason_names_it() {
    require_root();
    etcd();
    apart(&where_a_firewall_eats_the_probes_a_fault_is_not_proven_and_the_reason_names_it, || {
        let mut shop = Shop::open();
        shop.hosts[1].eats_probes();
        let mut connection = shop.connection(0, 1);
        connection.assert_fast();
        let before = shop.setup();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, PHASES, SLOW, &[])) else { return };
        // It is in force, and the database's packets are late; but nobody has seen it.
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        let fault = &findings["trials"][0]["faults"][0];
        assert_eq!(fault["verdict"], "unproven", "{fault}");
        let reasons: Vec<&str> = fault["reasons"].as_array().unwrap().iter().filter_map(|why| why.as_str()).collect();
        let words = "probes arrived before any fault: a firewall or a network policy drops them";
        assert!(reasons.iter().any(|why| why.contains(words)), "{reasons:?}");
        before.assert_is_back();
        shop.assert_all_live();
    });
}

/// Within ten seconds a process is not stopped.
pub fn assert_goes_on(pid: u32) {
    within_ten_seconds(&format!("process {pid} goes on"), || !is_stopped(pid));
}

/// Within ten seconds none of these lives: one that heals what a killed one has left does so first.
pub fn assert_all_end(processes: &BTreeSet<(u32, u64)>) {
    within_ten_seconds(&format!("none of {processes:?} lives"), || alive(processes).is_empty());
}

/// Within ten seconds it is so.
pub fn within_ten_seconds(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "not after 10 s: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whether signals, or a freezer, hold a process. A frozen one sleeps without an end: it uses no processor meanwhile.
pub fn is_stopped(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let state = status.rsplit_once(") ").unwrap().1.chars().next().unwrap();
    let freezers = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let is_frozen = |line: &str| {
        let (controllers, group) = line.split_once(':').unwrap().1.split_once(':').unwrap();
        let files: &[&str] = match controllers {
            "freezer" => &["/sys/fs/cgroup/freezer{}/freezer.state"],
            // The second one is where both versions are mounted.
            "" => &["/sys/fs/cgroup{}/cgroup.freeze", "/sys/fs/cgroup/unified{}/cgroup.freeze"],
            _ => return false,
        };
        let states = files.iter().filter_map(|file| fs::read_to_string(file.replace("{}", group)).ok());
        states.into_iter().any(|state| matches!(state.trim(), "FROZEN" | "1"))
    };
    state == 'T' || freezers.lines().any(is_frozen)
}

#[test]
#[ignore = "two minutes: every fault of links on containers: make test-long"]
fn every_fault_of_links_is_proven_on_containers() {
    require_root();
    etcd();
    apart(&every_fault_of_links_is_proven_on_containers, || {
        let shop = Shop::open();
        let before = shop.setup();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, LINK_PHASES, LINK_FAULTS, &[])) else {
            return;
        };
        assert_all_are("proven", &LINK_KINDS, &findings);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        before.assert_is_back();
    });
}

#[test]
#[ignore = "two minutes: every fault of links that was not put in force: make test-long"]
fn every_fault_of_links_is_refuted_on_containers_when_it_was_not_put_in_force() {
    require_root();
    etcd();
    apart(&every_fault_of_links_is_refuted_on_containers_when_it_was_not_put_in_force, || {
        let shop = Shop::open();
        let before = shop.setup();
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, LINK_PHASES, LINK_FAULTS, &["--sabotage"]))
        else {
            return;
        };
        assert_all_are("refuted", &LINK_KINDS, &findings);
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        before.assert_is_back();
    });
}

#[test]
#[ignore = "a run of its own: faults of processes on containers: make test-long"]
fn pauses_and_shares_of_processors_are_proven_on_containers() {
    require_root();
    etcd();
    apart(&pauses_and_shares_of_processors_are_proven_on_containers, || {
        let mut shop = Shop::open();
        let faults = "
  - pause: { host: n2 }
    start: 0s
    length: 8s
  - cpu: { host: n3, share: 1% }
    start: 12s
    length: 8s
";
        let phases = "{ warm-up: 20s, baseline: 12s, fault: 22s, recovery: 10s }";
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, phases, faults, &[])) else { return };
        assert_all_are("proven", &["pause", "cpu"], &findings);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        shop.pids().into_iter().for_each(assert_goes_on);
        shop.assert_all_live();
    });
}
