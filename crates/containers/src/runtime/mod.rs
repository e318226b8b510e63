//! Who knows of containers: Docker and podman, containerd and CRI-O, or nobody but the kernel.

pub(crate) mod bare;
mod cri;
mod docker;
mod grpc;
pub(crate) mod http;
mod stop_signal;
mod tasks;

use std::{
    env,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::ContainersError,
    selection::{By, Selection},
};

/// Where runtimes listen, with the protocol that they speak there; the user's own below `$XDG_RUNTIME_DIR` come after
/// the machine's.
const DOCKER: &str = "/run/docker.sock";
const PODMAN: &str = "/run/podman/podman.sock";
const CRI: [&str; 3] =
    ["/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock"];

/// Who runs a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Docker.
    Docker,
    /// podman.
    Podman,
    /// containerd, or CRI-O, which is asked in the same way.
    Containerd,
    /// Nobody who is known: it was named by a process or a namespace.
    None,
}

/// What a runtime tells of a container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// The name that it has as a host.
    pub(crate) host: String,
    /// The name that its runtime has for it.
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) runtime: Runtime,
    /// Name and version of the runtime.
    pub(crate) engine: String,
    /// Its main process, in the runtime's PID namespace; none if it does not run.
    pub(crate) pid: Option<u32>,
    /// In words: "running", "exited".
    pub(crate) state: String,
    pub(crate) started: String,
    pub(crate) image: String,
    pub(crate) project: Option<String>,
    pub(crate) service: Option<String>,
    pub(crate) number: Option<u32>,
    /// Of Kubernetes: "namespace/pod/container".
    pub(crate) pod: Option<String>,
    pub(crate) networks: Vec<Attachment>,
    /// The file that stands for its network namespace.
    pub(crate) namespace: Option<PathBuf>,
    pub(crate) mode: Mode,
    /// Its runtime has frozen it.
    pub(crate) is_paused: bool,
    /// Its runtime removes it when it ends.
    pub(crate) is_removed: bool,
    /// The signal by which it wants to be asked to end; none: SIGTERM.
    pub(crate) stop_signal: Option<i32>,
    pub(crate) socket: Option<PathBuf>,
}

/// A network that a container is in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attachment {
    pub(crate) network: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) mac: Option<String>,
    pub(crate) gateways: Vec<IpAddr>,
}

/// Whose network namespace a container has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mode {
    /// Its own, or that of its pod.
    Own,
    /// The machine's.
    Host,
    /// That of another container, by its id or name.
    Of(String),
}

impl Told {
    /// Of nobody in particular, and by no runtime.
    pub(crate) fn named(name: &str) -> Told {
        Told {
            host: name.to_owned(),
            name: name.to_owned(),
            id: name.to_owned(),
            runtime: Runtime::None,
            engine: "no runtime".to_owned(),
            pid: None,
            state: "running".to_owned(),
            started: String::new(),
            image: String::new(),
            project: None,
            service: None,
            number: None,
            pod: None,
            networks: Vec::new(),
            namespace: None,
            mode: Mode::Own,
            is_paused: false,
            is_removed: false,
            stop_signal: None,
            socket: None,
        }
    }

    /// Whether there is anything to be entered, or signalled.
    pub(crate) fn is_there(&self) -> bool {
        self.pid.is_some() || (self.runtime == Runtime::None && self.namespace.is_some())
    }
}

/// What is spoken at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Docker's API, also podman's.
    Docker,
    Cri,
}

/// A runtime's socket that is there, and what it said.
#[derive(Debug)]
pub struct Answering {
    /// Whose it is, by what it says; by where it is if it says nothing.
    pub runtime: Runtime,
    /// Where it listens.
    pub socket: PathBuf,
    /// Its name and version ("Docker 20.10.24"), or why it said nothing.
    pub version: Result<String, ContainersError>,
}

/// The runtimes whose sockets are there, in the order in which they are asked for containers.
pub fn answering() -> Vec<Answering> {
    let answering = |(socket, protocol): (PathBuf, Protocol)| {
        let asked = version(&socket, protocol);
        let by_path = match protocol {
            Protocol::Cri => Runtime::Containerd,
            Protocol::Docker if socket.ends_with("podman.sock") => Runtime::Podman,
            Protocol::Docker => Runtime::Docker,
        };
        let runtime = asked.as_ref().map_or(by_path, |(runtime, _)| *runtime);
        Answering { runtime, socket, version: asked.map(|(_, version)| version) }
    };
    sockets().into_iter().map(answering).collect()
}

fn version(socket: &Path, protocol: Protocol) -> Result<(Runtime, String), ContainersError> {
    match protocol {
        Protocol::Docker => docker::version(socket),
        Protocol::Cri => Ok((Runtime::Containerd, cri::version(socket)?)),
    }
}

