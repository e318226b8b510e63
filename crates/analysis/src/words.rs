//! Quantities and sources in words.

use brownout_record::Quantity;
use brownout_units::format_ns;

use crate::place::Eye;

/// A value or a change of a quantity.
pub fn show(quantity: Quantity, value: f64) -> String {
    let percent = |of: &str| format!("{:.2}%{of}", value * 100.0);
    match quantity {
        Quantity::OneWayDelay | Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime => time(value),
        Quantity::DelaySpread => format!("{} of spread", time(value)),
        Quantity::Loss => percent(""),
        Quantity::Duplicates => percent(" doubled"),
        Quantity::Reordered => percent(" reordered"),
        Quantity::Corruption => percent(" damaged"),
        Quantity::Rate => rate(value),
        Quantity::LargestPacket => format!("{value:.0} bytes"),
        Quantity::Answers => percent(" answered"),
        Quantity::Running => percent(" of the time running"),
        Quantity::ProcessorShare => percent(" of the processors"),
        Quantity::ReadErrors | Quantity::WriteErrors | Quantity::SyncErrors => percent(" failed"),
        Quantity::ClockOffset => time(value),
        Quantity::ClockDrift => format!("{}/s", time(value)),
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
        Quantity::DelaySpread => "spread of the delay",
        Quantity::Loss => "loss",
        Quantity::Duplicates => "duplicates",
        Quantity::Reordered => "reordering",
        Quantity::Corruption => "corruption",
        Quantity::Rate => "rate",
        Quantity::LargestPacket => "largest packet",
        Quantity::Answers => "answers",
        Quantity::Running => "running",
        Quantity::ProcessorShare => "processors",
        Quantity::ReadTime => "time of a read",
        Quantity::WriteTime => "time of a write",
        Quantity::SyncTime => "time of an fsync",
        Quantity::ReadErrors => "failing reads",
        Quantity::WriteErrors => "failing writes",
        Quantity::SyncErrors => "failing fsyncs",
        Quantity::ClockOffset => "clock offset",
        Quantity::ClockDrift => "clock drift",
    }
}

/// Who looked, and the verb that goes with it.
pub(crate) fn said(eye: Eye<'_>, quantity: Quantity) -> (String, &'static str) {
    let (name, verb) = match eye {
        Eye::Probes => ("probes", "show"),
        Eye::Counters => ("the emulator's counters", "show"),
        Eye::Checksums => ("the receiving kernel's checksums", "show"),
        Eye::Cpu => ("the node's CPU time", "shows"),
        Eye::Witness("train") => ("trains of packets", "show"),
        Eye::Witness("heartbeat") => ("heartbeats", "show"),
        Eye::Witness("process") => ("the state of its process", "shows"),
        Eye::Witness("governor") => ("the governor", "shows"),
        Eye::Witness("disk-probe") => ("the disk probe", "shows"),
        Eye::Witness("disk") => ("the filesystem", "shows"),
        Eye::Witness("sntp") => ("SNTP", "shows"),
        Eye::Witness("database") => ("the database's timestamps", "show"),
        Eye::Witness(other) => (other, "shows"),
    };
    // One place may be asked several things that are written alike.
    let of = match quantity {
        Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime | Quantity::ClockDrift => {
            format!("{name} ({})", self::name(quantity))
        }
        Quantity::ReadErrors | Quantity::WriteErrors | Quantity::SyncErrors => {
            format!("{name} ({})", self::name(quantity))
        }
        _ => name.to_owned(),
    };
    (of, verb)
}
