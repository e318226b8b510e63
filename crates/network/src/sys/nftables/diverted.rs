//! Which packets are diverted, and the sets of addresses that say so.

use std::net::IpAddr;

/// What is diverted: IPv4 and IPv6 packets to one receiver, without those of neighbour discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diverted {
    /// Where they come from.
    pub(crate) from: Addresses,
    /// Where they go.
    pub(crate) to: Addresses,
}

/// Some of all addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// All.
    Any,
    /// These.
    These(Vec<IpAddr>),
    /// All but these.
    AllBut(Vec<IpAddr>),
}

impl Addresses {
    /// What a set is to hold, and whether packets have to be in it; `None` if any will do.
    pub(super) fn listed(&self) -> Option<(&[IpAddr], bool)> {
        match self {
            Addresses::Any => None,
            Addresses::These(all) => Some((all.as_slice(), true)),
            Addresses::AllBut(all) => Some((all.as_slice(), false)),
        }
    }
}

/// IPv4 or IPv6, as sets and rules tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Where packets come from, and where they go.
    pub(super) sets: [&'static str; 2],
    /// The type of the sets' keys, by which nft(8) shows them (`enum datatypes` of nftables).
    pub(super) key_type: u32,
    /// Bytes of an address.
    pub(super) length: u32,
    /// Where a packet has the one it comes from, and the one it goes to.
    pub(super) places: [u32; 2],
    /// As Ethernet says it.
    pub(super) protocol: u16,
}

impl Family {
    pub(super) const V4: Family =
        Family { sets: ["from4", "to4"], key_type: 7, length: 4, places: [12, 16], protocol: libc::ETH_P_IP as u16 };
    pub(super) const V6: Family =
        Family { sets: ["from6", "to6"], key_type: 8, length: 16, places: [8, 24], protocol: libc::ETH_P_IPV6 as u16 };

    /// What is in its sets: each element once.
    pub(super) fn elements(&self, diverted: &Diverted) -> [Vec<Vec<u8>>; 2] {
        [&diverted.from, &diverted.to].map(|side| {
            let octets = |address: &IpAddr| match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            let all = side.listed().map_or(&[] as &[IpAddr], |(all, _)| all);
            let mut all: Vec<Vec<u8>> =
                all.iter().map(octets).filter(|octets| octets.len() == self.length as usize).collect();
            all.sort_unstable();
            all.dedup();
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_into_the_set_of_their_family_and_side() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let diverted = Diverted {
            from: Addresses::AllBut(vec![ip("10.0.0.1"), ip("fd00::1")]),
            to: Addresses::AllBut(vec![ip("10.0.0.3"), ip("10.0.0.2"), ip("10.0.0.3")]),
        };
        let v6 = "fd00::1".parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
        assert_eq!(
            Family::V4.elements(&diverted),
            [vec![vec![10u8, 0, 0, 1]], vec![vec![10, 0, 0, 2], vec![10, 0, 0, 3]]]
        );
        assert_eq!(Family::V6.elements(&diverted), [vec![v6], vec![]]);
        let anyone = Diverted { from: Addresses::Any, to: Addresses::These(vec![ip("fd00::1")]) };
        assert_eq!(Family::V4.elements(&anyone), [Vec::<Vec<u8>>::new(), vec![]]);
        assert_eq!(Family::V6.elements(&anyone).map(|all| all.len()), [0, 1]);
    }
}
