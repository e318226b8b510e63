//! `flaky`: what a host sends is lost in part.

use brownout_network::{Impairment, Loss};

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
    provable::provable_share,
};
use crate::{
    experiment::{Complaint, FlakyFault, checked},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) vanishes.
pub fn fault(entry: &FlakyFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    let loss = entry.model()?;
    let impairment = checked(Impairment { loss, ..Impairment::NONE })?;
    provable_share("loss", loss.mean())?;
    let direction = entry.direction;
    let bursts = match loss {
        Loss::None | Loss::Independent(_) => String::new(),
        _ => loss.mean_burst().map_or_else(String::new, |burst| format!(", in bursts of {burst:.1} on average")),
    };
    Ok(LinkFault {
        kind: "flaky",
        subject: join(&struck),
        text: format!(
            "{} of {} is lost{bursts} {}",
            loss.mean(),
            traffic(&struck, direction),
            direction_words(direction)
        ),
        effect: format!("RTTs stay; what is lost to or from {} is sent again by TCP, later", join(&struck)),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.loss.mean().to_string(),
    })
}
