//! Experiments on containers that run already: what their files mean, what their plans say, and what they are refused. The
//! containers are made up, and nothing is started.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{collections::BTreeMap, path::Path};

use brownout_containers::{By, Container, Selection};
use brownout_lab::{
    Design, Plan,
    experiment::{ContainersFound, FileError, Source},
};
use brownout_network::Way;
use serde_json::{Value, json};

/// What every experiment has; on three containers replication 3 is possible.
const REST: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 30s, fault: 60s, recovery: 60s }
objective: { p95: 100ms }
";
const GROUND: &str = "ground: { containers: { project: shop } }\n";
/// Where the fault is; a file without one has no phase for it.
const SLOW: &str = "faults: [{ slow: { host: cassandra-2, delay: 50ms } }]\n";

/// Why no container has a clock or a disk that can be wrong.
const NOT_STARTED: &str = "it was not started for that; see `brownout wrap`";

/// A container of the project, which refuses these things with these reasons.
fn container(number: u8, refused: &[(&str, &str)]) -> Container {
    let what = ["links", "pause", "kill", "restart", "cpu", "disk", "clock"];
    let reason = |what: &str| refused.iter().find(|(other, _)| *other == what).map(|(_, why)| *why);
    let own = |what: &str| matches!(what, "disk" | "clock").then_some(NOT_STARTED);
    let abilities = what.map(|what| json!({ "what": what, "refused": reason(what).or_else(|| own(what)) }));
    let (name, address) = (format!("cassandra-{number}"), format!("172.18.0.{}", number + 1));
    let end = format!("veth{number}");
    let interface = json!({
        "name": "eth0", "kind": "veth", "mac": null, "addresses": [address], "machine_interface": end,
        "strict_reverse_path": false,
    });
    let written = json!({
        "name": name, "id": format!("{number:064}"), "runtime": "docker", "engine": "Docker 20.10.24",
        "pid": 4_710 + u32::from(number), "started": "2026-11-24T10:00:00Z", "addresses": [address],
        "interface": "eth0", "machine_interface": end,
        "interfaces": [interface], "image": "cassandra:5.0", "project": "shop", "service": "cassandra",
        "networks": ["shop_default"], "gateways": ["172.18.0.1"], "abilities": abilities,
        "socket": "/var/run/docker.sock",
    });
    serde_json::from_value(written).unwrap()
}

/// Changes what is not to be changed from outside.
fn changed(container: Container, key: &str, value: Value) -> Container {
    let mut written = serde_json::to_value(container).unwrap();
    written[key] = value;
    serde_json::from_value(written).unwrap()
}

fn found(containers: Vec<Container>) -> ContainersFound {
    let selection = Selection { by: By::Project("shop".to_owned()), socket: None };
    ContainersFound { selection, containers, machine: vec!["172.18.0.1".parse().unwrap()], way: None, here: None }
}

fn three() -> ContainersFound {
    found((1..=3).map(|number| container(number, &[])).collect())
}

fn source(text: &str, found: &ContainersFound) -> Source {
    Source::from_text(Path::new("some.yaml"), text.to_owned()).unwrap().with_containers(found)
}

/// A plan of an experiment on these containers, with this beside its ground and load.
fn plan(more: &str, found: &ContainersFound) -> Result<Plan, FileError> {
    Plan::new(&source(&format!("{GROUND}{REST}{more}"), found))
}

fn refused(more: &str, found: &ContainersFound) -> String {
    plan(more, found).err().unwrap_or_else(|| panic!("{more} was taken")).to_string()
}

