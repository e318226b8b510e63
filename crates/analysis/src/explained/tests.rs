//! Clusters small enough to be enumerated by hand.

use std::collections::BTreeMap;

use brownout_record::{Expectation, NodePlacement, OperationPlacement, PairDistance, Severity, Subject};

use super::{delayed::Delayed, touched::touched, *};

const MS: f64 = 1e6;

/// `dc.rack` of each node, evenly spaced, and as many copies in each data centre; `read` and `write`, one to one.
fn placement(nodes: &str, copies: u32, consistency: &str, coordinators: &str) -> Placement {
    let words: Vec<&str> = nodes.split_whitespace().collect();
    let step = (1_i128 << 64) / words.len() as i128;
    let ring: Vec<NodePlacement> = (words.iter().enumerate())
        .map(|(at, word)| {
            let (site, rack) = word.split_once('.').unwrap();
            let token = (i128::from(i64::MIN) + at as i128 * step) as i64;
            NodePlacement { node: format!("n{}", at + 1), token, site: site.into(), rack: rack.into() }
        })
        .collect();
    let copies: BTreeMap<String, u32> = ring.iter().map(|node| (node.site.clone(), copies)).collect();
    let operation = |name: &str| OperationPlacement {
        operation: name.to_owned(),
        reads: name == "read",
        share: Some(0.5),
        consistency: consistency.to_owned(),
        copies: copies.clone(),
        rows: 1_000_000,
    };
    Placement {
        coordinators: coordinators.to_owned(),
        asked: ring.iter().map(|node| node.node.clone()).collect(),
        operations: vec![operation("read"), operation("write")],
        distances: Vec::new(),
        ring,
    }
}

fn three(copies: u32, consistency: &str, coordinators: &str) -> Placement {
    placement("a.r a.r a.r", copies, consistency, coordinators)
}

/// Three sites of three nodes; a → b takes 10 ms, a → c 40 ms, b → c 50 ms, each way. The load is in a.
fn three_sites(consistency: &str, asked: &[&str]) -> Placement {
    let mut placement = placement("a.r b.r c.r a.r b.r c.r a.r b.r c.r", 3, consistency, "token-aware");
    placement.asked.retain(|node| asked.is_empty() || asked.contains(&node.as_str()));
    let hosts: Vec<(String, String)> = (placement.ring.iter().map(|node| (node.node.clone(), node.site.clone())))
        .chain([("load".to_owned(), "a".to_owned())])
        .collect();
    for (from, here) in &hosts {
        for (to, there) in &hosts {
            let ms = match (here.as_str(), there.as_str()) {
                ("a", "b") | ("b", "a") => 10,
                ("a", "c") | ("c", "a") => 40,
                ("b", "c") | ("c", "b") => 50,
                _ => continue,
            };
            let delay_ns = ms * 1_000_000;
            placement.distances.push(PairDistance { from: from.clone(), to: to.clone(), delay_ns, least_ns: delay_ns });
        }
    }
    placement
}

fn fault(quantity: Quantity, asked: f64, hits: Vec<Subject>) -> FaultRecord {
    let expectations = hits.into_iter().map(|subject| Expectation {
        subject,
        quantity,
        hit: true,
        asked,
        tolerance: 0.0,
        burst: None,
    });
    FaultRecord {
        index: 0,
        kind: quantity.to_string(),
        text: String::new(),
        effect: String::new(),
        unsettled_ns: 0,
        severities: vec![Severity { text: String::new(), expectations: expectations.collect() }],
        periods: Vec::new(),
    }
}

/// Everything that a node sends is late.
fn slow(placement: &Placement, node: &str, ms: f64) -> FaultRecord {
    let others = placement.ring.iter().map(|other| other.node.as_str()).chain(["load"]).filter(|other| *other != node);
    let hits = others.map(|other| Subject::pair(node, other)).collect();
    fault(Quantity::OneWayDelay, ms * MS, hits)
}

