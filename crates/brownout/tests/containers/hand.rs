//! Containers by hand: attached, slowed, cut, paused, looked at and let go, on a cluster that knows nothing of it.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    apart::apart,
    common::{
        Processors, STOLEN, TOO_LATE, becomes_quiet, beside_a_sleeper, both, byhand::Place, descendants, kill, not_judged,
        require_root, text,
    },
    hosts::{Shop, etcd},
    runs::{assert_all_end, assert_goes_on, is_stopped},
};

/// Attaches to the processes of a shop; the name of the lab.
fn attach(place: &Place, shop: &Shop) -> String {
    place.good(&["attach", "--pids", &shop.pids_in_words()]);
    only_lab(place)
}

/// The name of the only lab that is running.
pub fn only_lab(place: &Place) -> String {
    let listed = place.json(&["ls", "--json"]);
    let labs = listed["labs"].as_array().unwrap();
    assert_eq!(labs.len(), 1, "{listed}");
    labs[0]["name"].as_str().unwrap().to_owned()
}

/// The host with this address, as `status` tells of it.
pub fn host(place: &Place, address: &str) -> Value {
    let seen = place.json(&["status", "--json"]);
    let hosts = seen["hosts"].as_array().unwrap();
    let found = hosts.iter().find(|host| host["address"] == address);
    found.unwrap_or_else(|| panic!("nobody has {address}: {seen}")).clone()
}

/// A short look shows what `slow n2` has put in force, unless the machine itself spoiled it.
pub fn assert_slow_is_proven(place: &Place) {
    let mut is_busy = false;
    for _ in 0..4 {
        let before = Processors::now();
        let (seen, late) = beside_a_sleeper(|| place.json(&["status", "--check", "--json"]));
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
        let place = Place::new();
        let lab = attach(&place, &shop);
        before.assert_is_changed();
        hit.assert_fast();
        let keeper = place.keeper(&lab).unwrap();

        let said = place.good(&["slow", "n2", "100ms"]);
        assert!(said.contains("100ms"), "{said}");
        hit.assert_slow(Duration::from_millis(95));
        spared.assert_fast();
        assert!(host(&place, &addresses[1])["network"].to_string().contains("SLOW 100ms"), "{said}");
        assert!(host(&place, &addresses[2])["network"].as_array().unwrap().is_empty());
        assert_slow_is_proven(&place);
        assert!(place.good(&["events", "--json"]).contains("brownout slow n2 100ms"));
        place.good(&["fast", "n2"]);
        hit.assert_fast();

        place.good(&["partition", "n1", "n2,n3"]);
        assert!(hit.is_silent_for(Duration::from_secs(2)), "n1 and n2 are cut");
        place.good(&["join"]);
        hit.catch_up();
        hit.assert_fast();

        let third = shop.pids()[2];
        place.good(&["pause", "n3"]);
        assert!(is_stopped(third));
        assert_eq!(host(&place, &addresses[2])["state"], "PAUSED");
        place.good(&["unpause", "n3"]);
        assert!(!is_stopped(third));

        let refused = place.run(&["clock", "n2", "+5s"]);
        assert!(!refused.status.success() && text(&refused.stderr).contains("brownout wrap"), "{}", both(&refused));
        // Somebody holds them: who else asks is told who.
        let second = place.run(&["attach", "--pids", &shop.pids_in_words()]);
        let said = text(&second.stderr);
        let is_told = said.contains(&lab) || said.contains(&keeper.to_string());
        assert!(!second.status.success() && is_told, "{}", both(&second));

        a_hung_lab_lets_traffic_pass(&place, keeper, || hit.assert_fast());
        place.good(&["detach"]);
        assert_eq!(place.good(&["ls"]), "no lab is running\n");
        before.assert_is_back();
        hit.assert_fast();
        spared.assert_fast();
        shop.assert_all_live();
    });
}

/// Stops all processes of a lab while a fault is in force, and lets them go on.
fn a_hung_lab_lets_traffic_pass(place: &Place, keeper: u32, assert_fast: impl FnOnce()) {
    place.good(&["slow", "n2", "300ms"]);
    let mut processes: Vec<u32> = descendants(keeper).into_iter().map(|(pid, _)| pid).collect();
    processes.push(keeper);
    processes.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
    // After two seconds; what was in flight is sent again then.
    thread::sleep(Duration::from_secs(2));
    assert_fast();
    processes.iter().for_each(|pid| kill(*pid, libc::SIGCONT));
    place.until("it answers again", || place.run(&["status"]).status.success());
    place.good(&["fast", "n2"]);
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
        let place = Place::new();
        let lab = attach(&place, &shop);
        place.good(&["slow", "n2", "200ms"]);
        place.good(&["link", "n3", "n2", "20%"]);
        place.good(&["pause", "n3"]);
        place.good(&["cpu", "n1", "50%"]);
        slow.assert_slow(Duration::from_millis(190));
        before.assert_is_changed();
        let third = shop.pids()[2];
        assert!(is_stopped(third));

        let keeper = place.keeper(&lab).unwrap();
        let processes = descendants(keeper);
        kill(keeper, libc::SIGKILL);
        slow.assert_fast();
        cut.assert_fast();
        before.assert_is_back();
        shop.pids().into_iter().for_each(assert_goes_on);
        assert_all_end(&processes);
        assert_eq!(place.good(&["ls"]), "no lab is running\n");
        shop.assert_all_live();
        // And nobody holds them any more.
        attach(&place, &shop);
        place.good(&["detach"]);
        before.assert_is_back();
    });
}
