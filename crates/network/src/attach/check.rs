//! What cannot be attached to.

use std::{collections::HashSet, net::IpAddr};

use rustix::fs::fstat;

use super::spec::AttachedSpec;
use crate::{error::NetworkError, limits::MOST_HOSTS};

/// Refuses hosts that no network could have.
pub(super) fn check(hosts: &[AttachedSpec]) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    if hosts.is_empty() || hosts.len() > MOST_HOSTS {
        return refuse(format!("it has {} hosts; give it 1 to {MOST_HOSTS}", hosts.len()));
    }
    if let [one, other, ..] = hosts.iter().filter(|host| host.is_outside()).collect::<Vec<_>>()[..] {
        return refuse(format!("{} and {} both stand for all that is outside; let one do so", one.name, other.name));
    }
    let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
    for host in hosts {
        let name = &host.name;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return refuse(format!(
                "a host cannot be named {name:?}; use letters, digits, '-', '_' and '.', at least one"
            ));
        }
        if !names.insert(name) {
            return refuse(format!("two hosts are named {name}"));
        }
        if !host.addresses.iter().any(IpAddr::is_ipv4) {
            return refuse(format!("host {name} has no IPv4 address, by which it would be probed; give it one"));
        }
        if let Some(twice) = host.addresses.iter().find(|address| !addresses.insert(**address)) {
            return refuse(format!("the address {twice} of host {name} is named twice"));
        }
    }
    hosts.iter().try_for_each(|host| check_exits(host, &names))?;
    check_namespaces(hosts)
}

fn check_exits(host: &AttachedSpec, names: &HashSet<&String>) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    let AttachedSpec { name, exits, .. } = host;
    if host.is_elsewhere() && !exits.is_empty() {
        return refuse(format!(
            "host {name} is on another machine, so that nothing it sends leaves by an interface of this one"
        ));
    }
    let mut interfaces = HashSet::new();
    for exit in exits {
        let interface = &exit.interface;
        if !interfaces.insert(interface) {
            return refuse(format!("the interface {interface} of host {name} is named twice"));
        }
        let receivers = exit.to.iter().flatten();
        if let Some(unknown) = receivers.clone().find(|to| !names.contains(to)) {
            return refuse(format!(
                "the interface {interface} of host {name} leads to {unknown}, which is no host of it"
            ));
        }
        if receivers.clone().any(|to| to == name) {
            return refuse(format!("the interface {interface} of host {name} leads to itself"));
        }
    }
    Ok(())
}

/// In one namespace there is one interface that packets leave by, and no telling whose they are.
fn check_namespaces(hosts: &[AttachedSpec]) -> Result<(), NetworkError> {
    let mut known: Vec<((u64, u64), &str)> = Vec::new();
    for host in hosts.iter().filter(|host| !host.is_elsewhere()) {
        let namespace = namespace_of(host)?;
        if let Some((_, other)) = known.iter().find(|(other, _)| *other == namespace) {
            return Err(NetworkError::Spec(format!(
                "{other} and {} share a network namespace, so that nothing between them leaves it; leave one out",
                host.name
            )));
        }
        known.push((namespace, &host.name));
    }
    Ok(())
}

/// What tells a host's namespace from all others.
pub(super) fn namespace_of(host: &AttachedSpec) -> Result<(u64, u64), NetworkError> {
    let failed = |errno: rustix::io::Errno| NetworkError::Enter { host: host.name.clone(), source: errno.into() };
    let stat = fstat(&*host.namespace).map_err(failed)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::Arc};

    use super::{
        super::spec::{AttachedKind, Exit},
        *,
    };

    /// Each in a namespace of its own, as far as the file tells.
    fn host(name: &str, addresses: &[&str]) -> AttachedSpec {
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        AttachedSpec {
            name: name.into(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            namespace: Arc::new(file),
            exits: vec![Exit { interface: "eth0".into(), to: None }],
            kind: AttachedKind::Host,
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let two = || [host("a", &["10.0.0.1", "fd00::1"]), host("b", &["10.0.0.2"])];
        assert!(check(&two()).is_ok());
        let refused = |change: fn(&mut [AttachedSpec; 2])| {
            let mut hosts = two();
            change(&mut hosts);
            check(&hosts).unwrap_err().to_string()
        };
        for (reason, error) in [
            ("two hosts are named a", refused(|hosts| hosts[1].name = "a".into())),
            ("cannot be named \"a b\"", refused(|hosts| hosts[1].name = "a b".into())),
            ("no IPv4 address", refused(|hosts| hosts[1].addresses = vec!["fd00::2".parse().unwrap()])),
            (
                "10.0.0.1 of host b is named twice",
                refused(|hosts| hosts[1].addresses.push("10.0.0.1".parse().unwrap())),
            ),
            ("both stand for", refused(|hosts| hosts.iter_mut().for_each(|host| host.kind = AttachedKind::Outside))),
            ("share a network namespace", refused(|hosts| hosts[1].namespace = Arc::clone(&hosts[0].namespace))),
            (
                "eth0 of host a is named twice",
                refused(|hosts| {
                    let again = hosts[0].exits[0].clone();
                    hosts[0].exits.push(again);
                }),
            ),
            ("leads to c, which", refused(|hosts| hosts[0].exits[0].to = Some(vec!["c".into()]))),
            ("leads to itself", refused(|hosts| hosts[0].exits[0].to = Some(vec!["a".into()]))),
            ("b is on another machine", refused(|hosts| hosts[1].kind = AttachedKind::Elsewhere)),
        ] {
            assert!(error.contains(reason), "{reason}: {error}");
        }
        assert!(check(&[]).is_err());
    }

    #[test]
    fn hosts_of_other_machines_have_no_namespace_here_and_so_none_that_is_anothers() {
        let [one, mut other] = [host("a", &["10.0.0.1"]), host("b", &["10.0.0.2"])];
        (other.kind, other.namespace) = (AttachedKind::Elsewhere, Arc::clone(&one.namespace));
        other.exits.clear();
        let mut third =
            AttachedSpec { name: "c".into(), addresses: vec!["10.0.0.3".parse().unwrap()], ..other.clone() };
        assert!(check(&[one.clone(), other.clone(), third.clone()]).is_ok());
        third.addresses.clone_from(&other.addresses);
        assert!(check(&[one, other, third]).is_err());
    }

    #[test]
    fn a_namespace_is_told_by_what_it_is_and_not_by_how_it_was_opened() {
        let own = || Arc::new(File::open("/proc/thread-self/ns/net").unwrap().into());
        let [mut one, mut other] = [host("a", &["10.0.0.1"]), host("b", &["10.0.0.2"])];
        assert_ne!(namespace_of(&one).unwrap(), namespace_of(&other).unwrap());
        (one.namespace, other.namespace) = (own(), own());
        assert_eq!(namespace_of(&one).unwrap(), namespace_of(&other).unwrap());
    }
}
