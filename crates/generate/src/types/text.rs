//! Values as CQL text.

use std::fmt::{self, Write};

use super::{Duration, Value, quote};

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Empty => f.write_str("(empty)"),
            Value::Text(text) => write_text(f, text),
            Value::Blob(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Boolean(value) => write!(f, "{value}"),
            Value::TinyInt(value) => write!(f, "{value}"),
            Value::SmallInt(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::BigInt(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Double(value) => write!(f, "{value}"),
            Value::Varint(bytes) => f.write_str(&integer(bytes)),
            Value::Decimal { scale, unscaled } => f.write_str(&decimal(&integer(unscaled), *scale)),
            Value::Uuid(value) => {
                let (a, b, c, d) = (value >> 96, value >> 80 & 0xffff, value >> 64 & 0xffff, value >> 48 & 0xffff);
                write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{:012x}", value & 0xffff_ffff_ffff)
            }
            Value::Timestamp(milliseconds) => {
                let (days, rest) = (milliseconds.div_euclid(86_400_000), milliseconds.rem_euclid(86_400_000));
                f.write_char('\'')?;
                write_date(f, days)?;
                let seconds = rest / 1000;
                let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                write!(f, "T{hour:02}:{minute:02}:{second:02}.{:03}Z'", rest % 1000)
            }
            Value::Date(days) => {
                f.write_char('\'')?;
                write_date(f, i64::from(*days))?;
                f.write_char('\'')
            }
            Value::Time(nanoseconds) => {
                let seconds = nanoseconds.div_euclid(1_000_000_000);
                let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                write!(f, "'{hour:02}:{minute:02}:{second:02}.{:09}'", nanoseconds.rem_euclid(1_000_000_000))
            }
            Value::Inet(address) => write!(f, "'{address}'"),
            Value::Duration(duration) => write_duration(f, duration),
            Value::List(values) => write_all(f, '[', values, ']'),
            Value::Set(values) => write_all(f, '{', values, '}'),
            Value::Tuple(values) => write_all(f, '(', values, ')'),
            Value::Map(entries) => {
                f.write_char('{')?;
                for (place, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", separator(place))?;
                }
                f.write_char('}')
            }
            Value::Udt(fields) => {
                f.write_char('{')?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{}: {value}", separator(place), quote(name))?;
                }
                f.write_char('}')
            }
        }
    }
}

fn separator(place: usize) -> &'static str {
    if place == 0 { "" } else { ", " }
}

fn write_all(f: &mut fmt::Formatter<'_>, open: char, values: &[Value], close: char) -> fmt::Result {
    f.write_char(open)?;
    for (place, value) in values.iter().enumerate() {
        write!(f, "{}{value}", separator(place))?;
    }
    f.write_char(close)
}

/// A text in quotes; what a terminal would not show is written as an escape (CQL itself has none, but a message must be
/// readable).
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        match c {
            '\'' => f.write_str("''")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('\'')
}

/// Year-month-day of a day since 1970, proleptic Gregorian (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms": years that begin in March, in eras of 400 years).
fn write_date(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    const ERA: i64 = 146_097;
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    write!(f, "{year:04}-{month:02}-{day_of_month:02}")
}

fn write_duration(f: &mut fmt::Formatter<'_>, duration: &Duration) -> fmt::Result {
    if *duration == Duration::default() {
        return f.write_str("0ns");
    }
    if duration.months < 0 || duration.days < 0 || duration.nanoseconds < 0 {
        f.write_char('-')?;
    }
    for (value, unit) in [
        (u64::from(duration.months.unsigned_abs()), "mo"),
        (u64::from(duration.days.unsigned_abs()), "d"),
        (duration.nanoseconds.unsigned_abs(), "ns"),
    ] {
        if value != 0 {
            write!(f, "{value}{unit}")?;
        }
    }
    Ok(())
}

/// A two's complement, big-endian number of any length in decimal digits.
pub(super) fn integer(bytes: &[u8]) -> String {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    // Magnitude: for negative numbers the complement plus one.
    let mut limbs: Vec<u8> = bytes.iter().map(|byte| if negative { !byte } else { *byte }).collect();
    if negative {
        for limb in limbs.iter_mut().rev() {
            let (sum, carry) = limb.overflowing_add(1);
            *limb = sum;
            if !carry {
                break;
            }
        }
        if limbs.iter().all(|limb| *limb == 0) {
            limbs.insert(0, 1);
        }
    }
    // Nine digits per division by a billion.
    let mut groups = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut remainder = 0u64;
        for limb in &mut limbs {
            let value = remainder << 8 | u64::from(*limb);
            *limb = (value / 1_000_000_000) as u8;
            remainder = value % 1_000_000_000;
        }
        groups.push(remainder);
    }
    let mut text = String::new();
    if negative {
        text.push('-');
    }
    match groups.pop() {
        None => text.push('0'),
        Some(first) => text.push_str(&first.to_string()),
    }
    groups.iter().rev().for_each(|group| text.push_str(&format!("{group:09}")));
    text
}

/// `digits` × 10^−scale, with a point for ordinary scales and an exponent for others.
fn decimal(digits: &str, scale: i32) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    match scale {
        0 => format!("{sign}{digits}"),
        1..=40 => {
            let scale = scale as usize;
            let padded = format!("{digits:0>width$}", width = scale + 1);
            let (whole, part) = padded.split_at(padded.len() - scale);
            format!("{sign}{whole}.{part}")
        }
        other => format!("{sign}{digits}E{}", -i64::from(other)),
    }
}