#[test]
fn containers_are_the_hosts_by_their_own_names_and_by_n1_n2_and_n3() {
    let plan = plan("faults: [{ slow: { host: n2, delay: 50ms } }]\n", &three()).unwrap();
    let hosts: Vec<(String, String)> =
        plan.layout.hosts.iter().map(|host| (host.name.clone(), host.address.to_string())).collect();
    let of = |number: u8| (format!("cassandra-{number}"), format!("172.18.0.{}", number + 1));
    assert_eq!(hosts, [of(1), of(2), of(3), ("load".to_owned(), "172.18.0.1".to_owned())]);
    assert!(plan.layout.is_attached() && plan.layout.is_external() && plan.layout.distances.is_empty());
    let description = plan.description("Cassandra 5.0.9");
    assert_eq!(description.ground, "3 containers of the Compose project shop, Docker 20.10.24");
    let written: Vec<&str> = description.hosts.iter().map(|host| host.address.as_str()).collect();
    assert_eq!(written, ["172.18.0.2:9042", "172.18.0.3:9042", "172.18.0.4:9042", "172.18.0.1"]);
    assert!(description.faults[0].contains("cassandra-2"), "{:?}", description.faults);
    assert_eq!((description.external, description.placement.is_none()), (true, true));
    let network = &description.network[0];
    assert!(network.contains("3 containers of the Compose project shop") && network.contains("emulator"), "{network}");
    let pairs = plan.faults[0].fault().unwrap().links().to_vec();
    assert!(pairs.contains(&("cassandra-2".to_owned(), "load".to_owned())), "{pairs:?}");
    let tested = brownout_analysis::UnderTest::planned(&description);
    assert!(tested.database.contains("cassandra-2 (172.18.0.3:9042)"), "{tested:?}");
}

#[test]
fn a_plan_follows_from_the_file_and_from_what_was_found_alone() {
    let text = format!("{GROUND}{REST}{SLOW}");
    let outside = source(&text, &three());
    let before = Design::new(&outside).unwrap();
    let inside = Source::from_text(Path::new("some.yaml"), text.clone()).unwrap().with_attached(outside.attached());
    let after = Design::new(&inside).unwrap();
    let described = |design: &Design| design.cell_rows(|_| String::new());
    assert_eq!(described(&before), described(&after));
    assert_eq!(outside.attached().keys().collect::<Vec<_>>(), ["ground: containers of the Compose project shop"]);
    // Whoever has not found them does not look for others.
    let empty = Source::from_text(Path::new("some.yaml"), text).unwrap().with_attached(Default::default());
    let error = Plan::new(&empty).unwrap_err().to_string();
    assert!(error.contains("some.yaml:1:") && error.contains("was not read with the experiment file"), "{error}");
}

#[test]
fn the_same_containers_may_have_been_started_again_and_others_are_told() {
    let before = three();
    let mut now = three();
    now.containers[1] = changed(now.containers[1].clone(), "pid", json!(9_999));
    now.containers[1] = changed(now.containers[1].clone(), "started", json!("2026-11-24T11:00:00Z"));
    assert_eq!(before.differences(&now), [""; 0]);
    now.containers[0] = changed(now.containers[0].clone(), "id", json!("a".repeat(64)));
    now.containers[1] = changed(now.containers[1].clone(), "addresses", json!(["172.18.0.9"]));
    now.containers[2] = changed(now.containers[2].clone(), "name", json!("cassandra-4"));
    let told = before.differences(&now);
    assert_eq!(told.len(), 4, "{told:?}");
    for (told, words) in told.iter().zip([
        "cassandra-1 is another container: it was 000000000000 and is aaaaaaaaaaaa",
        "cassandra-3 is not there any more",
        "cassandra-4 was not there",
        "cassandra-2 had the address 172.18.0.3 and has 172.18.0.9",
    ]) {
        assert_eq!(told, words);
    }
}

