//! What commands do to links, and what they say to wrong words.

use serde_json::Value;

use super::{assert_proven, common::byhand::Workspace, host, status};

/// The round trips that a ping tells, ms, ascending.
fn round_trips(space: &Workspace, from: &str, to: &str) -> Vec<f64> {
    let said = space.good(&["ping", from, to, "--count", "20", "--interval", "20ms"]);
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
    let mut all: Vec<f64> = said.lines().filter_map(time).collect();
    all.sort_by(f64::total_cmp);
    assert!(!all.is_empty(), "{said}");
    all
}

/// What is asked of links is in force, told, replaced, added up and healed.
pub fn links(space: &Workspace) {
    let before = round_trips(space, "n1", "n2");
    let said = space.good(&["slow", "n2", "--delay", "100ms", "--jitter", "10ms"]);
    assert!(said.contains("n2: SLOW 100ms ± 10ms out") && said.contains("grows by 100ms"), "{said}");
    let slow = round_trips(space, "n1", "n2");
    assert!(slow[0] >= 89.9, "no packet is earlier than 90 ms: {slow:?}");
    // Half of them meet at most the delay itself, and what a busy machine adds.
    assert!(slow[0] < before[before.len() / 2] + 110.0, "{slow:?} after {before:?}");
    assert!(round_trips(space, "n1", "n3")[0] < 80.0, "n3 is spared");

    let said = space.good(&["duplicate", "n1", "n3", "5%", "--direction", "in"]);
    assert!(said.contains("n1: DUPLICATE 5% in\nn3: DUPLICATE 5% in"), "{said}");
    assert!(space.good(&["fast", "n1,n3"]).contains("n3: NORMAL"));

    // The second replaces the first, and another kind is added.
    space.good(&["slow", "n2", "100ms", "--direction", "both"]);
    space.good(&["flaky", "n2", "30%"]);
    let seen = status(space);
    let network = host(&seen, "n2")["network"].to_string();
    assert!(
        network.contains("SLOW 100ms both") && network.contains("FLAKY 30% out") && !network.contains("10ms out"),
        "{network}"
    );
    let hit = |link: &&Value| !link["impairments"].as_array().unwrap().is_empty();
    let hit: Vec<&Value> = seen["links"].as_array().unwrap().iter().filter(hit).collect();
    assert!(hit.len() == 6 && hit.iter().all(|link| link["from"] == "n2" || link["to"] == "n2"), "{hit:?}");
    let matrix = space.json(&["clock", "--json"]);
    let from_n2 = matrix["pairs"].as_array().unwrap().iter().filter(|pair| pair["from"] == "n2");
    // Of 50 probes or more on each.
    assert!(
        from_n2.clone().count() == 3 && from_n2.clone().all(|pair| pair["loss"].as_f64().unwrap() > 0.0),
        "{matrix}"
    );
    assert!(round_trips(space, "n1", "n2")[0] >= 200.0, "100 ms there, 100 ms back");
    assert_proven(space, &[("slow", "n2"), ("flaky", "n2")]);
    assert!(space.good(&["fast", "n2"]).contains("n2: NORMAL"));

    for (words, shown) in [
        (&["duplicate", "n2", "5%"][..], "DUPLICATE 5% out"),
        (&["corrupt", "n3", "1%", "--direction", "in"], "CORRUPT 1% in"),
        (&["reorder", "n1", "25%", "50ms"], "REORDER 25%"),
        (&["rate", "n2", "10mbit"], "RATE 10mbit"),
        (&["mtu", "n2", "1000"], "MTU 1000 out"),
        (&["link", "n1", "n3", "50ms", "1%"], "SLOW 50ms + FLAKY 1% to n3"),
        (&["slow", "load", "5ms"], "load: SLOW 5ms out"),
    ] {
        let said = space.good(words);
        assert!(said.contains(shown), "{words:?}: {said}");
    }
    space.good(&["link", "n1", "n3", "fast"]);
    assert!(!host(&status(space), "n1")["network"].to_string().contains("n3"));
    space.good(&["fast", "--all"]);
    space.good(&["flaky", "n3", "30%", "--for", "300ms"]);
    space.until("--for heals", || host(&status(space), "n3")["network"].as_array().unwrap().is_empty());
    let seen = status(space);
    assert!(
        seen["hosts"].as_array().unwrap().iter().all(|host| host["network"].as_array().unwrap().is_empty()),
        "{seen}"
    );
}

