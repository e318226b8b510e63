//! What networks cannot be made.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::spec::NetworkSpec;
use crate::{
    error::NetworkError,
    host::HostSpec,
    limits::{LARGEST_MTU, MOST_HOSTS},
    overlay::Overlay,
    subnet::{Subnet, carrier_address},
};

/// What IPv4 demands of every link (RFC 791).
const SMALLEST_MTU: u16 = 68;

/// Refuses networks that cannot be made anywhere.
pub(super) fn check(spec: &NetworkSpec) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    if spec.hosts.is_empty() || spec.hosts.len() > MOST_HOSTS {
        return refuse(format!("it has {} hosts; give it 1 to {MOST_HOSTS}", spec.hosts.len()));
    }
    if !(SMALLEST_MTU..=LARGEST_MTU).contains(&spec.mtu) {
        return refuse(format!("an MTU of {} bytes is impossible; choose {SMALLEST_MTU} to {LARGEST_MTU}", spec.mtu));
    }
    let (mut names, mut addresses) = (HashSet::new(), HashSet::<IpAddr>::new());
    for host in &spec.hosts {
        let HostSpec { name, address, .. } = host;
        // As a DNS label or a file name may be: it becomes both.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return refuse(format!(
                "the host at {address} cannot be named {name:?}; use letters, digits, '-', '_' and '.', at least one"
            ));
        }
        if !names.insert(name) {
            return refuse(format!("two hosts are named {name}"));
        }
        for (address, usable, advice) in [
            (IpAddr::from(*address), is_usable(*address), "10.0.0.1"),
            (host.address6().into(), is_usable6(host.address6()), "fd77:6272:6f77::1"),
        ] {
            if !addresses.insert(address) {
                return refuse(format!("two hosts have the address {address}, one of them {name}"));
            }
            if !usable {
                return refuse(format!(
                    "host {name} cannot have the address {address}; choose a private one, such as {advice}"
                ));
            }
        }
    }
    spec.overlay.map_or(Ok(()), |overlay| check_overlay(overlay, spec))
}

fn check_overlay(overlay: Overlay, spec: &NetworkSpec) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    overlay.check(spec.mtu, spec.hosts.len()).or_else(refuse)?;
    let mut services = HashSet::new();
    for host in &spec.hosts {
        let HostSpec { name, .. } = host;
        let service = host.service();
        if !services.insert(service) {
            return refuse(format!("two hosts have the address {service} on the overlay, one of them {name}"));
        }
        if !is_usable(service) {
            return refuse(format!(
                "host {name} cannot have the address {service} on the overlay; choose a private one, such as 10.78.0.1"
            ));
        }
    }
    let mut ranges = vec![
        ("its hosts' addresses", Subnet::of(spec.hosts.iter().map(|host| host.address))?),
        ("those on the overlay", Subnet::of(spec.hosts.iter().map(HostSpec::service))?),
    ];
    if overlay == Overlay::WireguardVxlan {
        let carriers = || spec.hosts.iter().map(|host| carrier_address(host.address));
        let mut known = HashSet::new();
        if let Some(twice) = carriers().find(|carrier| !known.insert(*carrier)) {
            return refuse(format!(
                "two hosts have the address {twice} inside of WireGuard, which ends as theirs; choose addresses that differ in \
                 their last two numbers"
            ));
        }
        ranges.push(("those inside of WireGuard", Subnet::of(carriers())?));
    }
    for (at, (name, range)) in ranges.iter().enumerate() {
        if let Some((other, same)) = ranges[..at].iter().find(|(_, before)| before.overlaps(*range)) {
            return refuse(format!(
                "{other} ({}/{}) and {name} ({}/{}) overlap; choose them from two private ranges, such as 10.77.0.0/16 and \
                 10.78.0.0/16",
                same.address, same.prefix, range.address, range.prefix
            ));
        }
    }
    if let (true, [hub, others @ ..]) = (overlay.has_hub(), &spec.hosts[..])
        && others.iter().any(|host| host.service() < hub.service())
    {
        return refuse(format!(
            "{}, through which {overlay} takes all packets, needs the lowest address on the overlay, and has {}",
            hub.name,
            hub.service()
        ));
    }
    Ok(())
}

fn is_usable(address: Ipv4Addr) -> bool {
    !(address.is_loopback() || address.is_multicast() || address.octets()[0] == 0 || address.octets()[0] >= 240)
}

