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
/// Of a share, beside the error of counting: the probes' own losses and what bursts add.
const SHARE_TOLERANCE: f64 = 0.1;
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

/// How many packets in a row are hit in a quantity, on average over all runs of them; none where each is by itself, or where nobody can
/// say.
pub(super) fn burst(impairment: &Impairment, quantity: Quantity) -> Option<f64> {
    // The run of a two-state chain goes on with share + correlation · (1 − share).
    let of = |share: Share, correlation: Share| 1.0 / ((1.0 - share.fraction()) * (1.0 - correlation.fraction()));
    let (share, burst) = match quantity {
        Quantity::Loss => (impairment.loss.mean(), impairment.loss.mean_burst()?),
        Quantity::Duplicates => {
            (impairment.duplicate.share, of(impairment.duplicate.share, impairment.duplicate.correlation))
        }
        Quantity::Corruption => {
            (impairment.corrupt.share, of(impairment.corrupt.share, impairment.corrupt.correlation))
        }
        Quantity::Reordered if impairment.reorder.gap <= 1 => {
            (impairment.reorder.share, of(impairment.reorder.share, impairment.reorder.correlation))
        }
        _ => return None,
    };
    // Those that are hit each by itself are in runs of this length, too.
    let alone = of(share, Share::ZERO);
    (burst.is_finite() && burst > alone * 1.001).then_some(burst)
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
    fn bursts_are_told_where_packets_are_not_hit_each_by_itself() {
        let share = |share: f64| Share::new(share).unwrap();
        let loss = |loss| burst(&Impairment { loss, ..Impairment::NONE }, Quantity::Loss);
        assert_eq!(loss(Loss::Independent(share(0.2))), None);
        assert_eq!(loss(Loss::Independent(Share::ALL)), None);
        assert_eq!(loss(Loss::None), None);
        let (p, r) = (share(0.025), share(0.1));
        let gilbert = Loss::GilbertElliott { p, r, one_minus_h: Share::ALL, one_minus_k: Share::ZERO };
        assert!((loss(gilbert).unwrap() - 10.0).abs() < 1e-9);
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
