//! What Cassandra's own log tells that no counter does: when a node took another for down, and for up again.

/// Something that a line tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    /// By the node's own clock, ns since 1970: the middle of the millisecond that it shows.
    pub(super) unix_ns: u64,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// It takes the node at this address for up.
    Up(String),
    /// For down.
    Down(String),
    /// It noticed that it had stood still itself for so long, ns, and trusts its failure detector for a while no more.
    OwnPause(u64),
}

/// Half of the millisecond that a stamp is cut down to.
pub(super) const RESOLUTION_NS: u64 = 500_000;

/// Reads a line in the form that the node's logging configuration gives it.
pub(super) fn read(line: &str) -> Option<Told> {
    let (stamp, said) = line.split_once(' ')?;
    let (_, said) = said.split_once(" - ")?;
    let what = if let Some(address) = between(said, "InetAddress ", " is now DOWN") {
        What::Down(address)
    } else if let Some(address) = between(said, "InetAddress ", " is now UP") {
        What::Up(address)
    } else if let Some(address) = between(said, "Node ", " has restarted, now UP") {
        What::Up(address)
    } else {
        let rest = said.strip_prefix("Not marking nodes down due to local pause of ")?;
        What::OwnPause(rest.split_once("ns >")?.0.parse().ok()?)
    };
    Some(Told { unix_ns: unix_ms(stamp)? * 1_000_000 + RESOLUTION_NS, what })
}

/// The address in what Cassandra prints of one: `n2/10.0.0.2:7000`, `/10.0.0.2:7000`, `/10.0.0.2`.
pub(in crate::cassandra) fn address(printed: &str) -> &str {
    let after = printed.rsplit_once('/').map_or(printed, |(_, after)| after);
    after.rsplit_once(':').map_or(after, |(address, _)| address)
}

fn between(said: &str, before: &str, after: &str) -> Option<String> {
    Some(address(said.strip_prefix(before)?.strip_suffix(after)?).to_owned())
}

/// `2026-11-23T07:59:13.496Z` in ms since 1970.
fn unix_ms(stamp: &str) -> Option<u64> {
    let (date, time) = stamp.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (seconds, ms) = seconds.split_once('.')?;
    let number = |text: &str| text.parse::<i64>().ok();
    // Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March, so that leap days come last
    // (E. G. Richards, "Mapping Time", 1998).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + number(hours)?) * 60 + number(minutes)?) * 60 + number(seconds)?;
    u64::try_from(seconds * 1000 + number(ms)?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn marks_of_other_nodes_are_read_with_their_time() {
        let line = |said: &str| format!("2026-11-23T07:59:13.496Z INFO  [GossipStage:1] Gossiper - {said}");
        let told = |said: &str| read(&line(said)).map(|told| told.what);
        let down = "InetAddress /10.78.0.2:7000 is now DOWN";
        assert_eq!(told(down), Some(What::Down("10.78.0.2".to_owned())));
        // date -u -d 2026-11-23T07:59:13 +%s
        assert_eq!(read(&line(down)).unwrap().unix_ns, 1_795_420_753_496_500_000);
        assert_eq!(told("InetAddress n3/10.78.0.3:7000 is now UP"), Some(What::Up("10.78.0.3".to_owned())));
        assert_eq!(told("Node /10.78.0.2:7000 has restarted, now UP"), Some(What::Up("10.78.0.2".to_owned())));
        assert_eq!(told("Node /10.78.0.2:7000 is now part of the cluster"), None);
        let pause = "Not marking nodes down due to local pause of 6211123456ns > 5000000000ns";
        assert_eq!(told(pause), Some(What::OwnPause(6_211_123_456)));
    }

    #[test]
    fn stamps_at_the_ends_of_months_and_in_leap_years_are_right() {
        // date -u -d STAMP +%s
        for (stamp, seconds) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T12:00:00.000Z", 951_825_600),
            ("2024-02-29T23:59:59.000Z", 1_709_251_199),
            ("2024-03-01T00:00:00.000Z", 1_709_251_200),
            ("2026-12-31T23:59:59.000Z", 1_798_761_599),
        ] {
            assert_eq!(unix_ms(stamp), Some(seconds * 1000), "{stamp}");
        }
        assert_eq!(unix_ms("2026-11-23 07:59:13,496"), None);
    }

    #[test]
    fn lines_of_other_kinds_and_halves_of_lines_tell_nothing() {
        for line in ["", "\tat java.lang.Thread.run(Thread.java:840)", "2026-11-23T07:59:13.496Z INFO  [main] X"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
