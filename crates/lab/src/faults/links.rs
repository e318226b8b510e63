//! What all faults of links have in common: an impairment on some ordered pairs, none on the others.

use std::collections::BTreeSet;

use brownout_network::{
    Change, Cut, Impairment, ImpairmentGuard, Link, Loss, QueueLimit, RateLimit, Reorder, TrainSpec,
};
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::{BitRate, Bytes, Delay, Share};

use super::{Fault, Healing, InForce, Needs, Reach, TrainNeed, join, s};
use crate::{
    LabError,
    experiment::{Complaint, Direction},
    hosts::Hosts,
};

/// Half of the least tolerance of a delay: what scheduling noise can add to a median on a busy two-core machine.
const NOISE: Delay = Delay::from_ms(1);
/// The share of a delay that may be missing or too much.
const TOLERANCE: f64 = 0.02;
/// The median of n uniform values within ± J has a standard deviation of J ÷ √n; with the 90 probes that the plan asks
/// for, this is 2.8 of them, and more for the other distributions, which are denser around their middle.
const JITTER_TOLERANCE: f64 = 0.3;
/// Of a spread: its ends are known worse than its middle, and the distributions have tails.
const SPREAD_TOLERANCE: f64 = 0.35;
/// What a busy machine adds to a spread.
const SPREAD_NOISE: Delay = Delay::from_ns(500_000);
/// A smaller spread is not told from that.
const LEAST_SPREAD: Delay = Delay::from_ms(2);
/// Of a share, beside the error of counting: the probes' own losses and what bursts add.
const SHARE_TOLERANCE: f64 = 0.1;
/// Shares below this are not told from none by anyone.
const LEAST_SHARE: f64 = 0.0005;
/// Of a rate, measured by bursts among other traffic.
const RATE_TOLERANCE: f64 = 0.1;
/// If more packets skip a delay, it is the others that are out of order.
const MOST_REORDERED: f64 = 0.4;
/// What a burst measures on this machine: less takes minutes to show, more is not told from no limit at all.
const RATES: std::ops::RangeInclusive<u64> = 64_000..=500_000_000;
/// Room for a burst long enough to measure.
const LEAST_QUEUE: Bytes = Bytes(20 << 10);
/// Shorter delays drown in the noise of probes on a busy machine; longer ones than any time-out tell nothing more.
pub const DELAYS: std::ops::RangeInclusive<Delay> = Delay::from_ns(100_000)..=Delay::from_secs(60);

/// An impairment on some ordered pairs of hosts.
#[derive(Debug, Clone)]
pub struct LinkFault {
    /// The word in the file.
    pub kind: &'static str,
    /// The hosts in words.
    pub subject: String,
    /// What it does.
    pub text: String,
    /// What that means.
    pub effect: String,
    /// The pairs it hits, from → to.
    pub hit: Vec<(String, String)>,
    /// What it does to each of them.
    pub impairment: Impairment,
    /// Words for another magnitude: of a ramp's steps.
    pub words: fn(&Impairment) -> String,
}

impl Fault for LinkFault {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn subject(&self) -> String {
        self.subject.clone()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn effect(&self) -> String {
        self.effect.clone()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let asked = asked(&self.impairment);
        let mut all = Vec::new();
        for (from, to) in hosts.pairs() {
            let hit = self.hit.iter().any(|(hit_from, hit_to)| *hit_from == from.name && *hit_to == to.name);
            all.extend(asked.iter().map(|(quantity, asked, tolerance)| Expectation {
                subject: Subject::pair(from.name.clone(), to.name.clone()),
                quantity: *quantity,
                hit,
                asked: if hit { *asked } else { 0.0 },
                tolerance: *tolerance,
            }));
        }
        all
    }

    fn unsettled(&self) -> Delay {
        // A probe sent before the change is still on its way for the longest delay there is, and behind a full queue.
        let queue = self.impairment.rate.map_or(0, |limit| queue_ns(&limit));
        let spread = self.impairment.distribution.quantile(0.999) * self.impairment.jitter.ns() as f64;
        Delay::from_ns(self.impairment.delay.ns() + spread as u64 + queue + brownout_analysis::SETTLE_NS)
    }

