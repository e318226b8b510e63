//! The ranges of addresses that a lab routes, and the addresses that follow from a host's IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::NetworkError;

/// The lab's own range: `fd`, and 40 bits of our choice (a unique local address, RFC 4193 section 3.1).
const LAB6: [u16; 3] = [0xfd77, 0x6272, 0x6f77];

/// The IPv6 address beside `address`: `fd77:6272:6f77::` with the 32 bits of the IPv4 address at its end.
pub(crate) fn derived(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    Ipv6Addr::new(LAB6[0], LAB6[1], LAB6[2], 0, 0, 0, high, low)
}

/// The address that the host at `address` has on an overlay: in a range of its own, with the same end. 10.77.0.1 is 10.78.0.1
/// there.
pub const fn service_address(address: Ipv4Addr) -> Ipv4Addr {
    with_end_of(78, address)
}

/// The address that the host at `address` has inside of WireGuard, where that carries another overlay.
pub(crate) const fn carrier_address(address: Ipv4Addr) -> Ipv4Addr {
    with_end_of(79, address)
}

const fn with_end_of(range: u8, address: Ipv4Addr) -> Ipv4Addr {
    let [.., c, d] = address.octets();
    Ipv4Addr::new(10, range, c, d)
}

/// The smallest range of addresses that holds all hosts, and at least four addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) address: IpAddr,
    /// Leading bits that all addresses share.
    pub(crate) prefix: u8,
}

/// What differs between the two families.
struct Family {
    /// Bits of an address.
    width: u32,
    /// Hosts farther apart than this would make the lab's route swallow a good part of all addresses there are.
    widest_prefix: u32,
    address: fn(u128) -> IpAddr,
    advice: &'static str,
}

const V4: Family =
    Family { width: 32, widest_prefix: 8, address: |bits| Ipv4Addr::from(bits as u32).into(), advice: "10.0.0.0/24" };

const V6: Family = Family {
    width: 128,
    widest_prefix: 32,
    address: |bits| Ipv6Addr::from(bits).into(),
    advice: "fd77:6272:6f77::/48",
};

impl Subnet {
    /// Of all IPv4 addresses of a network.
    pub(crate) fn of(addresses: impl IntoIterator<Item = Ipv4Addr>) -> Result<Subnet, NetworkError> {
        V4.smallest(addresses.into_iter().map(|address| u32::from(address).into()))
    }

    /// Whether an IPv4 address may be in both.
    pub(crate) fn overlaps(self, other: Subnet) -> bool {
        let (IpAddr::V4(one), IpAddr::V4(two)) = (self.address, other.address) else { return false };
        let apart = 32 - u32::from(self.prefix.min(other.prefix));
        u32::from(one).checked_shr(apart) == u32::from(two).checked_shr(apart)
    }

    /// Of all its IPv6 addresses.
    pub(crate) fn of6(addresses: impl IntoIterator<Item = Ipv6Addr>) -> Result<Subnet, NetworkError> {
        V6.smallest(addresses.into_iter().map(u128::from))
    }
}

impl Family {
    fn smallest(&self, addresses: impl Iterator<Item = u128>) -> Result<Subnet, NetworkError> {
        let ones = u128::MAX >> (128 - self.width);
        let (all, any) = addresses.fold((ones, 0), |(all, any), address| (all & address, any | address));
        let prefix = ((all ^ any).leading_zeros() - (128 - self.width)).min(self.width - 2);
        if prefix < self.widest_prefix {
            let (low, high) = ((self.address)(all), (self.address)(any));
            return Err(NetworkError::Spec(format!(
                "its addresses are spread over {low} to {high}; choose them from one private range, such as {}",
                self.advice
            )));
        }
        let network = any & (ones << (self.width - prefix)) & ones;
        Ok(Subnet { address: (self.address)(network), prefix: prefix as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_the_smallest_that_holds_all_hosts() {
        for (addresses, subnet) in [
            (&["10.77.0.1"][..], "10.77.0.0/30"),
            (&["10.77.0.1", "10.77.0.2"], "10.77.0.0/30"),
            (&["10.77.0.1", "10.77.0.2", "10.77.0.9"], "10.77.0.0/28"),
            (&["10.77.0.1", "10.77.0.255"], "10.77.0.0/24"),
            (&["10.1.0.1", "10.200.0.1"], "10.0.0.0/8"),
        ] {
            let found = Subnet::of(addresses.iter().map(|text| text.parse().unwrap())).unwrap();
            assert_eq!(format!("{}/{}", found.address, found.prefix), subnet);
        }
        for (addresses, subnet) in [
            (&["fd77:6272:6f77::a4d:1"][..], "fd77:6272:6f77::a4d:0/126"),
            (&["fd77:6272:6f77::a4d:1", "fd77:6272:6f77::a4d:9"], "fd77:6272:6f77::a4d:0/124"),
            (&["fd77::1", "fd77:0:ffff::1"], "fd77::/32"),
        ] {
            let found = Subnet::of6(addresses.iter().map(|text| text.parse().unwrap())).unwrap();
            assert_eq!(format!("{}/{}", found.address, found.prefix), subnet);
        }
    }

    #[test]
    fn ranges_overlap_where_one_holds_the_other() {
        let subnet = |text: &str| {
            let (address, prefix) = text.split_once('/').unwrap();
            Subnet { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() }
        };
        for (one, two, overlap) in [
            ("10.77.0.0/24", "10.78.0.0/24", false),
            ("10.77.0.0/24", "10.77.0.0/30", true),
            ("10.77.0.0/30", "10.77.0.4/30", false),
            ("10.0.0.0/8", "10.78.0.0/24", true),
        ] {
            assert_eq!((subnet(one).overlaps(subnet(two)), subnet(two).overlaps(subnet(one))), (overlap, overlap));
        }
    }

    #[test]
    fn hosts_far_apart_are_refused() {
        let far = ["10.0.0.1", "192.168.0.1"].map(|text| text.parse().unwrap());
        assert!(Subnet::of(far).unwrap_err().to_string().contains("private range"));
        let far = ["fd77::1", "fd78::1"].map(|text| text.parse().unwrap());
        assert!(Subnet::of6(far).unwrap_err().to_string().contains("fd77:6272:6f77::/48"));
    }

    #[test]
    fn an_ipv6_address_ends_in_the_ipv4_address() {
        assert_eq!(derived(Ipv4Addr::new(10, 77, 0, 9)).to_string(), "fd77:6272:6f77::a4d:9");
    }

    #[test]
    fn addresses_on_overlays_end_as_below() {
        let below = Ipv4Addr::new(10, 77, 3, 250);
        assert_eq!(service_address(below), Ipv4Addr::new(10, 78, 3, 250));
        assert_eq!(carrier_address(below), Ipv4Addr::new(10, 79, 3, 250));
    }
}
