//! The testbed: the emulated network with its distances, the nodes on it, and the controls of both.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use brownout_clock::{
    HostClock,
    ntp::{PORT as NTP_PORT, Responder},
    write_object,
};
use brownout_cluster::{AttachedNode, Cluster, EnterableHost, NodeDirectories};
use brownout_disk::{Disk, DiskOptions};
use brownout_load::{Coordinator, ThreadStart, WireOptions};
use brownout_machine::{Awake, Scheduling};
use brownout_network::{Emulator, Host, ImpairmentGuard, LinkControl, Network};

use crate::{
    LabError,
    containers::{self, Attached},
    controls::{Controls, EndedNodes, NodeDisk},
    experiment::ContainersFound,
    faults::{Capabilities, Needs},
    ground::Privilege,
    hosts::{HostPlan, Hosts},
    own_data::OwnData,
    spec::{LabSpec, Runs},
};

/// A cluster that is not ready by then will not be: ten times what it takes on a small machine.
pub const READY_WITHIN: Duration = Duration::from_secs(180);

/// What the record has for the emulator where there is none.
const NO_EMULATOR: &str = "no emulator";
/// How connections of the machine itself avoid congestion (tcp(7)).
const OF_THE_MACHINE: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// The network and the cluster of a stand or of a lab by hand. Dropping it ends it: the nodes first, then the disks under them, then the network.
pub struct Testbed {
    /// What the load makes in a cluster that is not ours: dropped first.
    pub own_data: Option<OwnData>,
    /// Who looks after containers that are its hosts; none: it has hosts of its own, or none.
    pub attached: Option<Attached>,
    /// The nodes.
    pub cluster: Cluster,
    /// How faults act on it.
    pub capabilities: Capabilities,
    /// Where everybody else looks.
    pub controls: Arc<Controls>,
    /// How the load's connections speak: what the database wants beside addresses.
    pub wire: WireOptions,
    /// Of hosts of ours.
    _responder: Option<Responder>,
    _disks: Vec<Disk>,
    _distances: Vec<ImpairmentGuard>,
    _roles: Option<Cluster>,
    /// The hosts. A cluster that is not ours, and is not attached, has none of them.
    pub network: Arc<Network>,
}

impl Testbed {
    /// Builds it: the nodes are started, but not ready yet. `number` names its directories. Nodes that run already are attached.
    pub fn build(spec: &LabSpec, number: u32, seed: u64, needs: &Needs) -> Result<Testbed, LabError> {
        if let Runs::External { nodes, access, ground } = &spec.runs {
            let own_data = OwnData::new(spec.layout.kind(), access.clone(), nodes)?;
            let testbed = match ground {
                Some(found) => Testbed::on_containers(spec, nodes, found, seed, needs)?,
                None => {
                    let cluster = Cluster::attach(spec.database()?, only_asked(nodes))?;
                    Testbed::of(cluster, Network::without_hosts()?, Parts::default())?
                }
            };
            return Ok(Testbed { own_data: Some(own_data), ..testbed });
        }
        let network = Network::start_within(spec.network(seed), spec.memory)?;
        let control = network.control();
        let distances = distances(spec, &network, &control)?;
        let paths = spec.paths(number);
        let mut clocks = BTreeMap::new();
        let mut disks: Vec<Disk> = Vec::new();
        let mut controls = BTreeMap::new();
        let hosts: Vec<&dyn EnterableHost> =
            spec.layout.hosts.nodes().filter_map(|node| network.service_host(&node.name)).collect();
        let mut prepare = |node: &NodeDirectories| -> io::Result<Vec<(OsString, OsString)>> {
            let mut environment = Vec::new();
            if needs.clocks.contains(&node.name) {
                let object = write_object(&paths.scratch).map_err(io::Error::other)?;
                let file = paths.scratch.join(format!("{}.clock", node.name));
                let clock = HostClock::create(file).map_err(io::Error::other)?;
                environment.extend(clock.environment(&object).map(|(key, value)| (OsString::from(key), value)));
                clocks.insert(node.name.clone(), clock);
            }
            if needs.disks.contains(&node.name) {
                for (directory, target) in &node.disks {
                    let disk = disk(&node.home, directory, target, DiskOptions { seed })?;
                    let made = NodeDisk { control: disk.control(), directory: target.clone() };
                    controls.insert((node.name.clone(), (*directory).to_owned()), made);
                    disks.push(disk);
                }
            }
            Ok(environment)
        };
        let cluster = Cluster::start(spec.database()?, &hosts, &paths, &mut prepare)?;
        // Hosts whose clock cannot be wrong answer with the true time.
        for host in network.hosts().iter().filter(|host| !clocks.contains_key(host.name())).collect::<Vec<_>>() {
            let clock = HostClock::create(paths.scratch.join(format!("{}.clock", host.name())))?;
            clocks.insert(host.name().to_owned(), clock);
        }
        let responder = responder(&network, &clocks)?;
        // Only those that a process looks at can be made wrong.
        let wrong = clocks.into_iter().filter(|(name, _)| needs.clocks.contains(name) || name == Hosts::LOAD);
        let responder = Some(responder);
        let parts = Parts { clocks: wrong.collect(), disks_of: controls, responder, disks, distances, roles: None };
        let testbed = Testbed::of(cluster, network, parts)?;
        testbed.controls.reseed(seed)?;
        Ok(testbed)
    }

