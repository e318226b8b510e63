//! What a lab itself does: programs in it, its socket, its events, another one beside it.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    common::{
        byhand::{Traces, Workspace},
        kill, text,
    },
    host, status,
};

/// Programs run where they should, with the streams and the fate of their client.
pub fn programs(space: &Workspace) {
    let output =
        space.with_input(&["exec", "n2", "--", "sh", "-c", "cat; cat /proc/net/fib_trie; echo no >&2; exit 7"], "in\n");
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stdout).starts_with("in\n") && text(&output.stdout).contains("10.77.0.2"));
    assert_eq!(text(&output.stderr), "no\n");
    assert_eq!(space.run(&["exec", "n1", "--", "no-such-program"]).status.code(), Some(127));
    assert!(space.good(&["nodetool", "n1", "status"]).matches("UN ").count() >= 3);
    assert!(space.good(&["logs", "n1"]).contains("Startup complete"));
    assert_eq!(space.good(&["logs", "n1", "--lines", "3"]).lines().count(), 3);

    // What a program leaves behind is nobody's zombie.
    space.good(&["exec", "n1", "--", "sh", "-c", "sleep 0.1 & sleep 0.1 &"]);
    thread::sleep(Duration::from_millis(300));
    let zombies = || space.good(&["exec", "n1", "--", "sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"]);
    space.until("zombies are buried", || zombies().trim() == "0");

    // Ctrl-C reaches the program, and its client tells of its end; a client that dies takes the program along.
    for (signal, code, mark) in [(libc::SIGINT, Some(130), "31.417"), (libc::SIGKILL, None, "31.418")] {
        let mut client = space.command(&["exec", "n1", "--", "sleep", mark]).stdout(Stdio::null()).spawn().unwrap();
        let runs = || processes_with(mark).iter().any(|pid| *pid != client.id());
        space.until("the program runs", runs);
        kill(client.id(), signal);
        assert_eq!(client.wait().unwrap().code(), code);
        space.until("the program has ended", || processes_with(mark).is_empty());
    }
}

/// Processes one of whose arguments this is.
fn processes_with(mark: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| text(&line).split('\0').any(|word| word == mark))
    };
    pids.filter(has).collect()
}

/// What is no request is answered with an error, and who hangs hurts nobody.
pub fn garbage(space: &Workspace) {
    let connect = || UnixStream::connect(space.runtime().join("tour/lab.sock")).unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[5, 0, 0, 0, b'{', b'}', b'}', b'}', b'}'], &[255; 64]] {
        let mut client = connect();
        client.write_all(bytes).unwrap();
        let mut said = Vec::new();
        // The lab closes without having read all of it, which the kernel tells after the answer.
        let _ = client.read_to_end(&mut said);
        assert!(text(&said).contains("not a brownout request"), "{}", text(&said));
    }
    let hanging: Vec<UnixStream> = (0..20).map(|_| connect()).collect();
    assert_eq!(host(&status(space), "n1")["state"], "UP");
    drop(hanging);
}

pub fn chaos(space: &Workspace) {
    space.good(&["chaos", "start", "--faults", "slow:50ms,flaky:20%", "--pause", "0s", "--run", "1s", "--seed", "3"]);
    assert!(space.bad(&["chaos", "start"], 3).contains("already on"));
    let hit = || {
        status(space)["hosts"].as_array().unwrap().iter().any(|host| !host["network"].as_array().unwrap().is_empty())
    };
    space.until("chaos strikes", hit);
    assert!(space.good(&["chaos", "status"]).contains("seed 3"));
    space.good(&["chaos", "stop"]);
    assert!(!hit(), "all is healed");
}

/// Every change was noted, with its time, its error and the command.
pub fn events(space: &Workspace) {
    let said = space.good(&["events", "--json"]);
    let all: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find =
        |kind: &str| all.iter().find(|event| event["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {said}"));
    assert_eq!(find("slow")["who"], "brownout slow n2 --delay 100ms --jitter 10ms");
    assert!(
        find("slow")["error_ns"].as_u64().unwrap() < 5_000_000_000
            && find("slow")["text"].as_str().unwrap().contains("100ms")
    );
    for kind in ["up", "flaky", "heal", "partition", "pause", "kill", "start", "state", "clock", "disk", "cpu", "chaos"]
    {
        find(kind);
    }
    let times: Vec<u64> = all.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
}

/// Two labs, of different databases, do not see one another.
pub fn another_lab(space: &Workspace) {
    space.up("other", &["--etcd", "--nodes", "1", "--no-disk", "--set", "network.mtu=1400"]);
    let interface = space.good(&["exec", "n1", "-n", "other", "--", "ip", "link", "show", "lab0"]);
    assert!(interface.contains(" mtu 1400 "), "{interface}");
    let said = space.bad(&["status"], 2);
    assert!(said.contains("other, tour"), "{said}");
    space.good(&["slow", "n1", "20ms", "--name", "other"]);
    let tour = space.json(&["status", "--json", "-n", "tour"]);
    assert!(host(&tour, "n1")["network"].as_array().unwrap().is_empty());
    assert!(space.bad(&["disk", "n1", "20ms", "-n", "other"], 4).contains("--no-disk"));
    let listed = space.json(&["ls", "--json"]);
    assert_eq!(listed["labs"].as_array().unwrap().len(), 2);
    an_interface_that_fails_is_told(space);
    let traces = Traces::of(space, "other");
    space.good(&["destroy", "other"]);
    traces.assert_gone(true);
    assert_eq!(host(&status(space), "n1")["state"], "UP");
}

/// A host that loses its interface is part of `status` from then on, and one event.
fn an_interface_that_fails_is_told(space: &Workspace) {
    space.good(&["exec", "n1", "-n", "other", "--", "ip", "link", "delete", "lab0"]);
    let seen = || space.json(&["status", "--json", "-n", "other"]);
    space.until("the failure is told", || host(&seen(), "n1")["network"][0] == "FAILED");
    let notes = seen()["notes"].to_string();
    assert!(notes.contains("interface of n1 failed"), "{notes}");
    let events = space.good(&["events", "--json", "-n", "other"]);
    assert_eq!(events.matches("\"kind\":\"host-failed\"").count(), 1, "{events}");
}
