//! By which interfaces a container sends, looked at from inside of its network.

use std::{
    fs, io,
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::{
    machine::Machine,
    netlink::{self, Link},
    runtime::Attachment,
};

/// One of a container's interfaces that has an address which others can use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name in the container, such as `eth0`.
    pub name: String,
    /// Of which kind it is: `veth`, `macvlan`, `ipvlan`; empty for a device.
    pub kind: String,
    /// Its hardware address, `02:42:ac:12:00:03`; none if it has none.
    pub mac: Option<String>,
    /// At which others reach it.
    pub addresses: Vec<IpAddr>,
    /// The other end of a `veth`, if it is in the network that this process is in.
    pub machine_interface: Option<String>,
    /// IPv4 packets are thrown away that come by another interface than their answers would go by (`rp_filter` is 1).
    /// It is no obstacle where packets are diverted when they leave and put back where they were taken, as nft does.
    pub strict_reverse_path: bool,
}

/// What there is in a container's network.
pub(crate) struct Inside {
    /// In the order of their numbers.
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) gateways: Vec<IpAddr>,
}

/// Enters a network, by a thread of its own, and looks around.
pub(crate) fn look(namespace: &OwnedFd, machine: &Machine) -> io::Result<Inside> {
    let number = netlink::namespace_number(namespace.as_fd());
    let inside = || -> io::Result<Inside> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let (links, addresses) = (netlink::links()?, netlink::addresses()?);
        let interfaces = links.iter().filter_map(|link| interface(link, &addresses, &number, machine));
        Ok(Inside { interfaces: interfaces.collect(), gateways: netlink::gateways()? })
    };
    thread::scope(|scope| {
        let looking = thread::Builder::new().name("interfaces".to_owned()).spawn_scoped(scope, inside)?;
        looking.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered the network panicked")))
    })
}

/// None of those that nobody else can reach. The calling thread is inside.
fn interface(
    link: &Link,
    addresses: &[(u32, IpAddr)],
    number: &io::Result<Option<i32>>,
    machine: &Machine,
) -> Option<Interface> {
    let addresses: Vec<IpAddr> =
        addresses.iter().filter(|(index, _)| *index == link.index).map(|(_, address)| *address).collect();
    if link.is_loopback || addresses.is_empty() {
        return None;
    }
    let mac: Vec<String> = link.hardware.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Interface {
        name: link.name.clone(),
        kind: link.kind.clone(),
        mac: (mac.len() == 6).then(|| mac.join(":")),
        addresses,
        machine_interface: machine_end(link, number, machine),
        strict_reverse_path: is_strict(&link.name),
    })
}

/// The other end of a veth. Numbers of interfaces are each namespace's own, so that the two ends have to name each
/// other, and the machine's has to lead into this very namespace, which has a `number` there if anything does.
fn machine_end(link: &Link, number: &io::Result<Option<i32>>, machine: &Machine) -> Option<String> {
    let leads_here = |end: &Link| match number {
        Ok(Some(number)) => end.peer_namespace == Some(*number),
        Ok(None) => false,
        Err(_) => end.peer_namespace.is_some(),
    };
    let other = |end: &&Link| {
        end.kind == "veth" && Some(end.index) == link.peer && end.peer == Some(link.index) && leads_here(end)
    };
    machine.links.iter().find(other).filter(|_| link.kind == "veth").map(|end| end.name.clone())
}

/// The stricter of what is said of all interfaces and of this one; 2 is loose.
fn is_strict(interface: &str) -> bool {
    let filter = |of: &str| {
        let path = format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(0)
    };
    filter("all").max(filter(interface)) == 1
}

