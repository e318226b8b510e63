//! Networks that others have made: hosts that run already, such as containers, between which packets are diverted through the
//! emulator for as long as somebody is there to carry them.

mod check;
mod commands;
mod exit;
mod keeper;
mod reattach;
mod selection;
mod trial;

use std::{
    fmt,
    net::IpAddr,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use brownout_base::HostId;

pub use self::trial::attach_check;
use self::{
    exit::{Opened, found_in},
    keeper::Keeper,
};
use crate::{
    control::Emulator,
    emulator::{self, Announcement, Routes},
    error::NetworkError,
    host::{Found, Host},
    network::{ETHERNET_MTU, FILES_PER_HOST, LARGEST_MTU, Network, allow_files},
    overlay::ServiceHost,
    sys,
};

/// What an exit takes: a TAP, a packet socket, two raw ones, and one that diverts.
const FILES_PER_EXIT: u64 = 5;

/// A network that others have made: its hosts are entered, and what they send each other is diverted through the emulator.
#[derive(Debug, Clone)]
pub struct AttachSpec {
    /// All hosts. Names and addresses are unique, and no two share a namespace.
    pub hosts: Vec<AttachedSpec>,
    /// Whatever is random on a link follows from this and from the link alone.
    pub seed: u64,
    /// Try to run the emulator with `SCHED_FIFO`; see [`Network::realtime`] for what came of it.
    pub realtime: bool,
}

/// A host that others have made.
#[derive(Debug, Clone)]
pub struct AttachedSpec {
    /// Unique in its network.
    pub name: String,
    /// All at which others reach it; the first IPv4 one is [`Host::address`].
    pub addresses: Vec<IpAddr>,
    /// Its network namespace.
    pub namespace: Arc<OwnedFd>,
    /// The interfaces by which what it sends leaves: its own (`eth0`), or, of the host that stands for all others, this machine's
    /// ends of the containers' (`vethab12`). A host without any is only sent to.
    pub exits: Vec<Exit>,
    /// Stands for all addresses that are no other host's: at most one host.
    pub is_outside: bool,
}

/// An interface by which packets of a host leave, in the host's namespace. It has to be an Ethernet one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its name there.
    pub interface: String,
    /// `None`: it leads to all other hosts. Else only to those of these names (a machine's veth leads to one container).
    pub to: Option<Vec<String>>,
}

impl Network {
    /// Diverts what hosts that run already send each other through an emulator of ours, with a link between every ordered pair,
    /// nothing impaired. What is on no link passes by.
    ///
    /// Only IPv4 and IPv6 packets to one receiver are diverted, and of those not IPv6's neighbour discovery. Connections go
    /// on, when it begins as when it ends. All that is added to a host's namespace is a TAP `brownout<n>` and a table
    /// `brownout-<interface>` of nf_tables for each exit. Both vanish with this process, however it ends; while it hangs for
    /// more than two seconds, packets pass as if it were not there.
    ///
    /// Dropping the network lets go at once what its links hold, and then packets take their own way again.
    ///
    /// Needs `CAP_SYS_ADMIN`, `CAP_NET_ADMIN` and `CAP_NET_RAW` over the hosts' namespaces, `/dev/net/tun`, and Linux 5.17 with
    /// what [`attach_check`] tries.
    ///
    /// # Errors
    /// See [`NetworkError`]; nothing of an attachment that failed stays.
    pub fn attach(spec: AttachSpec) -> Result<Network, NetworkError> {
        Network::attach_within(spec, None)
    }

    /// The same with a share of the machine's memory, in bytes; see [`Network::start_within`].
    ///
    /// # Errors
    /// As of [`Network::attach`].
    pub fn attach_within(spec: AttachSpec, memory: Option<u64>) -> Result<Network, NetworkError> {
        let AttachSpec { hosts: specs, seed, realtime } = spec;
        check::check(&specs)?;
        let exits: usize = specs.iter().map(|spec| spec.exits.len()).sum();
        allow_files(specs.len(), FILES_PER_HOST * specs.len() as u64 + FILES_PER_EXIT * exits as u64)?;

        let (mut hosts, mut ports, mut exits, mut mtu) = (Vec::new(), Vec::new(), Vec::new(), None::<u32>);
        for (id, spec) in (0..).map(HostId).zip(&specs) {
            let (host, opened) = inside(&spec.name, &spec.namespace, || enter_first(id, spec))?;
            let mut of_host = Vec::new();
            for (mut exit, port) in opened {
                exit.port = ports.len();
                mtu = Some(mtu.map_or(exit.mtu, |least| least.min(exit.mtu)));
                ports.push((id, port));
                of_host.push(exit);
            }
            hosts.push(host);
            exits.push(of_host);
        }
        let routes = routes(&specs);
        let (emulator, thread, announcement) = emulator::start(hosts.len(), ports, routes, seed, realtime, memory)?;
        let Announcement { scheduling, schedstat } = announcement;
        let state = Arc::new(Mutex::new(State { specs, exits }));
        let lapses = Arc::new(AtomicU64::new(0));
        // Whole before anything is diverted: if that fails, this ends what has begun.
        let mut network = Network {
            services: hosts.iter().cloned().map(ServiceHost).collect(),
            hosts,
            overlay: None,
            mtu: mtu.map_or(ETHERNET_MTU, |mtu| mtu.min(u32::from(LARGEST_MTU)) as u16),
            attachment: Some(Attachment { state: Arc::clone(&state), lapses: Arc::clone(&lapses), keeper: None }),
            emulator,
            thread: Some(thread),
            scheduling,
            schedstat,
        };
        let diverted = lock(&state).divert();
        diverted?;
        let keeper = Keeper::start(state, network.emulator.clone(), lapses, realtime)?;
        if let Some(attachment) = &mut network.attachment {
            attachment.keeper = Some(keeper);
        }
        Ok(network)
    }