/// Every way is itself.
fn direct() -> Routes {
    Routes::new("", &[])
}

fn plain(placement: &Placement) -> Result<Model<'_>, String> {
    Model::new(placement, "load", &direct(), None)
}

fn model(placement: &Placement) -> Model<'_> {
    plain(placement).unwrap()
}

/// Of reads and of writes: must, may.
fn shares(placement: &Placement, fault: &FaultRecord) -> [(f64, f64); 2] {
    let model = model(placement);
    let rows = touched(&model, &[fault]);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.operation.as_deref() == Some(name)).unwrap();
        (row.must, row.may)
    };
    let (read, write) = (of("read"), of("write"));
    let all = rows.iter().find(|row| row.operation.is_none()).unwrap();
    assert!((all.must - (read.0 + write.0) / 2.0).abs() < 1e-9 && (all.may - (read.1 + write.1) / 2.0).abs() < 1e-9);
    [read, write]
}

#[track_caller]
fn same(found: [(f64, f64); 2], read: (f64, f64), write: (f64, f64)) {
    let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9;
    assert!(near(found[0], read) && near(found[1], write), "reads and writes {found:?}, not {read:?} and {write:?}");
}

const THIRD: f64 = 1.0 / 3.0;

#[test]
fn the_share_that_one_slow_node_of_three_touches_is_that_of_enumeration_by_hand() {
    let both = |share: f64| (share, share);
    for (copies, level, coordinators, read, write) in [
        // One copy: its owner coordinates, whatever the level.
        (1, "one", "token-aware", both(THIRD), both(THIRD)),
        (1, "quorum", "token-aware", both(THIRD), both(THIRD)),
        (1, "all", "token-aware", both(THIRD), both(THIRD)),
        // n2 coordinates a third, and holds a third of the others' rows.
        (1, "one", "round-robin", both(5.0 / 9.0), both(5.0 / 9.0)),
        (1, "quorum", "round-robin", both(5.0 / 9.0), both(5.0 / 9.0)),
        (1, "all", "round-robin", both(5.0 / 9.0), both(5.0 / 9.0)),
        // Two copies: n2 holds two thirds, and coordinates half of those.
        (2, "one", "token-aware", (THIRD, 2.0 * THIRD), both(THIRD)),
        (2, "quorum", "token-aware", both(2.0 * THIRD), both(2.0 * THIRD)),
        (2, "quorum", "round-robin", both(7.0 / 9.0), both(7.0 / 9.0)),
        // Three copies: reads of the others may ask n2; their writes have enough answers without it.
        (3, "one", "token-aware", (THIRD, 1.0), both(THIRD)),
        (3, "quorum", "token-aware", (THIRD, 1.0), both(THIRD)),
        (3, "quorum", "round-robin", (THIRD, 1.0), both(THIRD)),
        (3, "all", "token-aware", both(1.0), both(1.0)),
        (3, "all", "round-robin", both(1.0), both(1.0)),
        (3, "any", "token-aware", both(THIRD), both(THIRD)),
    ] {
        let placement = three(copies, level, coordinators);
        same(shares(&placement, &slow(&placement, "n2", 100.0)), read, write);
        // What stops the node touches the same.
        same(shares(&placement, &fault(Quantity::Running, -1.0, vec![Subject::host("n2")])), read, write);
    }
}

#[test]
fn a_link_touches_what_goes_over_it_and_no_more() {
    let quorum = three(3, "quorum", "token-aware");
    let link = |from: &str, to: &str| fault(Quantity::Loss, 0.1, vec![Subject::pair(from, to)]);
    // n1 may ask n2, and n2 may ask n1, whose answer comes over it.
    same(shares(&quorum, &link("n1", "n2")), (0.0, 2.0 * THIRD), (0.0, 0.0));
    let all = three(3, "all", "token-aware");
    same(shares(&all, &link("n1", "n2")), (2.0 * THIRD, 2.0 * THIRD), (2.0 * THIRD, 2.0 * THIRD));
    same(shares(&quorum, &link("load", "n3")), (THIRD, THIRD), (THIRD, THIRD));
    let owner = three(1, "quorum", "token-aware");
    same(shares(&owner, &link("n1", "n2")), (0.0, 0.0), (0.0, 0.0));
}

