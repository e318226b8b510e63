//! Which packets are on a link of a host, as each way to divert them asks it.

use std::net::IpAddr;

use super::spec::{AttachedSpec, Exit};
use crate::sys::{Addresses, Diverted};

/// What of that which leaves by an exit of the host of this number is on a link from it.
///
/// By an interface of the host that stands for all that is outside, such as this machine's end of a container's, packets come
/// from other hosts, too: those have been carried already.
pub(super) fn leaving(hosts: &[AttachedSpec], number: usize, exit: &Exit) -> Diverted {
    let host = &hosts[number];
    let is_receiver = |other: &AttachedSpec| {
        let is_reached = exit.to.as_ref().is_none_or(|to| to.contains(&other.name));
        other.name != host.name && is_reached
    };
    let reaches_outside = hosts.iter().any(|other| other.is_outside() && is_receiver(other));
    Diverted {
        from: match host.is_outside() {
            true => Addresses::AllBut(addresses(hosts, |other| !other.is_outside())),
            false => Addresses::Any,
        },
        to: if reaches_outside {
            // Its own addresses are among those.
            Addresses::AllBut(addresses(hosts, |other| !is_receiver(other)))
        } else {
            Addresses::These(addresses(hosts, is_receiver))
        },
    }
}

/// What of that which arrives at the host of this number is on a link to it.
///
/// At the host that stands for all that is outside, all arrives that other hosts send, and is for none of them.
pub(super) fn arriving(hosts: &[AttachedSpec], number: usize) -> Diverted {
    let host = &hosts[number];
    let is_other = |other: &AttachedSpec| other.name != host.name;
    if host.is_outside() {
        let others = addresses(hosts, is_other);
        return Diverted { from: Addresses::These(others.clone()), to: Addresses::AllBut(others) };
    }
    let from = match hosts.iter().any(|other| other.is_outside()) {
        true => Addresses::AllBut(host.addresses.clone()),
        false => Addresses::These(addresses(hosts, is_other)),
    };
    Diverted { from, to: Addresses::Any }
}

/// Where that goes that is on a link from the host of this number, as far as it can be named: of what is outside, only this
/// machine's own addresses.
pub(super) fn led(hosts: &[AttachedSpec], number: usize) -> Vec<IpAddr> {
    let host = &hosts[number];
    addresses(hosts, |other| other.name != host.name)
}

fn addresses(hosts: &[AttachedSpec], of: impl Fn(&AttachedSpec) -> bool) -> Vec<IpAddr> {
    let hosts = hosts.iter().filter(|host| of(host));
    hosts.flat_map(|host| host.addresses.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::Arc};

    use super::{super::spec::AttachedKind, *};

    fn host(name: &str, addresses: &[&str], is_outside: bool) -> AttachedSpec {
        AttachedSpec {
            name: name.into(),
            addresses: ips(addresses),
            namespace: Arc::new(File::open("/dev/null").unwrap().into()),
            exits: Vec::new(),
            kind: if is_outside { AttachedKind::Outside } else { AttachedKind::Host },
        }
    }

    fn ips(addresses: &[&str]) -> Vec<IpAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    fn exit(to: Option<&[&str]>) -> Exit {
        let to = to.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Exit { interface: "eth0".into(), to }
    }

    #[test]
    fn a_container_sends_to_all_but_itself_and_outside_sends_what_no_container_sends() {
        let hosts = [
            host("a", &["10.0.0.2", "fd00::2"], false),
            host("b", &["10.0.0.3", "10.96.0.9"], false),
            host("load", &["10.0.0.1"], true),
        ];
        let of = |number, to| leaving(&hosts, number, &exit(to));
        assert_eq!(
            of(0, None),
            Diverted { from: Addresses::Any, to: Addresses::AllBut(ips(&["10.0.0.2", "fd00::2"])) }
        );
        assert_eq!(
            of(0, Some(&["b"])),
            Diverted { from: Addresses::Any, to: Addresses::These(ips(&["10.0.0.3", "10.96.0.9"])) }
        );
        assert_eq!(
            of(1, Some(&["load"])),
            Diverted {
                from: Addresses::Any,
                to: Addresses::AllBut(ips(&["10.0.0.2", "fd00::2", "10.0.0.3", "10.96.0.9"])),
            }
        );
        let containers = ips(&["10.0.0.2", "fd00::2", "10.0.0.3", "10.96.0.9"]);
        assert_eq!(
            of(2, Some(&["a"])),
            Diverted {
                from: Addresses::AllBut(containers.clone()),
                to: Addresses::These(ips(&["10.0.0.2", "fd00::2"]))
            }
        );
        assert_eq!(
            of(2, None),
            Diverted { from: Addresses::AllBut(containers.clone()), to: Addresses::These(containers.clone()) }
        );
    }

    #[test]
    fn what_arrives_comes_from_all_others_and_outside_gets_what_is_for_no_host() {
        let hosts =
            [host("a", &["10.0.0.2"], false), host("b", &["10.0.0.3"], false), host("load", &["10.0.0.1"], true)];
        let containers = ips(&["10.0.0.2", "10.0.0.3"]);
        assert_eq!(arriving(&hosts, 0), Diverted { from: Addresses::AllBut(ips(&["10.0.0.2"])), to: Addresses::Any });
        assert_eq!(
            arriving(&hosts, 2),
            Diverted { from: Addresses::These(containers.clone()), to: Addresses::AllBut(containers) }
        );
        let alone = Diverted { from: Addresses::These(ips(&["10.0.0.3"])), to: Addresses::Any };
        assert_eq!(arriving(&hosts[..2], 0), alone);
        assert_eq!(led(&hosts, 1), ips(&["10.0.0.2", "10.0.0.1"]));
    }

    #[test]
    fn without_an_outside_only_hosts_are_sent_to() {
        let hosts = [host("a", &["10.0.0.2"], false), host("b", &["10.0.0.3"], false)];
        let diverted = leaving(&hosts, 0, &exit(None));
        assert_eq!(diverted, Diverted { from: Addresses::Any, to: Addresses::These(ips(&["10.0.0.3"])) });
    }
}