    fn unjudged(&self) -> Vec<String> {
        unjudged(&self.impairment)
    }

    fn needs(&self) -> Needs {
        let train = |limit: RateLimit| {
            // Half of the queue at most, so that the burst itself does not overflow it.
            let packets = (queue_bytes(&limit) / 2 / u64::from(burst_packet())).clamp(8, 200) as u32;
            let link = move |(from, to): &(String, String)| TrainNeed {
                from: from.clone(),
                to: to.clone(),
                expected: limit.rate,
                packets,
            };
            self.hit.iter().map(link).collect()
        };
        let trains = self.impairment.rate.map(train).unwrap_or_default();
        let sized = |mtu| self.hit.iter().map(move |(from, to)| (from.clone(), to.clone(), mtu)).collect();
        let largest_packets = self.impairment.mtu.map(sized).unwrap_or_default();
        Needs { trains, largest_packets, ..Needs::default() }
    }

    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError> {
        let hit: Vec<Link> = self.hit.iter().filter_map(|(from, to)| reach.link(from, to)).collect();
        let guard = reach.links().impair(&hit, &self.impairment)?;
        Ok(Box::new(Impaired(guard)))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        let impairment = scaled(&self.impairment, share)?;
        let text = format!("{} (at {})", self.text, (self.words)(&impairment));
        Some(Box::new(LinkFault { impairment, text, ..self.clone() }))
    }

    fn impairment(&self) -> Option<Impairment> {
        Some(self.impairment)
    }

    fn links(&self) -> &[(String, String)] {
        &self.hit
    }
}

struct Impaired(ImpairmentGuard);

impl InForce for Impaired {
    fn change(&self) -> Change {
        self.0.change()
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(self.0.heal()?))
    }

    fn amend(&mut self, to: &dyn Fault) -> Result<Option<Change>, LabError> {
        Ok(to.impairment().map(|impairment| self.0.amend(&impairment)).transpose()?)
    }
}

/// Every quantity that an impairment changes, how much, and how far from that what is seen may lie.
fn asked(impairment: &Impairment) -> Vec<(Quantity, f64, f64)> {
    let mut all = Vec::new();
    if impairment.cut.is_some() {
        return vec![(Quantity::Loss, 1.0, 0.001)];
    }
    let (delay, jitter) = (impairment.delay.ns() as f64, impairment.jitter.ns() as f64);
    // Packets that skip the delay lie below all others.
    let skipping = impairment.reorder.mean().map_or(0.0, Share::fraction);
    let at = |quantile: f64| {
        let of_delayed = (quantile - skipping) / (1.0 - skipping);
        if of_delayed <= 0.0 { 0.0 } else { (delay + jitter * impairment.distribution.quantile(of_delayed)).max(0.0) }
    };
    if delay + jitter > 0.0 {
        // A delay below twice the noise is judged against half of itself, so that "none" can never pass for it.
        let tolerance = (delay * TOLERANCE + jitter * JITTER_TOLERANCE).max(NOISE.ns() as f64).min(delay / 2.0);
        all.push((Quantity::OneWayDelay, at(0.5), tolerance));
    }
    let spread = at(0.9) - at(0.1);
    if jitter > 0.0 && spread >= LEAST_SPREAD.ns() as f64 && skipping == 0.0 {
        all.push((Quantity::DelaySpread, spread, spread * SPREAD_TOLERANCE + SPREAD_NOISE.ns() as f64));
    }
    let share_tolerance = |share: f64, burst: f64| (share * (SHARE_TOLERANCE * burst).min(0.5)).max(LEAST_SHARE / 2.0);
    let loss = impairment.loss.mean().fraction();
    if loss > 0.0 {
        let burst = impairment.loss.mean_burst().unwrap_or(1.0).max(1.0);
        all.push((Quantity::Loss, loss, share_tolerance(loss, burst)));
    }
    for (quantity, chance) in [(Quantity::Duplicates, impairment.duplicate), (Quantity::Corruption, impairment.corrupt)]
    {
        let share = chance.share.fraction();
        if share > 0.0 {
            let burst = 1.0 / (1.0 - chance.correlation.fraction()).max(0.1);
            all.push((quantity, share, share_tolerance(share, burst)));
        }
    }
    if let Some(reordered) = impairment.reorder.mean().map(Share::fraction).filter(|share| *share > 0.0) {
        let burst = 1.0 / (1.0 - impairment.reorder.correlation.fraction()).max(0.1);
        all.push((Quantity::Reordered, reordered, share_tolerance(reordered, burst)));
    }
    if let Some(limit) = impairment.rate {
        // What passes of IP, in packets of the bursts' size.
        let packet = f64::from(burst_packet());
        let rate = limit.rate.bits_per_second() as f64 * packet / (packet + f64::from(limit.overhead_bytes));
        all.push((Quantity::Rate, rate, rate * RATE_TOLERANCE));
    }
    if let Some(mtu) = impairment.mtu {
        all.push((Quantity::LargestPacket, f64::from(mtu), 0.0));
    }
    all
}

