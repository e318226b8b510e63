//! From settings to the cluster: whom to ask, and how.

use std::time::Duration;

use brownout_load::{
    Balancing, Coordinator, Credentials, EngineConfig, ErrorClass, Protocol, Retries, Version, WireOptions,
};

use super::RunError;
use crate::{
    schema::{Contact, Control, Member},
    settings::{self, LoadBalance, Settings},
};

/// How long a cluster is given to answer at all.
pub const ANSWER: Duration = Duration::from_secs(30);

/// How the cluster is reached for control work.
///
/// # Errors
/// A host without an address.
pub fn contact(settings: &Settings) -> Result<Contact, RunError> {
    if settings.transport.truststore.is_some() || settings.transport.keystore.is_some() {
        return Err(RunError::Unfit {
            what: "-transport: TLS is not there yet for what asks the cluster for its schema".to_owned(),
            remedy: "use a port without encryption",
        });
    }
    if settings.mode.path == settings::DataPath::Driver {
        return Err(RunError::Unfit {
            what: "-mode driver: the data path through the scylla driver is not there yet".to_owned(),
            remedy: "leave it out: the load then uses its own connections",
        });
    }
    let mut contact = Contact::resolve(&settings.node.hosts, settings.port.native)?;
    contact.whitelist = settings.node.whitelist;
    contact.timeout = settings.mode.request_timeout;
    let password = settings.mode.password.as_ref().map_or("", |password| password.reveal());
    contact.credentials = settings.mode.user.as_ref().map(|user| (user.clone(), password.to_owned()));
    Ok(contact)
}

/// The nodes that take the load: those of the named data centre and rack. Where none is named, those of the data centre
/// of the first node of `-node`, which is what drivers take for the local one.
///
/// # Errors
/// There is none.
pub fn coordinators(settings: &Settings, control: &Control) -> Result<Vec<Member>, RunError> {
    let node = &settings.node;
    if node.load_balance == Some(LoadBalance::RoundRobin) && node.datacenter.is_none() && node.rack.is_none() {
        return Ok(control.members_in(None, None)?);
    }
    let first = control.contact().nodes.first();
    let local = control.members().into_iter().find(|member| Some(&member.address) == first);
    let datacenter = node.datacenter.clone().or(local.map(|member| member.datacenter));
    Ok(control.members_in(datacenter.as_deref(), node.rack.as_deref())?)
}

/// The place of a node, named by address or by address and port, among the coordinators.
///
/// # Errors
/// It is not among them.
pub fn place(option: &'static str, host: &str, settings: &Settings, members: &[Member]) -> Result<u16, RunError> {
    let found = Contact::resolve(&[host.to_owned()], settings.port.native)?;
    let place = members.iter().position(|member| found.nodes.contains(&member.address));
    place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| RunError::NoSuchNode {
        option,
        host: host.to_owned(),
        known: members.iter().map(|member| member.address.to_string()).collect::<Vec<_>>().join(", "),
    })
}

/// The names that coordinators have in results: their addresses, with ports where two share an address.
pub fn named(members: &[Member]) -> Vec<Coordinator> {
    let shared = |member: &Member| members.iter().filter(|other| other.address.ip() == member.address.ip()).count() > 1;
    let name = |member: &Member| match shared(member) {
        true => member.address.to_string(),
        false => member.address.ip().to_string(),
    };
    members.iter().map(|member| Coordinator { name: name(member), address: member.address }).collect()
}

/// How the engine sends; `users` is the most operations that are open at a time, where that is bounded.
pub fn engine(settings: &Settings, members: &[Member], seed: i64, users: Option<u32>) -> EngineConfig {
    let threads = load_threads(users);
    let mode = &settings.mode;
    // What a driver keeps per host is shared by all load threads, as far as each has one of its own.
    let connections = (mode.connections_per_host as usize).div_ceil(threads).max(1);
    EngineConfig {
        balancing: match settings.node.load_balance {
            Some(LoadBalance::RoundRobin) => Balancing::RoundRobin,
            _ => Balancing::TokenAware,
        },
        threads,
        connections,
        timeout: mode.request_timeout,
        seed: seed as u64,
        retries: retries(settings),
        wire: wire(settings),
        ..EngineConfig::new(named(members))
    }
}

/// One thread carries what a small machine can send. More are worth it only where there are processors to spare: half of
/// them, so that a cluster on the same machine has the other half, and no more than there are users to share.
fn load_threads(users: Option<u32>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let by_users = users.map_or(usize::MAX, |users| (users as usize / 32).max(1));
    (processors / 2).clamp(1, 8).min(by_users)
}

/// How connections speak.
fn wire(settings: &Settings) -> WireOptions {
    let mode = &settings.mode;
    WireOptions {
        protocol: match mode.protocol {
            settings::Protocol::Newest => Protocol::Auto,
            settings::Protocol::Version(5) => Protocol::Exactly(Version::V5),
            settings::Protocol::Default | settings::Protocol::Version(_) => Protocol::Exactly(Version::V4),
        },
        compression: match mode.compression {
            settings::Compression::None => None,
            settings::Compression::Lz4 => Some(brownout_load::Compression::Lz4),
            settings::Compression::Snappy => Some(brownout_load::Compression::Snappy),
        },
        tls: None,
        credentials: mode.user.as_ref().map(|user| Credentials {
            user: user.clone(),
            password: mode.password.as_ref().map_or("", |password| password.reveal()).to_owned(),
        }),
    }
}

/// As cassandra-stress: every failure is tried again at once, but for servers that have too much to do.
fn retries(settings: &Settings) -> Retries {
    Retries {
        tries: settings.errors.tries,
        delay: settings.errors.delay,
        delayed: [ErrorClass::Overloaded].into_iter().collect(),
        ..Retries::default()
    }
}
