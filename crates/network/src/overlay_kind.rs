//! Which overlays there are, and what each does to packets.

use std::fmt;

use brownout_base::{HostId, Link};

/// A network on top of the emulated one: hosts reach each other by addresses of their own, and what they send is carried in
/// packets of the network below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overlay {
    /// The kernel's VXLAN (RFC 7348) from each host to each other. Nothing is encrypted.
    Vxlan,
    /// WireGuard from each host to each other.
    Wireguard,
    /// VXLAN from each host to each other, carried by WireGuard.
    WireguardVxlan,
    /// OpenVPN: all that hosts send each other goes through the first host.
    Openvpn,
}

/// IPv4, UDP, VXLAN and Ethernet headers.
const VXLAN: u16 = 20 + 8 + 8 + 14;
/// What WireGuard leaves room for: IPv6 and UDP headers, and 32 bytes of its own. Over IPv4 it takes 60.
const WIREGUARD: u16 = 40 + 8 + 32;
const WIREGUARD_TAKES: u32 = 20 + 8 + 32;
/// OpenVPN's data packets over UDP and IPv4 with AES-256-GCM: opcode and peer 4, packet's number 4, tag 16.
const OPENVPN_TAKES: u32 = 20 + 8 + 4 + 4 + 16;
/// Less than this is no network for databases (the least that every IPv4 host has to take, RFC 791).
const LEAST_INSIDE: u16 = 576;
/// What OpenVPN takes as the size of a packet inside.
const OPENVPN_MTU: std::ops::RangeInclusive<u16> = 576..=9_000;
/// One thread carries the packets of all hosts through WireGuard, which has state for each ordered pair.
const MOST_WIREGUARD_HOSTS: usize = 100;

impl Overlay {
    /// All of them.
    pub const ALL: [Overlay; 4] = [Overlay::Vxlan, Overlay::Wireguard, Overlay::WireguardVxlan, Overlay::Openvpn];

    /// The word for it, in files and in records.
    pub const fn word(self) -> &'static str {
        match self {
            Overlay::Vxlan => "vxlan",
            Overlay::Wireguard => "wireguard",
            Overlay::WireguardVxlan => "wireguard+vxlan",
            Overlay::Openvpn => "openvpn",
        }
    }

    /// The one of this word.
    pub fn of(word: &str) -> Option<Overlay> {
        Overlay::ALL.into_iter().find(|overlay| overlay.word() == word)
    }

    /// Whether nobody below can read what it carries.
    pub const fn is_encrypted(self) -> bool {
        !matches!(self, Overlay::Vxlan)
    }

    /// Whether one of its hosts, the first, passes on what others send each other.
    pub const fn has_hub(self) -> bool {
        matches!(self, Overlay::Openvpn)
    }

    /// Whether a packet that arrives twice below arrives twice above: encrypted ones are recognised, and taken once.
    pub const fn passes_copies(self) -> bool {
        matches!(self, Overlay::Vxlan)
    }

    /// The largest IP packet inside, in bytes, where `below` is that of the network below. OpenVPN's is as large as below:
    /// what does not fit is fragmented there, but for TCP, which is told to send less.
    pub const fn mtu(self, below: u16) -> u16 {
        match self {
            Overlay::Vxlan => below.saturating_sub(VXLAN),
            Overlay::Wireguard => below.saturating_sub(WIREGUARD),
            Overlay::WireguardVxlan => below.saturating_sub(WIREGUARD + VXLAN),
            Overlay::Openvpn => below,
        }
    }

    /// Bytes of the IP packet below that carries one of so many bytes inside.
    pub const fn encapsulated(self, inside: u32) -> u32 {
        match self {
            Overlay::Vxlan => inside + VXLAN as u32,
            Overlay::Wireguard => inside + WIREGUARD_TAKES,
            Overlay::WireguardVxlan => inside + VXLAN as u32 + WIREGUARD_TAKES,
            Overlay::Openvpn => inside + OPENVPN_TAKES,
        }
    }

    /// The links below that packets from one host to another pass, in order.
    pub fn route(self, link: Link) -> Vec<Link> {
        let hub = HostId(0);
        if !self.has_hub() || link.from == hub || link.to == hub {
            return vec![link];
        }
        vec![Link { from: link.from, to: hub }, Link { from: hub, to: link.to }]
    }

    /// Refuses, with the reason, a network on which it cannot be.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn check(self, below: u16, hosts: usize) -> Result<(), String> {
        if self.mtu(below) < LEAST_INSIDE {
            let least = LEAST_INSIDE + (u16::MAX - self.mtu(u16::MAX));
            return Err(format!("with an MTU of {below} bytes, {self} has no room; write at least {least}"));
        }
        if self == Overlay::Openvpn && !OPENVPN_MTU.contains(&below) {
            let most = *OPENVPN_MTU.end();
            return Err(format!("openvpn takes packets of up to {most} bytes, and the MTU is {below}; write less"));
        }
        let through_wireguard = matches!(self, Overlay::Wireguard | Overlay::WireguardVxlan);
        if through_wireguard && hosts > MOST_WIREGUARD_HOSTS {
            return Err(format!("{self} has room for {MOST_WIREGUARD_HOSTS} hosts, and there are {hosts}"));
        }
        Ok(())
    }
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_inside_are_as_large_as_fits() {
        for (overlay, inside, below) in [
            (Overlay::Vxlan, 1_450, 1_500),
            (Overlay::Wireguard, 1_420, 1_480),
            (Overlay::WireguardVxlan, 1_370, 1_480),
        ] {
            assert_eq!((overlay.mtu(1_500), overlay.encapsulated(inside.into())), (inside, below), "{overlay}");
        }
        // The MSS that OpenVPN clamps TCP to is 1388: 1,428 bytes with headers, 1,480 below.
        assert_eq!((Overlay::Openvpn.mtu(1_500), Overlay::Openvpn.encapsulated(1_428)), (1_500, 1_480));
    }

    #[test]
    fn every_overlay_is_found_by_its_word() {
        for overlay in Overlay::ALL {
            assert_eq!(Overlay::of(&overlay.to_string()), Some(overlay));
        }
        assert_eq!(Overlay::of("ipsec"), None);
    }

    #[test]
    fn a_route_with_a_hub_passes_it_and_no_other_does() {
        let link = |from, to| Link { from: HostId(from), to: HostId(to) };
        for overlay in [Overlay::Vxlan, Overlay::Wireguard, Overlay::WireguardVxlan] {
            assert_eq!(overlay.route(link(1, 2)), [link(1, 2)]);
        }
        assert_eq!(Overlay::Openvpn.route(link(1, 2)), [link(1, 0), link(0, 2)]);
        assert_eq!(Overlay::Openvpn.route(link(0, 2)), [link(0, 2)]);
        assert_eq!(Overlay::Openvpn.route(link(2, 0)), [link(2, 0)]);
    }

    #[test]
    fn networks_without_room_are_refused_with_what_would_do() {
        assert!(Overlay::ALL.into_iter().all(|overlay| overlay.check(1_500, 4).is_ok()));
        let refused = |overlay: Overlay, mtu, hosts| overlay.check(mtu, hosts).unwrap_err();
        assert!(refused(Overlay::WireguardVxlan, 700, 4).contains("at least 706"));
        assert!(refused(Overlay::Openvpn, 65_000, 4).contains("9000"));
        assert!(refused(Overlay::Wireguard, 1_500, 101).contains("100 hosts"));
        assert!(Overlay::WireguardVxlan.check(706, 4).is_ok());
    }
}
