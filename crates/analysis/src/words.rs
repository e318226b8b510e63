//! Quantities, shares and sources in words.

use brownout_record::Quantity;
use brownout_units::format_ns;

use crate::measure::Source;

/// Of which operations a latency is that says nothing else of it.
pub const SHOWN: &str = "ok and timed out";

/// Operations of a kind: `reads`, `puts`, `serializable ranges`.
pub fn operations(name: &str) -> String {
    match name {
        "serializable" => "serializable ranges".to_owned(),
        name => format!("{name}s"),
    }
}

/// A value or a change of a quantity in its unit, as short as can be.
pub fn number(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::OneWayDelay
        | Quantity::DelaySpread
        | Quantity::ReadTime
        | Quantity::WriteTime
        | Quantity::SyncTime
        | Quantity::MetadataTime
        | Quantity::AnswerTime
        | Quantity::ClockOffset => time(value),
        Quantity::Rate => rate(value),
        Quantity::LargestPacket => format!("{value:.0} bytes"),
        // 1 ns/s is a part in 10^9.
        Quantity::ClockDrift => format!("{:.1}ppm", value / 1e3),
        _ => format!("{:.2}%", value * 100.0),
    }
}

/// A share in percent: two decimals below one percent and within one of a hundred, so that little never reads as nothing, nor nearly
/// all as all; else one. What rounds to nothing has no sign.
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    let size = percent.abs();
    let is_near_an_end = size > 0.0 && size < 1.0 || size > 99.0 && size < 100.0;
    let text = if is_near_an_end { format!("{size:.2}%") } else { format!("{size:.1}%") };
    if percent < 0.0 && !is_nothing(&text) { format!("-{text}") } else { text }
}

/// A share as it was asked for, without decimals that say nothing: `10%`, `2.5%`.
pub fn percent(share: f64) -> String {
    brownout_units::Share::new(share).map_or_else(String::new, |share| share.to_string())
}

/// The same as [`share`] of an upper bound: rounded up, so that it still is one.
pub fn bound(value: f64) -> String {
    let steps = if value < 0.01 { 1e4 } else { 1e3 };
    // What was a whole number of steps stays it.
    share((value * steps - 1e-6).ceil() / steps)
}

/// A relative change with its sign; one that more than doubles as a factor.
pub fn relative(change: f64) -> String {
    match change {
        change if change > 1.0 => factor(change + 1.0),
        change => {
            let text = share(change);
            let sign = if change > 0.0 && !is_nothing(&text) { "+" } else { "" };
            format!("{sign}{text}")
        }
    }
}

/// So many times as much, to three digits; what few trials leave open is not told to seven.
fn factor(times: f64) -> String {
    const MOST: f64 = 1_000.0;
    match times {
        times if times > MOST => format!("more than ×{MOST}"),
        times if times >= 99.95 => format!("×{times:.0}"),
        times if times >= 9.995 => format!("×{times:.1}"),
        times => format!("×{times:.2}"),
    }
}

/// The interval of one: `-3.2% … +0.41%`.
pub fn relative_range((low, high): (f64, f64)) -> String {
    format!("{} … {}", relative(low), relative(high))
}

/// How sure an interval is, with two decimals at most and none that says nothing: `95%`, `99.38%`.
pub fn confidence(value: f64) -> String {
    let text = format!("{:.2}", value * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn is_nothing(text: &str) -> bool {
    !text.contains(|letter: char| ('1'..='9').contains(&letter))
}

/// A quantity with what it is of, for a sentence that does not say it.
pub(crate) fn show(quantity: Quantity, value: f64) -> String {
    let percent = |of: &str| format!("{}{of}", number(quantity, value));
    match quantity {
        Quantity::DelaySpread => percent(" of spread"),
        Quantity::Duplicates => percent(" doubled"),
        Quantity::Reordered => percent(" reordered"),
        Quantity::Corruption => percent(" damaged"),
        Quantity::Answers => percent(" answered"),
        Quantity::Running => percent(" of the time running"),
        Quantity::ProcessorShare => percent(" of the processors"),
        Quantity::ReadErrors | Quantity::WriteErrors | Quantity::SyncErrors | Quantity::MetadataErrors => {
            percent(" failed")
        }
        Quantity::ReadDelayed | Quantity::WriteDelayed | Quantity::SyncDelayed | Quantity::MetadataDelayed => {
            percent(" made to wait")
        }
        _ => number(quantity, value),
    }
}

fn time(ns: f64) -> String {
    // Differences of clocks can be hours.
    let seconds = ns / 1e9;
    if seconds.abs() >= 120.0 { format!("{seconds:.1}s") } else { format_ns(ns) }
}

/// Bits per second.
fn rate(bits: f64) -> String {
    match bits.abs() {
        size if size >= 1e9 => format!("{:.2}gbit", bits / 1e9),
        size if size >= 1e6 => format!("{:.2}mbit", bits / 1e6),
        size if size >= 1e3 => format!("{:.1}kbit", bits / 1e3),
        _ => format!("{bits:.0}bit"),
    }
}

/// What is measured.
pub fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::OneWayDelay => "one-way delay",
        Quantity::DelaySpread => "delay spread",
        Quantity::Loss => "loss",
        Quantity::Duplicates => "duplicates",
        Quantity::Reordered => "reordering",
        Quantity::Corruption => "corruption",
        Quantity::Rate => "rate",
        Quantity::LargestPacket => "largest packet",
        Quantity::Answers => "answers",
        Quantity::AnswerTime => "answer time",
        Quantity::Running => "running",
        Quantity::ProcessorShare => "processors",
        Quantity::ReadTime => "read time",
        Quantity::WriteTime => "write time",
        Quantity::SyncTime => "fsync time",
        Quantity::ReadErrors => "read errors",
        Quantity::WriteErrors => "write errors",
        Quantity::SyncErrors => "fsync errors",
        Quantity::MetadataTime => "metadata time",
        Quantity::MetadataErrors => "metadata errors",
        Quantity::ReadDelayed => "delayed reads",
        Quantity::WriteDelayed => "delayed writes",
        Quantity::SyncDelayed => "delayed fsyncs",
        Quantity::MetadataDelayed => "delayed metadata",
        Quantity::ClockOffset => "clock offset",
        Quantity::ClockDrift => "clock drift",
    }
}

