//! Quantities and sources in words.

use brownout_record::Quantity;
use brownout_units::format_ns;

use crate::measure::Source;

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

/// So many times as much, to three digits; what few trials leave open is not told to seven.
pub fn factor(times: f64) -> String {
    const MANY: f64 = 1_000.0;
    match times {
        times if times > MANY => format!("above ×{MANY:.0}"),
        times if times >= 99.95 => format!("×{times:.0}"),
        times if times >= 9.995 => format!("×{times:.1}"),
        times => format!("×{times:.2}"),
    }
}

/// The same with what it is of, for a sentence that does not say it.
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
    // One place may be asked several things that are written alike.
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
            (1_297_294.73, "above ×1000"),
            (f64::INFINITY, "above ×1000"),
        ] {
            assert_eq!(factor(times), text);
        }
    }
}
