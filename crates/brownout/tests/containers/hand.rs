//! Containers by hand: attached, slowed, cut, paused, looked at and let go, on a cluster that knows nothing of it.

use std::{fs, thread, time::Duration};

use serde_json::Value;

use super::{
    apart::apart,
    common::{
        Processors, STOLEN, TOO_LATE, becomes_quiet, beside_a_sleeper, both, byhand::Workspace, descendants, kill,
        require_root, text, unjudged::not_judged,
    },
    hosts::{Shop, etcd},
    runs::{assert_all_end, assert_goes_on, by_pids, file, is_stopped},
};

/// Attaches to the processes of a shop; the name of the lab.
fn attach(space: &Workspace, shop: &Shop) -> String {
    space.good(&["attach", "--pids", &shop.pids_in_words()]);
    only_lab(space)
}

/// The name of the only lab that is running.
pub fn only_lab(space: &Workspace) -> String {
    let listed = space.json(&["ls", "--json"]);
    let labs = listed["labs"].as_array().unwrap();
    assert_eq!(labs.len(), 1, "{listed}");
    labs[0]["name"].as_str().unwrap().to_owned()
}

/// The host with this address, as `status` tells of it.
pub fn host(space: &Workspace, address: &str) -> Value {
    let seen = space.json(&["status", "--json"]);
    let hosts = seen["hosts"].as_array().unwrap();
    let found = hosts.iter().find(|host| host["address"] == address);
    found.unwrap_or_else(|| panic!("nobody has {address}: {seen}")).clone()
}

/// A short look shows what `slow n2` has put in force, unless the machine itself spoiled it.
pub fn assert_slow_is_proven(space: &Workspace) {
    let mut is_busy = false;
    for _ in 0..4 {
        let before = Processors::now();
        let (seen, late) = beside_a_sleeper(|| space.json(&["status", "--check", "--json"]));
        let checks = seen["checks"].as_array().unwrap();
        let slow = checks.iter().find(|check| check["kind"] == "slow").unwrap_or_else(|| panic!("{checks:?}"));
        if slow["verdict"] == "proven" {
            return;
        }
        assert!(late > TOO_LATE, "a sleeper was {late:?} late at most: {slow}");
        is_busy |= before.stolen() > STOLEN || !becomes_quiet();
    }
    assert!(is_busy, "four looks were late, and the machine is quiet");
    not_judged("the machine spoiled four looks");
}

#[test]
fn the_whole_tour_on_containers_that_others_have_made() {
    require_root();
    etcd();
    apart(&the_whole_tour_on_containers_that_others_have_made, || {
        let mut shop = Shop::open();
        let (mut hit, mut spared) = (shop.connection(0, 1), shop.connection(0, 2));
        hit.assert_fast();
        spared.assert_fast();
        let before = shop.setup();
        let addresses: Vec<String> = shop.hosts.iter().map(|host| host.address.to_string()).collect();
        let space = Workspace::new();
        let lab = attach(&space, &shop);
        before.assert_is_changed();
        hit.assert_fast();
        let keeper = space.keeper(&lab).unwrap();

        let said = space.good(&["slow", "n2", "100ms"]);
        assert!(said.contains("100ms"), "{said}");
        hit.assert_slow(Duration::from_millis(95));
        spared.assert_fast();
        assert!(host(&space, &addresses[1])["network"].to_string().contains("SLOW 100ms"), "{said}");
        assert!(host(&space, &addresses[2])["network"].as_array().unwrap().is_empty());
        assert_slow_is_proven(&space);
        assert!(space.good(&["events", "--json"]).contains("brownout slow n2 100ms"));
        space.good(&["fast", "n2"]);
        hit.assert_fast();

        space.good(&["partition", "n1", "n2,n3"]);
        assert!(hit.is_silent_for(Duration::from_secs(2)), "n1 and n2 are cut");
        space.good(&["join"]);
        hit.catch_up();
        hit.assert_fast();

        let third = shop.pids()[2];
        space.good(&["pause", "n3"]);
        assert!(is_stopped(third));
        assert_eq!(host(&space, &addresses[2])["state"], "PAUSED");
        space.good(&["unpause", "n3"]);
        assert!(!is_stopped(third));

        let refused = space.run(&["clock", "n2", "+5s"]);
        let said = text(&refused.stderr);
        assert!(
            !refused.status.success() && said.contains("the clock of etcd cannot be made wrong"),
            "{}",
            both(&refused)
        );
        // Somebody holds them: who else asks is told who.
        let second = space.run(&["attach", "--pids", &shop.pids_in_words()]);
        let said = text(&second.stderr);
        let is_told = said.contains(&lab) || said.contains(&keeper.to_string());
        assert!(!second.status.success() && is_told, "{}", both(&second));

        a_hung_lab_lets_traffic_pass(&space, keeper, || hit.assert_fast());
        space.good(&["detach"]);
        assert_eq!(space.good(&["ls"]), "no lab is running\n");
        before.assert_is_back();
        hit.assert_fast();
        spared.assert_fast();
        shop.assert_all_live();
    });
}

