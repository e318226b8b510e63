//! `mtu`: a host can send no larger packets than this.

use brownout_network::Impairment;

use super::links::{LinkFault, Struck};
use crate::{
    experiment::{Complaint, MtuFault, mtu},
    hosts::Hosts,
};

/// Packets above a size do not pass the links of the hosts; the sender is told, as by a router.
pub fn fault(entry: &MtuFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let bytes = mtu(entry.bytes).map_err(|complaint| Complaint { key: "bytes".into(), ..complaint })?;
    let struck = Struck { names: &entry.host, direction: entry.direction, hosts };
    LinkFault::of_hosts("mtu", struck, Impairment { mtu: Some(bytes), ..Impairment::NONE }, |_, traffic| {
        let effect = "RTTs do not change; TCP is notified and sends smaller packets".to_owned();
        (format!("{traffic} passes in packets of {bytes} bytes at most"), effect)
    })
}
