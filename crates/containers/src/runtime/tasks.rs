//! Containers whose runtime does not answer, by the files that containerd's shims keep of those that run: a directory for each,
//! with the number of its main process (`init.pid`) and what it was made of (`config.json`, the runtime specification of OCI).
//! Docker's names and labels are not there, but in a file of its own.
//!
//! Source: containerd 1.6 and 2.0, `core/runtime/v2` (the bundle) and `pkg/cri/annotations`; Docker 20.10,
//! `daemon/container` (`config.v2.json`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    Place, Runtime, Told,
    docker::{NUMBER, ONE_OFF, PROJECT, SERVICE},
    stop_signal,
};
use crate::{error::ContainersError, selection::By};

/// Where containerd keeps its state: on its own, started by Docker, of k3s.
const STATES: [&str; 3] = ["/run/containerd", "/run/docker/containerd/daemon", "/run/k3s/containerd"];
/// Below that: the directories of namespaces, and below these those of containers.
const TASKS: &str = "io.containerd.runtime.v2.task";
/// What Docker keeps of its containers.
const DOCKER: &str = "/var/lib/docker/containers";
/// Its namespace.
const MOBY: &str = "moby";
/// An identifier is known by as many digits as runtimes print.
const SHORT: usize = 12;
/// On containers of pods.
const CRI: &str = "io.kubernetes.cri.";

/// A container that runs.
#[derive(Debug, Clone, PartialEq)]
struct Task {
    namespace: String,
    id: String,
    pid: u32,
    /// `config.json`.
    made_of: Value,
    /// Docker's `config.v2.json`; null of others.
    docker: Value,
}

/// The containers that are meant, of those that run.
pub(super) fn told(by: &By) -> Result<Vec<Told>, ContainersError> {
    chosen(&all(), by)
}

/// The same container as it is now, or the one that is in its place in a pod; none if it does not run.
pub(super) fn again(place: &Place<'_>) -> Option<Told> {
    let told = all().iter().map(Task::told).find(|told| match place.pod {
        Some(pod) => told.pod.as_deref() == Some(pod),
        None => told.id == place.id,
    });
    Some(Told { engine: place.engine.to_owned(), ..told? })
}

fn all() -> Vec<Task> {
    let states = STATES.iter().map(|state| Path::new(state).join(TASKS));
    states.flat_map(|tasks| below(&tasks, Path::new(DOCKER))).collect()
}

