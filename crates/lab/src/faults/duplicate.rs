//! `duplicate`: what a host sends comes twice in part.

use brownout_network::{Chance, Impairment};

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
    provable::{provable, provable_share},
};
use crate::{
    experiment::{Complaint, ShareFault, checked},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) arrives twice.
pub fn fault(entry: &ShareFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    provable_share("share", entry.share)?;
    let duplicate = Chance { share: entry.share, correlation: entry.correlation };
    let impairment = checked(Impairment { duplicate, ..Impairment::NONE })?;
    provable(&impairment)?;
    let direction = entry.direction;
    Ok(LinkFault {
        kind: "duplicate",
        subject: join(&struck),
        text: format!("{} of {} comes twice {}", entry.share, traffic(&struck, direction), direction_words(direction)),
        effect: format!("RTTs stay; TCP at the far end of {} throws the copies away", join(&struck)),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.duplicate.share.to_string(),
    })
}