    /// On containers that run already: as they are now, since some may have been started again since the file was read.
    fn on_containers(
        spec: &LabSpec,
        nodes: &[(String, SocketAddr)],
        found: &ContainersFound,
        seed: u64,
        needs: &Needs,
    ) -> Result<Testbed, LabError> {
        let found = found.again().map_err(LabError::Machine)?;
        let hands = containers::hands(&found)?;
        let clocks = containers::clocks(&found, &needs.clocks)?;
        let network = containers::network(&found, seed, spec.privilege == Privilege::Root, spec.memory)?;
        let cluster = Cluster::attach(spec.database()?, containers::nodes(&network, nodes, &hands))?;
        // Who has which role, all of them together say.
        let roles = match found.here {
            Some(_) => Some(Cluster::attach(spec.database()?, only_asked(nodes))?),
            None => None,
        };
        let mut testbed = Testbed::of(cluster, network, Parts { clocks, roles, ..Parts::default() })?;
        let ended = testbed.controls.ended.clone();
        testbed.attached = Some(Attached::watch(found, Arc::clone(&testbed.network), &hands, ended)?);
        testbed.controls.reseed(seed)?;
        Ok(testbed)
    }

    fn of(cluster: Cluster, network: Network, parts: Parts) -> Result<Testbed, LabError> {
        let Parts { clocks, disks_of, responder, disks, distances, roles } = parts;
        let names: Vec<&str> = network.hosts().iter().map(Host::name).collect();
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to)));
        let link = |(from, to): (&str, &str)| {
            let link = network.link(from, to).filter(|link| network.carries(*link))?;
            Some(((from.to_owned(), to.to_owned()), link))
        };
        let controls = Arc::new(Controls {
            by_name: pairs.filter_map(link).collect(),
            nodes: cluster.control(),
            disks: disks_of,
            clocks,
            control: network.control(),
            roles: roles.as_ref().map(Cluster::control),
            ended: EndedNodes::default(),
            are_containers: network.is_attached(),
        });
        let wire = cluster.access().wire().map_err(|error| LabError::Trial(error.to_string()))?;
        let capabilities = controls.capabilities();
        Ok(Testbed {
            own_data: None,
            attached: None,
            cluster,
            capabilities,
            controls,
            wire,
            _responder: responder,
            _disks: disks,
            _distances: distances,
            _roles: roles,
            network: Arc::new(network),
        })
    }

    /// Nodes as the load asks them.
    pub fn coordinators<'a>(&self, nodes: impl Iterator<Item = &'a HostPlan>) -> Result<Vec<Coordinator>, LabError> {
        let coordinator = |node: &HostPlan| -> Result<Coordinator, LabError> {
            Ok(Coordinator { name: node.name.clone(), address: self.controls.nodes.client(&node.name)? })
        };
        nodes.map(coordinator).collect()
    }

    /// Moves each thread of the load to where the load runs, and lets it be on time if the machine allows: into its host, or,
    /// where there are no hosts of ours, nowhere.
    pub fn enters_load(&self, priority: Option<u8>) -> ThreadStart {
        let host = self.network.host(Hosts::LOAD).cloned();
        Arc::new(move || {
            if let Some(host) = &host {
                host.enter()?;
            }
            if let Some(priority) = priority {
                // Whatever it gets: the generator's lateness is measured either way.
                brownout_machine::run_urgently(priority);
            }
            Ok(())
        })
    }

    /// Works where the load runs.
    ///
    /// # Errors
    /// When its host cannot be entered.
    pub fn in_load<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        match self.network.host(Hosts::LOAD) {
            Some(host) => {
                host.run(work).map_err(|source| LabError::Ground { doing: "enter the host of the load", source })
            }
            None => Ok(work()),
        }
    }
}

