//! Sites, the distances between them, and what carries packets over them.

use std::collections::BTreeMap;

use brownout_network::overlay::Overlay;
use brownout_units::{Count, Delay, Share};
use serde::Deserialize;

use super::{LinkEntry, choice::Names};

/// One of `network.sites`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SiteSection {
    /// Its hosts, all in one rack. The host `load` may stand here, too.
    pub hosts: Option<Names>,
    /// Its hosts by rack. Default: one rack.
    pub racks: BTreeMap<String, Names>,
}

/// Ready-made topologies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Nothing lies between hosts but what the machine itself takes.
    OneHost,
    /// 0.1 ms one way between all hosts, as in one building.
    Lan,
    /// Three sites: us-east, eu-west, ap-northeast; nodes in turn, the load in us-east.
    Wan,
}

/// What carries the packets of databases and loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum OverlayChoice {
    /// Nothing but the emulated network.
    #[default]
    #[serde(rename = "none")]
    None,
    /// The kernel's VXLAN.
    #[serde(rename = "vxlan")]
    Vxlan,
    /// WireGuard.
    #[serde(rename = "wireguard")]
    Wireguard,
    /// VXLAN inside of WireGuard.
    #[serde(rename = "wireguard+vxlan")]
    WireguardVxlan,
    /// OpenVPN, with node n1 as the server.
    #[serde(rename = "openvpn")]
    Openvpn,
}

impl OverlayChoice {
    /// The overlay; none, if there is to be none.
    pub fn kind(self) -> Option<Overlay> {
        match self {
            OverlayChoice::None => None,
            OverlayChoice::Vxlan => Some(Overlay::Vxlan),
            OverlayChoice::Wireguard => Some(Overlay::Wireguard),
            OverlayChoice::WireguardVxlan => Some(Overlay::WireguardVxlan),
            OverlayChoice::Openvpn => Some(Overlay::Openvpn),
        }
    }
}

/// Half of a LAN's usual ping.
const LAN_DELAY: Delay = Delay::from_ns(100_000);
/// One-way delays of `wan`: half of the round-trip times, rounded to whole milliseconds, that public measurements between
/// cloud regions in Virginia, Ireland and Tokyo show (about 68, 146 and 202 ms), and 1 % of jitter.
const WAN: [(&str, &str, u64); 3] =
    [("us-east", "eu-west", 34), ("us-east", "ap-northeast", 73), ("eu-west", "ap-northeast", 101)];
/// Within one of its sites.
const WITHIN_SITE: Delay = Delay::from_ns(250_000);

impl Topology {
    /// Sites and links of this topology for these hosts; the first is the load's.
    pub fn expand(self, nodes: &[String], load: &str) -> (BTreeMap<String, SiteSection>, Vec<LinkEntry>) {
        let all: Vec<String> = nodes.iter().cloned().chain([load.to_owned()]).collect();
        match self {
            Topology::OneHost => (BTreeMap::new(), Vec::new()),
            Topology::Lan => (BTreeMap::new(), vec![link(all.clone(), all, LAN_DELAY, Delay::ZERO, false)]),
            Topology::Wan => {
                let names = ["us-east", "eu-west", "ap-northeast"];
                let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for (node, site) in nodes.iter().zip(names.iter().cycle()) {
                    hosts.entry((*site).to_owned()).or_default().push(node.clone());
                }
                hosts.entry(names[0].to_owned()).or_default().push(load.to_owned());
                let mut links: Vec<LinkEntry> = hosts
                    .values()
                    .filter(|hosts| hosts.len() > 1)
                    .map(|hosts| link(hosts.clone(), hosts.clone(), WITHIN_SITE, Delay::ZERO, false))
                    .collect();
                for (from, to, ms) in WAN {
                    if hosts.contains_key(from) && hosts.contains_key(to) {
                        let (one, other) = (vec![from.to_owned()], vec![to.to_owned()]);
                        links.push(link(one, other, Delay::from_ms(ms), Delay::from_ns(ms * 10_000), true));
                    }
                }
                let site = |hosts| SiteSection { hosts: Some(Names(hosts)), racks: BTreeMap::new() };
                (hosts.into_iter().map(|(name, hosts)| (name, site(hosts))).collect(), links)
            }
        }
    }
}

fn link(from: Vec<String>, to: Vec<String>, delay: Delay, jitter: Delay, both: bool) -> LinkEntry {
    LinkEntry {
        from: Names(from),
        to: Names(to),
        both,
        delay,
        jitter,
        distribution: Default::default(),
        delay_correlation: Share::ZERO,
        loss: None,
        loss_correlation: Share::ZERO,
        gilbert_elliott: None,
        markov: None,
        duplicate: Share::ZERO,
        corrupt: Share::ZERO,
        reorder: Share::ZERO,
        gap: None,
        rate: None,
        queue: None,
        overhead: Count(0),
        mtu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_is_written_as_it_is_recorded() {
        for overlay in Overlay::ALL {
            let choice: OverlayChoice = serde_json::from_str(&format!("\"{overlay}\"")).unwrap();
            assert_eq!(choice.kind(), Some(overlay));
        }
        assert_eq!(serde_json::from_str::<OverlayChoice>("\"none\"").unwrap().kind(), None);
        assert!(serde_json::from_str::<OverlayChoice>("\"ipsec\"").is_err());
    }
}
