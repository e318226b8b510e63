//! `reorder`: what a host sends overtakes itself in part.

use brownout_network::{Impairment, Reorder};

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
    provable::{provable, provable_delay, provable_share},
};
use crate::{
    experiment::{Complaint, ReorderFault, checked, gap},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) skips the delay that all others have.
pub fn fault(entry: &ReorderFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    provable_share("share", entry.share)?;
    provable_delay("delay", entry.delay)?;
    let reorder = Reorder { share: entry.share, correlation: entry.correlation, gap: gap(entry.gap)? };
    let impairment = checked(Impairment { delay: entry.delay, reorder, ..Impairment::NONE })?;
    provable(&impairment).map_err(|complaint| match complaint.key.as_ref() {
        "reorder" => Complaint { key: "share".into(), ..complaint },
        _ => complaint,
    })?;
    let direction = entry.direction;
    let every = if reorder.gap > 1 { format!(" every {}th packet at most,", reorder.gap) } else { String::new() };
    Ok(LinkFault {
        kind: "reorder",
        subject: join(&struck),
        text: format!(
            "{} is {} late, but {}{every} overtakes {}",
            traffic(&struck, direction),
            entry.delay,
            entry.share,
            direction_words(direction)
        ),
        effect: format!("most RTTs to and from {} grow as with slow, the others stay", join(&struck)),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.reorder.share.to_string(),
    })
}
