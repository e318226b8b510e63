//! Numbers as the tables have them.

use brownout_units::format_ns;

use crate::stored::Phase;

/// What stands where there is no value.
pub const NONE: &str = "–";

/// Below a table of ours with response times: of which operations they are.
pub const POPULATION: &str =
    "\nPercentiles and means of ours: response times of operations ok and timed out (`ok+timed-out`).\n";

/// With a comma between thousands; one decimal below ten.
pub fn count(value: f64) -> String {
    if value < 9.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio to two significant digits: 0.64, 0.045.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95 => format!("{value:.0}"),
        size if size >= 0.995 => format!("{value:.1}"),
        size if size >= 0.0995 => format!("{value:.2}"),
        size if size >= 0.00995 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// A share in percent.
pub fn percent(value: f64) -> String {
    let percent = value * 100.0;
    let digits = if percent != 0.0 && percent.abs() < 9.95 { 1 } else { 0 };
    format!("{percent:.digits$}%")
}

/// The same with three digits: what was lost of what was asked to be lost.
pub fn lost(value: f64) -> String {
    let percent = value * 100.0;
    let digits = if percent.abs() < 9.995 { 2 } else { 1 };
    format!("{percent:.digits$}%")
}

/// A change with its sign; from twice as much on as a factor.
pub fn change(value: f64) -> String {
    if value >= 1.0 {
        format!("×{}", ratio(value + 1.0))
    } else {
        format!("{}{}", if value > 0.0 { "+" } else { "" }, percent(value))
    }
}

/// Both ends of an interval of changes.
pub fn interval(ends: Option<(f64, f64)>) -> String {
    ends.map_or_else(|| NONE.to_owned(), |(low, high)| format!("{} … {}", change(low), change(high)))
}

/// A time with its sign, in the unit that suits.
pub fn signed_time(ns: f64) -> String {
    format!("{}{}", if ns > 0.0 { "+" } else { "" }, format_ns(ns))
}

/// A time in the unit that suits.
pub fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), format_ns)
}

/// Milliseconds as others have written them.
pub fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.1}ms"))
}

/// A 99th percentile, which may be a lower bound.
pub fn p99(phase: &Phase) -> String {
    format!("{}{}", if phase.p99_at_least { "≥" } else { "" }, time(phase.p99_ns))
}

/// What could not be said, or a text.
pub fn or_none(value: Option<f64>, text: fn(f64) -> String) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| NONE.to_owned(), text)
}