#[test]
fn a_disk_touches_the_operations_of_its_kind_that_its_node_answers() {
    let data = |quantity| fault(quantity, 20.0 * MS, vec![Subject::directory("n2", "data")]);
    let log = |quantity| fault(quantity, 20.0 * MS, vec![Subject::directory("n2", "commitlog")]);
    let one = three(1, "one", "token-aware");
    let quorum = three(3, "quorum", "token-aware");
    same(shares(&one, &data(Quantity::ReadTime)), (THIRD, THIRD), (0.0, 0.0));
    same(shares(&one, &log(Quantity::SyncTime)), (0.0, 0.0), (THIRD, THIRD));
    // A coordinator can leave its own disk to others.
    same(shares(&quorum, &data(Quantity::ReadErrors)), (0.0, 1.0), (0.0, 0.0));
    same(shares(&three(3, "all", "token-aware"), &log(Quantity::WriteDelayed)), (0.0, 0.0), (1.0, 1.0));
    let hints = fault(Quantity::SyncTime, 20.0 * MS, vec![Subject::directory("n2", "hints")]);
    same(shares(&one, &hints), (0.0, 0.0), (0.0, 0.0));
}

#[test]
fn local_quorum_is_touched_by_its_own_site_alone() {
    // The nodes of a are n1, n4, n7; those of b n2, n5, n8.
    let near = three_sites("local-quorum", &["n1", "n4", "n7"]);
    same(shares(&near, &slow(&near, "n4", 100.0)), (THIRD, 1.0), (THIRD, THIRD));
    same(shares(&near, &slow(&near, "n5", 100.0)), (0.0, 0.0), (0.0, 0.0));
    let between: Vec<Subject> =
        ["n1", "n4", "n7"].iter().flat_map(|from| ["n2", "n5", "n8"].map(|to| Subject::pair(*from, to))).collect();
    same(shares(&near, &fault(Quantity::Loss, 1.0, between)), (0.0, 0.0), (0.0, 0.0));
    // With coordinators everywhere, a third of all is asked in each site.
    let anywhere = three_sites("local-quorum", &[]);
    same(shares(&anywhere, &slow(&anywhere, "n4", 100.0)), (THIRD / 3.0, THIRD), (THIRD / 3.0, THIRD / 3.0));
}

#[test]
fn a_write_may_wait_for_a_replica_farther_away_or_for_who_forwards_it() {
    // A majority of nine from a: all of a, and two of b.
    let near = three_sites("quorum", &["n1", "n4", "n7"]);
    let forwarder = slow(&near, "n5", 100.0);
    same(shares(&near, &forwarder), (0.0, 1.0), (0.0, 1.0));
    let [least, most] = extra(&near, &forwarder, "write");
    assert_eq!(least.mean_ns, 0.0);
    // Forwarded by n5, the others of b answer too late: two of c do after 80 ms instead of 20 ms.
    assert!((most.delay_ns - 60.0 * MS).abs() < 1.0 && (most.share - 1.0).abs() < 1e-9, "{most:?}");
    let [_, most] = extra(&near, &forwarder, "read");
    assert!((most.delay_ns - 100.0 * MS).abs() < 1.0, "a read waits for whom it asked: {most:?}");
    // At EACH_QUORUM from a, both others have to answer.
    let each = three_sites("each-quorum", &["n1", "n4", "n7"]);
    same(shares(&each, &slow(&each, "n3", 100.0)), (0.0, 1.0), (0.0, 1.0));
    let two = {
        let mut two = slow(&each, "n3", 100.0);
        two.severities.extend(slow(&each, "n6", 100.0).severities);
        two
    };
    same(shares(&each, &two), (1.0, 1.0), (1.0, 1.0));
}

