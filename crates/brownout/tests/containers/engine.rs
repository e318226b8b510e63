//! A runtime that is asked as Docker is, over processes that a test has started in networks of its own: as much of Docker's API as
//! Brownout asks. What it is said to start again, the test starts.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::Ipv4Addr,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use super::hosts::Host;

/// A container as it is told.
struct Told {
    address: Ipv4Addr,
    namespace: PathBuf,
    /// None: it does not run.
    pid: Option<u32>,
}

/// Containers by name.
type All = Arc<Mutex<BTreeMap<String, Told>>>;

/// The runtime; it answers until the test ends.
pub struct Engine {
    socket: PathBuf,
    containers: All,
    _directory: tempfile::TempDir,
}

impl Engine {
    /// Of these hosts as containers, each with its main process.
    pub fn of(hosts: &[Host], pids: &[u32]) -> Engine {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let told = |(host, pid): (&Host, &u32)| {
            let told = Told { address: host.address, namespace: host.namespace.clone(), pid: Some(*pid) };
            (host.name.clone(), told)
        };
        let containers: All = Arc::new(Mutex::new(hosts.iter().zip(pids).map(told).collect()));
        let asked = Arc::clone(&containers);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &asked);
            }
        });
        Engine { socket, containers, _directory: directory }
    }

    /// The main process of a container from now on; none: it does not run.
    pub fn runs(&self, container: &str, pid: Option<u32>) {
        self.containers.lock().unwrap().get_mut(container).unwrap().pid = pid;
    }

    /// All of them, as a file's `ground.containers` has it.
    pub fn ground(&self) -> String {
        let names: Vec<String> = self.containers.lock().unwrap().keys().cloned().collect();
        format!("names: [{}], socket: {}", names.join(", "), self.socket.display())
    }
}

/// One question on each connection.
fn answer(mut stream: UnixStream, containers: &All) {
    let (mut question, mut byte) = (Vec::new(), [0]);
    while !question.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
        question.extend(byte);
    }
    let question = String::from_utf8_lossy(&question).into_owned();
    let path = question.split(' ').nth(1).unwrap_or_default();
    let told = match path.strip_prefix("/containers/").and_then(|rest| rest.strip_suffix("/json")) {
        Some(name) => containers.lock().unwrap().get(name).map(|told| inspected(name, told)),
        None => (path == "/version").then(|| json!({ "Version": "20.10.24" })),
    };
    let (status, body) = match told {
        Some(told) => ("200 OK", told.to_string()),
        None => ("404 Not Found", json!({ "message": format!("there is no {path}") }).to_string()),
    };
    // Whoever asked may have gone.
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// What Docker 20.10 tells of a container, as far as it is read.
fn inspected(name: &str, told: &Told) -> Value {
    json!({
        "Id": name,
        "Name": format!("/{name}"),
        "State": {
            "Status": if told.pid.is_some() { "running" } else { "exited" },
            "Paused": false,
            "Pid": told.pid.unwrap_or(0),
            "StartedAt": "2026-11-24T10:00:00Z",
        },
        "Config": { "Image": "etcd:3", "Labels": {} },
        "HostConfig": { "NetworkMode": "shop", "AutoRemove": false, "RestartPolicy": { "Name": "no" } },
        "NetworkSettings": {
            // The kernel knows by it that the process is of this container.
            "SandboxKey": told.namespace,
            "Networks": { "shop": { "IPAddress": told.address, "Gateway": "172.30.0.1" } },
        },
    })
}
