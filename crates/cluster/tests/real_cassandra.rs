//! Real Cassandra on real namespaces. Takes root, Java, Maven (or a filled cache) and /dev/net/tun.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod fixture;

use std::{
    fs,
    net::TcpListener,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{
    CassandraSpec, Cluster, ClusterError, Death,
    cassandra::{archive, largest_value, maven},
    memory_needed,
};
use brownout_units::Bytes;
use fixture::{Client, Fixture, ONE, PATIENCE, eventually, quick, start, wait};

fn exists(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// The resident memory of a process, mapped files included.
fn resident(pid: u32) -> Bytes {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Bytes(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

/// One cluster for all of this: starting it takes longer.
#[test]
fn three_nodes_become_ready_confined_and_a_killed_one_is_a_death_and_can_be_started_again() {
    let fixture = Fixture::new(3);
    let host = &fixture.network.hosts()[0];
    let begun = Instant::now();
    let archived = fixture.paths("archive");
    archive::build(&fixture.distribution, &fixture.java, &fixture.cache, host, &archived, &|| false).unwrap();
    eprintln!("archive: {:.1} s", begun.elapsed().as_secs_f64());

    let paths = fixture.paths("three");
    let mut cluster = start(&fixture, &quick(), &paths);
    waiting_ends_at_the_deadline_with_what_is_missing_and_at_once_on_interruption(&mut cluster);
    let readiness = wait(&mut cluster).unwrap();
    eprintln!("ready in {:.1} s", readiness.took.as_secs_f64());
    assert_eq!(cluster.deaths(), []);

    for node in cluster.nodes() {
        let (rss, cpu) = (resident(node.pid()), node.cpu_ns().unwrap());
        eprintln!("{}: {} MiB resident, {:.1} s of CPU", node.name, rss.0 >> 20, cpu as f64 / 1e9);
        assert!(cpu > 100_000_000 && rss > Bytes(100 << 20));
        let status = fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
        if fixture::owner().is_some() {
            for line in ["Uid:\t65534\t65534\t65534\t65534", "Gid:\t65534\t65534\t65534\t65534", "Groups:\t \n"] {
                assert!(status.contains(line), "{line} in {status}");
            }
        }
        for line in ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line} in {status}");
        }
        // It may answer clients before it says so.
        eventually("its log to be told", || {
            fs::read_to_string(node.logs.join("system.log")).unwrap().contains("Startup complete")
        });
    }
    let total: u64 = cluster.nodes().iter().map(|node| resident(node.pid()).0).sum();
    assert!(total < memory_needed(3, quick().heap), "the check before a start asks for too little: {total}");

    let settings = cluster.settings_in_force();
    assert_eq!(settings.settings["collector"], "SerialGC");
    assert!(settings.deviations.iter().any(|what| what.starts_with("num_tokens is 1, shipped 16")));
    assert!(settings.files["cassandra.yaml"].contains("\nread_request_timeout: 5000ms\n"));

    the_largest_value_is_taken_and_one_that_fits_no_segment_is_refused(&fixture);
    a_paused_node_is_taken_for_down_and_named_and_may_go_on_while_the_cluster_is_waited_for(&mut cluster);

    let pids: Vec<u32> = cluster.nodes().iter().map(|node| node.pid()).collect();
    // SAFETY: the process is ours and not yet reaped.
    unsafe { libc::kill(pids[1] as libc::pid_t, libc::SIGKILL) };
    let death = loop {
        match cluster.deaths().pop() {
            Some(death) => break death,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(death.node, "n2");
    assert!(death.status.starts_with("killed by signal 9") && !death.asked, "{}", death.status);
    assert!(death.log_tail.contains("system.log: "), "{}", death.log_tail);
    assert_eq!(cluster.deaths(), [], "a death is told once");
    assert_eq!(cluster.nodes()[1].cpu_ns(), None);
    assert!(cluster.nodes()[0].alive());

    let begun = Instant::now();
    cluster.control().start("n2").unwrap();
    wait(&mut cluster).unwrap();
    eprintln!("started again, and ready in {:.1} s", begun.elapsed().as_secs_f64());
    let pids: Vec<u32> = cluster.nodes().iter().map(|node| node.pid()).collect();
    drop(cluster);
    assert!(!pids.iter().any(|&pid| exists(pid)), "a node outlived its cluster");
}

fn the_largest_value_is_taken_and_one_that_fits_no_segment_is_refused(fixture: &Fixture) {
    let mut client = Client::connect(&fixture.network.hosts()[0]);
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE k.t (k text PRIMARY KEY, v blob)",
    ] {
        client.query(text, ONE, None).unwrap();
    }
    let mut insert = |key: &str, size: u64| {
        let text = format!("INSERT INTO k.t (k, v) VALUES ('{key}', ?)");
        client.query(&text, ONE, Some(&vec![7; size as usize])).map(drop)
    };
    let Bytes(largest) = largest_value();
    assert_eq!(insert(&"k".repeat(65_000), largest), Ok(()));
    let refused = insert("k", 4 << 20).unwrap_err();
    assert!(refused.contains("oversized mutation"), "{refused}");
}

fn death_while_waiting(cluster: &mut Cluster) -> Death {
    match wait(cluster) {
        Err(ClusterError::NodeDied(death)) => death,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_whose_port_is_taken_fails_the_start_with_its_own_words() {
    let fixture = Fixture::new(1);
    let host = &fixture.network.hosts()[0];
    let _taken = host.run(|| TcpListener::bind("0.0.0.0:9042").unwrap()).unwrap();
    let mut cluster = start(&fixture, &quick(), &fixture.paths("taken"));
    let death = death_while_waiting(&mut cluster);
    assert_eq!(death.node, "n1");
    assert!(death.log_tail.contains("9042"), "{}", death.log_tail);
}

#[test]
fn a_node_without_enough_heap_fails_the_start() {
    let fixture = Fixture::new(1);
    let spec = CassandraSpec { heap: Bytes(16 << 20), ..quick() };
    let mut cluster = start(&fixture, &spec, &fixture.paths("heap"));
    let death = death_while_waiting(&mut cluster);
    eprintln!("{}: {}\n{}", death.node, death.status, death.log_tail);
    assert!(death.log_tail.contains("OutOfMemoryError"), "{}", death.log_tail);
}

fn waiting_ends_at_the_deadline_with_what_is_missing_and_at_once_on_interruption(cluster: &mut Cluster) {
    // Enough for each to be asked, too little for any to answer.
    match cluster.wait_ready(Duration::from_secs(2), &|| false, &mut |_| ()) {
        Err(ClusterError::NotReady { missing, .. }) => {
            assert!(missing.iter().any(|what| what.starts_with("n1 does not answer clients yet")), "{missing:?}");
            assert!(missing.iter().any(|what| what.starts_with("n2 ")), "{missing:?}");
        }
        other => panic!("{other:?}"),
    }
    let stop = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        cluster.wait_ready(PATIENCE, &|| stop.load(Ordering::Relaxed), &mut |_| ())
    });
    assert!(matches!(result, Err(ClusterError::Interrupted)), "{result:?}");
}

fn a_paused_node_is_taken_for_down_and_named_and_may_go_on_while_the_cluster_is_waited_for(cluster: &mut Cluster) {
    let control = cluster.control();
    control.pause("n2").unwrap();
    // The failure detector takes some seconds to be convinced.
    let mut unpaused = None;
    let mut progress = |line: &str| {
        if unpaused.is_none() && line.contains("n1 considers n2 down") {
            unpaused = Some(control.unpause("n2").unwrap());
        }
    };
    let ready = cluster.wait_ready(PATIENCE, &|| false, &mut progress);
    assert!(ready.is_ok() && unpaused.is_some(), "{ready:?}");
}

#[test]
fn a_cache_with_a_changed_jar_is_repaired() {
    let fixture = Fixture::new(1);
    let cache = tempfile::tempdir().unwrap();
    let root = cache.path().join("cassandra-5.0.9");
    fs::create_dir(&root).unwrap();
    for jar in &fixture.distribution.classpath {
        fs::copy(jar, root.join(jar.file_name().unwrap())).unwrap();
    }
    let said = Mutex::new(String::new());
    let resolve = || maven::resolve("5.0", cache.path(), &|line| said.lock().unwrap().push_str(line), &|| false);
    assert_eq!(resolve().unwrap().classpath.len(), fixture.distribution.classpath.len());
    assert_eq!(*said.lock().unwrap(), "", "nothing was brought");
    let jar = root.join("cassandra-all-5.0.9.jar");
    fs::write(&jar, "changed").unwrap();
    assert_eq!(resolve().unwrap().classpath.len(), fixture.distribution.classpath.len());
    assert!(fs::metadata(&jar).unwrap().len() > 1 << 20);
    assert!(said.lock().unwrap().contains("changed or damaged"), "{said:?}");
}
