//! The forms that the value of an option may have.

use brownout_units::{Delay, Rate};

/// The form of a value. Each stands for the regular expression of cassandra-stress that messages show; ours accept more
/// where its users miss something (`1.5k/s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// None: a flag.
    Nothing,
    /// Anything, even nothing.
    Anything,
    /// Anything that is not empty.
    Something,
    /// A whole number.
    Digits,
    /// A whole number above 0.
    Positive,
    /// A whole number that may be negative.
    Whole,
    /// A whole number with k, m or b for 10³, 10⁶, 10⁹.
    Count,
    /// Whole seconds, minutes or hours; ours: any duration.
    Time,
    /// A fraction below 1.
    Fraction,
    /// A weight.
    Weight,
    /// One of these words, separated by `|`.
    Words(&'static str),
    /// Operations per second.
    Rate,
    /// `first..last`.
    Range,
    /// The length of an interval.
    Interval,
    /// Hosts, separated by commas.
    Hosts,
    /// Version of the native protocol.
    Protocol,
}

impl Pattern {
    /// The regular expression that messages show.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Pattern::Nothing => "",
            Pattern::Anything => ".*",
            Pattern::Something => ".+",
            Pattern::Digits => "[0-9]+",
            Pattern::Positive => "[1-9][0-9]*",
            Pattern::Whole => "-?[0-9]+",
            Pattern::Count => "[0-9]+[bmk]?",
            Pattern::Time => "[0-9]+[smh]",
            Pattern::Fraction => "0\\.[0-9]+",
            Pattern::Weight => "[0-9]+(\\.[0-9]+)?",
            Pattern::Words(words) => words,
            Pattern::Rate => "[0-9]+/s",
            Pattern::Range => "[0-9]+[MBK]?\\.\\.+[0-9]+[MBK]?",
            Pattern::Interval => "[0-9]+(ms|s|)",
            Pattern::Hosts => "[^=,]+(,[^=,]+)*",
            Pattern::Protocol => "[2-5]|DEFAULT|NEWEST_SUPPORTED",
        }
    }

    /// Whether a value has this form.
    pub(crate) fn fits(self, text: &str) -> bool {
        match self {
            Pattern::Nothing => text.is_empty(),
            Pattern::Anything => true,
            Pattern::Something => !text.is_empty(),
            Pattern::Digits => digits(text),
            Pattern::Positive => digits(text) && !text.starts_with('0'),
            Pattern::Whole => digits(text.strip_prefix('-').unwrap_or(text)),
            Pattern::Count => count(text),
            Pattern::Time => time(text),
            Pattern::Fraction => text.strip_prefix("0.").is_some_and(digits),
            Pattern::Weight => match text.split_once('.') {
                Some((whole, fraction)) => digits(whole) && digits(fraction),
                None => digits(text),
            },
            Pattern::Words(words) => words.split('|').any(|word| word.eq_ignore_ascii_case(text)),
            Pattern::Rate => rate(text).is_some(),
            Pattern::Range => range(text).is_some_and(|(first, last)| count(first) && count(last)),
            Pattern::Interval => digits(unsuffixed(text, &["ms", "s"])),
            Pattern::Hosts => text.split(',').all(|host| !host.is_empty() && !host.contains('=')),
            Pattern::Protocol => {
                matches!(text, "2" | "3" | "4" | "5")
                    || text.eq_ignore_ascii_case("default")
                    || text.eq_ignore_ascii_case("newest_supported")
            }
        }
    }

    /// What to write instead, as text.
    pub(crate) fn remedy(self) -> String {
        match self {
            Pattern::Nothing => "it takes no value".to_owned(),
            Pattern::Anything | Pattern::Something => "it needs a value".to_owned(),
            Pattern::Digits => "write a whole number".to_owned(),
            Pattern::Positive => "write a whole number above 0".to_owned(),
            Pattern::Whole => "write a whole number, such as 42 or -7".to_owned(),
            Pattern::Count => "write a whole number, such as 500, 100k, 5m or 1b".to_owned(),
            Pattern::Time => "write a duration, such as 30s, 5m, 2h or 500ms".to_owned(),
            Pattern::Fraction => "write a fraction, such as 0.02".to_owned(),
            Pattern::Weight => "write a number, such as 1 or 0.5".to_owned(),
            Pattern::Words(words) => format!("write one of {}", words.replace('|', ", ")),
            Pattern::Rate => "write a rate, such as 2000/s, 1.5k/s or 90/min".to_owned(),
            Pattern::Range => "write a range, such as 1..1000000 or 1..1M".to_owned(),
            Pattern::Interval => "write an interval, such as 1s, 250ms or 5".to_owned(),
            Pattern::Hosts => "write names or addresses, separated by commas".to_owned(),
            Pattern::Protocol => "write 4 or 5".to_owned(),
        }
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn unsuffixed<'a>(text: &'a str, suffixes: &[&str]) -> &'a str {
    for suffix in suffixes {
        let Some(at) = text.len().checked_sub(suffix.len()) else { continue };
        if text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(suffix)) {
            return &text[..at];
        }
    }
    text
}

fn count(text: &str) -> bool {
    digits(unsuffixed(text, &["b", "m", "k"]))
}

/// A duration above zero, in cassandra-stress's units and ours.
fn time(text: &str) -> bool {
    digits(unsuffixed(text, &["s", "m", "h"])) && text.ends_with(|last: char| last.is_ascii_alphabetic())
        || text.parse::<Delay>().is_ok()
}

/// `0/s` means none.
fn rate(text: &str) -> Option<Option<Rate>> {
    if text.strip_suffix("/s").is_some_and(|number| digits(number) && number.bytes().all(|byte| byte == b'0')) {
        return Some(None);
    }
    text.to_ascii_lowercase().parse::<Rate>().ok().map(Some)
}

/// The ends of `first..last`, which two or more dots separate.
pub(crate) fn range(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once("..")?;
    Some((first, rest.trim_start_matches('.')))
}
