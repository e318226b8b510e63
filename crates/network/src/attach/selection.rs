//! Which packets that leave by an exit are on a link from its host.

use super::{AttachedSpec, Exit};
use crate::sys::{Destinations, Diverted};

/// What is diverted from an exit of the host of this number.
///
/// By an interface of the host that stands for all that is outside, such as this machine's end of a container's, packets come
/// from other hosts, too: those have been carried already.
pub(super) fn of(hosts: &[AttachedSpec], number: usize, exit: &Exit) -> Diverted {
    let host = &hosts[number];
    let is_receiver = |other: &AttachedSpec| {
        let is_reached = exit.to.as_ref().is_none_or(|to| to.contains(&other.name));
        other.name != host.name && is_reached
    };
    let addresses = |of: &dyn Fn(&AttachedSpec) -> bool| {
        let hosts = hosts.iter().filter(|host| of(host));
        hosts.flat_map(|host| host.addresses.iter().copied()).collect::<Vec<_>>()
    };
    let reaches_outside = hosts.iter().any(|other| other.is_outside && is_receiver(other));
    Diverted {
        from_none_of: host.is_outside.then(|| addresses(&|other| !other.is_outside)),
        to: if reaches_outside {
            // Its own addresses are among those.
            Destinations::AllBut(addresses(&|other| !is_receiver(other)))
        } else {
            Destinations::These(addresses(&is_receiver))
        },
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, net::IpAddr, sync::Arc};

    use super::*;

    fn host(name: &str, addresses: &[&str], is_outside: bool) -> AttachedSpec {
        AttachedSpec {
            name: name.into(),
            addresses: ips(addresses),
            namespace: Arc::new(File::open("/dev/null").unwrap().into()),
            exits: Vec::new(),
            is_outside,
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
        let of = |number, to| super::of(&hosts, number, &exit(to));
        assert_eq!(
            of(0, None),
            Diverted { from_none_of: None, to: Destinations::AllBut(ips(&["10.0.0.2", "fd00::2"])) }
        );
        assert_eq!(
            of(0, Some(&["b"])),
            Diverted { from_none_of: None, to: Destinations::These(ips(&["10.0.0.3", "10.96.0.9"])) }
        );
        assert_eq!(
            of(1, Some(&["load"])),
            Diverted {
                from_none_of: None,
                to: Destinations::AllBut(ips(&["10.0.0.2", "fd00::2", "10.0.0.3", "10.96.0.9"])),
            }
        );
        let containers = Some(ips(&["10.0.0.2", "fd00::2", "10.0.0.3", "10.96.0.9"]));
        assert_eq!(
            of(2, Some(&["a"])),
            Diverted { from_none_of: containers.clone(), to: Destinations::These(ips(&["10.0.0.2", "fd00::2"])) }
        );
        assert_eq!(
            of(2, None),
            Diverted { from_none_of: containers.clone(), to: Destinations::These(containers.unwrap()) }
        );
    }

    #[test]
    fn without_an_outside_only_hosts_are_sent_to() {
        let hosts = [host("a", &["10.0.0.2"], false), host("b", &["10.0.0.3"], false)];
        let diverted = of(&hosts, 0, &exit(None));
        assert_eq!(diverted, Diverted { from_none_of: None, to: Destinations::These(ips(&["10.0.0.3"])) });
    }
}
