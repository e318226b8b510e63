//! `mtu`: what a host sends may not be larger.

use brownout_network::Impairment;

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
};
use crate::{
    experiment::{Complaint, MtuFault, checked, mtu},
    hosts::Hosts,
};

/// Packets above a size do not pass the links of the hosts; the sender is told, as by a router.
pub fn fault(entry: &MtuFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    let bytes = mtu(entry.bytes).map_err(|complaint| Complaint { key: "bytes".into(), ..complaint })?;
    let direction = entry.direction;
    Ok(LinkFault {
        kind: "mtu",
        subject: join(&struck),
        text: format!(
            "{} passes in packets of {bytes} bytes at most {}",
            traffic(&struck, direction),
            direction_words(direction)
        ),
        effect: "RTTs stay; TCP is told and sends smaller packets".to_owned(),
        hit: pairs(&struck, direction, hosts),
        impairment: checked(Impairment { mtu: Some(bytes), ..Impairment::NONE })?,
        words: |impairment| impairment.mtu.map_or_else(String::new, |mtu| mtu.to_string()),
    })
}