/// Puts first what is on the networks that come first; what is on none stays behind, in its order.
pub(crate) fn order(interfaces: &mut [Interface], attachments: &[Attachment], networks: &[String]) {
    let rank = |interface: &Interface| {
        let is_on = |attachment: &&Attachment| {
            let by_address = attachment.addresses.iter().any(|address| interface.addresses.contains(address));
            let same_mac = |mac: &String| interface.mac.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(mac));
            by_address || attachment.mac.as_ref().is_some_and(same_mac)
        };
        let ranks = attachments.iter().filter(is_on).map(|attachment| {
            networks.iter().position(|network| *network == attachment.network).unwrap_or(networks.len())
        });
        ranks.min().unwrap_or(usize::MAX)
    };
    interfaces.sort_by_key(rank);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veth(index: u32, name: &str, peer: u32, peer_namespace: Option<i32>) -> Link {
        Link {
            index,
            name: name.into(),
            is_loopback: false,
            hardware: vec![2, 0x42, 0xac, 0, 0, 3],
            kind: "veth".into(),
            peer: Some(peer),
            peer_namespace,
        }
    }

    #[test]
    fn the_machines_end_is_the_one_that_leads_into_this_namespace() {
        // Every container's interface has the same number, as Docker makes them.
        let machine = Machine {
            links: vec![veth(7, "veth-a", 2, Some(0)), veth(8, "veth-b", 2, Some(1)), veth(9, "veth-c", 5, Some(1))],
            ..Machine::with(0)
        };
        let end = |peer: u32, number: io::Result<Option<i32>>| {
            machine_end(&veth(2, "eth0", peer, Some(0)), &number, &machine)
        };
        assert_eq!(end(7, Ok(Some(0))).as_deref(), Some("veth-a"));
        assert_eq!(end(8, Ok(Some(1))).as_deref(), Some("veth-b"));
        assert_eq!(end(7, Ok(Some(1))), None, "of another container, whose numbers are the same");
        assert_eq!(end(9, Ok(Some(1))), None, "it names another one");
        assert_eq!(end(7, Ok(None)), None, "nothing of ours leads there");
        assert_eq!(end(7, Err(io::ErrorKind::PermissionDenied.into())).as_deref(), Some("veth-a"));
        let macvlan = Link { kind: "macvlan".into(), ..veth(2, "eth0", 7, Some(0)) };
        assert_eq!(machine_end(&macvlan, &Ok(Some(0)), &machine), None);
    }

    #[test]
    fn an_interface_is_one_that_others_can_reach() {
        let (link, machine) = (veth(2, "no-such-interface", 7, None), Machine::with(0));
        let addresses: [(u32, IpAddr); 2] = [(1, [127, 0, 0, 1].into()), (2, [10, 0, 0, 2].into())];
        let found = interface(&link, &addresses, &Ok(None), &machine).unwrap();
        assert_eq!((found.mac.as_deref(), found.addresses.len()), (Some("02:42:ac:00:00:03"), 1));
        assert!(interface(&link, &addresses[..1], &Ok(None), &machine).is_none());
        let loopback = Link { is_loopback: true, index: 1, ..link };
        assert!(interface(&loopback, &addresses, &Ok(None), &machine).is_none());
    }

    #[test]
    fn the_network_that_all_are_in_comes_first() {
        let interface = |name: &str, last: u8, mac: Option<&str>| Interface {
            name: name.into(),
            addresses: vec![[10, 0, 0, last].into()],
            mac: mac.map(str::to_owned),
            ..Interface::default()
        };
        let attachment = |network: &str, last: u8, mac: Option<&str>| Attachment {
            network: network.into(),
            addresses: vec![[10, 0, 0, last].into()],
            mac: mac.map(str::to_owned),
            ..Attachment::default()
        };
        let mut all =
            [interface("eth0", 1, None), interface("eth1", 2, None), interface("eth2", 9, Some("02:42:ac:00:00:03"))];
        let attachments = [attachment("front", 1, None), attachment("db", 3, Some("02:42:AC:00:00:03"))];
        order(&mut all, &attachments, &["db".into(), "front".into()]);
        assert_eq!(all.map(|interface| interface.name), ["eth2", "eth0", "eth1"]);
    }
}
