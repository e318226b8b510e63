//! Limits of what can be injected and proven; anything beyond is refused.

use brownout_network::{Impairment, Loss, RateLimit, Reorder};
use brownout_units::{BitRate, Bytes, Delay, Share};

use super::expected::{LEAST_SHARE, queue_bytes};
use crate::experiment::Complaint;

/// If more packets skip a delay, it is the others that are out of order.
const MOST_REORDERED: f64 = 0.4;
/// What a burst measures on this machine: less takes minutes to show, more cannot be distinguished from no limit.
const RATES: std::ops::RangeInclusive<u64> = 64_000..=500_000_000;
/// Room for a burst long enough to measure.
const LEAST_QUEUE: Bytes = Bytes(20 << 10);
/// Shorter delays drown in the noise of probes on a busy machine; longer ones than any time-out tell nothing more.
pub const DELAYS: std::ops::RangeInclusive<Delay> = Delay::from_ns(100_000)..=Delay::from_secs(60);

/// Refuses what could not be put in force and proven; the keys are those of `link:`.
pub fn provable(impairment: &Impairment) -> Result<(), Complaint> {
    if impairment.delay != Delay::ZERO {
        provable_delay("delay", impairment.delay)?;
    }
    let loss = impairment.loss.mean();
    if impairment.loss != Loss::None {
        provable_share("loss", loss)?;
    }
    for (key, chance) in [("duplicate", impairment.duplicate), ("corrupt", impairment.corrupt)] {
        if chance.share != Share::ZERO {
            provable_share(key, chance.share)?;
        }
        if chance.correlation == Share::ALL {
            return Err(Complaint::at(
                key,
                "with a correlation of 100% it happens to all packets or to none; write less",
            ));
        }
    }
    provable_reorder(&impairment.reorder)?;
    if let Some(limit) = &impairment.rate {
        provable_rate(limit)?;
    }
    Ok(())
}

fn provable_reorder(reorder: &Reorder) -> Result<(), Complaint> {
    if reorder.share == Share::ZERO {
        return Ok(());
    }
    let Some(mean) = reorder.mean() else {
        return Err(Complaint::at(
            "gap",
            "with both a gap and a correlation the share that overtakes is unknown; write one of them",
        ));
    };
    provable_share("reorder", mean)?;
    if mean.fraction() > MOST_REORDERED {
        let message = format!("if {mean} skip the delay, it is the others that are out of order; write up to 40%");
        return Err(Complaint::at("reorder", message));
    }
    if reorder.correlation == Share::ALL {
        return Err(Complaint::at("correlation", "with 100% all packets overtake or none; write less"));
    }
    Ok(())
}

fn provable_rate(limit: &RateLimit) -> Result<(), Complaint> {
    if !RATES.contains(&limit.rate.bits_per_second()) {
        let bits = |bits: &u64| BitRate::new(*bits).map_or_else(String::new, |rate| rate.to_string());
        let (least, most) = (bits(RATES.start()), bits(RATES.end()));
        return Err(Complaint::at("rate", format!("{} cannot be proven; write {least} to {most}", limit.rate)));
    }
    if queue_bytes(limit) < LEAST_QUEUE.0 {
        let message = format!(
            "a queue of {} is too short for the bursts that prove a rate; write at least {LEAST_QUEUE}",
            brownout_units::Bytes(queue_bytes(limit))
        );
        return Err(Complaint::at("queue", message));
    }
    Ok(())
}

/// Refuses delays that could not be proven.
pub fn provable_delay(key: &'static str, delay: Delay) -> Result<(), Complaint> {
    if delay == Delay::ZERO {
        return Err(Complaint::at(
            key,
            "a delay of 0 does nothing, and a fault that does nothing proves nothing; write a delay above 0, or leave \
             the fault out for an A/A run",
        ));
    }
    if !DELAYS.contains(&delay) {
        let message = format!(
            "{delay} is outside of what can be injected and proven; write {} to {}",
            DELAYS.start(),
            DELAYS.end()
        );
        return Err(Complaint::at(key, message));
    }
    Ok(())
}

/// Refuses shares that do nothing, or so little that nobody could tell.
pub fn provable_share(key: &'static str, share: Share) -> Result<(), Complaint> {
    if share == Share::ZERO {
        let message = format!("a {key} of 0% does nothing, and a fault that does nothing proves nothing; write more");
        return Err(Complaint::at(key, message));
    }
    if share.fraction() < LEAST_SHARE {
        let least = Share::new(LEAST_SHARE).unwrap_or_default();
        return Err(Complaint::at(key, format!("{share} is too little to be proven; write at least {least}")));
    }
    Ok(())
}