fn is_usable6(address: Ipv6Addr) -> bool {
    // ::/96 holds the unspecified address, the loopback and the long dead IPv4-compatible ones.
    let reserved = address.to_ipv4().is_some();
    !(reserved || address.is_multicast() || address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    fn spec(hosts: &[(&str, &str)]) -> NetworkSpec {
        let host = |(name, address): &(&str, &str)| HostSpec::new(*name, address.parse().unwrap());
        NetworkSpec {
            hosts: hosts.iter().map(host).collect(),
            mtu: 1500,
            congestion_control: None,
            seed: 1,
            realtime: false,
            overlay: None,
        }
    }

    #[test]
    fn a_network_that_cannot_be_is_refused_with_its_reason() {
        for (hosts, reason) in [
            (&[][..], "0 hosts"),
            (&[("", "10.0.0.1")], "cannot be named"),
            (&[("a\0", "10.0.0.1")], "cannot be named"),
            (&[("a/b", "10.0.0.1")], "cannot be named"),
            (&[("a", "10.0.0.1"), ("a", "10.0.0.2")], "two hosts are named a"),
            (&[("a", "10.0.0.1"), ("b", "10.0.0.1")], "address 10.0.0.1"),
            (&[("a", "127.0.0.1")], "cannot have the address"),
            (&[("a", "224.0.0.1")], "cannot have the address"),
            (&[("a", "0.0.0.0")], "cannot have the address"),
            (&[("a", "255.255.255.255")], "cannot have the address"),
            (&[("a", "10.0.0.1"), ("b", "192.168.0.1")], "private range"),
        ] {
            let error = Network::start(spec(hosts)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_ipv6_address_that_cannot_be_is_refused_with_its_reason() {
        for (address6, reason) in [
            ("fd77:6272:6f77::a00:1", "two hosts have the address fd77:6272:6f77::a00:1"),
            ("::1", "cannot have the address"),
            ("::ffff:10.0.0.9", "cannot have the address"),
            ("ff02::1", "cannot have the address"),
            ("fe80::1", "cannot have the address"),
            ("2001:db8::1", "private range"),
        ] {
            let NetworkSpec { hosts, .. } = spec(&[("a", "10.0.0.1"), ("b", "10.0.0.2")]);
            let [a, b] = <[HostSpec; 2]>::try_from(hosts).unwrap();
            let hosts = vec![a, HostSpec { address6: address6.parse().ok(), ..b }];
            let error = Network::start(NetworkSpec { hosts, ..spec(&[]) }).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_overlay_that_cannot_be_is_refused_with_its_reason() {
        let two = [("n1", "10.77.0.1"), ("n2", "10.77.0.2")];
        let refused = |overlay, change: fn(&mut NetworkSpec)| {
            let mut spec = NetworkSpec { overlay: Some(overlay), ..spec(&two) };
            change(&mut spec);
            Network::start(spec).unwrap_err().to_string()
        };
        for (reason, error) in [
            ("at least 626", refused(Overlay::Vxlan, |spec| spec.mtu = 600)),
            (
                "two hosts have the address 10.78.0.1",
                refused(Overlay::Wireguard, |spec| {
                    spec.hosts[1].service = spec.hosts.first().map(HostSpec::service);
                }),
            ),
            (
                "overlap",
                refused(Overlay::Vxlan, |spec| {
                    spec.hosts[0].service = Some(Ipv4Addr::new(10, 77, 0, 3));
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 77, 0, 2));
                }),
            ),
            (
                "two hosts have the address 10.79.0.1 inside of WireGuard",
                refused(Overlay::WireguardVxlan, |spec| {
                    spec.hosts[1].address = Ipv4Addr::new(10, 76, 0, 1);
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 78, 0, 2));
                }),
            ),
            (
                "those on the overlay (10.79.0.0/30) and those inside of WireGuard (10.79.0.0/30) overlap",
                refused(Overlay::WireguardVxlan, |spec| {
                    spec.hosts[0].service = Some(Ipv4Addr::new(10, 79, 0, 2));
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 79, 0, 3));
                }),
            ),
            ("lowest address", refused(Overlay::Openvpn, |spec| spec.hosts.swap(0, 1))),
        ] {
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(HostSpec::new("n1", [10, 77, 0, 7].into()).service(), Ipv4Addr::new(10, 78, 0, 7));
    }

    #[test]
    fn an_impossible_mtu_is_refused() {
        for mtu in [0, 67, 65_522] {
            let spec = NetworkSpec { mtu, ..spec(&[("a", "10.0.0.1")]) };
            assert!(Network::start(spec).unwrap_err().to_string().contains("MTU"));
        }
    }
}