/// What is mistyped is an error with the nearest name, and nothing happens.
pub fn wrong_words(space: &Workspace) {
    for (words, said) in [
        (&["slow", "n22", "100ms"][..], "unknown host 'n22'; the hosts are n1, n2, n3, load; did you mean 'n2'?"),
        (&["flaky", "n2", "80"], "unknown host '80'"),
        (&["flaky", "n2", "80%", "20%"], "80%, 20%"),
        (&["flaky", "80%"], "which hosts?"),
        (&["slow", "n2"], "slow n2 100ms"),
        (&["slow", "n2", "5m"], "can be injected and proven"),
        (&["mtu", "n2", "9000"], "network.mtu is 1_500"),
        (&["link", "n1", "n2", "50ms", "--mtu", "9000"], "network.mtu is 1_500"),
        (&["chaos", "start", "--faults", "mtu:9000"], "network.mtu is 1_500"),
        (&["pause", "load"], "no database"),
        (&["kill", "n2", "--signal", "STOP"], "not a signal that ends"),
        (&["kill", "n2", "--signal", "QUIT"], "not a signal that ends"),
        (&["partition", "n1,n2,n3,load"], "nothing is cut"),
        (&["ping", "n1", "n1"], "not two different hosts"),
        (&["fast", "n1", "--all"], "cannot be combined"),
        (&["cql", "select 1", "--consistency", "quorom"], "quorum"),
        (&["status", "--name", "tuor"], "did you mean 'tour'?"),
        (&["up", "--name", "tour"], "running already"),
        (&["up", "--name", "../x"], "not a valid lab name"),
        (&["up", "--name", "other", "--set", "load.rate=abc"], "a lab by hand does not use load"),
        (&["chaos", "start", "--faults", "slo:1ms"], "not a fault that chaos knows"),
        (&["link", "n1", "n2", "fast", "--delay", "1s", "--for", "5s"], "takes no --delay and no --for"),
        (&["link", "n1", "n2", "fast", "50ms"], "50ms is a magnitude"),
        (&["disk", "n2", "fast", "--error", "io"], "takes no --error"),
        (&["cpu", "n2", "full", "--share", "20%"], "takes no --share"),
        (&["clock", "n2", "right", "--offset", "5s"], "takes no --offset"),
        (&["clock", "--for", "5s"], "takes no --for"),
        (&["clock", "n2", "+5s", "--json"], "takes no --json"),
    ] {
        let heard = space.bad(words, 2);
        assert!(heard.contains(said), "{words:?}: {heard}");
    }
    let seen = status(space);
    assert!(seen["links"].as_array().unwrap().iter().all(|link| link["impairments"].as_array().unwrap().is_empty()));
}

/// The small side of a partition has no quorum, the large one has.
pub fn partitions(space: &Workspace) {
    space
        .good(&["cql", "CREATE KEYSPACE tour WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"]);
    space.good(&["cql", "CREATE TABLE tour.kv (k int PRIMARY KEY, v text)"]);
    let write = |node: &str| {
        let arguments =
            ["cql", "INSERT INTO tour.kv (k, v) VALUES (1, 'one')", "--host", node, "--consistency", "quorum"];
        space.run(&arguments).status.code()
    };
    space.until("the table is known everywhere", || ["n1", "n2", "n3"].iter().all(|node| write(node) == Some(0)));
    space.good(&["partition", "n1,n2", "n3"]);
    let seen = status(space);
    let group = |name| host(&seen, name)["partition"].clone();
    assert!(group("n1") == group("n2") && group("n1") != group("n3") && group("load") != group("n3"), "{seen}");
    assert_eq!(write("n3"), Some(3), "alone, n3 has no quorum");
    space.until("two of three are a quorum", || write("n1") == Some(0));
    assert_eq!(space.run(&["ping", "n1", "n3", "--count", "2"]).status.code(), Some(3));
    assert!(space.good(&["join"]).contains("all hosts reach one another"));
    space.until("the cluster is whole again", || write("n3") == Some(0));
    assert!(space.good(&["random-partition"]).contains("in group 2"));
    assert!(
        space.good(&["partition", "--from", "n1", "--to", "n2"]).contains("CUT to n2 (one way)"),
        "it takes the other's place"
    );
    space.good(&["join"]);
}
