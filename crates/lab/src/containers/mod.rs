//! Containers that run already, as the hosts of a testbed: entered where they are, attached to the emulator, touched by their hands.

mod eyes;
mod follow;
mod seen;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::Arc,
};

use brownout_clock::HostClock;
use brownout_cluster::{AttachedNode, EnterableHost, Hands};
use brownout_containers::{Container, What, processes::ContainerHands};
use brownout_network::{AttachSpec, AttachedKind, AttachedSpec, Exit, Network};

pub(crate) use self::follow::Follower;
pub use self::{seen::Seen, watch::Attached};
use crate::{LabError, experiment::ContainersFound, hosts::Hosts};

/// The network namespace that this process is in: the machine's, as the containers' other ends see it.
const OWN_NETWORK: &str = "/proc/self/ns/net";

/// The hands of containers, by name.
pub(crate) type AllHands = Vec<(String, Arc<dyn Hands>)>;

/// A network of these containers and this machine; all that they send goes through its emulator until it is dropped.
pub(crate) fn network(
    found: &ContainersFound,
    seed: u64,
    realtime: bool,
    memory: Option<u64>,
) -> Result<Network, LabError> {
    let host = |one: &Container| if found.is_here(one) { container(one) } else { elsewhere(one) };
    let hosts = found.containers.iter().map(host).collect::<Result<Vec<_>, _>>()?;
    let hosts = hosts.into_iter().chain([machine(found, &BTreeSet::new())?]).collect();
    let spec = AttachSpec { hosts, seed, realtime };
    Ok(match found.way {
        Some(way) => Network::attach_by(way, spec, memory),
        None => Network::attach_within(spec, memory),
    }?)
}

/// Who touches the containers' processes, of those whose processes are known. To be made before the network: each has a child
/// process, which is a copy of this one, and would hold open what diverts packets.
pub(crate) fn hands(found: &ContainersFound) -> Result<AllHands, LabError> {
    let hands = |container: &Container| -> Result<(String, Arc<dyn Hands>), LabError> {
        Ok((container.name.clone(), Arc::new(ContainerHands::new(container)?)))
    };
    found.here().filter(|container| container.pid.is_some()).map(hands).collect()
}

/// The clocks of these containers, by name, which had to be started with clocks of their own. To be made before the network, as
/// hands are: each has a child process, too.
pub(crate) fn clocks(found: &ContainersFound, names: &[String]) -> Result<BTreeMap<String, HostClock>, LabError> {
    let clock = |name: &String| -> Result<(String, HostClock), LabError> {
        let container = found.container(name);
        let file = container.and_then(|container| container.clock.as_ref()).ok_or_else(|| {
            let why =
                container.and_then(|container| container.refusal(What::Clock)).unwrap_or("it has none of its own");
            LabError::Machine(format!("the clock of {name} cannot be changed: {why}"))
        })?;
        Ok((name.clone(), HostClock::adopt(file)?))
    };
    names.iter().map(clock).collect()
}

/// Whose clocks can be changed.
pub(crate) fn with_clocks(found: &ContainersFound) -> Vec<String> {
    let able = found.containers.iter().filter(|one| one.clock.is_some() && one.refusal(What::Clock).is_none());
    able.map(|container| container.name.clone()).collect()
}

/// The nodes as the cluster takes them: each is asked from within its container. Those of other machines are asked there.
pub(crate) fn nodes(
    network: &Network,
    nodes: &[(String, SocketAddr)],
    hands: &[(String, Arc<dyn Hands>)],
) -> Vec<AttachedNode> {
    let node = |(name, address): &(String, SocketAddr)| AttachedNode {
        name: name.clone(),
        address: *address,
        host: network.host(name).cloned().map(|host| Arc::new(host) as Arc<dyn EnterableHost>),
        hands: hands.iter().find(|(known, _)| known == name).map(|(_, hands)| Arc::clone(hands)),
    };
    let is_here = |(name, _): &&(String, SocketAddr)| network.host(name).is_none_or(|host| !host.is_elsewhere());
    nodes.iter().filter(is_here).map(node).collect()
}

/// A container of another machine: what is sent to it is carried here, and what it sends there.
fn elsewhere(container: &Container) -> Result<AttachedSpec, LabError> {
    Ok(AttachedSpec {
        name: container.name.clone(),
        addresses: container.all_addresses(),
        namespace: Arc::new(own_network()?),
        exits: Vec::new(),
        kind: AttachedKind::Elsewhere,
    })
}

/// The network namespace of this process.
pub(crate) fn own_network() -> Result<OwnedFd, LabError> {
    let failed = |source| LabError::Ground { doing: "find the network of this machine", source };
    Ok(OwnedFd::from(File::open(OWN_NETWORK).map_err(failed)?))
}

/// A container as a host: what it sends leaves by its own interfaces.
fn container(container: &Container) -> Result<AttachedSpec, LabError> {
    let exits = container.interfaces.iter().map(|interface| Exit { interface: interface.name.clone(), to: None });
    Ok(AttachedSpec {
        name: container.name.clone(),
        addresses: container.all_addresses(),
        namespace: container.namespace()?,
        exits: exits.collect(),
        kind: AttachedKind::Host,
    })
}

/// This machine, and all behind it: what it sends a container leaves by the other end of that one's interface. Of those that are
/// `away` at this moment there is none.
fn machine(found: &ContainersFound, away: &BTreeSet<String>) -> Result<AttachedSpec, LabError> {
    let namespace = own_network()?;
    let mut exits: Vec<Exit> = Vec::new();
    for container in found.here().filter(|container| !away.contains(&container.name)) {
        for interface in container.interfaces.iter().filter_map(|interface| interface.machine_interface.as_ref()) {
            exits.push(Exit { interface: interface.clone(), to: Some(vec![container.name.clone()]) });
        }
    }
    Ok(AttachedSpec {
        name: Hosts::LOAD.to_owned(),
        addresses: found.machine.clone(),
        namespace: Arc::new(namespace),
        exits,
        kind: AttachedKind::Outside,
    })
}