/// What is added to an operation: at least, at most.
fn extra(placement: &Placement, fault: &FaultRecord, operation: &str) -> [Delayed; 2] {
    let model = model(placement);
    let with = Delays::of(placement, &model.hosts, &[fault], Packet::Usual);
    let own = model.operations.iter().find(|one| one.plan.operation == operation).unwrap();
    let all = delayed::of_operation(&model, own, &with, 5_000_000_000);
    [delayed::delayed(&all, |one| one.least_ns), delayed::delayed(&all, |one| one.most_ns)]
}

#[test]
fn what_a_slow_node_adds_counts_each_way_over_it() {
    let is = |found: Delayed, share: f64, ms: f64| {
        assert!((found.share - share).abs() < 1e-9 && (found.delay_ns - ms * MS).abs() < 1.0, "{found:?}");
    };
    let one = three(1, "quorum", "token-aware");
    let slow_by = |placement: &Placement| slow(placement, "n2", 20.0);
    // The owner is asked, and its answer is late: exactly a third, once.
    for name in ["read", "write"] {
        let [least, most] = extra(&one, &slow_by(&one), name);
        is(least, THIRD, 20.0);
        is(most, THIRD, 20.0);
    }
    // n2 as coordinator asks late and answers late; reads of others may ask it.
    let quorum = three(3, "quorum", "token-aware");
    let [least, most] = extra(&quorum, &slow_by(&quorum), "read");
    is(least, THIRD, 40.0);
    is(most, 1.0, 80.0 / 3.0);
    let [least, most] = extra(&quorum, &slow_by(&quorum), "write");
    is(least, THIRD, 40.0);
    is(most, THIRD, 40.0);
    // A row of n2's asked of another comes late once; one of another's asked of n2 twice.
    let robin = three(1, "one", "round-robin");
    let [least, _] = extra(&robin, &slow_by(&robin), "read");
    is(least, 5.0 / 9.0, (20.0 * 3.0 + 40.0 * 2.0) / 5.0);
}

fn least(placement: &Placement, faults: &[&FaultRecord], coordinator: &str) -> f64 {
    let model = model(placement);
    let delays = Delays::of(placement, &model.hosts, faults, Packet::Quick);
    let at = placement.ring.iter().position(|node| node.node == coordinator).unwrap();
    let ways = model.operations[0].ways.iter().filter(|way| way.coordinator == at);
    ways.map(|way| way.least(model.hosts.load(), &delays)).fold(f64::INFINITY, f64::min) / MS
}

#[test]
fn the_least_latency_is_that_of_the_nearest_replicas_that_are_enough() {
    for (level, from_a, from_b, from_c) in [
        ("local-quorum", 0.0, 20.0, 80.0),
        // a: all of a and two of b; b: all of b and two of a; c: all of c and two of a.
        ("quorum", 20.0, 20.0 + 20.0, 80.0 + 80.0),
        ("each-quorum", 80.0, 20.0 + 100.0, 80.0 + 100.0),
        ("all", 80.0, 20.0 + 100.0, 80.0 + 100.0),
        ("one", 0.0, 20.0, 80.0),
    ] {
        let placement = three_sites(level, &[]);
        let found = ["n1", "n2", "n3"].map(|node| least(&placement, &[], node));
        assert_eq!(found, [from_a, from_b, from_c], "{level}");
    }
    // Whoever else answers in time spares a quorum the slow one; ALL waits for it.
    let quorum = three_sites("quorum", &[]);
    assert_eq!(least(&quorum, &[&slow(&quorum, "n5", 100.0)], "n1"), 20.0);
    let all = three_sites("all", &[]);
    assert_eq!(least(&all, &[&slow(&all, "n5", 100.0)], "n1"), 120.0);
}