#[test]
fn the_same_pods_may_be_elsewhere_or_made_anew_and_are_the_same() {
    let on = |container: Container, machine: &str| {
        let pod = format!("db/{}/node", container.name);
        changed(changed(container, "pod", json!(pod)), "machine", json!(machine))
    };
    let pods = |machines: [&str; 3]| {
        found(three().containers.into_iter().zip(machines).map(|(container, machine)| on(container, machine)).collect())
    };
    let before = pods(["a", "b", "c"]);
    assert_eq!(before.moves(&pods(["a", "b", "c"])), [""; 0]);
    let mut now = pods(["a", "a", "c"]);
    now.containers[0] = changed(now.containers[0].clone(), "id", json!("a".repeat(64)));
    now.containers[1] = changed(now.containers[1].clone(), "addresses", json!(["172.18.0.9"]));
    now.containers[2] = changed(now.containers[2].clone(), "addresses", json!(["172.18.0.7"]));
    assert_eq!(before.others(&now), [""; 0]);
    assert_eq!(
        before.moves(&now),
        [
            "cassandra-1 was made anew",
            "cassandra-2 was on b and is on a",
            "cassandra-3 had the address 172.18.0.4 and has 172.18.0.7"
        ]
    );
}

#[test]
fn a_process_of_the_same_number_is_another_one() {
    let process = |started: &str| {
        let container = changed(container(1, &[]), "runtime", json!("none"));
        found(vec![changed(container, "started", json!(started))])
    };
    let before = process("9876 ticks since boot");
    assert_eq!(before.differences(&process("9876 ticks since boot")), [""; 0]);
    let told = before.differences(&process("12345 ticks since boot"));
    assert_eq!(told, ["cassandra-1 is another process of the same number"]);
}

#[test]
fn links_pauses_and_ends_are_possible_and_clocks_and_disks_are_refused_with_what_it_takes() {
    for fault in [
        "slow: { host: load, delay: 50ms }",
        "partition: { isolate: n3 }",
        "rate: { host: cassandra-1, rate: 10mbit }",
        "mtu: { host: n1, bytes: 1_200 }",
        "pause: { host: n1 }",
        "kill: { host: cassandra-3 }",
        "stop: { host: n2 }",
        "cpu: { host: n1, share: 20% }",
    ] {
        let more = format!("faults: [{{ {fault} }}]\n");
        assert!(plan(&more, &three()).is_ok(), "{fault}: {}", plan(&more, &three()).unwrap_err());
    }
    for (fault, words) in [
        ("clock: { host: n2, offset: 5s }", "clock cannot be done to cassandra-2: it was not started for that"),
        ("disk: { host: n1, delay: 50ms }", "disk cannot be done to cassandra-1: it was not started for that"),
    ] {
        let error = refused(&format!("faults: [{{ {fault} }}]\n"), &three());
        assert!(error.contains(words) && error.contains("brownout wrap") && error.contains("some.yaml:5:"), "{error}");
    }
    // One that was started with a clock of its own.
    let mut wrapped = three();
    let mut abilities = serde_json::to_value(&wrapped.containers[1].abilities).unwrap();
    let clock = abilities.as_array_mut().unwrap().iter_mut().find(|ability| ability["what"] == "clock");
    clock.unwrap()["refused"] = Value::Null;
    wrapped.containers[1] = changed(wrapped.containers[1].clone(), "abilities", abilities);
    assert!(plan("faults: [{ clock: { host: n2, offset: 5s } }]\n", &wrapped).is_ok());
    let error = refused("faults: [{ clock: { host: [n2, n3], offset: 5s } }]\n", &wrapped);
    assert!(error.contains("clock cannot be done to cassandra-3"), "{error}");
}

#[test]
fn what_a_single_container_refuses_is_refused_of_it_alone() {
    let removed = "its runtime removes it when it ends (--rm)";
    let mut all = three();
    all.containers[1] = container(2, &[("kill", removed), ("restart", removed), ("cpu", "no rights")]);
    for (fault, words) in [
        ("kill: { host: n2 }", "kill cannot be done to cassandra-2: its runtime removes it"),
        ("stop: { host: [n1, n2] }", "stop cannot be done to cassandra-2: its runtime removes it"),
        ("cpu: { host: n2, share: 20% }", "cpu cannot be done to cassandra-2: no rights"),
    ] {
        let error = refused(&format!("faults: [{{ {fault} }}]\n"), &all);
        assert!(error.contains(words), "{fault}: {error}");
    }
    assert!(plan("faults: [{ kill: { host: n1 } }]\n", &all).is_ok());
    assert!(plan("faults: [{ pause: { host: n2 } }]\n", &all).is_ok());
    // Its interface has no other end here: what it sends can be held, and what this machine sends it cannot.
    let apart = changed(container(3, &[]), "machine_interface", Value::Null);
    let mut interfaces = serde_json::to_value(&apart.interfaces).unwrap();
    interfaces[0]["machine_interface"] = Value::Null;
    all.containers[2] = changed(apart, "interfaces", interfaces);
    let error = refused("faults: [{ slow: { host: load, delay: 50ms } }]\n", &all);
    assert!(error.contains("slow cannot be done to cassandra-3: what load sends it cannot be held"), "{error}");
    assert!(plan("faults: [{ slow: { host: n3, delay: 50ms } }]\n", &all).is_ok());
}

