//! Containers of Kubernetes' pods, by the Container Runtime Interface: containerd (1.6 and later), CRI-O.
//!
//! Source: `pkg/apis/runtime/v1/api.proto` of k8s.io/cri-api; the messages have the fields that are needed. A pod is a
//! host: its containers share a network. So a pod with several containers is told by which of them is meant:
//! `POD/CONTAINER`.

use std::{collections::BTreeMap, path::Path};

use prost::Message;
use serde_json::Value;

use super::{Mode, Place, Runtime, Told, grpc::call, stop_signal};
use crate::{error::ContainersError, selection::By};

const READY: i32 = 0;
const RUNNING: i32 = 1;
/// An identifier is known by as many digits as `crictl` prints.
const SHORT: usize = 12;

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) version: String,
}

/// A state that is asked for: of a pod, or of a container.
#[derive(Clone, PartialEq, Message)]
struct StateValue {
    #[prost(int32, tag = "1")]
    state: i32,
}

#[derive(Clone, PartialEq, Message)]
struct PodFilter {
    #[prost(message, optional, tag = "2")]
    state: Option<StateValue>,
    #[prost(btree_map = "string, string", tag = "3")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct ListPodsRequest {
    #[prost(message, optional, tag = "1")]
    filter: Option<PodFilter>,
}

#[derive(Clone, PartialEq, Message)]
struct ListPodsResponse {
    #[prost(message, repeated, tag = "1")]
    pods: Vec<Pod>,
}

#[derive(Clone, PartialEq, Message)]
struct Pod {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    metadata: Option<PodMetadata>,
    #[prost(btree_map = "string, string", tag = "5")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct PodMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerFilter {
    #[prost(message, optional, tag = "2")]
    state: Option<StateValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    filter: Option<ContainerFilter>,
}

#[derive(Clone, PartialEq, Message)]
struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<Listed>,
}

#[derive(Clone, PartialEq, Message)]
struct Listed {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    pod: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    image: Option<Image>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(bool, tag = "2")]
    verbose: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(btree_map = "string, string", tag = "2")]
    info: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    /// Nanoseconds since 1970.
    #[prost(int64, tag = "5")]
    started_at: i64,
    #[prost(message, optional, tag = "8")]
    image: Option<Image>,
    /// Of runtimes since Kubernetes 1.33; numbered in the interface's own way.
    #[prost(int32, tag = "19")]
    stop_signal: i32,
}

fn path(method: &str) -> String {
    format!("/runtime.v1.RuntimeService/{method}")
}

/// Name and version of the runtime.
pub(super) fn version(socket: &Path) -> Result<String, ContainersError> {
    let told: VersionResponse = call(socket, &path("Version"), &VersionRequest { version: String::new() })?;
    Ok(format!("{} {}", told.name, told.version))
}

/// A container that runs, and its pod.
#[derive(Debug, Clone, PartialEq)]
struct Running {
    id: String,
    namespace: String,
    pod: String,
    container: String,
    image: String,
    labels: BTreeMap<String, String>,
}

/// The containers that are meant.
pub(super) fn told(socket: &Path, by: &By) -> Result<Vec<Told>, ContainersError> {
    if !matches!(by, By::Names(_) | By::Label(_)) {
        return Ok(Vec::new());
    }
    let known = running(socket)?;
    let chosen = choose(&known, by)?;
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let engine = version(socket)?;
    chosen.iter().map(|(running, host)| status(socket, running, host, &engine)).collect()
}

/// The container that is in the place of another one by now: the kubelet makes new ones.
pub(super) fn again(socket: &Path, place: &Place<'_>) -> Result<Option<Told>, ContainersError> {
    let Some(pod) = place.pod else { return Ok(None) };
    let all = running(socket)?;
    let found = all.iter().find(|one| format!("{}/{}/{}", one.namespace, one.pod, one.container) == pod);
    found.map(|found| status(socket, found, &found.pod, place.engine)).transpose()
}

/// All that run.
fn running(socket: &Path) -> Result<Vec<Running>, ContainersError> {
    let state = |state| Some(StateValue { state });
    let filter = Some(PodFilter { state: state(READY), labels: BTreeMap::new() });
    let pods: ListPodsResponse = call(socket, &path("ListPodSandbox"), &ListPodsRequest { filter })?;
    let filter = Some(ContainerFilter { state: state(RUNNING) });
    let all: ListContainersResponse = call(socket, &path("ListContainers"), &ListContainersRequest { filter })?;
    Ok(joined(pods.pods, all.containers))
}

