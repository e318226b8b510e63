//! How long a train is and how often one is sent, so that it measures and is no load.

use std::time::Duration;

use brownout_units::BitRate;

use super::TrainSpec;

/// Time that a train is to take on its link where that is possible: a packet that is released 20 to 50 µs late is then
/// an error of a thousandth.
const TARGET: Duration = Duration::from_millis(40);
/// Packets of the shortest train: four times between arrivals.
const FEWEST: u32 = 5;
/// Trains take at most one part in so many of what their link is expected to carry.
const SPARING: u32 = 5;

/// The trains of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) packets: u32,
    pub(super) every: Duration,
}

impl Plan {
    /// For a link of `expected` rate, if one is expected; `packet_bytes` counts the IP header.
    pub(super) fn of(spec: &TrainSpec, packet_bytes: u32, expected: Option<BitRate>) -> Plan {
        let Some(rate) = expected.map(|rate| rate.bits_per_second() as f64) else {
            return Plan { packets: spec.packets, every: spec.every };
        };
        let packet_secs = f64::from(packet_bytes) * 8.0 / rate;
        let packets = (TARGET.as_secs_f64() / packet_secs).min(f64::from(spec.packets)) as u32;
        let packets = packets.max(FEWEST.min(spec.packets));
        // The slowest rate is 1 bit/s; and nobody waits for more than a day.
        let takes = Duration::from_secs_f64((packet_secs * f64::from(packets)).min(86_400.0));
        Plan { packets, every: spec.every.max(takes * SPARING) }
    }

    /// Packets a second.
    pub(super) fn packet_rate(&self) -> f64 {
        f64::from(self.packets) / self.every.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_links_get_short_trains_rarely_and_fast_ones_long_trains() {
        for (rate, packets, every_ms) in [
            (None, 200, 1_000),
            (Some("100kbit"), 5, 2_500),
            (Some("1mbit"), 5, 1_000),
            (Some("10mbit"), 40, 1_000),
            (Some("40mbit"), 160, 1_000),
            (Some("1gbit"), 200, 1_000),
        ] {
            let rate = rate.map(|rate| rate.parse().unwrap());
            let plan = Plan::of(&TrainSpec::default(), 1_250, rate);
            assert_eq!(plan, Plan { packets, every: Duration::from_millis(every_ms) }, "{rate:?}");
        }
        let plan = Plan::of(&TrainSpec { packets: 2, ..TrainSpec::default() }, 1_250, Some("1bit".parse().unwrap()));
        assert_eq!(plan, Plan { packets: 2, every: Duration::from_secs(100_000) });
    }
}