fn below(tasks: &Path, docker: &Path) -> Vec<Task> {
    let namespaces = entries(tasks);
    let containers = namespaces.iter().flat_map(|namespace| entries(namespace));
    containers.filter_map(|directory| task(&directory, docker)).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// None of one that is being made, or has ended.
fn task(directory: &Path, docker: &Path) -> Option<Task> {
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let json = |path: PathBuf| -> Option<Value> { serde_json::from_slice(&fs::read(path).ok()?).ok() };
    let (namespace, id) = (name(directory.parent()?)?, name(directory)?);
    let pid = fs::read_to_string(directory.join("init.pid")).ok()?.trim().parse().ok()?;
    let made_of = json(directory.join("config.json"))?;
    let docker = (namespace == MOBY).then(|| json(docker.join(&id).join("config.v2.json"))).flatten();
    let task = Task { namespace, id, pid, made_of, docker: docker.unwrap_or_default() };
    // What holds a pod's network together is none of its containers.
    (task.annotation("container-type") != Some("sandbox")).then_some(task)
}

impl Task {
    fn text(&self, pointer: &str) -> Option<&str> {
        let text = self.docker.pointer(pointer)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    /// Of Compose and of people; only Docker's are in a file.
    fn label(&self, name: &str) -> Option<&str> {
        self.docker.get("Config")?.get("Labels")?.get(name)?.as_str()
    }

    /// Of pods.
    fn annotation(&self, name: &str) -> Option<&str> {
        self.made_of.get("annotations")?.get(format!("{CRI}{name}"))?.as_str()
    }

    fn is_named(&self, name: &str) -> bool {
        let is_id = self.id == name || (name.len() >= SHORT && self.id.starts_with(name));
        let told = self.told();
        is_id || told.name == name || told.host == name
    }

    fn has_label(&self, label: &str) -> bool {
        match label.split_once('=') {
            Some((key, value)) => self.label(key) == Some(value),
            None => self.label(label).is_some(),
        }
    }

    fn told(&self) -> Told {
        let of_pod = |name: &str| self.annotation(name).map(str::to_owned);
        let (pod, container) = (of_pod("sandbox-name"), of_pod("container-name"));
        let place = pod.as_ref().zip(container.as_ref());
        let name = match place {
            Some((pod, container)) => format!("{pod}/{container}"),
            None => self.text("/Name").map_or(self.id.as_str(), |name| name.trim_start_matches('/')).to_owned(),
        };
        let label = |name: &str| self.label(name).filter(|value| !value.is_empty()).map(str::to_owned);
        let asked = self.made_of.get("annotations").and_then(|all| all.get(stop_signal::ANNOTATION)?.as_str());
        Told {
            host: pod.clone().unwrap_or_else(|| name.clone()),
            name,
            id: self.id.clone(),
            runtime: if self.namespace == MOBY { Runtime::Docker } else { Runtime::Containerd },
            engine: format!("{}, which does not answer", if self.namespace == MOBY { "Docker" } else { "containerd" }),
            pid: Some(self.pid),
            started: self.text("/State/StartedAt").unwrap_or_default().to_owned(),
            image: of_pod("image-name").or_else(|| self.text("/Config/Image").map(str::to_owned)).unwrap_or_default(),
            project: label(PROJECT),
            service: label(SERVICE),
            number: label(NUMBER).and_then(|number| number.parse().ok()),
            pod: place.map(|(pod, container)| {
                format!("{}/{pod}/{container}", self.annotation("sandbox-namespace").unwrap_or_default())
            }),
            stop_signal: self.text("/Config/StopSignal").or(asked).and_then(stop_signal::of),
            ..Told::named("")
        }
    }
}

fn chosen(all: &[Task], by: &By) -> Result<Vec<Told>, ContainersError> {
    let with = |label: &str| -> Vec<Told> {
        let meant = all.iter().filter(|task| task.has_label(label));
        meant.filter(|task| !task.has_label(&format!("{ONE_OFF}=True"))).map(Task::told).collect()
    };
    let names = match by {
        By::Project(project) => return Ok(with(&format!("{PROJECT}={project}"))),
        By::Label(label) => return Ok(with(label)),
        By::Names(names) => names,
        By::Pids(_) | By::Namespaces(_) => return Ok(Vec::new()),
    };
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match all.iter().filter(|task| task.is_named(name)).collect::<Vec<_>>()[..] {
            [] => missing.push(name.as_str()),
            [task] => found.push(task.told()),
            [first, ..] => {
                let reason = format!("{name} is the name of several; write the identifier of one, as {}", first.id);
                return Err(ContainersError::Selection { what: "names", reason });
            }
        }
    }
    if !found.is_empty() && !missing.is_empty() {
        return Err(ContainersError::NotFound {
            what: format!("named {}", missing.join(", ")),
            looked: "the others run; no runtime answers that knows more (see docker ps --all)".to_owned(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(tasks: &Path, namespace: &str, id: &str, made_of: &Value) {
        let directory = tasks.join(namespace).join(id);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("init.pid"), "4711").unwrap();
        fs::write(directory.join("config.json"), made_of.to_string()).unwrap();
    }

    fn made() -> (tempfile::TempDir, Vec<Task>) {
        let directory = tempfile::tempdir().unwrap();
        let (tasks, docker) = (directory.path().join("tasks"), directory.path().join("docker"));
        let first = "0123456789abcdef".repeat(4);
        written(&tasks, MOBY, &first, &json!({ "ociVersion": "1.0.2" }));
        fs::create_dir_all(docker.join(&first)).unwrap();
        let labels = json!({
            "com.docker.compose.project": "shop", "com.docker.compose.service": "db",
            "com.docker.compose.container-number": "2", "com.docker.compose.oneoff": "False"
        });
        let config = json!({
            "Name": "/shop-db-2", "State": { "StartedAt": "2026-11-24T10:00:01.5Z" },
            "Config": { "Image": "cassandra:5.0", "StopSignal": "SIGINT", "Labels": labels }
        });
        fs::write(docker.join(&first).join("config.v2.json"), config.to_string()).unwrap();
        let pod = |kind: &str, container: &str| {
            let mut annotations = json!({
                "io.kubernetes.cri.container-type": kind, "io.kubernetes.cri.sandbox-name": "db-0",
                "io.kubernetes.cri.sandbox-namespace": "prod", "io.kubernetes.cri.image-name": "etcd:3.6",
                "org.opencontainers.image.stopSignal": "SIGQUIT"
            });
            if !container.is_empty() {
                annotations["io.kubernetes.cri.container-name"] = container.into();
            }
            json!({ "annotations": annotations })
        };
        written(&tasks, "k8s.io", &"a".repeat(64), &pod("container", "etcd"));
        written(&tasks, "k8s.io", &"b".repeat(64), &pod("sandbox", ""));
        // One that is being made.
        fs::create_dir_all(tasks.join("default/new")).unwrap();
        let found = below(&tasks, &docker);
        (directory, found)
    }

    #[test]
    fn those_that_run_are_read_with_what_their_runtimes_have_written() {
        let (_directory, tasks) = made();
        assert_eq!(tasks.len(), 2, "{tasks:?}");
        let told: Vec<Told> = tasks.iter().map(Task::told).collect();
        let [pod, docker] = &told[..] else { panic!("{told:?}") };
        assert_eq!((pod.host.as_str(), pod.name.as_str(), pod.runtime), ("db-0", "db-0/etcd", Runtime::Containerd));
        assert_eq!((pod.pod.as_deref(), pod.image.as_str()), (Some("prod/db-0/etcd"), "etcd:3.6"));
        assert_eq!((pod.stop_signal, pod.pid, pod.socket.as_ref()), (Some(libc::SIGQUIT), Some(4711), None));
        assert_eq!((docker.host.as_str(), docker.runtime), ("shop-db-2", Runtime::Docker));
        assert_eq!(
            (docker.service.as_deref(), docker.number, docker.stop_signal),
            (Some("db"), Some(2), Some(libc::SIGINT))
        );
    }

    #[test]
    fn they_are_chosen_as_their_runtimes_would() {
        let (_directory, tasks) = made();
        let names =
            |by: By| -> Vec<String> { chosen(&tasks, &by).unwrap().into_iter().map(|told| told.name).collect() };
        assert_eq!(names(By::Project("shop".into())), ["shop-db-2"]);
        assert_eq!(names(By::Label("com.docker.compose.service".into())), ["shop-db-2"]);
        assert_eq!(names(By::Label("app=db".into())), [""; 0]);
        let named = |names: &[&str]| By::Names(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names(named(&["db-0", "0123456789ab"])), ["db-0/etcd", "shop-db-2"]);
        assert_eq!(names(named(&["db-0/etcd"])), ["db-0/etcd"]);
        assert_eq!(names(named(&["other"])), [""; 0]);
        let error = chosen(&tasks, &named(&["db-0", "db-7"])).unwrap_err().to_string();
        assert!(error.contains("named db-7"), "{error}");
    }
}