fn joined(pods: Vec<Pod>, containers: Vec<Listed>) -> Vec<Running> {
    let pods: BTreeMap<String, Pod> = pods.into_iter().map(|pod| (pod.id.clone(), pod)).collect();
    let running = containers.into_iter().filter_map(|container| {
        let pod = pods.get(&container.pod)?;
        let metadata = pod.metadata.clone().unwrap_or_default();
        Some(Running {
            id: container.id,
            namespace: metadata.namespace,
            pod: metadata.name,
            container: container.metadata.unwrap_or_default().name,
            image: container.image.unwrap_or_default().name,
            labels: pod.labels.clone(),
        })
    });
    running.collect()
}

/// Those that are meant, with their names as hosts.
fn choose<'a>(all: &'a [Running], by: &By) -> Result<Vec<(&'a Running, String)>, ContainersError> {
    match by {
        By::Label(label) => {
            let (key, value) = label.split_once('=').map_or((label.as_str(), None), |(key, value)| (key, Some(value)));
            let has =
                |running: &&Running| running.labels.get(key).is_some_and(|is| value.is_none_or(|value| value == is));
            let chosen: Vec<&Running> = all.iter().filter(has).collect();
            chosen.into_iter().map(|running| Ok((alone(running, all)?, running.pod.clone()))).collect()
        }
        By::Names(names) => {
            let found: Result<Vec<_>, _> = names.iter().map(|name| by_name(all, name)).collect();
            let found: Vec<_> = found?;
            let missing: Vec<&str> =
                names.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(name, _)| name.as_str()).collect();
            match missing.len() {
                0 => Ok(found.into_iter().flatten().collect()),
                count if count == names.len() => Ok(Vec::new()),
                _ => Err(ContainersError::NotFound {
                    what: format!("named {}", missing.join(", ")),
                    looked: "the others are there; see crictl ps".to_owned(),
                }),
            }
        }
        By::Project(_) | By::Pids(_) | By::Namespaces(_) => Ok(Vec::new()),
    }
}

/// `POD`, `POD/CONTAINER`, or an identifier.
fn by_name<'a>(all: &'a [Running], name: &str) -> Result<Option<(&'a Running, String)>, ContainersError> {
    let by_id = all.iter().find(|running| name.len() >= SHORT && running.id.starts_with(name));
    if let Some(running) = by_id {
        return Ok(Some((running, running.pod.clone())));
    }
    if let Some((pod, container)) = name.split_once('/') {
        let found = all.iter().find(|running| running.pod == pod && running.container == container);
        return Ok(found.map(|running| (running, running.pod.clone())));
    }
    match all.iter().find(|running| running.pod == name) {
        Some(running) => Ok(Some((alone(running, all)?, running.pod.clone()))),
        None => Ok(None),
    }
}

/// A container, if it is the only one of its pod.
fn alone<'a>(running: &'a Running, all: &[Running]) -> Result<&'a Running, ContainersError> {
    let same = |other: &&Running| other.pod == running.pod && other.namespace == running.namespace;
    let names: Vec<&str> = all.iter().filter(same).map(|other| other.container.as_str()).collect();
    if names.len() == 1 {
        return Ok(running);
    }
    let Running { pod, .. } = running;
    Err(ContainersError::Selection {
        what: "pod",
        reason: format!(
            "{pod} has {} containers ({}); name one: names: [{pod}/{}]",
            names.len(),
            names.join(", "),
            names.first().copied().unwrap_or_default()
        ),
    })
}

fn status(socket: &Path, running: &Running, host: &str, engine: &str) -> Result<Told, ContainersError> {
    let request = StatusRequest { id: running.id.clone(), verbose: true };
    let method = path("ContainerStatus");
    let response: StatusResponse = call(socket, &method, &request)?;
    let info = info(&response);
    let pid = pid(&info).ok_or_else(|| ContainersError::Senseless {
        socket: socket.to_owned(),
        request: method,
        reason: format!("it tells no pid of container {}", running.id),
    })?;
    let status = response.status.unwrap_or_default();
    Ok(Told {
        host: host.to_owned(),
        name: format!("{}/{}", running.pod, running.container),
        id: running.id.clone(),
        runtime: Runtime::Containerd,
        engine: engine.to_owned(),
        pid: Some(pid).filter(|pid| *pid > 0),
        started: format!("{} ns since 1970", status.started_at),
        image: status.image.map(|image| image.name).filter(|name| !name.is_empty()).unwrap_or(running.image.clone()),
        pod: Some(format!("{}/{}/{}", running.namespace, running.pod, running.container)),
        mode: Mode::Own,
        stop_signal: stop_signal::of_cri(status.stop_signal).or_else(|| {
            let annotations = info.pointer("/runtimeSpec/annotations")?;
            stop_signal::of(annotations.get(stop_signal::ANNOTATION)?.as_str()?)
        }),
        socket: Some(socket.to_owned()),
        ..Told::named(host)
    })
}