#[test]
fn what_is_the_containers_own_is_refused_by_name() {
    for (more, words) in [
        ("cluster: { heap: 256MiB }\n", "cluster.heap is the containers' own"),
        ("cluster: { jit: c1 }\n", "cluster.jit is"),
        ("cluster: { versions: { n1: '4.1' } }\n", "cluster.versions is"),
        ("cluster: { settings: { concurrent_reads: 2 } }\n", "cluster.settings is"),
        ("cluster: { encryption: { clients: true } }\n", "cluster.encryption is"),
        ("cluster: { external: ['10.0.0.5:9042'] }\n", "the containers are the nodes"),
        ("cluster: { cassandra: { home: /opt/cassandra } }\n", "write its version"),
        ("network: { topology: lan }\n", "network.topology is"),
        ("network: { overlay: wireguard }\n", "network.overlay is"),
        ("cluster: { nodes: 5 }\n", "the file says 5 nodes, and there are 3 containers: cassandra-1, cassandra-2"),
        ("parallel: 2\n", ""),
    ] {
        let made = Design::new(&source(&format!("{GROUND}{REST}{SLOW}{more}"), &three()));
        let error = made.err().unwrap_or_else(|| panic!("{more} was taken")).to_string();
        assert!(error.contains(words) && error.contains("some.yaml:"), "{more}: {error}");
    }
    let same = plan(&format!("{SLOW}cluster: {{ cassandra: '5.0', nodes: 3 }}\n"), &three()).unwrap();
    assert_eq!(same.layout.hosts.nodes().count(), 3);
    assert!(!same.warnings.iter().any(|warning| warning.contains("the containers' own")), "{:?}", same.warnings);
    let etcd = plan(&format!("{SLOW}cluster: {{ etcd: '3' }}\n"), &three()).unwrap();
    assert_eq!(etcd.description("etcd 3.6.16").hosts[0].address, "172.18.0.2:2379");
}

#[test]
fn a_cluster_that_is_made_in_pods_is_of_the_version_that_a_file_of_a_lab_names() {
    let found = serde_json::to_string(&three()).unwrap();
    let told = |ground: &str| {
        let text = format!(
            "cluster: {{ cassandra: '4.1', nodes: 3, heap: 256MiB }}\n{REST}{}",
            SLOW.replace("cassandra-2", "n2")
        );
        let files = BTreeMap::from([("ground: kubernetes".to_owned(), found.clone())]);
        let mut source = Source::from_text(Path::new("some.yaml"), text).unwrap().with_attached(files);
        source.set(&format!("ground={{ kubernetes: {ground} }}")).unwrap();
        let plan = Plan::new(&source).unwrap();
        let image = plan.layout.pods.as_ref().unwrap().own.as_ref().map(|own| own.image.clone());
        let ignored: Vec<&str> =
            plan.warnings.iter().filter_map(|one| one.split(" is the containers'").next()).collect();
        (image, ["cluster.cassandra", "cluster.heap"].map(|key| ignored.contains(&key)))
    };
    assert_eq!(told("{ own: {} }"), (Some("cassandra:4.1".to_owned()), [false, true]));
    assert_eq!(told("{ selector: app=db }"), (None, [true, true]));
}

