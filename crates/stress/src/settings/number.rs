//! Numbers on the command line, and how values are shown in the block of settings.

use std::{fmt::Display, str::FromStr, time::Duration};

use brownout_units::{Delay, Rate};

use super::SettingsError;

/// `500`, `100k`, `5m`, `1b`: the letters are 10³, 10⁶ and 10⁹.
pub(super) fn count(option: &str, text: &str) -> Result<u64, SettingsError> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = match lower.as_bytes().last() {
        Some(b'k') => (&lower[..lower.len() - 1], 1_000),
        Some(b'm') => (&lower[..lower.len() - 1], 1_000_000),
        Some(b'b') => (&lower[..lower.len() - 1], 1_000_000_000),
        _ => (&lower[..], 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    // Seeds, which this parses, are signed.
    number.filter(|number| *number <= i64::MAX as u64).ok_or_else(|| too_large(option, text))
}

/// A whole number of whatever size its use has.
pub(super) fn whole<T: FromStr>(option: &str, text: &str) -> Result<T, SettingsError> {
    text.parse().map_err(|_| too_large(option, text))
}

fn too_large(option: &str, text: &str) -> SettingsError {
    SettingsError::senseless(format!("{option}{text} is out of range"), "write a smaller number")
}

/// `30s`, `5m`, `2h` in either case, as in cassandra-stress, and everything that is a duration elsewhere.
pub(super) fn time(option: &str, text: &str) -> Result<Duration, SettingsError> {
    let time = text.to_ascii_lowercase().parse::<Delay>();
    let time = time.map_err(|error| SettingsError::senseless(format!("{option}{text}"), error.to_string()))?;
    if time == Delay::ZERO {
        return Err(SettingsError::senseless(format!("{option}{text} is no time"), "write a time above 0"));
    }
    Ok(time.duration())
}

/// `2000/s`, `1.5k/s`; `None` for `0/s`, which means no limit.
pub(super) fn rate(option: &str, text: &str) -> Result<Option<Rate>, SettingsError> {
    let zero = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte == b'0');
    if text.strip_suffix("/s").is_some_and(zero) {
        return Ok(None);
    }
    let rate = text.to_ascii_lowercase().parse::<Rate>();
    rate.map(Some).map_err(|error| SettingsError::senseless(format!("{option}{text}"), error.to_string()))
}

/// The same, but `0/s` is not allowed.
pub(super) fn rate_above_0(option: &str, text: &str) -> Result<Rate, SettingsError> {
    rate(option, text)?.ok_or_else(|| SettingsError::senseless(format!("{option}{text}"), "write a rate above 0"))
}

/// With commas between thousands, as Java's `%,d` in the C locale.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// A missing value as Java shows it.
pub(super) fn null<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}