    /// A host whose namespace, addresses or exits are others, since what runs there was started again: it has the same name, and
    /// is from now on where this says. What is in force on its links goes on. Exits that are as they were stay.
    ///
    /// # Errors
    /// [`NetworkError::Spec`] when this network was not attached to, has no such host, or could not have this one; as of
    /// [`Network::attach`] else, and then the host is without those exits that could not be opened, until this is tried again.
    pub fn reattach(&self, host: AttachedSpec) -> Result<(), NetworkError> {
        let Some(attachment) = &self.attachment else {
            let reason =
                format!("host {} cannot be attached to again: this network was made, not attached to", host.name);
            return Err(NetworkError::Spec(reason));
        };
        let Some(known) = self.host(&host.name) else {
            return Err(NetworkError::Spec(format!("it has no host named {} to be attached to again", host.name)));
        };
        lock(&attachment.state).reattach(known, host, &self.emulator)
    }

    /// Whether others have made this network.
    pub fn is_attached(&self) -> bool {
        self.attachment.is_some()
    }

    /// How often packets of attached hosts may have passed by the emulator, because this process hung for two seconds, was
    /// stopped, or could not reach the kernel's filter; once for each exit. 0 for a network that we have made.
    pub fn lapses(&self) -> u64 {
        self.attachment.as_ref().map_or(0, |attachment| attachment.lapses.load(Ordering::Relaxed))
    }
}

/// What diverts packets.
pub(crate) struct Attachment {
    state: Arc<Mutex<State>>,
    lapses: Arc<AtomicU64>,
    keeper: Option<Keeper>,
}

/// What is diverted, and where.
struct State {
    specs: Vec<AttachedSpec>,
    /// By the hosts' numbers.
    exits: Vec<Vec<Opened>>,
}

impl Attachment {
    /// Lets go what is held, and then has packets take their own way again. What was diverted last is still to be read.
    pub(crate) fn end(self, emulator: &Emulator) {
        drop(self.keeper);
        // If the emulator has ended already, it holds nothing.
        let _ = emulator.let_go();
        lock(&self.state).exits.iter_mut().flatten().for_each(Opened::divert_no_more);
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment").field("lapses", &self.lapses).finish_non_exhaustive()
    }
}

impl State {
    /// Begins to divert.
    fn divert(&self) -> Result<(), NetworkError> {
        for (number, (spec, exits)) in self.specs.iter().zip(&self.exits).enumerate() {
            for exit in exits {
                exit.divert(&spec.name, &selection::of(&self.specs, number, &exit.spec))?;
            }
        }
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which host has which address.
fn routes(specs: &[AttachedSpec]) -> Routes {
    let hosts = || (0..).map(HostId).zip(specs);
    let addresses = hosts().flat_map(|(id, spec)| spec.addresses.iter().map(move |address| (*address, id)));
    Routes::new(addresses, hosts().find(|(_, spec)| spec.is_outside).map(|(id, _)| id))
}

/// Opens all that a host needs, on a thread in its namespace.
fn enter_first(id: HostId, spec: &AttachedSpec) -> Result<(Host, Vec<(Opened, emulator::Port)>), NetworkError> {
    let opened = spec.exits.iter().map(|exit| exit::open(&spec.name, exit)).collect::<Result<Vec<_>, _>>()?;
    let found: Found = found_in(spec, opened.iter().map(|(exit, _)| exit));
    let failed = |source| NetworkError::Configure {
        host: spec.name.clone(),
        action: "read its TCP congestion control".to_owned(),
        source,
    };
    let host = found.into_host(id, spec.name.clone()).map_err(failed)?;
    Ok((host, opened))
}

/// Runs `work` on a thread inside of a host's namespace. Only a thread of its own can go there without taking the caller along.
fn inside<T: Send>(
    host: &str,
    namespace: &OwnedFd,
    work: impl FnOnce() -> Result<T, NetworkError> + Send,
) -> Result<T, NetworkError> {
    let failed = |source| NetworkError::Enter { host: host.to_owned(), source };
    thread::scope(|scope| {
        let work = || {
            sys::enter(namespace).map_err(failed)?;
            work()
        };
        thread::Builder::new()
            .name(format!("in-{host}"))
            .spawn_scoped(scope, work)
            .map_err(failed)?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
