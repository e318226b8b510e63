//! The range of addresses that a lab routes.

use std::net::Ipv4Addr;

use crate::error::NetworkError;

/// The smallest range of addresses that holds all hosts, and at least four addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) address: Ipv4Addr,
    /// Leading bits that all addresses share.
    pub(crate) prefix: u8,
}

/// Hosts farther apart than this would make the lab's route swallow half of the Internet's addresses.
const WIDEST_PREFIX: u8 = 8;

impl Subnet {
    pub(crate) fn of(addresses: impl IntoIterator<Item = Ipv4Addr>) -> Result<Subnet, NetworkError> {
        let bits = addresses.into_iter().map(u32::from);
        let (all, any) = bits.fold((u32::MAX, 0), |(all, any), address| (all & address, any | address));
        let differing = all ^ any;
        let prefix = (differing.leading_zeros() as u8).min(30);
        if prefix < WIDEST_PREFIX {
            let (low, high) = (Ipv4Addr::from(all), Ipv4Addr::from(any));
            return Err(NetworkError::Spec(format!(
                "its addresses are spread over {low} to {high}; choose them from one private range, such as 10.0.0.0/24"
            )));
        }
        Ok(Subnet { address: Ipv4Addr::from(any & (u32::MAX << (32 - prefix))), prefix })
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
    }

    #[test]
    fn hosts_far_apart_are_refused() {
        let far = ["10.0.0.1", "192.168.0.1"].map(|text| text.parse().unwrap());
        assert!(Subnet::of(far).unwrap_err().to_string().contains("private range"));
    }
}