/// Stops all processes of a lab while a fault is in force, and lets them go on.
fn a_hung_lab_lets_traffic_pass(space: &Workspace, keeper: u32, assert_fast: impl FnOnce()) {
    space.good(&["slow", "n2", "300ms"]);
    let mut processes: Vec<u32> = descendants(keeper).into_iter().map(|(pid, _)| pid).collect();
    processes.push(keeper);
    processes.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
    // After two seconds; what was in flight is sent again then.
    thread::sleep(Duration::from_secs(2));
    assert_fast();
    processes.iter().for_each(|pid| kill(*pid, libc::SIGCONT));
    space.until("it answers again", || space.run(&["status"]).status.success());
    space.good(&["fast", "n2"]);
}

#[test]
fn an_experiment_file_says_by_itself_which_containers_are_attached() {
    require_root();
    etcd();
    apart(&an_experiment_file_says_by_itself_which_containers_are_attached, || {
        let shop = Shop::open();
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), &by_pids(&shop), "{ warm-up: 16s, baseline: 8s }", "  []\n");
        let path = path.to_str().unwrap();
        let before = shop.setup();
        let space = Workspace::new();
        let said = both(&space.run(&["attach", path]));
        assert_eq!(only_lab(&space), "attached", "{said}");
        assert!(said.contains("not used in a lab by hand") && said.contains("phases"), "{said}");
        let mut connection = shop.connection(0, 1);
        space.good(&["slow", "n2", "100ms"]);
        connection.assert_slow(Duration::from_millis(95));
        // It is asked as what the file says that it is.
        let seen = space.json(&["status", "--json"]);
        assert!(seen["system"].as_str().unwrap().starts_with("etcd"), "{seen}");
        space.good(&["detach"]);
        connection.assert_fast();
        before.assert_is_back();

        // Neither a lab of its own is made of it, nor anything attached by a file that names nobody.
        assert!(space.bad(&["up", path], 2).contains("brownout attach FILE"));
        let other = directory.path().join("lab.yaml");
        fs::write(&other, "cluster: { nodes: 3 }\n").unwrap();
        assert!(space.bad(&["attach", other.to_str().unwrap()], 2).contains("it names no containers"));
    });
}

#[test]
fn sigkill_of_the_keeper_in_the_middle_of_faults_leaves_nothing_and_connections_alive() {
    require_root();
    etcd();
    apart(&sigkill_of_the_keeper_in_the_middle_of_faults_leaves_nothing_and_connections_alive, || {
        let mut shop = Shop::open();
        let (mut slow, mut cut) = (shop.connection(0, 1), shop.connection(1, 2));
        slow.assert_fast();
        cut.assert_fast();
        let before = shop.setup();
        let space = Workspace::new();
        let lab = attach(&space, &shop);
        space.good(&["slow", "n2", "200ms"]);
        space.good(&["link", "n3", "n2", "20%"]);
        space.good(&["pause", "n3"]);
        space.good(&["cpu", "n1", "50%"]);
        slow.assert_slow(Duration::from_millis(190));
        before.assert_is_changed();
        let third = shop.pids()[2];
        assert!(is_stopped(third));

        let keeper = space.keeper(&lab).unwrap();
        let processes = descendants(keeper);
        kill(keeper, libc::SIGKILL);
        slow.assert_fast();
        cut.assert_fast();
        before.assert_is_back();
        shop.pids().into_iter().for_each(assert_goes_on);
        assert_all_end(&processes);
        assert_eq!(space.good(&["ls"]), "no lab is running\n");
        shop.assert_all_live();
        // And nobody holds them any more.
        attach(&space, &shop);
        space.good(&["detach"]);
        before.assert_is_back();
    });
}