#[test]
fn a_file_for_a_lab_can_be_moved_to_containers_and_what_is_not_used_is_told() {
    let lab = "network: { topology: lan }\ncluster: { cassandra: '4.1', nodes: 3, heap: 256MiB, jit: c1 }\n";
    let text = format!("{REST}{lab}{SLOW}").replace("cassandra-2", "n2");
    let mut source = source(&text, &three());
    source.set("ground={ containers: { project: shop } }").unwrap();
    let plan = Plan::new(&source).unwrap();
    for key in ["network.topology", "cluster.cassandra", "cluster.heap", "cluster.jit"] {
        let told = format!("{key} is the containers' own; what the file says of it is not used");
        assert_eq!(plan.warnings.iter().filter(|warning| **warning == told).count(), 1, "{key}: {:?}", plan.warnings);
    }
    assert!(plan.layout.distances.is_empty() && plan.layout.network.topology.is_none());
    assert_eq!(plan.description("Cassandra 5.0.9").warnings, plan.warnings);
    // How many nodes there are, it cannot leave to others: the load was made for them.
    source.set("cluster.nodes=4").unwrap();
    let error = Plan::new(&source).unwrap_err().to_string();
    assert!(error.contains("the file says 4 nodes"), "{error}");
}

#[test]
fn of_many_containers_a_part_of_the_pairs_is_looked_at_and_the_plan_says_so() {
    let many = found((1..=120).map(|number| container(number, &[])).collect());
    // As in a lab of fifty nodes it takes longer: each pair is probed less often.
    let phases = "{ warm-up: 20s, baseline: 120s, fault: 120s, recovery: 120s }";
    let text =
        format!("{GROUND}{REST}{SLOW}").replace("{ warm-up: 20s, baseline: 30s, fault: 60s, recovery: 60s }", phases);
    let plan = Plan::new(&source(&text, &many)).unwrap();
    assert!(plan.warnings.iter().any(|one| one.contains("of 14520 ordered pairs of hosts")), "{:?}", plan.warnings);
    let hosts = &plan.layout.hosts;
    let looked_at = plan.faults[0].record(0, hosts).severities[0].expectations.clone();
    assert_eq!(looked_at.len(), hosts.watched_pairs().count());
    // All that is hit has room.
    assert_eq!(looked_at.iter().filter(|one| one.hit).count(), 120);
    assert_eq!(plan.faults[0].fault().unwrap().links().len(), 120);
}

#[test]
fn containers_that_cannot_be_hosts_are_named_with_the_reason() {
    let with = |container: Container| {
        let mut all = three();
        all.containers[2] = container;
        refused(SLOW, &all)
    };
    let error = with(container(3, &[("links", "it is in this machine's own network (network_mode: host)")]));
    assert!(error.contains("cassandra-3 cannot be attached: it is in this machine's own network"), "{error}");
    assert!(error.contains("some.yaml:1:"), "{error}");
    let error = with(changed(container(3, &[]), "pid", Value::Null));
    assert!(error.contains("cassandra-3 does not run; start it"), "{error}");
    let error = with(changed(container(3, &[]), "name", json!("load")));
    assert!(error.contains("load has the name of the host that stands for this machine"), "{error}");
    let error = with(changed(container(3, &[]), "name", json!("cassandra-1")));
    assert!(error.contains("cassandra-1 is there twice"), "{error}");
    let error = with(changed(container(3, &[]), "addresses", json!(["fd00::4"])));
    assert!(error.contains("cassandra-3 has no IPv4 address"), "{error}");
    let error = with(changed(container(3, &[]), "addresses", json!(["172.18.0.2"])));
    assert!(error.contains("cassandra-3 has the address 172.18.0.2 of another one"), "{error}");
    let error = refused(SLOW, &ContainersFound { machine: Vec::new(), ..three() });
    assert!(error.contains("cannot be reached from this machine"), "{error}");
}