#[test]
fn jitter_and_overtaking_make_the_least_delay_smaller() {
    let placement = three(1, "one", "token-aware");
    let hosts = Hosts::new(&placement, "load", &direct());
    let mut late = fault(Quantity::OneWayDelay, 100.0 * MS, vec![Subject::pair("n2", "load")]);
    let of = |late: &FaultRecord| {
        [Packet::Usual, Packet::Quick, Packet::Quickest]
            .map(|packet| Delays::of(&placement, &hosts, &[late], packet).hop((1, hosts.load())) / MS)
    };
    late.severities[0].expectations[0].tolerance = 2.0 * MS;
    assert_eq!(of(&late), [100.0, 100.0, 96.0]);
    let spread = fault(Quantity::DelaySpread, 16.0 * MS, vec![Subject::pair("n2", "load")]).severities.remove(0);
    late.severities[0].expectations.extend(spread.expectations);
    assert_eq!(of(&late), [100.0, 84.0, 64.0]);
    let skipped = fault(Quantity::Reordered, 0.1, vec![Subject::pair("n2", "load")]).severities.remove(0);
    late.severities[0].expectations.extend(skipped.expectations);
    assert_eq!(of(&late), [100.0, 0.0, 0.0]);
}

/// Members of etcd; `put`, `range`, `serializable` and `txn`, one to one, asked of these.
fn etcd(members: usize, coordinators: &str, asked: &[&str]) -> Placement {
    let node = |at: usize| NodePlacement {
        node: format!("n{}", at + 1),
        token: 0,
        site: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
    };
    let operation = |(name, reads, consistency): (&str, bool, &str)| OperationPlacement {
        operation: name.to_owned(),
        reads,
        share: Some(0.25),
        consistency: consistency.to_owned(),
        copies: BTreeMap::new(),
        rows: 1_000_000,
    };
    let operations = [
        ("put", false, "raft"),
        ("range", true, "raft"),
        ("serializable", true, "serializable"),
        ("txn", false, "raft"),
    ];
    let ring: Vec<NodePlacement> = (0..members).map(node).collect();
    let is_asked = |name: &&String| asked.is_empty() || asked.contains(&name.as_str());
    Placement {
        coordinators: coordinators.to_owned(),
        asked: ring.iter().map(|node| &node.node).filter(is_asked).cloned().collect(),
        operations: operations.map(operation).to_vec(),
        distances: Vec::new(),
        ring,
    }
}

fn led<'a>(placement: &'a Placement, leader: &str) -> Model<'a> {
    Model::new(placement, "load", &direct(), Some(leader)).unwrap()
}

/// Everything that these nodes send and receive is late.
fn slow_both_ways(placement: &Placement, nodes: &[&str], ms: f64) -> FaultRecord {
    let names: Vec<&str> = placement.ring.iter().map(|node| node.node.as_str()).chain(["load"]).collect();
    let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to))).filter(|(from, to)| from != to);
    let hit = pairs.filter(|(from, to)| nodes.contains(from) || nodes.contains(to));
    fault(Quantity::OneWayDelay, ms * MS, hit.map(|(from, to)| Subject::pair(from, to)).collect())
}

/// Of puts, linearizable reads and serializable ones: must, may.
fn shares_led(placement: &Placement, leader: &str, fault: &FaultRecord) -> [(f64, f64); 3] {
    let rows = touched(&led(placement, leader), &[fault]);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.operation.as_deref() == Some(name)).unwrap();
        (row.must, row.may)
    };
    assert_eq!(of("put"), of("txn"), "both are proposals");
    ["put", "range", "serializable"].map(of)
}

#[track_caller]
fn are(found: [(f64, f64); 3], expected: [(f64, f64); 3]) {
    let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9;
    let same = found.iter().zip(&expected).all(|(one, other)| near(*one, *other));
    assert!(same, "{found:?}, not {expected:?}");
}

