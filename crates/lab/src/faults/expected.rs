//! What an impairment of links must show, and what of it the proof does not cover.

use brownout_network::{Cut, Impairment, Loss, QueueLimit, RateLimit};
use brownout_probe::TrainSpec;
use brownout_record::Quantity;
use brownout_units::{Delay, Share};

/// Shares below this cannot be distinguished from none.
pub(super) const LEAST_SHARE: f64 = 0.0005;
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
/// A smaller spread cannot be distinguished from that.
const LEAST_SPREAD: Delay = Delay::from_ms(2);
/// Of a share, beside the error of counting, to which [`burst`] adds.
const SHARE_TOLERANCE: f64 = 0.1;
/// Of a share that comes in bursts of which nobody can say how long they are.
const UNKNOWN_TOLERANCE: f64 = 0.5;
/// Of a rate, measured by bursts among other traffic.
const RATE_TOLERANCE: f64 = 0.1;

/// Every quantity that an impairment changes, how much, and how far from that what is seen may lie.
pub(crate) fn asked(impairment: &Impairment) -> Vec<(Quantity, f64, f64)> {
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
    for quantity in [Quantity::Loss, Quantity::Duplicates, Quantity::Corruption, Quantity::Reordered] {
        let share = share(impairment, quantity);
        if share > 0.0 {
            let unknown = quantity == Quantity::Reordered
                && impairment.reorder.gap > 1
                && impairment.reorder.correlation != Share::ZERO;
            let tolerance = share * if unknown { UNKNOWN_TOLERANCE } else { SHARE_TOLERANCE };
            all.push((quantity, share, tolerance.max(LEAST_SHARE / 2.0)));
        }
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

/// The share of packets that an impairment hits in a quantity.
fn share(impairment: &Impairment, quantity: Quantity) -> f64 {
    let share = match quantity {
        Quantity::Loss => impairment.loss.mean(),
        Quantity::Duplicates => impairment.duplicate.share,
        Quantity::Corruption => impairment.corrupt.share,
        Quantity::Reordered => impairment.reorder.mean().unwrap_or(Share::ZERO),
        _ => Share::ZERO,
    };
    share.fraction()
}

/// How much more the number of packets that are hit in a quantity varies than if each was hit by itself, as a ratio of variances; 1 too
/// where nobody can say.
pub(crate) fn clumping(impairment: &Impairment, quantity: Quantity) -> f64 {
    // A chain of two states, as those of losses.
    let of = |correlation: Share| (1.0 + correlation.fraction()) / (1.0 - correlation.fraction());
    match quantity {
        Quantity::Loss => impairment.loss.clumping(),
        Quantity::Duplicates => of(impairment.duplicate.correlation),
        Quantity::Corruption => of(impairment.corrupt.correlation),
        Quantity::Reordered if impairment.reorder.gap <= 1 => of(impairment.reorder.correlation),
        _ => 1.0,
    }
}

/// How many packets in a row are hit in a quantity, on average over all runs of them, in the chain of two states whose counts vary as much
/// ([`brownout_analysis::clumping`]); none where each is by itself, or where nobody can say.
pub(super) fn burst(impairment: &Impairment, quantity: Quantity) -> Option<f64> {
    let (share, clumping) = (share(impairment, quantity), clumping(impairment, quantity));
    let burst = (clumping + 1.0) / (2.0 * (1.0 - share));
    (share > 0.0 && burst.is_finite() && clumping > 1.001).then_some(burst)
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

/// What of an impairment nobody judges, in words.
pub(super) fn unjudged(impairment: &Impairment) -> Vec<String> {
    let mut all = Vec::new();
    let asked = asked(impairment);
    if impairment.jitter != Delay::ZERO && !asked.iter().any(|(quantity, ..)| *quantity == Quantity::DelaySpread) {
        all.push(format!("the jitter of {} (too small to distinguish from the machine's own)", impairment.jitter));
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
        all.push("the lengths of loss bursts (only the share that is lost)".to_owned());
    }
    if impairment.rate.is_some() {
        all.push("the length of the queue before the bottleneck".to_owned());
    }
    if impairment.cut == Some(Cut::Reject) {
        all.push("that senders are notified (only that nothing passes)".to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_share_may_err_by_a_tenth_however_long_its_bursts_are() {
        let (p, r) = (Share::new(0.025).unwrap(), Share::new(0.1).unwrap());
        let loss = Loss::GilbertElliott { p, r, one_minus_h: Share::ALL, one_minus_k: Share::ZERO };
        for (quantity, asked, tolerance) in asked(&Impairment { loss, ..Impairment::NONE }) {
            assert_eq!(quantity, Quantity::Loss);
            assert!((asked - 0.2).abs() < 1e-9 && (tolerance - 0.02).abs() < 1e-9, "{asked} ± {tolerance}");
        }
    }

    #[test]
    fn bursts_are_told_where_packets_are_not_hit_each_by_itself() {
        let share = |share: f64| Share::new(share).unwrap();
        let loss = |loss| burst(&Impairment { loss, ..Impairment::NONE }, Quantity::Loss);
        assert_eq!(loss(Loss::Independent(share(0.2))), None);
        assert_eq!(loss(Loss::Independent(Share::ALL)), None);
        assert_eq!(loss(Loss::None), None);
        let (p, r) = (share(0.025), share(0.1));
        let gilbert = Loss::GilbertElliott { p, r, one_minus_h: Share::ALL, one_minus_k: Share::ZERO };
        assert!((loss(gilbert).unwrap() - 10.0).abs() < 1e-9);
        // Bursts that lose every second packet: 20 % of all are bad, and 0.44 of the variance is that of the states, 9 more times.
        let gaps = Loss::GilbertElliott { p, r, one_minus_h: share(0.5), one_minus_k: Share::ZERO };
        let varies = 2.0 * loss(gaps).unwrap() * 0.9 - 1.0;
        let states = 0.2 * 0.8 * 0.25 / (0.1 * 0.9);
        assert!((varies - (1.0 + 2.0 * states * 0.875 / 0.125)).abs() < 1e-9, "{varies}");
        let duplicate = brownout_network::Chance { share: share(0.2), correlation: share(0.5) };
        let twice = burst(&Impairment { duplicate, ..Impairment::NONE }, Quantity::Duplicates);
        assert!((twice.unwrap() - 2.5).abs() < 1e-9);
        assert_eq!(burst(&Impairment::NONE, Quantity::OneWayDelay), None);
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
}