#[test]
fn what_the_way_to_attach_here_cannot_do_is_refused_before_anything_begins() {
    let by = |way, fault: &str| {
        let fault = format!("faults:\n  - {fault}\n");
        let found = ContainersFound { way, ..three() };
        Plan::new(&source(&format!("{GROUND}{REST}{fault}"), &found)).map(drop).map_err(|error| error.to_string())
    };
    let (twice, small) = (
        "link: { from: cassandra-2, to: cassandra-1, duplicate: 5% }",
        "link: { from: cassandra-2, to: cassandra-1, mtu: 1000 }",
    );
    let inbound = "link: { from: load, to: cassandra-2, delay: 10ms }";
    for (way, fault, words) in [
        (Way::Queue, twice, "packets are queued by nf_tables where they arrive cannot duplicate packets"),
        (Way::Queue, small, "cannot take a smaller MTU"),
        (Way::Route, inbound, "packets are led by routes cannot hold what comes from outside"),
    ] {
        let error = by(Some(way), fault).unwrap_err();
        assert!(error.contains(words) && error.contains("some.yaml:"), "{error}");
        by(Some(Way::Forward), fault).unwrap();
        by(None, fault).unwrap();
    }
    by(Some(Way::Queue), inbound).unwrap();
    let (some, others) = [Way::Forward, Way::Queue].map(|way| ContainersFound { way: Some(way), ..three() }).into();
    let told = some.differences(&others);
    assert!(told.len() == 1 && told[0].contains("can now be queued"), "{told:?}");
    assert!(some.words().ends_with(", packets forwarded by nf_tables where they leave"), "{}", some.words());
    let kept = serde_json::to_string(&others).unwrap();
    assert_eq!(serde_json::from_str::<ContainersFound>(&kept).unwrap().way, Some(Way::Queue));
}

#[test]
fn the_load_and_the_faults_of_containers_may_vary_and_their_network_and_cluster_may_not() {
    let text = |vary: &str| format!("{GROUND}{REST}{SLOW}vary:\n  {vary}\n");
    for vary in ["load.rate: [100/s, 200/s]", "faults.0.slow.delay: [10ms, 50ms]"] {
        let design = Design::new(&source(&text(vary), &three())).unwrap();
        assert_eq!((design.cells.len(), design.layouts().len()), (2, 1), "{vary}");
    }
    // Refused by their names, since they mean nothing there.
    let error = Design::new(&source(&text("cluster.heap: [192MiB, 256MiB]"), &three())).err().unwrap().to_string();
    assert!(error.contains("cluster.heap is the containers' own"), "{error}");
    // Moved there, the cells would be the same.
    let lab = format!("{REST}{SLOW}vary:\n  cluster.heap: [192MiB, 256MiB]\n").replace("cassandra-2", "n2");
    let mut moved = source(&lab, &three());
    moved.set("ground={ containers: { project: shop } }").unwrap();
    let error = Design::new(&moved).err().unwrap().to_string();
    assert!(error.contains("those are the containers' own") && error.contains("project shop"), "{error}");
}

#[test]
fn a_ground_that_names_no_containers_or_two_ways_is_refused_where_it_stands() {
    for (ground, words) in [
        ("ground: {}\n", "which ground is missing"),
        ("ground: { containers: {} }\n", "which containers are meant is missing"),
        ("ground: { containers: { project: shop, label: app=db } }\n", "in 2 ways"),
        ("ground: { containers: { pids: [x] } }\n", "whole number"),
        ("ground: { containers: { image: cassandra } }\n", "unknown key 'image'"),
        ("ground: { swarm: { service: db } }\n", "unknown key 'swarm'"),
        ("ground: { kubernetes: { namespace: db } }\n", "which pods are meant is missing"),
        ("ground: { kubernetes: { selector: a=b, own: {} } }\n", "leave selector or own out"),
        ("ground: { kubernetes: { selector: a=b, loads: 0 } }\n", "0 pods cannot send"),
        ("ground: { kubernetes: { selector: a=b }, containers: { project: shop } }\n", "a ground is one"),
    ] {
        let error = Plan::new(&source(&format!("{ground}{REST}{SLOW}"), &three())).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("some.yaml:1:"), "{ground}: {error}");
    }
}