/// Three members of etcd 3.6.16 on one machine, one of them 100 ms slower each way, 500/s: medians measured in November 2026,
/// less those without a fault. A read that finds a round under way waits for its end: half of one on the average.
#[test]
fn what_a_slow_member_of_etcd_adds_is_what_was_measured() {
    let names = ["put", "range", "serializable"];
    for (slow, asked, measured) in [
        ("n1", "n1", vec![445.4, 506.7, 200.5]),
        ("n1", "n2", vec![401.0, 613.5, 0.1]),
        ("n2", "n1", vec![0.8, 0.7, 0.3]),
        ("n2", "n2", vec![400.0, 507.5, 200.2]),
        ("n2", "n3", vec![0.7]),
    ] {
        let placement = etcd(3, "round-robin", &[asked]);
        let model = led(&placement, "n1");
        let fault = slow_both_ways(&placement, &[slow], 100.0);
        let with = Delays::of(&placement, &model.hosts, &[&fault], Packet::Usual);
        for (name, measured) in names.into_iter().zip(measured) {
            let own = model.operations.iter().find(|one| one.plan.operation == name).unwrap();
            let all = delayed::of_operation(&model, own, &with, 5_000_000_000);
            let [least, most] = [all[0].least_ns, all[0].most_ns].map(|ns| ns / MS);
            let what = format!("{slow} slow, {name} at {asked}: {measured} of {least} to {most}");
            // Hosts and the database take some of it: nothing is faster, and little is slower.
            assert!(measured > least - 1.0 && measured < most + 50.0, "{what}");
            assert_eq!(name == "range" && most > 0.0, most > least, "only reads may find a round under way: {what}");
        }
    }
}

#[test]
fn a_slow_leader_touches_all_that_is_decided_and_a_slow_follower_what_it_is_asked() {
    let placement = etcd(3, "round-robin", &[]);
    let slow = |node: &str| slow_both_ways(&placement, &[node], 100.0);
    let (all, third, none) = ((1.0, 1.0), (THIRD, THIRD), (0.0, 0.0));
    are(shares_led(&placement, "n1", &slow("n1")), [all, all, third]);
    are(shares_led(&placement, "n1", &slow("n2")), [third, third, third]);
    let stopped = fault(Quantity::Running, -1.0, vec![Subject::host("n1")]);
    are(shares_led(&placement, "n1", &stopped), [all, all, third]);
    are(shares_led(&placement, "n2", &stopped), [third, third, third]);
    // Who asks the leader alone never meets a follower that is slow.
    let leader = etcd(3, "leader", &[]);
    are(shares_led(&leader, "n1", &slow("n1")), [all, all, all]);
    are(shares_led(&leader, "n1", &slow("n2")), [none, none, none]);
}

#[test]
fn a_minority_of_five_is_not_waited_for_and_a_majority_is() {
    let placement = etcd(5, "leader", &[]);
    let slow = |nodes: &[&str]| shares_led(&placement, "n1", &slow_both_ways(&placement, nodes, 100.0));
    let (all, none) = ((1.0, 1.0), (0.0, 0.0));
    are(slow(&["n2", "n3"]), [none, none, none]);
    are(slow(&["n2", "n3", "n4"]), [all, all, none]);
    // One alone is all there is to wait for.
    let single = etcd(1, "leader", &[]);
    are(shares_led(&single, "n1", &slow_both_ways(&single, &["n1"], 100.0)), [all, all, all]);
}

#[test]
fn the_disk_of_a_log_is_waited_for_by_proposals_and_that_of_a_store_perhaps() {
    let placement = etcd(3, "round-robin", &[]);
    let of = |node: &str, directory: &str| {
        let fault = fault(Quantity::SyncTime, 20.0 * MS, vec![Subject::directory(node, directory)]);
        shares_led(&placement, "n1", &fault)
    };
    let (all, none) = ((1.0, 1.0), (0.0, 0.0));
    are(of("n1", "wal"), [all, (0.0, 1.0), none]);
    are(of("n2", "wal"), [(THIRD, THIRD), (0.0, THIRD), none]);
    are(of("n1", "data"), [(0.0, 1.0), (0.0, 1.0), (0.0, THIRD)]);
    are(of("n2", "data"), [(0.0, THIRD), (0.0, THIRD), (0.0, THIRD)]);
}