/// Bytes of the IP packets that bursts are made of.
pub fn burst_packet() -> u32 {
    u32::from(TrainSpec::default().payload) + 28
}

/// Bytes that may wait before a bottleneck.
pub fn queue_bytes(limit: &RateLimit) -> u64 {
    match limit.queue {
        QueueLimit::Bytes(bytes) => bytes.0,
        QueueLimit::Time(time) => (limit.rate.bits_per_second() as f64 / 8.0 * time.secs()) as u64,
    }
}

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
            "with a gap and a correlation nobody can say how many overtake; write one of them",
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

/// What of an impairment nobody judges, in words.
fn unjudged(impairment: &Impairment) -> Vec<String> {
    let mut all = Vec::new();
    let asked = asked(impairment);
    if impairment.jitter != Delay::ZERO && !asked.iter().any(|(quantity, ..)| *quantity == Quantity::DelaySpread) {
        all.push(format!("the jitter of {}: too little to be told from that of the machine", impairment.jitter));
    }
    let correlations = [
        impairment.delay_correlation,
        impairment.duplicate.correlation,
        impairment.corrupt.correlation,
        impairment.reorder.correlation,
    ];
    if correlations.iter().any(|correlation| *correlation != Share::ZERO) {
        all.push("correlations".to_owned());
    }
    if !matches!(impairment.loss, Loss::None | Loss::Independent(_)) {
        all.push("the lengths of bursts of losses (only how much is lost)".to_owned());
    }
    if impairment.rate.is_some() {
        all.push("the length of the queue before the bottleneck".to_owned());
    }
    if impairment.cut == Some(Cut::Reject) {
        all.push("that senders are told (only that nothing passes)".to_owned());
    }
    all
}

/// How long a full queue takes to empty.
fn queue_ns(limit: &RateLimit) -> u64 {
    (queue_bytes(limit) as f64 * 8e9 / limit.rate.bits_per_second() as f64).min(60e9) as u64
}

/// The same with a share of its magnitudes; none if nothing of it can be more or less.
fn scaled(impairment: &Impairment, by: f64) -> Option<Impairment> {
    let time = |delay: Delay| Delay::from_ns((delay.ns() as f64 * by).round() as u64);
    let share = |share: Share| Share::new(share.fraction() * by).unwrap_or(share);
    let loss = match impairment.loss {
        Loss::None => Loss::None,
        Loss::Independent(of) => Loss::Independent(share(of)),
        Loss::Correlated { share: of, correlation } => Loss::Correlated { share: share(of), correlation },
        // Less of a burst model could mean fewer bursts or shorter ones.
        Loss::GilbertElliott { .. } | Loss::Markov { .. } => return None,
    };
    // A half of a cut, of an MTU or of a bottleneck is not less of it.
    if impairment.cut.is_some() || impairment.mtu.is_some() || impairment.rate.is_some() {
        return None;
    }
    let mut scaled = *impairment;
    scaled.loss = loss;
    (scaled.delay, scaled.jitter) = (time(impairment.delay), time(impairment.jitter));
    scaled.duplicate.share = share(impairment.duplicate.share);
    scaled.corrupt.share = share(impairment.corrupt.share);
    scaled.reorder.share = share(impairment.reorder.share);
    // A step that nobody could prove is none.
    provable(&scaled).is_ok().then_some(scaled)
}

