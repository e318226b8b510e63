//! How long a train is and how often one is sent, so that it measures and is no load.

use std::time::Duration;

use brownout_units::BitRate;

use super::packet;
use crate::error::ProbeError;

/// Bytes of an IPv4 and a UDP header.
const HEADERS: u16 = 28;

/// Time that a train is to take on its link where that is possible: a packet that is released 20 to 50 µs late is then
/// an error of a thousandth.
const TARGET: Duration = Duration::from_millis(40);
/// Packets of the shortest train, which gives four intervals between arrivals.
const FEWEST: u32 = 5;
/// Trains take at most one part in so many of what their link is expected to carry.
const SPARING: u32 = 5;

/// How trains are made. Links of a known rate get shorter trains, and more rarely; see [`super::Trains::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainSpec {
    /// The most packets of a train, at least two.
    pub packets: u32,
    /// Bytes of each, without IP and UDP headers (28 more).
    pub payload: u16,
    /// From the beginning of a train to that of the next on the same link.
    pub every: Duration,
}

impl Default for TrainSpec {
    /// 200 packets (at 500 Mbit/s they take 4 ms) of 1,200 bytes (they pass wherever IPv6 does), once a second.
    fn default() -> Self {
        TrainSpec { packets: 200, payload: 1_200, every: Duration::from_secs(1) }
    }
}

impl TrainSpec {
    /// Whether trains like this can be sent where packets are up to `mtu` bytes long, and would measure.
    pub(super) fn check(&self, mtu: u16) -> Result<(), ProbeError> {
        /// What a receiving socket holds of full packets.
        const LONGEST: u32 = 1_000;
        let refuse = |message: String| Err(ProbeError::Trains(message));
        if !(2..=LONGEST).contains(&self.packets) {
            return refuse(format!("a train of {} packets shows no rate; choose 2 to {LONGEST}", self.packets));
        }
        let (shortest, longest) = (packet::SHORTEST as u16, mtu.saturating_sub(HEADERS));
        if !(shortest..=longest).contains(&self.payload) {
            return refuse(format!(
                "a payload of {} bytes is impossible with an MTU of {mtu}; choose {shortest} to {longest}",
                self.payload
            ));
        }
        if self.every < Duration::from_millis(10) {
            return refuse(format!("trains every {:?} would overtake one another; choose 10 ms or more", self.every));
        }
        Ok(())
    }

    /// Bytes of each packet, IP header included.
    pub(super) fn packet_bytes(&self) -> u32 {
        u32::from(self.payload + HEADERS)
    }
}

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

    #[test]
    fn trains_that_cannot_measure_are_refused_with_what_can() {
        let default = TrainSpec::default();
        assert!(default.check(1_500).is_ok());
        for (spec, reason) in [
            (TrainSpec { packets: 1, ..default }, "choose 2 to 1000"),
            (TrainSpec { packets: 1_001, ..default }, "choose 2 to 1000"),
            (TrainSpec { payload: 23, ..default }, "choose 24 to 1472"),
            (TrainSpec { payload: 1_473, ..default }, "choose 24 to 1472"),
            (TrainSpec { every: Duration::ZERO, ..default }, "10 ms or more"),
        ] {
            let error = spec.check(1_500).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
