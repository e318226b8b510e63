//! A container: who it is, where it is, and what can be done to it.

use std::{
    fs::File,
    io,
    net::IpAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::{
    ability::{Ability, Known, What, abilities, unseen},
    clock,
    error::{ContainersError, kernel_remedy},
    interface::{self, Interface},
    machine::{Machine, NamespaceId, namespace_id},
    runtime::{Place, Runtime, Told, again, bare},
};

/// A container that runs already, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The name that it has as a host: its service's (`cassandra-1`), or its own.
    pub name: String,
    /// By which its runtime knows it; its process, or the path of its network namespace, where there is no runtime.
    pub id: String,
    /// Who runs it.
    pub runtime: Runtime,
    /// Name and version of that: "Docker 20.10.24".
    #[serde(default)]
    pub engine: String,
    /// Its main process, as this process numbers it; none if it does not run, cannot be seen from here, or was named by
    /// its network namespace.
    pub pid: Option<u32>,
    /// When it was started, as its runtime writes it.
    pub started: String,
    /// At which others reach it, those of [`Container::interface`] first.
    pub addresses: Vec<IpAddr>,
    /// At which others reach it, too, though it does not know them itself: of services behind which there is nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<IpAddr>,
    /// The interface by which it sends to the others: `eth0`; empty if it has none, or its network cannot be entered.
    pub interface: String,
    /// The other end of that, if it is in the network that this process is in.
    pub machine_interface: Option<String>,
    /// All its interfaces that have addresses.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// What it was made of: `cassandra:5.0`.
    pub image: String,
    /// Of Compose.
    pub project: Option<String>,
    /// Of Compose.
    pub service: Option<String>,
    /// The networks that it is in, by the names that its runtime has for them, those that all are in first.
    pub networks: Vec<String>,
    /// The addresses of its routers.
    pub gateways: Vec<IpAddr>,
    /// What can be done to it, and why not.
    pub abilities: Vec<Ability>,
    /// The file by which its clock is changed; none: it has no clock of its own.
    #[serde(default)]
    pub clock: Option<PathBuf>,
    /// The machine that it runs on, where there are several: all else is as it is seen from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Where its runtime listens.
    pub(crate) socket: Option<PathBuf>,
    /// Of Kubernetes: "namespace/pod/container".
    #[serde(default)]
    pub(crate) pod: Option<String>,
    /// The signal by which it wants to be asked to end; none: SIGTERM.
    #[serde(default)]
    pub(crate) stop_signal: Option<i32>,
    /// When its main process began, in ticks since the machine did: the number of a process comes again, but not with
    /// the same beginning.
    #[serde(default)]
    pub(crate) begun: Option<u64>,
}

impl Container {
    /// Whether there is anything to be entered.
    pub fn is_running(&self) -> bool {
        self.pid.is_some() || self.namespace_path().is_some()
    }

    /// All addresses that mean it: its own first.
    pub fn all_addresses(&self) -> Vec<IpAddr> {
        self.addresses.iter().chain(&self.services).copied().collect()
    }

    /// Why something cannot be done to it, as the end of a sentence; none if it can.
    pub fn refusal(&self, what: What) -> Option<&str> {
        self.abilities.iter().find(|ability| ability.what == what)?.refused.as_deref()
    }

    /// Has something not be done to it, for this reason.
    pub(crate) fn refuse(&mut self, what: What, reason: String) {
        if let Some(ability) = self.abilities.iter_mut().find(|ability| ability.what == what) {
            ability.refused = Some(reason);
        }
    }

    /// Whether another one is this very container, started again or not. In a pod it is known by its place: the kubelet makes
    /// another one each time.
    pub fn is_same(&self, other: &Container) -> bool {
        self.id == other.id || (self.pod.is_some() && self.pod == other.pod)
    }

    /// Its network namespace, held open.
    ///
    /// # Errors
    /// It does not run any more, or this process may not.
    pub fn namespace(&self) -> Result<Arc<OwnedFd>, ContainersError> {
        let path = match (self.pid, self.namespace_path()) {
            (Some(pid), _) => network_of(pid),
            (None, Some(path)) => path.to_owned(),
            (None, None) => return Err(self.gone("it does not run: start it")),
        };
        let opened = File::open(&path);
        // After opening: had the process been another one, it would be known by now.
        self.check()?;
        let namespace = opened.map_err(self.failed("open the network namespace"))?;
        Ok(Arc::new(namespace.into()))
    }

    /// Its main process, as a descriptor that can be polled: readable once the process has ended.
    ///
    /// # Errors
    /// It does not run any more, or its processes are not known.
    pub fn pidfd(&self) -> Result<OwnedFd, ContainersError> {
        let pid = self.pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.ok_or_else(|| self.gone("its processes are not known, or it does not run"))?;
        let opened = pidfd_open(pid, PidfdFlags::empty());
        self.check()?;
        opened.map_err(|errno| self.failed("open the main process")(errno.into()))
    }

