//! NTP's ways to write a time (RFC 5905, section 6).

const SECOND: u64 = 1_000_000_000;

/// Seconds from the start of NTP's era 0 (1900-01-01) to that of 1970 (RFC 5905, figure 4).
const SECONDS_TO_1970: u64 = 2_208_988_800;

/// A point in time: 32 bits of seconds since the era began, 32 bits of fraction. Zero means unknown.
///
/// An era has 136 years; the first ends on 2036-02-07 at 06:28:16 UTC. A timestamp does not say
/// its era: differences are right for times less than 68 years apart, and a point needs another
/// one nearby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Of nanoseconds since 1970, rounded to the nearest (a unit is 0.23 ns).
    pub fn from_unix_ns(ns: u64) -> Self {
        let seconds = (ns / SECOND).wrapping_add(SECONDS_TO_1970);
        // Less than 2³² even when rounded: the largest is (2³² · 999,999,999 + …) / 10⁹.
        let fraction = (((ns % SECOND) << 32) + SECOND / 2) / SECOND;
        Timestamp((seconds << 32) | fraction)
    }

    /// Nanoseconds from `earlier` to this one (negative if it is later in truth), rounded; right across
    /// the end of an era for times less than 68 years apart.
    pub fn since_ns(self, earlier: Timestamp) -> i64 {
        units_to_ns(i128::from(self.units_since(earlier)))
    }

    /// The same in units of 2⁻³² s.
    pub(crate) fn units_since(self, earlier: Timestamp) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// "Unknown".
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Of units of 2⁻³² s, rounded to the nearest.
pub(crate) fn units_to_ns(units: i128) -> i64 {
    ((units * i128::from(SECOND) + (1 << 31)) >> 32) as i64
}

/// A span of time: 16 bits of seconds, 16 bits of fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Short(pub u32);

impl Short {
    /// Of nanoseconds, rounded up (these are error bounds; a unit is 15.3 µs), at most 18 hours.
    pub fn from_ns(ns: u64) -> Self {
        Short(
            u32::try_from(((u128::from(ns) << 16).div_ceil(u128::from(SECOND))).min(u32::MAX.into()))
                .unwrap_or(u32::MAX),
        )
    }

    /// In nanoseconds, rounded up.
    pub fn to_ns(self) -> u64 {
        (u64::from(self.0) * SECOND).div_ceil(1 << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds from 1970 to the end of era 0: 2³² − 2,208,988,800.
    const ERA_1: u64 = 2_085_978_496;

    #[test]
    fn known_dates_have_the_timestamps_of_the_rfc() {
        // RFC 5905, figure 4: date, era, seconds in the era.
        for (unix, seconds) in [(0, 2_208_988_800), (63_072_000, 2_272_060_800), (946_598_400, 3_155_587_200)] {
            assert_eq!(Timestamp::from_unix_ns(unix * SECOND), Timestamp(seconds << 32));
        }
        // Last day of era 0, 2036-02-07 00:00: 4,294,944,000; and 2036-02-08 in era 1: 63,104.
        assert_eq!(Timestamp::from_unix_ns(2_085_955_200 * SECOND), Timestamp(4_294_944_000 << 32));
        assert_eq!(Timestamp::from_unix_ns(2_086_041_600 * SECOND), Timestamp(63_104 << 32));
        // Half a second, and the smallest one.
        assert_eq!(Timestamp::from_unix_ns(SECOND / 2).0 as u32, 1 << 31);
        assert_eq!(Timestamp::from_unix_ns(1).0 as u32, 4);
    }

    #[test]
    fn differences_are_right_to_the_nanosecond_in_every_era() {
        for seconds in [0, 1, 1_000_000_000, ERA_1 - 1, ERA_1, ERA_1 + 1, 4_102_444_800, 10_000_000_000] {
            for fraction in [0, 1, 2, 3, 499_999_999, 500_000_000, 999_999_998, 999_999_999] {
                let ns = seconds * SECOND + fraction;
                let stamp = Timestamp::from_unix_ns(ns);
                for away in [0, 67 * 365 * 86_400 * SECOND] {
                    let since = |other| stamp.since_ns(Timestamp::from_unix_ns(other));
                    assert_eq!(since(ns + away), -(away as i64), "{ns} seen from {away} later");
                    let earlier = ns.saturating_sub(away);
                    assert_eq!(since(earlier), (ns - earlier) as i64, "{ns} seen from {earlier}");
                }
            }
        }
    }

    #[test]
    fn differences_are_right_across_the_end_of_an_era() {
        let before = Timestamp::from_unix_ns(ERA_1 * SECOND - 250_000_000);
        let after = Timestamp::from_unix_ns(ERA_1 * SECOND + 750_000_001);
        assert!(after.0 < before.0);
        assert_eq!(after.since_ns(before), 1_000_000_001);
        assert_eq!(before.since_ns(after), -1_000_000_001);
    }

    #[test]
    fn short_spans_are_never_rounded_down() {
        assert_eq!(Short::from_ns(SECOND), Short(1 << 16));
        assert_eq!(Short::from_ns(1), Short(1));
        assert_eq!(Short::from_ns(u64::MAX), Short(u32::MAX));
        assert_eq!(Short(1).to_ns(), 15_259);
        for ns in [0, 1, 15_258, 15_259, 1_000_000, 123_456_789, 65_535 * SECOND] {
            assert!(Short::from_ns(ns).to_ns() >= ns, "{ns}");
        }
    }
}
