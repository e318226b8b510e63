//! From settings to the cluster: which nodes to contact, and how.

use std::{collections::BTreeSet, time::Duration};

use brownout_load::{
    Balancing, Consistency, Coordinator, Credentials, DEFAULT_TICK, DataPath, EngineConfig, ErrorClass, Protocol,
    Retries, Version, WireOptions,
};
use brownout_machine::Processors;

use super::RunError;
use crate::{
    schema::{Contact, Control, Member},
    settings::{self, LoadBalance, Settings},
};

/// How long a cluster may take to answer at all.
pub const ANSWER: Duration = Duration::from_secs(30);

/// How the cluster is reached for control work.
///
/// # Errors
/// A host without an address; TLS that cannot be set up.
pub fn contact(settings: &Settings) -> Result<Contact, RunError> {
    let mut contact = Contact::resolve(&settings.node.hosts, settings.port.native)?;
    contact.whitelist = settings.node.whitelist;
    contact.tls = super::tls::tls(settings)?;
    contact.timeout = settings.mode.request_timeout;
    let password = settings.mode.password.as_ref().map_or("", |password| password.reveal());
    contact.credentials = settings.mode.user.as_ref().map(|user| (user.clone(), password.to_owned()));
    Ok(contact)
}

/// The nodes that take the load, nearest first: those of the named data centre and, within it, those of the named rack.
/// If no data centre is named, it is that of the first node of `-node`, which drivers take as the local one. As with
/// drivers, the data centre's other racks stand by, and so do as many nodes of each other data centre as `remote-dc=`
/// says, unless a LOCAL consistency rules them out.
///
/// # Errors
/// There are none.
pub fn coordinators(settings: &Settings, control: &Control) -> Result<Vec<Member>, RunError> {
    let node = &settings.node;
    if node.load_balance == Some(LoadBalance::RoundRobin) && node.datacenter.is_none() && node.rack.is_none() {
        return Ok(control.members_in(None, None)?);
    }
    let all = control.members();
    let first = control.contact().nodes.first();
    let local = all.iter().find(|member| Some(&member.address) == first);
    let datacenter = node.datacenter.clone().or(local.map(|member| member.datacenter.clone()));
    let mut found = control.members_in(datacenter.as_deref(), node.rack.as_deref())?;
    if node.rack.is_some() {
        let elsewhere = control.members_in(datacenter.as_deref(), None)?;
        stand_by(&mut found, elsewhere, SAME_DATACENTER, usize::MAX);
    }
    if let (Some(most), Some(here), false) = (node.remote_hosts, datacenter, stays_local(settings)) {
        let remote: BTreeSet<&str> = all.iter().map(|member| member.datacenter.as_str()).collect();
        for other in remote.into_iter().filter(|name| *name != here) {
            stand_by(&mut found, control.members_in(Some(other), None)?, REMOTE_DATACENTER, most as usize);
        }
    }
    Ok(found)
}

/// Tiers of nodes behind the nearest, which is 0.
const SAME_DATACENTER: u8 = 1;
const REMOTE_DATACENTER: u8 = 2;

/// Adds at most this many of the nodes that are not there yet.
fn stand_by(found: &mut Vec<Member>, more: Vec<Member>, tier: u8, most: usize) {
    let strange = |member: &Member| found.iter().all(|known| known.address != member.address);
    let more: Vec<Member> = more.into_iter().filter(strange).take(most).collect();
    found.extend(more.into_iter().map(|member| Member { tier, ..member }));
}

/// Whether the command's consistency only counts replicas of the local data centre: drivers then contact no other.
pub fn stays_local(settings: &Settings) -> bool {
    matches!(settings.command.consistency, Consistency::LocalOne | Consistency::LocalQuorum)
}

/// Number of nodes in each tier, nearest first.
fn tiers(members: &[Member]) -> Vec<usize> {
    members.chunk_by(|one, next| one.tier == next.tier).map(<[Member]>::len).collect()
}

/// Refuses what the driver does not support, before anything is created.
///
/// # Errors
/// Something that only our own connections support.
pub fn check_path(settings: &Settings) -> Result<(), RunError> {
    let mode = &settings.mode;
    if mode.path == settings::DataPath::Own {
        return Ok(());
    }
    let refuse = |what: &str, remedy| Err(RunError::Unfit { what: format!("-mode driver: {what}"), remedy });
    if !mode.prepared {
        return refuse("the scylla driver prepares every statement that has values", "leave 'unprepared' out");
    }
    if mode.protocol == settings::Protocol::Version(5) {
        return refuse("the scylla driver does not speak version 5 of the protocol", "write protocolVersion=4");
    }
    Ok(())
}

