//! Docker's API, and podman's that is made like it.
//!
//! Source: Docker Engine API 1.41 (Docker 20.10), which later versions have only added to as far as it is read here;
//! podman 4, `pkg/api/handlers/compat`. Paths are without a version: both answer by the newest that they have. All
//! fields may be missing or null: the two do not agree on which.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Attachment, Mode, Place, Runtime, Told,
    http::{self, quoted},
    stop_signal,
};
use crate::{error::ContainersError, selection::By};

/// What Compose writes on the containers that it makes; `podman-compose` writes the same.
pub(super) const PROJECT: &str = "com.docker.compose.project";
pub(super) const SERVICE: &str = "com.docker.compose.service";
pub(super) const NUMBER: &str = "com.docker.compose.container-number";
/// On one that was made for a single command (`docker compose run`).
pub(super) const ONE_OFF: &str = "com.docker.compose.oneoff";

/// `GET /version`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Version {
    version: String,
    components: Option<Vec<Component>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Component {
    name: String,
}

/// An entry of `GET /containers/json`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Listed {
    id: String,
    names: Option<Vec<String>>,
    state: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

/// `GET /containers/ID/json`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Inspected {
    id: String,
    name: String,
    state: State,
    config: Config,
    host_config: HostConfig,
    network_settings: NetworkSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct State {
    status: String,
    paused: bool,
    pid: u32,
    started_at: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    image: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    /// Of Docker a name or a number, of podman a number; not there: SIGTERM.
    stop_signal: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct HostConfig {
    network_mode: Option<String>,
    auto_remove: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NetworkSettings {
    sandbox_key: Option<String>,
    networks: Option<BTreeMap<String, Option<Endpoint>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Endpoint {
    #[serde(rename = "IPAddress")]
    ipv4: Option<String>,
    #[serde(rename = "GlobalIPv6Address")]
    ipv6: Option<String>,
    gateway: Option<String>,
    #[serde(rename = "IPv6Gateway")]
    ipv6_gateway: Option<String>,
    mac_address: Option<String>,
}

/// Who listens at a socket, and in which version.
pub(super) fn version(socket: &Path) -> Result<(Runtime, String), ContainersError> {
    let told: Version = read(socket, "/version", http::get(socket, "/version")?)?;
    Ok(told.names())
}

impl Version {
    fn names(&self) -> (Runtime, String) {
        let mut components = self.components.iter().flatten();
        match components.any(|component| component.name.starts_with("Podman")) {
            true => (Runtime::Podman, format!("podman {}", self.version)),
            false => (Runtime::Docker, format!("Docker {}", self.version)),
        }
    }
}

/// The containers that are meant.
pub(super) fn told(socket: &Path, by: &By) -> Result<Vec<Told>, ContainersError> {
    let references = match by {
        By::Names(names) => names.clone(),
        By::Project(project) => labelled(socket, &format!("{PROJECT}={project}"), by)?,
        By::Label(label) => labelled(socket, label, by)?,
        By::Pids(_) | By::Namespaces(_) => Vec::new(),
    };
    let mut inspected = Vec::new();
    for reference in &references {
        inspected.push(inspect(socket, reference)?);
    }
    let missing: Vec<&str> =
        references.iter().zip(&inspected).filter(|(_, found)| found.is_none()).map(|(name, _)| name.as_str()).collect();
    // Of what was listed, one may have gone since; of what was named, all have to be there, or none: then somebody else
    // has them.
    if matches!(by, By::Names(_)) && !missing.is_empty() && missing.len() < references.len() {
        return Err(ContainersError::NotFound {
            what: format!("named {}", missing.join(", ")),
            looked: format!("the others are there, at {}; see docker ps --all", socket.display()),
        });
    }
    let found: Vec<Inspected> = inspected.into_iter().flatten().collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let (runtime, engine) = version(socket)?;
    Ok(found.into_iter().map(|inspected| inspected.told(socket, runtime, &engine)).collect())
}

/// The same container, as it is now; none if it was removed.
pub(super) fn again(socket: &Path, place: &Place<'_>) -> Result<Option<Told>, ContainersError> {
    Ok(inspect(socket, place.id)?.map(|inspected| inspected.told(socket, place.runtime, place.engine)))
}

fn inspect(socket: &Path, reference: &str) -> Result<Option<Inspected>, ContainersError> {
    let path = format!("/containers/{}/json", quoted(reference));
    http::find(socket, &path)?.map(|told| read(socket, &path, told)).transpose()
}

/// The identifiers of those that run and have a label.
fn labelled(socket: &Path, label: &str, by: &By) -> Result<Vec<String>, ContainersError> {
    let filters = json!({ "label": [label] }).to_string();
    let path = format!("/containers/json?all=true&filters={}", quoted(&filters));
    let listed: Vec<Listed> = read(socket, &path, http::get(socket, &path)?)?;
    running(&listed).map_err(|stopped| ContainersError::NotFound {
        what: format!("{} that runs", by.words()),
        looked: format!("these do not: {stopped}; start them (docker compose start)"),
    })
}

/// Those that run, or, if there are others only, what these are.
fn running(listed: &[Listed]) -> Result<Vec<String>, String> {
    let has = |listed: &Listed, label: &str, value: &str| {
        listed.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|is| is.eq_ignore_ascii_case(value))
    };
    let listed: Vec<&Listed> = listed.iter().filter(|listed| !has(listed, ONE_OFF, "true")).collect();
    let state = |listed: &Listed| listed.state.clone().unwrap_or_default().to_ascii_lowercase();
    let runs = |listed: &&&Listed| ["running", "paused", "restarting"].contains(&state(listed).as_str());
    let found: Vec<String> = listed.iter().filter(runs).map(|listed| listed.id.clone()).collect();
    if !found.is_empty() || listed.is_empty() {
        return Ok(found);
    }
    let words = |listed: &&Listed| {
        let name = listed.names.as_ref().and_then(|names| names.first()).unwrap_or(&listed.id);
        format!("{} ({})", name.trim_start_matches('/'), state(listed))
    };
    Err(listed.iter().map(words).collect::<Vec<_>>().join(", "))
}

impl Inspected {
    fn told(self, socket: &Path, runtime: Runtime, engine: &str) -> Told {
        let labels = self.config.labels.unwrap_or_default();
        let label = |name: &str| labels.get(name).filter(|value| !value.is_empty()).cloned();
        let mode = self.host_config.network_mode.unwrap_or_default();
        let mode = match mode.split_once(':') {
            Some(("container", other)) => Mode::Of(other.to_owned()),
            _ if mode == "host" => Mode::Host,
            _ => Mode::Own,
        };
        let name = self.name.trim_start_matches('/').to_owned();
        let networks = self.network_settings.networks.unwrap_or_default();
        let networks = networks.into_iter().filter_map(|(network, endpoint)| Some(endpoint?.attachment(network)));
        Told {
            host: name.clone(),
            name,
            id: self.id,
            runtime,
            engine: engine.to_owned(),
            pid: Some(self.state.pid).filter(|pid| *pid > 0),
            state: self.state.status,
            started: self.state.started_at.unwrap_or_default(),
            image: self.config.image.unwrap_or_default(),
            project: label(PROJECT),
            service: label(SERVICE),
            number: label(NUMBER).and_then(|number| number.parse().ok()),
            pod: None,
            networks: networks.collect(),
            namespace: self.network_settings.sandbox_key.filter(|key| !key.is_empty()).map(PathBuf::from),
            mode,
            is_paused: self.state.paused,
            is_removed: self.host_config.auto_remove,
            stop_signal: self.config.stop_signal.as_deref().and_then(stop_signal::of),
            socket: Some(socket.to_owned()),
        }
    }
}

impl Endpoint {
    fn attachment(self, network: String) -> Attachment {
        // What is not there is an empty text.
        let addresses = |texts: [Option<String>; 2]| -> Vec<IpAddr> {
            texts.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()
        };
        Attachment {
            network,
            addresses: addresses([self.ipv4, self.ipv6]),
            mac: self.mac_address.filter(|mac| !mac.is_empty()),
            gateways: addresses([self.gateway, self.ipv6_gateway]),
        }
    }
}

fn read<T: DeserializeOwned>(socket: &Path, path: &str, told: Value) -> Result<T, ContainersError> {
    serde_json::from_value(told).map_err(|error| ContainersError::Senseless {
        socket: socket.to_owned(),
        request: format!("GET {path}"),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