    /// The same container as it is now: after it was started again it has other processes, and another network
    /// namespace.
    ///
    /// # Errors
    /// It was removed, or its runtime cannot be asked.
    pub fn again(&self) -> Result<Container, ContainersError> {
        let told = match self.runtime {
            Runtime::None => Some(self.bare_again()?),
            runtime => {
                let place = Place { runtime, id: &self.id, pod: self.pod.as_deref(), engine: &self.engine };
                again(self.socket.as_deref(), &place)?
            }
        };
        let mut told = told.ok_or_else(|| self.gone("its runtime does not know it any more: was it removed?"))?;
        told.host.clone_from(&self.name);
        let machine = Machine::look().map_err(ContainersError::Machine)?;
        let now = examine(told, &self.networks, &machine).0;
        Ok(Container { machine: self.machine.clone(), services: self.services.clone(), ..now })
    }

    fn bare_again(&self) -> Result<Told, ContainersError> {
        self.check()?;
        let found = match self.pid {
            Some(pid) => bare::by_pids(&[pid]).map(|mut told| told.pop()),
            None => bare::by_namespace(Path::new(&self.id)).map(Some),
        };
        // Named again, it is not there; it was, though.
        found.ok().flatten().ok_or_else(|| self.gone("there is no such process, or network namespace, any more"))
    }

    /// The file of its network namespace, where that is what it was named by.
    fn namespace_path(&self) -> Option<&Path> {
        (self.runtime == Runtime::None && self.pid.is_none()).then(|| Path::new(&self.id))
    }

    /// That its main process is still the one that was found.
    fn check(&self) -> Result<(), ContainersError> {
        let Some(pid) = self.pid else { return Ok(()) };
        match (bare::process(pid), self.begun) {
            (Some((_, now)), Some(begun)) if now != begun => {
                Err(self.gone(&format!("its process {pid} has ended, and its number is another one's now")))
            }
            (Some(_), _) => Ok(()),
            (None, _) => Err(self.gone(&format!("its process {pid} has ended"))),
        }
    }