/// The pairs between hosts and all others, by direction.
pub fn pairs(struck: &[String], direction: Direction, hosts: &Hosts) -> Vec<(String, String)> {
    let is = |name: &str| struck.iter().any(|host| host == name);
    let hit = |from: &str, to: &str| match direction {
        Direction::Out => is(from),
        Direction::In => is(to),
        Direction::Both => is(from) || is(to),
    };
    let all = hosts.pairs().filter(|(from, to)| hit(&from.name, &to.name));
    all.map(|(from, to)| (from.name.clone(), to.name.clone())).collect()
}

/// "everything n2 sends", "everything that is sent to n2", "everything that n2 sends or is sent".
pub fn traffic(struck: &[String], direction: Direction) -> String {
    let hosts = join(struck);
    match direction {
        Direction::Out => format!("everything {hosts} send{}", s(struck)),
        Direction::In => format!("everything that is sent to {hosts}"),
        Direction::Both => {
            format!("everything {hosts} send{} or {} sent", s(struck), if struck.len() == 1 { "is" } else { "are" })
        }
    }
}

/// "(direction: out)".
pub fn direction_words(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "(direction: out)",
        Direction::In => "(direction: in)",
        Direction::Both => "(direction: both)",
    }
}

/// What a one-way delay on these links does to round-trip times.
pub fn rtt_effect(struck: &[String], direction: Direction, delay: Delay) -> String {
    let twice = Delay::from_ns(delay.ns().saturating_mul(2));
    let grows = if direction == Direction::Both { twice } else { delay };
    let hosts = join(struck);
    match struck.len() {
        1 => format!("every RTT to and from {hosts} grows by {grows}; no other changes"),
        _ => format!("every RTT between {hosts} and others grows by {grows}, among them by {twice}; no other changes"),
    }
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
        let message =
            format!("{delay} cannot be put in force and proven; write {} to {}", DELAYS.start(), DELAYS.end());
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

/// The hosts at the ends of some pairs, each once, for words.
pub fn ends(pairs: &[(String, String)]) -> Vec<String> {
    let all: BTreeSet<&String> = pairs.iter().flat_map(|(from, to)| [from, to]).collect();
    all.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_direction_says_is_hit_and_all_else_is_spared() {
        let hosts = Hosts::new(3);
        let struck = ["n2".to_owned()];
        for (direction, count) in [(Direction::Out, 3), (Direction::In, 3), (Direction::Both, 6)] {
            let pairs = pairs(&struck, direction, &hosts);
            assert_eq!(pairs.len(), count, "{direction:?}");
            assert!(pairs.iter().all(|(from, to)| match direction {
                Direction::Out => from == "n2",
                Direction::In => to == "n2",
                Direction::Both => from == "n2" || to == "n2",
            }));
        }
    }

    #[test]
    fn no_delay_can_pass_for_a_small_one() {
        for delay in [Delay::from_ns(100_000), Delay::from_ms(1), Delay::from_ms(100), Delay::from_secs(2)] {
            for (quantity, asked, tolerance) in asked(&Impairment::delay(delay)) {
                assert_eq!((quantity, asked), (Quantity::OneWayDelay, delay.ns() as f64));
                assert!(tolerance <= asked / 2.0, "{delay}");
            }
        }
    }

    #[test]
    fn every_part_of_an_impairment_is_expected_to_be_seen() {
        let impairment = Impairment {
            delay: Delay::from_ms(50),
            jitter: Delay::from_ms(10),
            loss: Loss::Independent(Share::new(0.1).unwrap()),
            ..Impairment::NONE
        };
        let quantities: Vec<Quantity> = asked(&impairment).into_iter().map(|(quantity, ..)| quantity).collect();
        assert_eq!(quantities, [Quantity::OneWayDelay, Quantity::DelaySpread, Quantity::Loss]);
    }

    #[test]
    fn a_ramp_scales_what_can_be_more_or_less_and_nothing_else() {
        let half = scaled(&Impairment::delay(Delay::from_ms(100)), 0.5).unwrap();
        assert_eq!(half.delay, Delay::from_ms(50));
        assert!(scaled(&Impairment { mtu: Some(1280), ..Impairment::NONE }, 0.5).is_none());
    }
}
