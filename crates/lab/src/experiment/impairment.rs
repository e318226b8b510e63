//! Impairments of links, as written in `link:` of a fault and in `network.links` of a topology.

use brownout_network::{Chance, Distribution, Impairment, Loss, QueueLimit, RateLimit, Reorder};
use brownout_units::{BitRate, Bytes, Count, Delay, Share};
use serde::Deserialize;

use super::{
    Complaint,
    choice::{Names, QueueChoice},
};

/// Links from some hosts (or sites) to others, and what is wrong with them; one way unless `both`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkEntry {
    /// The sending hosts or sites. Required.
    pub from: Names,
    /// The receiving hosts or sites. Required.
    pub to: Names,
    /// The same the other way round. Default: false.
    #[serde(default)]
    pub both: bool,
    /// One-way delay. Default: 0.
    #[serde(default)]
    pub delay: Delay,
    /// Default: 0.
    #[serde(default)]
    pub jitter: Delay,
    /// `uniform`, `normal`, `pareto` or `paretonormal`. Default: uniform.
    #[serde(default, deserialize_with = "super::choice::text")]
    pub distribution: Distribution,
    /// Of successive packets' jitter. Default: 0%.
    #[serde(default)]
    pub delay_correlation: Share,
    /// Share of packets lost. Default: 0%.
    pub loss: Option<Share>,
    /// Of successive packets' loss. Default: 0%.
    #[serde(default)]
    pub loss_correlation: Share,
    /// See `flaky`. Default: none.
    pub gilbert_elliott: Option<GilbertElliottSection>,
    /// See `flaky`. Default: none.
    pub markov: Option<MarkovSection>,
    /// Share of packets that come twice. Default: 0%.
    #[serde(default)]
    pub duplicate: Share,
    /// Share of packets with a flipped bit. Default: 0%.
    #[serde(default)]
    pub corrupt: Share,
    /// Share of packets that skip the delay. Default: 0%.
    #[serde(default)]
    pub reorder: Share,
    /// Only every so many packets may skip the delay. Default: 1.
    pub gap: Option<Count>,
    /// Bits per second. Default: no limit.
    pub rate: Option<BitRate>,
    /// What may wait before the bottleneck: bytes or time. Default: 100ms, and 32KiB at least.
    pub queue: Option<QueueChoice>,
    /// Bytes that each packet costs beside its own. Default: 0.
    #[serde(default)]
    pub overhead: Count,
    /// The largest IP packet that passes, bytes. Default: the network's.
    pub mtu: Option<Count>,
}

impl LinkEntry {
    /// The impairment of each of its links.
    pub fn impairment(&self) -> Result<Impairment, Complaint> {
        for (key, idle) in [
            ("queue", self.queue.is_some() && self.rate.is_none()),
            ("overhead", self.overhead != Count(0) && self.rate.is_none()),
            ("loss-correlation", self.loss_correlation != Share::ZERO && self.loss.is_none()),
            ("gap", self.gap.is_some() && self.reorder == Share::ZERO),
        ] {
            if idle {
                let with =
                    if matches!(key, "queue" | "overhead") { "rate" } else { key.trim_end_matches("-correlation") };
                let with = if key == "gap" { "reorder" } else { with };
                return Err(Complaint::at(
                    key,
                    format!("this has no effect without {with}; add {with}, or leave this out"),
                ));
            }
        }
        let rate = self.rate.map(|rate| limit(rate, self.queue, self.overhead)).transpose()?;
        let impairment = Impairment {
            delay: self.delay,
            jitter: self.jitter,
            distribution: self.distribution,
            delay_correlation: self.delay_correlation,
            loss: loss(self.loss, self.loss_correlation, self.gilbert_elliott, self.markov)?.unwrap_or_default(),
            duplicate: Chance { share: self.duplicate, correlation: Share::ZERO },
            corrupt: Chance { share: self.corrupt, correlation: Share::ZERO },
            reorder: Reorder { share: self.reorder, correlation: Share::ZERO, gap: gap(self.gap.unwrap_or(Count(1)))? },
            rate,
            mtu: self.mtu.map(mtu).transpose()?,
            cut: None,
        };
        checked(impairment)
    }
}