/// The JSON that containerd and CRI-O give who asks for more; null if there is none.
fn info(response: &StatusResponse) -> Value {
    response.info.get("info").and_then(|info| serde_json::from_str(info).ok()).unwrap_or_default()
}

fn pid(info: &Value) -> Option<u32> {
    u32::try_from(info.get("pid")?.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(id: &str, name: &str, app: &str) -> Pod {
        let metadata = PodMetadata { name: name.into(), namespace: "db".into() };
        Pod { id: id.into(), metadata: Some(metadata), labels: BTreeMap::from([("app".into(), app.into())]) }
    }

    fn container(id: &str, pod: &str, name: &str) -> Listed {
        let image = Some(Image { name: "cassandra:5.0".into() });
        Listed { id: id.into(), pod: pod.into(), metadata: Some(ContainerMetadata { name: name.into() }), image }
    }

    fn all() -> Vec<Running> {
        let pods = vec![pod("p0", "db-0", "db"), pod("p1", "db-1", "db"), pod("p2", "web", "web")];
        let containers = vec![
            container("0123456789abcdef", "p0", "cassandra"),
            container("1123456789abcdef", "p1", "cassandra"),
            container("2123456789abcdef", "p2", "nginx"),
            container("3123456789abcdef", "p2", "exporter"),
            container("4123456789abcdef", "gone", "nginx"),
        ];
        joined(pods, containers)
    }

    fn chosen(by: By) -> Result<Vec<(String, String)>, String> {
        let all = all();
        let chosen = choose(&all, &by).map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|(running, host)| (host, running.container.clone())).collect())
    }

    #[test]
    fn pods_are_chosen_by_label_and_by_name() {
        let of = |host: &str, container: &str| (host.to_owned(), container.to_owned());
        let both = vec![of("db-0", "cassandra"), of("db-1", "cassandra")];
        assert_eq!(chosen(By::Label("app=db".into())), Ok(both));
        assert_eq!(chosen(By::Label("app=other".into())), Ok(Vec::new()));
        let names = |names: &[&str]| By::Names(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(chosen(names(&["db-1", "web/nginx"])), Ok(vec![of("db-1", "cassandra"), of("web", "nginx")]));
        assert_eq!(chosen(names(&["9123456789ab"])), Ok(Vec::new()));
        assert_eq!(chosen(names(&["3123456789ab"])), Ok(vec![of("web", "exporter")]));
        assert!(chosen(names(&["db-0", "db-7"])).unwrap_err().contains("named db-7"));
    }

    #[test]
    fn a_pod_of_several_containers_is_asked_back() {
        for by in [By::Label("app".into()), By::Names(vec!["web".into()])] {
            let error = chosen(by).unwrap_err();
            assert!(error.contains("2 containers (nginx, exporter)") && error.contains("[web/nginx]"), "{error}");
        }
    }

    /// Golden, made by hand from the schema and the encoding of protocol buffers.
    #[test]
    fn messages_are_the_bytes_that_the_schema_says() {
        let filter = Some(ContainerFilter { state: Some(StateValue { state: RUNNING }) });
        assert_eq!(ListContainersRequest { filter }.encode_to_vec(), [0x0a, 4, 0x12, 2, 0x08, 1]);
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let filter = Some(PodFilter { state: Some(StateValue { state: READY }), labels });
        let expected = [0x0a, 10, 0x12, 0, 0x1a, 6, 0x0a, 1, b'a', 0x12, 1, b'b'];
        assert_eq!(ListPodsRequest { filter }.encode_to_vec(), expected);
        // A status with two fields that are not needed and a signal, and the JSON beside it.
        let info = b"{\"sandboxID\":\"p0\",\"pid\":4711}";
        let mut bytes = vec![0x0a, 10, 0x0a, 1, b'x', 0x18, 1, 0x28, 9, 0x98, 1, 18];
        bytes.extend([0x12, 6 + 2 + info.len() as u8, 0x0a, 4]);
        bytes.extend(b"info");
        bytes.extend([0x12, info.len() as u8]);
        bytes.extend(info);
        let response = StatusResponse::decode(&bytes[..]).unwrap();
        assert_eq!(pid(&super::info(&response)), Some(4711));
        let status = response.status.unwrap();
        assert_eq!((status.started_at, stop_signal::of_cri(status.stop_signal)), (9, Some(libc::SIGQUIT)));
    }
}