/// The usual sockets, those that are there, each once.
fn sockets() -> Vec<(PathBuf, Protocol)> {
    let named = |variable: &str| {
        let value = env::var(variable).ok()?;
        Some(PathBuf::from(value.strip_prefix("unix://")?))
    };
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_absolute());
    let own = |name: &str| own.as_ref().map(|directory| directory.join(name));
    let docker = [
        named("DOCKER_HOST"),
        Some(DOCKER.into()),
        own("docker.sock"),
        named("CONTAINER_HOST"),
        Some(PODMAN.into()),
        own("podman/podman.sock"),
    ];
    let all = docker.into_iter().flatten().map(|socket| (socket, Protocol::Docker));
    let all = all.chain(CRI.map(|socket| (PathBuf::from(socket), Protocol::Cri)));
    let (mut there, mut known) = (Vec::new(), Vec::new());
    for (socket, protocol) in all {
        // One may be a link to another: podman's package has /run/docker.sock point to its own.
        let Ok(path) = socket.canonicalize() else { continue };
        if !known.contains(&path) {
            known.push(path);
            there.push((socket, protocol));
        }
    }
    there
}

/// Asks the runtime of a selection for its containers, or, where it names none, one after the other until one has some.
pub(crate) fn told(selection: &Selection) -> Result<Vec<Told>, ContainersError> {
    let what = selection.by.words();
    if let Some(socket) = &selection.socket {
        return match at(socket, protocol_at(socket), &selection.by)? {
            Some(told) => Ok(told),
            None => Err(ContainersError::NotFound { what, looked: format!("none at {}; {SEE}", socket.display()) }),
        };
    }
    let (mut looked, mut has_answered) = (Vec::new(), false);
    for (socket, protocol) in sockets() {
        match at(&socket, protocol, &selection.by) {
            Ok(Some(told)) => return Ok(told),
            Ok(None) => {
                has_answered = true;
                looked.push(format!("none at {}", socket.display()));
            }
            // What is there, and cannot be used, is told as it is.
            Err(error @ (ContainersError::NotFound { .. } | ContainersError::Selection { .. })) => return Err(error),
            Err(error) => looked.push(error.to_string()),
        }
    }
    if !has_answered {
        // Containers outlive a runtime that hangs, or was ended.
        let told = tasks::told(&selection.by)?;
        if !told.is_empty() {
            return Ok(told);
        }
    }
    if looked.is_empty() {
        let usual = [&[DOCKER, PODMAN][..], &CRI[..]].concat().join(", ");
        let looked = format!("no container runtime listens here ({usual}); start it, or name its socket");
        return Err(ContainersError::NotFound { what, looked });
    }
    Err(ContainersError::NotFound { what, looked: format!("{}; {SEE}", looked.join("; ")) })
}

/// Where a container was found before.
pub(crate) struct Place<'a> {
    /// Who ran it.
    pub(crate) runtime: Runtime,
    /// Its identifier.
    pub(crate) id: &'a str,
    /// Of Kubernetes: "namespace/pod/container".
    pub(crate) pod: Option<&'a str>,
    /// Name and version of the runtime.
    pub(crate) engine: &'a str,
}

/// The same container as it is now; none if it was removed. `socket`: where its runtime listens; none: it did not answer.
pub(crate) fn again(socket: Option<&Path>, place: &Place<'_>) -> Result<Option<Told>, ContainersError> {
    match (socket, place.runtime) {
        (Some(socket), Runtime::Containerd) => cri::again(socket, place),
        (Some(socket), _) => docker::again(socket, place),
        (None, _) => Ok(tasks::again(place)),
    }
}

const SEE: &str = "see what runs by docker ps, podman ps or crictl pods";

/// What is spoken at a socket that somebody has named.
pub(crate) fn protocol_at(socket: &Path) -> Protocol {
    let name = socket.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let speaks_cri = ["containerd", "crio", "cri-o", "cri-dockerd"].iter().any(|known| name.starts_with(known));
    if speaks_cri { Protocol::Cri } else { Protocol::Docker }
}

/// The containers at one socket; none if there are no such.
fn at(socket: &Path, protocol: Protocol, by: &By) -> Result<Option<Vec<Told>>, ContainersError> {
    let told = match protocol {
        Protocol::Docker => docker::told(socket, by)?,
        Protocol::Cri => cri::told(socket, by)?,
    };
    Ok(Some(told).filter(|told| !told.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_at_a_socket_is_known_by_its_name() {
        for (socket, protocol) in [
            ("/run/docker.sock", Protocol::Docker),
            ("/run/user/1000/podman/podman.sock", Protocol::Docker),
            ("/tmp/test/docker.sock", Protocol::Docker),
            ("/run/containerd/containerd.sock", Protocol::Cri),
            ("/var/run/crio/crio.sock", Protocol::Cri),
        ] {
            assert_eq!(protocol_at(Path::new(socket)), protocol, "{socket}");
        }
    }

    #[test]
    fn a_socket_that_is_named_is_the_only_one_that_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("docker.sock");
        let selection = Selection { by: By::Project("shop".into()), socket: Some(socket.clone()) };
        let error = told(&selection).unwrap_err();
        assert!(matches!(&error, ContainersError::Socket { socket: told, .. } if *told == socket), "{error}");
    }
}