/// `gilbert-elliott:`, in the letters of netem's `loss gemodel`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliottSection {
    /// From the good state to the bad one, per packet. Required.
    pub p: Share,
    /// From the bad state to the good one, per packet. Required.
    pub r: Share,
    /// Loss in the bad state: netem's 1 − h. Default: 100%.
    #[serde(default = "all")]
    pub bad_loss: Share,
    /// Loss in the good state: netem's 1 − k. Default: 0%.
    #[serde(default)]
    pub good_loss: Share,
}

/// `markov:`, in the letters of netem's `loss state`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MarkovSection {
    /// From good reception to a burst of losses. Required.
    pub p13: Share,
    /// From a burst of losses to good reception. Default: 100% − p13 (as in netem).
    pub p31: Option<Share>,
    /// From a burst of losses to good reception within it. Default: 0%.
    #[serde(default)]
    pub p32: Share,
    /// From there back to the losses. Default: 100%.
    #[serde(default = "all")]
    pub p23: Share,
    /// From good reception to one lost packet. Default: 0%.
    #[serde(default)]
    pub p14: Share,
}

/// One of the ways in which loss can be written.
pub(super) fn loss(
    share: Option<Share>,
    correlation: Share,
    gilbert_elliott: Option<GilbertElliottSection>,
    markov: Option<MarkovSection>,
) -> Result<Option<Loss>, Complaint> {
    if correlation != Share::ZERO && share.is_none() && (gilbert_elliott.is_some() || markov.is_some()) {
        return Err(Complaint::at("correlation", "a burst model has a correlation of its own; leave this out"));
    }
    match (share, gilbert_elliott, markov) {
        (None, None, None) => Ok(None),
        (Some(share), None, None) if correlation == Share::ZERO => Ok(Some(Loss::Independent(share))),
        (Some(share), None, None) => Ok(Some(Loss::Correlated { share, correlation })),
        (None, Some(model), None) => Ok(Some(Loss::GilbertElliott {
            p: model.p,
            r: model.r,
            one_minus_h: model.bad_loss,
            one_minus_k: model.good_loss,
        })),
        (None, None, Some(model)) => Ok(Some(Loss::Markov {
            p13: model.p13,
            p31: model.p31.unwrap_or_else(|| Share::new(1.0 - model.p13.fraction()).unwrap_or_default()),
            p32: model.p32,
            p23: model.p23,
            p14: model.p14,
        })),
        _ => Err(Complaint::at("loss", "loss, gilbert-elliott and markov cannot be combined; write one of them")),
    }
}

/// The queue of slow links: 100 ms of them would not hold a few packets.
const LEAST_QUEUE: Bytes = Bytes(32 << 10);

/// A bottleneck. Its queue, unless said: 100 ms, and 32 KiB at least.
pub fn limit(rate: BitRate, queue: Option<QueueChoice>, overhead: Count) -> Result<RateLimit, Complaint> {
    let overhead_bytes = i32::try_from(overhead.0).ok().filter(|bytes| *bytes <= 65_535);
    let overhead_bytes = overhead_bytes
        .ok_or_else(|| Complaint::at("overhead", format!("{overhead} bytes for each packet; write up to 65_535")))?;
    let queue = match queue {
        Some(queue) => queue.limit(),
        None if rate.bits_per_second() < LEAST_QUEUE.0 * 8 * 10 => QueueLimit::Bytes(LEAST_QUEUE),
        None => QueueLimit::Time(Delay::from_ms(100)),
    };
    Ok(RateLimit { rate, queue, overhead_bytes })
}

/// As netem's gap: every so many packets.
pub fn gap(gap: Count) -> Result<u32, Complaint> {
    u32::try_from(gap.0)
        .ok()
        .filter(|gap| *gap >= 1)
        .ok_or_else(|| Complaint::at("gap", format!("a gap of {gap} is not possible; write 1 or more")))
}

/// The largest packet.
pub fn mtu(bytes: Count) -> Result<u16, Complaint> {
    u16::try_from(bytes.0)
        .ok()
        .filter(|mtu| *mtu >= 576)
        .ok_or_else(|| Complaint::at("mtu", format!("an MTU of {bytes} bytes is not possible; write 576 to 65_535")))
}

/// Refuses what makes no sense.
pub fn checked(impairment: Impairment) -> Result<Impairment, Complaint> {
    impairment.check().map_err(|message| Complaint::at("", message))?;
    Ok(impairment)
}

pub(super) fn all() -> Share {
    Share::ALL
}
