//! A real etcd of three members on this machine, for tests and the bench.
#![allow(dead_code, reason = "not every program uses all of it")]

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU8, Ordering},
    time::{Duration, Instant},
};

use brownout_cluster::{cache, etcd};
use brownout_load::Coordinator;

/// How long a cluster may take until all its members take requests.
const READY_WITHIN: Duration = Duration::from_secs(60);

struct Member {
    name: String,
    client: SocketAddr,
    process: Child,
}

/// Dropping it ends its processes and removes their data.
pub struct Etcd {
    members: Vec<Member>,
    directory: tempfile::TempDir,
    pub version: String,
}

/// An address of the loopback that no other cluster has, of this process or of another: on 127.0.0.1 others' connections take ports, too.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., second, third] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + second % 64, third, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A port of that address that nobody has.
fn free(address: Ipv4Addr) -> SocketAddr {
    TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Etcd {
    /// Starts `count` members, and waits until each takes requests.
    pub fn start(count: usize) -> Etcd {
        let wanted = etcd::Wanted::Version(etcd::DEFAULT.to_owned());
        let cache = cache::directory().expect("a directory for what is built");
        let installed = etcd::provide(&wanted, &cache, &|step| eprintln!("{step}"), &|| false)
            .unwrap_or_else(|error| panic!("these tests need a real etcd: {error}"));
        let directory = tempfile::tempdir().expect("a directory for the data");
        let own = own_address();
        let peers: Vec<SocketAddr> = (0..count).map(|_| free(own)).collect();
        let cluster: Vec<String> = peers.iter().zip(1..).map(|(peer, n)| format!("n{n}=http://{peer}")).collect();
        let mut members = Vec::new();
        for (peer, number) in peers.iter().zip(1..) {
            let (name, client) = (format!("n{number}"), free(own));
            let output = std::fs::File::create(directory.path().join(format!("{name}.log"))).expect("a log");
            let process = Command::new(&installed.program)
                .args(["--name", &name, "--initial-cluster-state", "new", "--log-level", "warn", "--logger", "zap"])
                .args(["--initial-cluster", &cluster.join(",")])
                .args(["--listen-client-urls", &format!("http://{client}")])
                .args(["--advertise-client-urls", &format!("http://{client}")])
                .args(["--listen-peer-urls", &format!("http://{peer}")])
                .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
                .arg("--data-dir")
                .arg(directory.path().join(&name))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(output)
                .spawn()
                .expect("etcd starts");
            members.push(Member { name, client, process });
        }
        let started = Etcd { members, directory, version: installed.version };
        started.wait_ready();
        started
    }

    /// Each member deletes what is not there: that takes all of them, and a leader.
    fn wait_ready(&self) {
        let deadline = Instant::now() + READY_WITHIN;
        for node in self.coordinators() {
            let left = deadline.saturating_duration_since(Instant::now());
            let wire = brownout_load::WireOptions::default();
            let done = brownout_load::control::clear_etcd(
                &wire,
                std::slice::from_ref(&node),
                &brownout_load::stay(),
                "is it ready?",
                left,
            );
            done.unwrap_or_else(|error| panic!("{error}; {} says: {}", node.name, self.log(&node.name)));
        }
    }

    fn log(&self, name: &str) -> String {
        let path: PathBuf = self.directory.path().join(format!("{name}.log"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    pub fn coordinators(&self) -> Vec<Coordinator> {
        self.members.iter().map(|member| Coordinator { name: member.name.clone(), address: member.client }).collect()
    }

    /// Sends a signal to a member: `STOP`, `CONT`, `KILL`.
    pub fn signal(&self, name: &str, signal: &str) {
        let member = self.members.iter().find(|member| member.name == name).expect("a member of that name");
        let sent = Command::new("kill").args([&format!("-{signal}"), &member.process.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal} to {name}");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            // SIGKILL also ends what was stopped.
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}