    fn gone(&self, reason: &str) -> ContainersError {
        ContainersError::Gone { container: self.name.clone(), reason: reason.to_owned() }
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> ContainersError {
        let container = self.name.clone();
        move |source| ContainersError::Kernel { action, container, remedy: kernel_remedy(&source), source }
    }
}

/// Looks at a container that a runtime has told of; `networks` are those that count first. With it comes its network
/// namespace, if that is to be seen.
pub(crate) fn examine(told: Told, networks: &[String], machine: &Machine) -> (Container, Option<NamespaceId>) {
    // Its beginning first: whoever gets the number afterwards is not of the container.
    let process = told.pid.and_then(|pid| Some((pid, bare::process(pid)?.1)));
    let process = process.filter(|(pid, _)| is_of(*pid, &told, machine));
    let (pid, begun) = (process.map(|(pid, _)| pid), process.map(|(_, begun)| begun));
    let path = match pid {
        Some(pid) => Some(network_of(pid)),
        None if told.pid.is_none() => told.namespace.clone().filter(|_| told.is_there()),
        None => None,
    };
    let id = path.as_deref().and_then(|path| namespace_id(path).ok());
    let is_ours = id == Some(machine.network);
    let looked = look(&told, path.as_deref(), is_ours, machine);
    let (mut interfaces, mut gateways, why) = match looked {
        Ok(inside) => (inside.interfaces, inside.gateways, None),
        Err(reason) => (Vec::new(), Vec::new(), Some(reason)),
    };
    interface::order(&mut interfaces, &told.networks, networks);
    // Of one that does not run there is another reason.
    let clock = pid.map_or_else(|| Err(String::new()), clock::file_of);
    let known = Known {
        told: &told,
        pid,
        interfaces: why.as_deref().map_or(Ok(interfaces.as_slice()), Err),
        is_ours,
        no_clock: clock.as_ref().err().map(String::as_str),
    };
    let abilities = abilities(&known, machine);
    let mut addresses: Vec<IpAddr> = interfaces.iter().flat_map(|interface| &interface.addresses).copied().collect();
    if addresses.is_empty() {
        addresses = told.networks.iter().flat_map(|network| &network.addresses).copied().collect();
    }
    if told.networks.iter().any(|network| !network.gateways.is_empty()) {
        gateways = told.networks.iter().flat_map(|network| &network.gateways).copied().collect();
    }
    let mut names: Vec<String> = told.networks.iter().map(|network| network.network.clone()).collect();
    names.sort_by_key(|name| networks.iter().position(|network| network == name).unwrap_or(networks.len()));
    let first = interfaces.first();
    let container = Container {
        name: told.host,
        id: told.id,
        runtime: told.runtime,
        engine: told.engine,
        pid,
        started: told.started,
        addresses,
        services: Vec::new(),
        interface: first.map(|interface| interface.name.clone()).unwrap_or_default(),
        machine_interface: first.and_then(|interface| interface.machine_interface.clone()),
        interfaces,
        image: told.image,
        project: told.project,
        service: told.service,
        networks: names,
        gateways,
        abilities,
        clock: clock.ok(),
        machine: None,
        socket: told.socket,
        pod: told.pod,
        stop_signal: told.stop_signal,
        begun,
    };
    (container, id)
}

/// What there is in its network; else why that is not known. Of the machine's own network nothing is told: it is not
/// the container's.
fn look(told: &Told, path: Option<&Path>, is_ours: bool, machine: &Machine) -> Result<interface::Inside, String> {
    if is_ours {
        return Ok(interface::Inside { interfaces: Vec::new(), gateways: Vec::new() });
    }
    let Some(path) = path else {
        return Err(told.pid.map_or_else(|| "it does not run: start it".to_owned(), unseen));
    };
    let inside = File::open(path).and_then(|namespace| {
        let id = namespace_id(path)?;
        if !machine.is_namespace(id) {
            let reason = format!("{} is the file of no namespace", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        interface::look(&OwnedFd::from(namespace), machine)
    });
    inside.map_err(|error| {
        format!(
            "its network cannot be entered ({error}); run as root, outside of any container (CAP_SYS_ADMIN, \
             CAP_SYS_PTRACE)"
        )
    })
}

/// Whether a process is of a container, and not one that happens to have that number here: a runtime in a virtual
/// machine counts its own. What it was started with says so: its control group has the container's identifier in its
/// name, or its network is the one that the runtime names.
fn is_of(pid: u32, told: &Told, machine: &Machine) -> bool {
    if told.runtime == Runtime::None {
        return true;
    }
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if groups.contains(&told.id) {
        return true;
    }
    let named = told.namespace.as_deref().and_then(|path| namespace_id(path).ok());
    let Some(named) = named.filter(|named| machine.is_namespace(*named)) else { return false };
    namespace_id(&network_of(pid)).is_ok_and(|own| own == named)
}

fn network_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/ns/net"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pid: u32, told: &Told) -> bool {
        is_of(pid, told, &Machine::look().unwrap())
    }

    #[test]
    fn a_process_is_of_a_container_if_the_kernel_says_so() {
        let own = std::process::id();
        let docker = |id: &str| Told { runtime: Runtime::Docker, pid: Some(own), ..Told::named(id) };
        let nobody = docker(&"0123456789abcdef".repeat(4));
        assert!(!of(own, &nobody), "a number that some other process has here");
        assert!(of(own, &Told { namespace: Some("/proc/self/ns/net".into()), ..nobody.clone() }));
        assert!(!of(own, &Told { namespace: Some("/proc/self/status".into()), ..nobody.clone() }), "no namespace");
        assert!(of(own, &Told { runtime: Runtime::None, ..nobody.clone() }));

        let (container, _) = examine(nobody, &[], &Machine::look().unwrap());
        assert_eq!(container.pid, None);
        assert!(container.refusal(What::Pause).unwrap().contains("another PID namespace"));
        assert!(container.refusal(What::Links).unwrap().contains("another PID namespace"));
        assert!(!container.is_running());
    }

    #[test]
    fn who_is_in_the_machines_network_is_told_so() {
        let told = bare::by_pids(&[std::process::id()]).unwrap().remove(0);
        let (container, namespace) = examine(told, &[], &Machine::look().unwrap());
        assert_eq!(namespace, Some(Machine::look().unwrap().network));
        assert!(container.refusal(What::Links).unwrap().contains("network_mode: host"));
        assert_eq!((container.refusal(What::Pause), container.interface.as_str()), (None, ""));
        assert!(container.namespace().is_ok() && container.pidfd().is_ok());
    }

    #[test]
    fn a_number_that_came_again_is_another_process() {
        let told = bare::by_pids(&[std::process::id()]).unwrap().remove(0);
        let (container, _) = examine(told, &[], &Machine::look().unwrap());
        let before = Container { begun: container.begun.map(|begun| begun + 1), ..container.clone() };
        for error in [before.namespace().err(), before.pidfd().err(), before.again().err()] {
            let error = error.unwrap().to_string();
            assert!(error.contains("another one's now"), "{error}");
        }
        let again = container.again().unwrap();
        assert_eq!(again, container);
        // As in the record of a run, which begins after the machine was started again.
        let text = serde_json::to_string(&container).unwrap();
        assert_eq!(serde_json::from_str::<Container>(&text).unwrap(), container);
    }
}
