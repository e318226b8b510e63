//! Which host packets are for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brownout_base::HostId;

/// Which host has an address; sorted by address.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    v4: Vec<(Ipv4Addr, HostId)>,
    v6: Vec<(Ipv6Addr, HostId)>,
    /// Who has all others.
    otherwise: Option<HostId>,
}

impl Routes {
    /// To these addresses, and to `otherwise` for all others.
    pub(crate) fn new(addresses: impl IntoIterator<Item = (IpAddr, HostId)>, otherwise: Option<HostId>) -> Self {
        let mut routes = Routes { otherwise, ..Routes::default() };
        for (address, host) in addresses {
            match address {
                IpAddr::V4(address) => routes.v4.push((address, host)),
                IpAddr::V6(address) => routes.v6.push((address, host)),
            }
        }
        routes.v4.sort_unstable();
        routes.v6.sort_unstable();
        routes
    }

    #[inline]
    pub(in crate::emulator) fn find(&self, address: IpAddr) -> Option<HostId> {
        let found = match address {
            IpAddr::V4(address) => {
                let index = self.v4.binary_search_by_key(&address, |route| route.0).ok();
                index.map(|index| self.v4[index].1)
            }
            IpAddr::V6(address) => {
                let index = self.v6.binary_search_by_key(&address, |route| route.0).ok();
                index.map(|index| self.v6[index].1)
            }
        };
        found.or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_their_host_and_all_others_outside() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let addresses = [("10.0.0.2", 1), ("10.0.0.1", 0), ("fd00::1", 0), ("10.9.0.1", 0)];
        let addresses = addresses.map(|(address, host)| (ip(address), HostId(host)));
        let inside = Routes::new(addresses, None);
        let open = Routes::new(addresses, Some(HostId(2)));
        for (address, host) in [("10.9.0.1", Some(0)), ("10.0.0.2", Some(1)), ("fd00::1", Some(0)), ("10.0.0.3", None)]
        {
            assert_eq!(inside.find(ip(address)), host.map(HostId), "{address}");
            assert_eq!(open.find(ip(address)), Some(HostId(host.unwrap_or(2))), "{address}");
        }
        assert_eq!((inside.find(ip("fd00::2")), open.find(ip("fd00::2"))), (None, Some(HostId(2))));
    }
}