/// The parts of a testbed beside its network and its cluster.
#[derive(Default)]
struct Parts {
    /// Clocks that can be wrong, by node.
    clocks: BTreeMap<String, HostClock>,
    /// Disks that can be slow, by node and directory.
    disks_of: BTreeMap<(String, String), NodeDisk>,
    responder: Option<Responder>,
    disks: Vec<Disk>,
    distances: Vec<ImpairmentGuard>,
    /// All nodes, of which some are on other machines; none: all are here.
    roles: Option<Cluster>,
}

/// Nodes that are asked from this machine, and neither entered nor touched.
fn only_asked(nodes: &[(String, SocketAddr)]) -> Vec<AttachedNode> {
    let node = |(name, address): &(String, SocketAddr)| AttachedNode {
        name: name.clone(),
        address: *address,
        host: None,
        hands: None,
    };
    nodes.iter().map(node).collect()
}

/// What lies between hosts all the time.
fn distances(spec: &LabSpec, network: &Network, control: &Emulator) -> Result<Vec<ImpairmentGuard>, LabError> {
    let all = spec.layout.distances.iter().map(|distance| {
        let links: Vec<_> = distance.pairs.iter().filter_map(|(from, to)| network.link(from, to)).collect();
        Ok(control.impair(&links, &distance.impairment)?)
    });
    all.collect()
}

/// A directory of a node on a disk that can be slow; what it holds lies beside it.
fn disk(home: &Path, directory: &str, target: &Path, options: DiskOptions) -> io::Result<Disk> {
    let source: PathBuf = home.join(".disk").join(directory);
    fs::create_dir_all(&source)?;
    // The root of the disk is as the directory was: the node's own.
    let owner = fs::metadata(target)?;
    chown(&source, Some(owner.uid()), Some(owner.gid()))?;
    fs::set_permissions(&source, owner.permissions())?;
    Disk::mount_with(&source, target, options).map_err(io::Error::other)
}

/// Every host answers for its clock, with what its processes see.
fn responder(network: &Network, clocks: &BTreeMap<String, HostClock>) -> Result<Responder, LabError> {
    let failed = |source| LabError::Ground { doing: "answer for the hosts' clocks", source };
    let mut sockets = Vec::new();
    for host in network.hosts() {
        let socket = host.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, NTP_PORT))).and_then(|bound| bound);
        sockets.extend(clocks.get(host.name()).map(|clock| (socket.map_err(failed), clock.clone())));
    }
    let sockets =
        sockets.into_iter().map(|(socket, clock)| Ok((socket?, clock))).collect::<Result<Vec<_>, LabError>>()?;
    Ok(Responder::start(sockets)?)
}

/// What is learned when the first trial stands: for the record's environment.
pub struct TestbedSettings {
    /// "SCHED_FIFO 50".
    pub emulator_scheduling: String,
    /// As read back from the hosts.
    pub congestion_control: String,
    /// The system's settings in force, as JSON.
    pub system_settings: String,
}

/// What there is to tell of a lab that stands.
pub fn settings(testbed: &Testbed) -> TestbedSettings {
    let hosts = testbed.network.hosts();
    let common = hosts.first().map(Host::congestion_control).unwrap_or_default();
    let others = hosts.iter().filter(|host| host.congestion_control() != common);
    let others: String = others.map(|host| format!(", {} on {}", host.congestion_control(), host.name())).collect();
    let (emulator_scheduling, congestion_control) = match hosts.is_empty() {
        // The load uses the machine's own network.
        true => (NO_EMULATOR.to_owned(), fs::read_to_string(OF_THE_MACHINE).unwrap_or_default().trim().to_owned()),
        false => (scheduling_name(testbed.network.realtime()), format!("{common}{others}")),
    };
    let mut in_force = testbed.cluster.settings_in_force();
    if let Some(attached) = &testbed.attached {
        in_force.origin = format!("not ours: {}", attached.words());
    }
    TestbedSettings {
        emulator_scheduling,
        congestion_control,
        system_settings: serde_json::to_string_pretty(&in_force).unwrap_or_default(),
    }
}

/// For people: whether idle processors stay awake, or why not.
pub fn idle_name(awake: &io::Result<Awake>) -> String {
    match awake {
        Ok(awake) => awake.to_string(),
        Err(error) => format!("asleep: {error}"),
    }
}

/// For people.
pub fn scheduling_name(scheduling: Scheduling) -> String {
    match scheduling {
        Scheduling::Fifo(priority) => format!("SCHED_FIFO {priority}"),
        Scheduling::Default => "SCHED_OTHER".to_owned(),
    }
}
