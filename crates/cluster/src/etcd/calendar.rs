//! The two ways in which an etcd server writes moments: in the header of an answer, and in its log.

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Tue, 24 Nov 2026 01:45:16 GMT` (RFC 9110, IMF-fixdate) in seconds since 1970.
pub(super) fn of_header(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().strip_suffix(" GMT")?.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|known| *known == month)? as i64 + 1;
    Some(days(year.parse().ok()?, month, day.parse().ok()?) * 86_400 + seconds(time)?)
}

/// `2026-11-24T01:45:16.123456Z` (RFC 3339, UTC) in ns since 1970, and what its last digit stands for, ns.
pub(super) fn of_log(text: &str) -> Option<(u64, u64)> {
    let (date, time) = text.strip_suffix('Z').or_else(|| text.strip_suffix("+0000"))?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let resolution = 10_u64.pow(9 - digits);
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? * resolution };
    let whole = u64::try_from(days(year, month, day) * 86_400 + seconds(time)?).ok()?;
    Some((whole * 1_000_000_000 + fraction, resolution))
}

fn seconds(time: &str) -> Option<i64> {
    let mut parts = time.split(':').map(str::parse::<i64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some((hours * 60 + minutes) * 60 + seconds)
}

/// Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March, so that leap days come last
/// (E. G. Richards, "Mapping Time", 1998).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_date_prints_them() {
        // date -u -d '2026-11-24 01:45:16' +%s
        assert_eq!(of_header("Tue, 24 Nov 2026 01:45:16 GMT"), Some(1_795_484_716));
        assert_eq!(of_header("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(of_header("Tue, 24 Nov 2026 01:45:16 CET"), None);
        assert_eq!(of_log("2026-11-24T01:45:16.123456Z"), Some((1_795_484_716_123_456_000, 1_000)));
        assert_eq!(of_log("2026-11-24T01:45:16.123Z"), Some((1_795_484_716_123_000_000, 1_000_000)));
        assert_eq!(of_log("2026-11-24T01:45:16Z"), Some((1_795_484_716_000_000_000, 1_000_000_000)));
        assert_eq!(of_log("2026-11-24T01:45:16.123+0100"), None);
        assert_eq!(of_log(""), None);
    }
}