/// The index of a node, named by address or by address and port, among the coordinators.
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

/// The names of coordinators in results: their addresses, with ports where two share an address.
pub fn named(members: &[Member]) -> Vec<Coordinator> {
    let shared = |member: &Member| members.iter().filter(|other| other.address.ip() == member.address.ip()).count() > 1;
    let name = |member: &Member| match shared(member) {
        true => member.address.to_string(),
        false => member.address.ip().to_string(),
    };
    members.iter().map(|member| Coordinator { name: name(member), address: member.address }).collect()
}

/// How the engine sends; `users` is the most operations open at a time, if that is bounded.
pub fn engine(
    settings: &Settings,
    contact: &Contact,
    members: &[Member],
    seed: i64,
    users: Option<u32>,
) -> EngineConfig {
    EngineConfig {
        tiers: tiers(members),
        seed: seed as u64,
        wire: wire(settings, contact),
        ..sending(settings, named(members), users)
    }
}

/// Refuses times and numbers that the engine would refuse, before anything is made.
///
/// # Errors
/// The first that is out of range.
pub fn check_engine(settings: &Settings) -> Result<(), RunError> {
    let anyone = Coordinator { name: "anyone".to_owned(), address: ([127, 0, 0, 1], settings.port.native).into() };
    let bucket = match &settings.rate {
        settings::Rate::Search(search) => super::search::bucket(search),
        _ => settings.log.interval,
    };
    Ok(EngineConfig { bucket, ..sending(settings, vec![anyone], super::plan::users(settings)) }.check()?)
}

/// What the settings say of the engine, whatever they say of the cluster.
fn sending(settings: &Settings, coordinators: Vec<Coordinator>, users: Option<u32>) -> EngineConfig {
    let threads = load_threads(&Processors::of_this_process(), users);
    let mode = &settings.mode;
    // Drivers keep connections per host; all load threads share them, but each needs at least one of its own.
    let connections = (mode.connections_per_host as usize).div_ceil(threads).max(1);
    EngineConfig {
        balancing: match settings.node.load_balance {
            Some(LoadBalance::RoundRobin) => Balancing::RoundRobin,
            _ => Balancing::TokenAware,
        },
        path: match mode.path {
            settings::DataPath::Own => DataPath::Own,
            settings::DataPath::Driver => DataPath::Driver,
        },
        threads,
        connections,
        max_pending: mode.max_pending,
        timeout: mode.request_timeout,
        tick: settings.extras.tick.unwrap_or(DEFAULT_TICK),
        retries: retries(settings),
        ..EngineConfig::new(coordinators)
    }
}

/// One thread can send as much as a small machine can. More are worthwhile only where there are processors to spare:
/// half of them, so that a cluster on the same machine has the other half, and no more than there are users to share.
fn load_threads(processors: &Processors, users: Option<u32>) -> usize {
    let by_users = users.map_or(usize::MAX, |users| (users as usize / 32).max(1));
    (processors.whole() as usize / 2).clamp(1, 8).min(by_users)
}

/// How connections speak.
fn wire(settings: &Settings, contact: &Contact) -> WireOptions {
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
        tls: contact.tls.clone(),
        credentials: mode.user.as_ref().map(|user| Credentials {
            user: user.clone(),
            password: mode.password.as_ref().map_or("", |password| password.reveal()).to_owned(),
        }),
    }
}

/// As in cassandra-stress: every failure is retried at once, except when servers are overloaded.
pub fn retries(settings: &Settings) -> Retries {
    Retries {
        tries: settings.errors.tries,
        delay: settings.errors.delay,
        delayed: [ErrorClass::Overloaded].into_iter().collect(),
        ..Retries::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_threads_are_of_the_processors_that_the_lab_may_use() {
        let threads = |cpus: &[usize], quota, users| load_threads(&Processors::made_up(cpus, 64, quota), users);
        let eight = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(threads(&eight, None, None), 4);
        assert_eq!(threads(&eight[..2], None, None), 1, "affinity");
        assert_eq!(threads(&eight, Some(4.5), None), 2, "a quota");
        assert_eq!(threads(&eight, Some(0.5), None), 1);
        assert_eq!(threads(&eight, None, Some(96)), 3, "no more than there are users to share");
    }
}
