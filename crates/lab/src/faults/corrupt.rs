//! `corrupt`: what a host sends is damaged in part.

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

/// A share of the packets that the hosts send (or are sent) arrives with one bit flipped.
pub fn fault(entry: &ShareFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    provable_share("share", entry.share)?;
    let corrupt = Chance { share: entry.share, correlation: entry.correlation };
    let impairment = checked(Impairment { corrupt, ..Impairment::NONE })?;
    provable(&impairment)?;
    let direction = entry.direction;
    Ok(LinkFault {
        kind: "corrupt",
        subject: join(&struck),
        text: format!(
            "{} of {} arrives with a flipped bit {}",
            entry.share,
            traffic(&struck, direction),
            direction_words(direction)
        ),
        effect: format!(
            "RTTs stay; checksums catch it, and what is damaged on the way to or from {} is as good as lost",
            join(&struck)
        ),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.corrupt.share.to_string(),
    })
}
