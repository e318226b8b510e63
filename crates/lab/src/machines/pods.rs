//! Pods of Kubernetes: found, and reached over the API server by commands in pods of our own.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_containers::{By, Container, Selection};
use brownout_kubernetes::{Kubernetes, KubernetesError, NAMESPACE, Pod, manifests};

use super::{
    PART,
    find::find_on,
    fleet::{Happening, Reach, Started},
};
use crate::{
    experiment::{ContainersFound, Pods},
    ground::{Interrupts, catch_interrupts},
};

/// What a cluster is called that is made for an experiment; there is one at a time.
const OWN: &str = "db";
/// The program in its image.
const PROGRAM: &str = "/bin/brownout";
/// This process has made the agents, and is to remove them.
static MADE_AGENTS: AtomicBool = AtomicBool::new(false);
/// The same of a cluster.
static MADE_CLUSTER: AtomicBool = AtomicBool::new(false);

/// Agents of nodes, and the pods of a run that send operations.
pub(crate) struct ByPods {
    kubernetes: Kubernetes,
    namespace: String,
    /// The run's name; none before there is one.
    run: Option<String>,
    /// Pods of ours by machine, and when they were listed: a run starts a part on each within seconds.
    listed: Mutex<Option<(Instant, Listed)>>,
}

/// By machine: the pod, and its container.
type Listed = BTreeMap<String, (String, &'static str)>;

/// A pod that was lost is replaced by then, and its database answers.
pub(super) const REPLACED_WITHIN: Duration = Duration::from_secs(120);
pub(super) const LOOK: Duration = Duration::from_secs(1);

impl ByPods {
    /// All that take part in a run, whose directory this is.
    pub(crate) fn of_run(pods: &Pods, run: &Path) -> Result<ByPods, String> {
        let kubernetes = Kubernetes::connect().map_err(words)?;
        Ok(ByPods {
            kubernetes,
            namespace: pods.selection.namespace.clone(),
            run: Some(name_of(run)),
            listed: Mutex::default(),
        })
    }

    /// The pod of ours that a machine is, and its container, as they were at most a moment ago.
    fn pod_of(&self, machine: &str) -> Result<Option<(String, &'static str)>, KubernetesError> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = listed.take().filter(|(at, known)| at.elapsed() < LOOK && known.contains_key(machine));
        let (at, known) = match fresh {
            Some(fresh) => fresh,
            None => (Instant::now(), self.list()?),
        };
        let pod = known.get(machine).cloned();
        *listed = Some((at, known));
        Ok(pod)
    }

    fn list(&self) -> Result<Listed, KubernetesError> {
        let agents = self.kubernetes.agents()?.into_iter().map(|agent| (agent.node, (agent.pod, manifests::AGENT)));
        let loads = self.run.as_ref().map(|run| self.kubernetes.loads(run)).transpose()?.unwrap_or_default();
        let loads = loads.into_iter().map(|(number, pod)| (Pods::load(number), (pod, manifests::LOAD)));
        Ok(agents.chain(loads).collect())
    }
}

impl Reach for ByPods {
    fn start(&self, machine: &str) -> Result<Started, String> {
        let until = Instant::now() + REPLACED_WITHIN;
        let (pod, container) = loop {
            match self.pod_of(machine).map_err(words)? {
                Some(known) => break known,
                None if Instant::now() > until || catch_interrupts().any() => {
                    return Err(format!(
                        "no pod of ours runs there; `kubectl get pods --namespace {NAMESPACE} --output wide` lists them"
                    ));
                }
                None => thread::sleep(LOOK),
            }
        };
        let executed = self.kubernetes.exec(NAMESPACE, &pod, container, &[PROGRAM, PART]).map_err(words)?;
        Ok(Started { from: executed.from, to: executed.to, ends: executed.ends })
    }

    fn happened(&self, since_unix_ms: i64) -> Result<Vec<Happening>, String> {
        let all = self.kubernetes.happened(&self.namespace, since_unix_ms).map_err(words)?;
        let happening = |one: brownout_kubernetes::Happened| Happening {
            text: match one.count {
                1 => format!("{}: {}", one.reason, one.message),
                count => format!("{}: {} ({count} times in all)", one.reason, one.message),
            },
            host: one.pod,
            unix_ms: one.unix_ms,
            error_ms: one.error_ms,
        };
        Ok(all.into_iter().map(happening).collect())
    }
}

/// The pods that are meant, looked at from their nodes: agents are made there first.
///
/// # Errors
/// There are none, or they cannot be looked at; in words.
pub(crate) fn find_pods(pods: &Pods) -> Result<ContainersFound, String> {
    let kubernetes = Kubernetes::connect().map_err(words)?;
    // From here on something may have to be removed, whatever the user wants.
    let interrupts = catch_interrupts();
    let is_over = || interrupts.any();
    if let Some(own) = &pods.own {
        kubernetes.make_names(OWN).map_err(words)?;
        MADE_CLUSTER.store(true, Ordering::Relaxed);
        kubernetes.make_members(&own.members(OWN), &is_over).map_err(words)?;
    }
    let selected = kubernetes.pods(&pods.selection).map_err(words)?;
    if kubernetes.make_agents(&pods.image, &is_over).map_err(words)? {
        MADE_AGENTS.store(true, Ordering::Relaxed);
    }
    looked_at(kubernetes, pods, &selected, &is_over)
}

/// The pods that were found before, as they are now: none if all are where they were, in the same containers. One that is being made
/// anew is waited for.
///
/// # Errors
/// One does not run any more, or they cannot be looked at; in words.
pub(crate) fn find_again(
    pods: &Pods,
    before: &ContainersFound,
    interrupts: Interrupts,
) -> Result<Option<ContainersFound>, String> {
    let kubernetes = Kubernetes::connect().map_err(words)?;
    let until = Instant::now() + REPLACED_WITHIN;
    loop {
        let mut selected = match kubernetes.pods(&pods.selection) {
            Ok(selected) => selected,
            Err(error) if Instant::now() > until || interrupts.any() => return Err(words(error)),
            // None runs, or the API server is away for a moment.
            Err(_) => {
                thread::sleep(LOOK);
                continue;
            }
        };
        // Others have come: they were not asked for.
        selected.retain(|pod| before.container(&pod.name).is_some());
        let now = |name: &str| selected.iter().find(|pod| pod.name == name);
        let is_as_before = |one: &Container| {
            let now = now(&one.name).filter(|now| one.machine.as_ref() == Some(&now.node));
            now.is_some_and(|now| now.containers.iter().any(|container| container.id == one.id))
        };
        if before.containers.iter().all(is_as_before) {
            return Ok(None);
        }
        let is_lacking = |one: &&Container| now(&one.name).is_none_or(|now| !now.is_ready);
        match before.containers.iter().find(is_lacking) {
            None => return looked_at(kubernetes, pods, &selected, &|| interrupts.any()).map(Some),
            Some(one) if Instant::now() > until => {
                return Err(format!(
                    "{} is not ready, {} s after it was looked for; `kubectl get pods --namespace {} --output wide` shows why",
                    one.name,
                    REPLACED_WITHIN.as_secs(),
                    pods.selection.namespace
                ));
            }
            Some(_) if interrupts.any() => return Err("interrupted while a pod was to become ready".to_owned()),
            Some(_) => thread::sleep(LOOK),
        }
    }
}

/// These pods as their nodes see them.
fn looked_at(
    kubernetes: Kubernetes,
    pods: &Pods,
    selected: &[Pod],
    is_over: &dyn Fn() -> bool,
) -> Result<ContainersFound, String> {
    let mut of_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in selected {
        of_node.entry(pod.node.clone()).or_default().push(container_of(pod, pods)?);
    }
    let nodes: Vec<String> = of_node.keys().cloned().collect();
    kubernetes.wait_for_agents(&nodes, is_over).map_err(words)?;
    let services = kubernetes.services_of_one(&pods.selection.namespace).map_err(words)?;
    let reach = ByPods { kubernetes, namespace: pods.selection.namespace.clone(), run: None, listed: Mutex::default() };
    let selection = |ids| Selection { by: By::Names(ids), socket: pods.socket.clone() };
    let selections: Vec<_> = of_node.into_iter().map(|(node, ids)| (node, selection(ids))).collect();
    let mut found = find_on(&reach, &selections)?;
    for container in &mut found.containers {
        let own = services.iter().filter(|(_, pod)| *pod == container.name);
        container.services = own.map(|(address, _)| *address).collect();
    }
    // Hosts are pods, and in their order.
    found.containers.sort_by_key(|one| selected.iter().position(|pod| pod.name == one.name));
    found.selection.by = By::Names(found.containers.iter().map(|one| one.name.clone()).collect());
    Ok(found)
}

/// The identifier of the container that is the node.
fn container_of(pod: &Pod, pods: &Pods) -> Result<String, String> {
    let name = &pod.name;
    if pod.is_in_hosts_network {
        return Err(format!(
            "{name} is in the network of its node, with all else there: what it sends cannot be told from what others send; \
             run it without hostNetwork"
        ));
    }
    let names = || pod.containers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
    match (&pods.container, pod.containers.as_slice()) {
        (None, [only]) => Ok(only.id.clone()),
        (None, _) => Err(format!(
            "{name} has {} containers that run ({}); say which is the node: container: NAME",
            pod.containers.len(),
            names()
        )),
        (Some(container), all) => match all.iter().find(|one| one.name == *container) {
            Some(found) => Ok(found.id.clone()),
            None => Err(format!("{name} has no container {container} that runs; it has {}", names())),
        },
    }
}

/// The pods of a run that send operations, until this is dropped.
pub(crate) struct LoadPods {
    kubernetes: Kubernetes,
    run: String,
}

impl LoadPods {
    /// Makes them, for a run whose directory this is.
    pub(crate) fn make(pods: &Pods, run: &Path) -> Result<LoadPods, String> {
        // From here on they are removed, whatever becomes of making them.
        let made = LoadPods { kubernetes: Kubernetes::connect().map_err(words)?, run: name_of(run) };
        made.kubernetes.make_loads(&made.run, &pods.image, pods.loads, &|| catch_interrupts().any()).map_err(words)?;
        Ok(made)
    }
}

impl Drop for LoadPods {
    fn drop(&mut self) {
        if let Err(error) = self.kubernetes.remove_loads(&self.run) {
            eprintln!("brownout: {error}; `brownout destroy --ground kubernetes` removes what is left");
        }
    }
}

/// Removes the agents and the cluster, as far as this process has made them; agents heal what they have put in force. What went
/// wrong, in words.
pub fn leave_nothing() -> Option<String> {
    let (agents, cluster) = (MADE_AGENTS.swap(false, Ordering::Relaxed), MADE_CLUSTER.swap(false, Ordering::Relaxed));
    if !agents && !cluster {
        return None;
    }
    let removed = Kubernetes::connect().and_then(|kubernetes| {
        let agents = if agents { kubernetes.remove_agents().map(drop) } else { Ok(()) };
        let cluster = if cluster { kubernetes.remove_cluster().map(drop) } else { Ok(()) };
        agents.and(cluster)
    });
    let error = removed.err()?;
    Some(format!("{error}; `brownout destroy --ground kubernetes` removes what is left"))
}

/// Removes what runs have left in a cluster: what that was, and why not all of it could be removed.
///
/// # Errors
/// It cannot be reached; in words.
pub fn remove_all() -> Result<(Vec<String>, Vec<String>), String> {
    let (removed, failed) = Kubernetes::connect().map_err(words)?.remove_all();
    Ok((removed, failed.into_iter().map(words).collect()))
}

#[expect(clippy::needless_pass_by_value, reason = "to be called as errors are mapped")]
fn words(error: KubernetesError) -> String {
    error.to_string()
}

/// The name of a run as Kubernetes can have it: of its directory, in small letters, digits and '-'.
fn name_of(run: &Path) -> String {
    const MOST: usize = 50;
    let name = run.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // Its end is its time, and tells it from others.
    name[name.len().saturating_sub(MOST)..].trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use brownout_kubernetes::{PodContainer, PodSelection};

    use super::*;

    #[test]
    fn a_run_has_a_name_that_kubernetes_takes() {
        assert_eq!(name_of(Path::new("/x/slow-replica-20261129-153306")), "slow-replica-20261129-153306");
        assert_eq!(name_of(Path::new("runs/Größe_2-1")), "gr--e-2-1");
        let long = format!("{}-20261129-153306", "x_".repeat(60));
        let name = name_of(Path::new(&long));
        assert!(name.len() <= 50 && name.ends_with("20261129-153306") && !name.starts_with('-'), "{name}");
    }

    #[test]
    fn a_pod_is_the_node_that_one_of_its_containers_is() {
        let container = |name: &str| PodContainer { name: name.to_owned(), id: format!("id-{name}") };
        let pod = |names: &[&str], is_in_hosts_network| Pod {
            name: "db-0".to_owned(),
            node: "node1".to_owned(),
            containers: names.iter().map(|name| container(name)).collect(),
            is_in_hosts_network,
            is_ready: true,
        };
        let pods = |name: Option<&str>| Pods {
            selection: PodSelection { namespace: "db".to_owned(), selector: "a=b".to_owned() },
            own: None,
            container: name.map(str::to_owned),
            loads: 1,
            image: String::new(),
            socket: None,
        };
        assert_eq!(container_of(&pod(&["db"], false), &pods(None)).unwrap(), "id-db");
        assert_eq!(container_of(&pod(&["log", "db"], false), &pods(Some("db"))).unwrap(), "id-db");
        let refused = |names: &[&str], hosts, name| container_of(&pod(names, hosts), &pods(name)).unwrap_err();
        assert!(refused(&["log", "db"], false, None).contains("2 containers that run (log, db); say which"));
        assert!(refused(&["db"], false, Some("x")).contains("no container x that runs; it has db"));
        assert!(refused(&["db"], true, None).contains("without hostNetwork"));
    }
}
