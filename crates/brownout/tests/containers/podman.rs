//! Members of etcd that podman runs: found at its socket, slowed, proven, refuted, killed and started again by podman, and left as they
//! were.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use brownout_record::Run;

use super::{
    apart::{beside_engine, network_of},
    common::{both, brownout, json, only_run, repository, require_root, undisturbed},
    docker::done,
    findings::{named, pairs},
    hosts::etcd,
    look::{Connection, Setup},
    runs::file,
};

const NAMES: [&str; 3] = ["etcd-1", "etcd-2", "etcd-3"];
/// The same image as on Kubernetes.
const IMAGE: &str = "etcd:v3.6.5";

fn podman(words: &[&str]) -> String {
    done(Command::new("podman").args(words))
}

fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 93, 0, 11 + number as u8)
}

fn network(name: &str) -> PathBuf {
    network_of(podman(&["inspect", "--format", "{{.State.Pid}}", name]).trim().parse().unwrap())
}

/// Three members on a network of podman's, that answer.
fn members(directory: &Path) {
    let archive = directory.join("etcd.tar");
    let program = format!("{}:/usr/local/bin/etcd", etcd().program.display());
    done(Command::new(repository().join("scripts/image")).args([IMAGE, archive.to_str().unwrap(), &program]));
    podman(&["load", "--input", archive.to_str().unwrap()]);
    podman(&["network", "create", "--subnet", "10.93.0.0/24", "shop"]);
    let all: Vec<String> =
        NAMES.iter().enumerate().map(|(at, name)| format!("{name}=http://{}:2380", address(at))).collect();
    let groups = env::var("GROUPS_OF_PODMAN").unwrap();
    for (at, name) in NAMES.into_iter().enumerate() {
        let own = address(at).to_string();
        let command = [
            "/usr/local/bin/etcd".to_owned(),
            format!("--name={name}"),
            "--data-dir=/tmp/etcd".to_owned(),
            "--listen-client-urls=http://0.0.0.0:2379".to_owned(),
            format!("--advertise-client-urls=http://{own}:2379"),
            "--listen-peer-urls=http://0.0.0.0:2380".to_owned(),
            format!("--initial-advertise-peer-urls=http://{own}:2380"),
            format!("--initial-cluster={}", all.join(",")),
        ];
        let mut run = Command::new("podman");
        run.args(["run", "--detach", "--name", name, "--network", "shop", "--ip", &own, "--cgroup-parent", &groups]);
        done(run.arg(IMAGE).args(command));
    }
    for (at, name) in NAMES.into_iter().enumerate() {
        let begun = Instant::now();
        let client: SocketAddr = (address(at), 2379).into();
        while TcpStream::connect_timeout(&client, Duration::from_secs(1)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name}: {}", podman(&["logs", name]));
            thread::sleep(Duration::from_millis(200));
        }
    }
}

fn run(out: &Path, faults: &str, recovery: &str, more: &[&str]) -> Output {
    let phases = format!("{{ warm-up: 16s, baseline: 8s, fault: 22s, recovery: {recovery} }}");
    let file = file(out, &format!("names: [{}]", NAMES.join(", ")), &phases, faults);
    let runs = out.join("runs");
    let words = ["run", file.to_str().unwrap(), "--json", "--out", runs.to_str().unwrap()];
    brownout(&[&words[..], more].concat())
}

#[test]
#[ignore = "needs podman: make test-long"]
fn members_that_podman_runs_are_slowed_and_killed_and_proven_and_left_as_they_were() {
    require_root();
    etcd();
    beside_engine("podman", &members_that_podman_runs_are_slowed_and_killed_and_proven_and_left_as_they_were, || {
        let directory = tempfile::tempdir().unwrap();
        members(directory.path());
        let mut connection = Connection::between(&network(NAMES[0]), &network(NAMES[1]), address(1));
        connection.assert_fast();
        let all = || NAMES.iter().map(|name| network(name)).chain([network_of(std::process::id())]);
        let before = Setup::of(&all().collect::<Vec<_>>());

        let listed = json(&brownout(&["ground", NAMES[0], NAMES[1], NAMES[2], "--json"]));
        for (at, told) in listed["hosts"].as_array().unwrap().iter().enumerate() {
            assert_eq!((told["runtime"].as_str(), told["name"].as_str()), (Some("podman"), Some(NAMES[at])), "{told}");
            assert_eq!(told["addresses"][0], address(at).to_string(), "{told}");
        }

        let slow = "  - slow: { host: etcd-2, delay: 40ms }\n";
        let Some((_, output, findings)) = undisturbed(|out| run(out, slow, "8s", &[])) else { return };
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        let fault = &findings["trials"][0]["faults"][0];
        assert_eq!(fault["verdict"], "proven", "{fault}");
        let second = named(&findings, address(1));
        let hit = pairs(fault, "one-way-delay", true);
        assert!(hit.len() == 3 && hit.iter().all(|(from, _)| *from == second), "{second}: {hit:?}");

        let Some((_, output, findings)) = undisturbed(|out| run(out, slow, "8s", &["--sabotage"])) else { return };
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "refuted");
        connection.assert_fast();
        before.assert_is_back();

        let faults =
            "  - pause: { host: etcd-1 }\n    length: 6s\n  - kill: { host: etcd-3 }\n    start: 7s\n    length: 7s\n";
        let Some((out, output, findings)) = undisturbed(|out| run(out, faults, "36s", &[])) else { return };
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        for fault in findings["trials"][0]["faults"].as_array().unwrap() {
            assert_eq!(fault["verdict"], "proven", "{fault}");
        }
        // podman has started it again.
        let events = Run::open(&only_run(&out.path().join("runs"))).unwrap().events_of(1).unwrap();
        assert!(events.iter().any(|event| event.kind == "reattached" && event.subject == NAMES[2]), "{events:?}");
        connection.assert_fast();
    });
}
