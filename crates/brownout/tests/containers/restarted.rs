//! Containers that are started again while they are attached: in a network that is new, with the same address.

use std::time::Duration;

use brownout_record::{Event, ProbeSample, Run};

use super::{
    apart::apart,
    common::{Running, byhand::Workspace, only_run, require_root},
    engine::Engine,
    hand::assert_slow_is_proven,
    hosts::{Shop, etcd, three},
    look::Connection,
    runs::file,
};

const MS: u64 = 1_000_000;
/// What is asked, less what a clock may err by.
const LATE_NS: u64 = 190 * MS;

/// The name of the container that is started again.
const SECOND: &str = "shop-2";

#[test]
#[ignore = "a run of more than a minute; the same by hand is below: make test-long"]
fn a_container_that_is_started_again_in_mid_fault_is_hit_again_and_measured_again() {
    require_root();
    etcd();
    apart(&a_container_that_is_started_again_in_mid_fault_is_hit_again_and_measured_again, || {
        let mut shop = Shop::open();
        let engine = Engine::of(&shop.hosts, &shop.pids());
        let out = tempfile::tempdir().unwrap();
        let phases = "{ warm-up: 16s, baseline: 8s, fault: 40s, recovery: 8s }";
        let file = file(out.path(), &engine.ground(), phases, "  - slow: { host: n2, delay: 200ms }\n");
        let runs = out.path().join("runs");
        let mut running = Running::start(&[file.to_str().unwrap(), "--out", runs.to_str().unwrap()]);
        running.wait_for("fault  ");
        shop.connection(0, 1).assert_slow(Duration::from_nanos(LATE_NS));

        engine.runs(SECOND, None);
        let pid = shop.start_again(1);
        engine.runs(SECOND, Some(pid));
        // Those of before are gone with their network.
        shop.connection(0, 1).assert_slow(Duration::from_nanos(LATE_NS));
        shop.connection(0, 2).assert_fast();
        let (code, said) = running.finish();
        // What it shows is no result of the fault: nobody has asked for the end of the node.
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("was started again by its runtime or by somebody else"), "{said}");
        assert_measured_again(&Run::open(&only_run(&runs)).unwrap());
    });
}

/// The record of the run above: the gap is told, and no probe of it counts; then there are probes again, and they are late.
fn assert_measured_again(run: &Run) {
    let events = run.events_of(1).unwrap();
    let first = |kind: &str| {
        let is_it = |event: &&Event| event.kind == kind && event.subject == SECOND;
        events.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} of {SECOND}: {events:?}"))
    };
    let (died, back) = (first("node-died"), first("reattached"));
    let gap_ns = back.at_ns.saturating_sub(died.at_ns);
    assert!(gap_ns > 0 && gap_ns < 10_000 * MS, "{gap_ns} ns: {died:?} {back:?}");
    assert!(!events.iter().any(|event| event.kind == "not-reattached"), "{events:?}");
    let healed_ns = run.faults(1).unwrap()[0].healed().unwrap().at_ns;

    let probes = run.probes(1).unwrap();
    let of = |from: &str, to: &str| -> Vec<ProbeSample> {
        let rows = probes.iter().filter(|row| row.from == from && row.to == to);
        rows.flat_map(|row| row.samples.clone()).collect()
    };
    let between = |samples: &[ProbeSample], from_ns: u64, to_ns: u64| -> Vec<ProbeSample> {
        samples.iter().filter(|one| (from_ns..to_ns).contains(&one.sent_ns)).cloned().collect()
    };
    for other in ["shop-1", "shop-3", "load"] {
        let (sent, received) = (of(SECOND, other), of(other, SECOND));
        // When it was seen to have ended is known to its error.
        let since_ns = died.at_ns.saturating_sub(died.error_ns);
        for samples in [&sent, &received] {
            let of_gap = between(samples, since_ns, back.at_ns);
            assert!(of_gap.iter().all(|one| one.delay_ns.is_some()), "{other}: {of_gap:?}");
            let after = between(samples, back.at_ns, healed_ns);
            assert!(after.len() > 100, "{other}: {} probes since it is back", after.len());
            let arrived = after.iter().filter(|one| one.delay_ns.is_some()).count();
            assert!(arrived * 10 > after.len() * 9, "{other}: {arrived} of {}", after.len());
        }
        // On healing what is held is let go.
        let late = between(&sent, back.at_ns, healed_ns - 500 * MS);
        let late: Vec<u64> = late.iter().filter_map(|one| one.delay_ns).collect();
        let is_late = late.iter().filter(|delay| **delay >= LATE_NS).count();
        assert!(is_late * 10 > late.len() * 9, "{SECOND} → {other}: {is_late} of {} are late", late.len());
    }
    // Nothing happens to the others meanwhile.
    let others = between(&of("shop-1", "shop-3"), died.at_ns, back.at_ns + 1_000 * MS);
    assert!(others.len() > 20 && others.iter().all(|one| one.delay_ns.is_some()), "{others:?}");
}

#[test]
fn by_hand_a_network_that_is_made_anew_is_attached_again_with_what_is_in_force_on_it() {
    require_root();
    apart(&by_hand_a_network_that_is_made_anew_is_attached_again_with_what_is_in_force_on_it, || {
        let hosts = three();
        let between = |from: usize, to: usize| {
            Connection::between(&hosts[from].namespace, &hosts[to].namespace, hosts[to].address)
        };
        let networks: Vec<String> = hosts.iter().map(|host| host.namespace.display().to_string()).collect();
        let space = Workspace::new();
        space.good(&["attach", "--netns", &networks.join(",")]);
        space.good(&["slow", "n2", "100ms"]);
        between(0, 1).assert_slow(Duration::from_millis(95));

        hosts[1].make_anew();
        space.until("it is attached again", || space.good(&["events", "--json"]).contains("\"reattached\""));
        between(0, 1).assert_slow(Duration::from_millis(95));
        between(0, 2).assert_fast();
        assert_slow_is_proven(&space);
        assert!(space.good(&["status"]).contains("SLOW 100ms"));
        space.good(&["detach"]);
        between(0, 1).assert_fast();
    });
}