#[test]
fn the_least_latency_of_a_proposal_is_that_of_the_nearest_majority_around_the_leader() {
    let mut placement = etcd(3, "round-robin", &[]);
    // The load stands beside n1.
    let far = [("n1", "n2", 10), ("n1", "n3", 40), ("n2", "n3", 50), ("load", "n2", 10), ("load", "n3", 40)];
    for (one, other, ms) in far {
        for (from, to) in [(one, other), (other, one)] {
            let (from, to, delay_ns) = (from.to_owned(), to.to_owned(), ms * 1_000_000);
            placement.distances.push(PairDistance { from, to, delay_ns, least_ns: delay_ns });
        }
    }
    for (leader, put, serializable) in [
        // By n2: 20 there and back, 20 to the leader and back, 20 to the nearer other and back.
        ("n1", [20.0, 60.0, 180.0], [0.0, 20.0, 80.0]),
        ("n3", [160.0, 20.0 + 100.0 + 80.0, 160.0], [0.0, 20.0, 80.0]),
    ] {
        let model = led(&placement, leader);
        let least = |name: &str| {
            let own = model.operations.iter().find(|one| one.plan.operation == name).unwrap();
            [0, 1, 2].map(|at| own.ways[at].least(model.hosts.load(), &model.usual) / MS)
        };
        assert_eq!([least("put"), least("range"), least("serializable")], [put, put, serializable], "{leader}");
    }
}

#[test]
fn an_overlay_with_a_hub_takes_operations_over_links_that_are_none_of_theirs() {
    let placement = three(1, "one", "round-robin");
    let hosts = ["n1", "n2", "n3", "load"].map(str::to_owned);
    let link = fault(Quantity::Loss, 0.1, vec![Subject::pair("n1", "n3")]);
    let touched = |overlay: &str| {
        let model = Model::new(&placement, "load", &Routes::new(overlay, &hosts), None).unwrap();
        let rows = touched(&model, &[&link]);
        rows.iter().find(|row| row.operation.is_none()).unwrap().must
    };
    // n1 asks n3, and n3 has an answer of n1.
    assert!((touched("") - 2.0 / 9.0).abs() < 1e-9);
    assert!((touched("wireguard") - 2.0 / 9.0).abs() < 1e-9);
    // All that n3 is asked by the load, and what n2 asks it, goes by n1, too.
    assert!((touched("openvpn") - 5.0 / 9.0).abs() < 1e-9);
}

#[test]
fn what_no_plan_tells_is_said() {
    let why = |placement: &Placement| plain(placement).err().unwrap();
    assert!(why(&Placement { operations: Vec::new(), ..three(1, "one", "token-aware") }).contains("profile"));
    assert!(why(&three(1, "serial", "token-aware")).contains("serial"));
    assert!(why(&Placement { asked: Vec::new(), ..three(1, "one", "token-aware") }).contains("no node"));
    assert!(why(&three(1, "one", "latency-aware")).contains("latency-aware"));
    assert!(why(&etcd(3, "round-robin", &[])).contains("who led"));
    // No copy in the coordinator's own site.
    let mut elsewhere = three_sites("local-quorum", &[]);
    elsewhere.operations.iter_mut().for_each(|one| {
        one.copies.remove("c");
    });
    assert!(plain(&elsewhere).is_ok(), "a replica is asked, and it has its own site");
    elsewhere.coordinators = "round-robin".to_owned();
    assert!(why(&elsewhere).contains("needs 1 replicas"));
}