/// Who looked, and the verb that goes with it.
pub(crate) fn said(source: Source<'_>, quantity: Quantity) -> (String, &'static str) {
    let (name, verb) = match source {
        Source::Probes => ("probes", "show"),
        Source::Counters => ("the emulator's counters", "show"),
        Source::Checksums => ("the receiving kernel's checksums", "show"),
        Source::Cpu => ("the node's CPU time", "shows"),
        Source::Witness("train") => ("trains of packets", "show"),
        Source::Witness("heartbeat") => ("heartbeats", "show"),
        Source::Witness("process") => ("the state of its process", "shows"),
        Source::Witness("governor") => ("the governor", "shows"),
        Source::Witness("held") => ("the time for which the governor held it", "shows"),
        Source::Witness("sizes") => ("packets of many sizes", "show"),
        Source::Witness("disk-probe") => ("the disk probe", "shows"),
        Source::Witness("disk") => ("the filesystem", "shows"),
        Source::Witness("sntp") => ("SNTP", "shows"),
        Source::Witness("database") => ("the database's timestamps", "show"),
        Source::Witness(other) => (other, "shows"),
    };
    // One subject may be asked several things that are written alike.
    let of = match quantity {
        Quantity::ReadTime
        | Quantity::WriteTime
        | Quantity::SyncTime
        | Quantity::ReadErrors
        | Quantity::WriteErrors
        | Quantity::SyncErrors
        | Quantity::MetadataTime
        | Quantity::MetadataErrors
        | Quantity::ReadDelayed
        | Quantity::WriteDelayed
        | Quantity::SyncDelayed
        | Quantity::MetadataDelayed => format!("{name} ({})", self::name(quantity)),
        _ => name.to_owned(),
    };
    (of, verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_three_digits_and_an_end() {
        for (times, text) in [
            (2.0, "×2.00"),
            (9.996, "×10.0"),
            (99.96, "×100"),
            (999.6, "×1000"),
            (1_297_294.73, "more than ×1000"),
            (f64::INFINITY, "more than ×1000"),
        ] {
            assert_eq!(factor(times), text);
        }
    }

    #[test]
    fn little_does_not_read_as_nothing_nor_nearly_all_as_all() {
        assert_eq!([0.0, 0.0012, 0.334, 0.9995, 1.0].map(share), ["0.0%", "0.12%", "33.4%", "99.95%", "100.0%"]);
        assert_eq!([-0.0, -1e-6, -0.0012, -0.9996].map(share), ["0.0%", "0.00%", "-0.12%", "-99.96%"]);
    }

    #[test]
    fn a_bound_is_never_rounded_below_itself() {
        assert_eq!([0.0, 0.00021, 0.0052, 0.00521].map(bound), ["0.0%", "0.03%", "0.52%", "0.53%"]);
        assert_eq!([0.01, 0.1201].map(bound), ["1.0%", "12.1%"]);
    }

    #[test]
    fn changes_have_a_sign_or_are_factors() {
        let told = [0.0, 1e-7, 0.031, -0.25, 1.0, 1.5, 2e7, f64::INFINITY].map(relative);
        let expected = ["0.0%", "0.00%", "+3.1%", "-25.0%", "+100.0%", "×2.50", "more than ×1000", "more than ×1000"];
        assert_eq!(told, expected);
        assert_eq!(relative_range((-0.5, 3.0)), "-50.0% … ×4.00");
    }

    #[test]
    fn a_confidence_has_no_more_digits_than_it_takes() {
        assert_eq!([0.95, 0.9875, 0.99643].map(confidence), ["95%", "98.75%", "99.64%"]);
    }
}
