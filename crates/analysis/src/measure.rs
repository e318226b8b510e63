//! What one source measured.

use std::borrow::Cow;

use brownout_record::Quantity;

use crate::stats;

/// A reading that leans over a change may do so by this share of its length.
pub(crate) const LEAN: f64 = 0.02;

/// Whether a quantity is a share of packets or operations.
pub(crate) fn is_share(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::Loss
            | Quantity::Duplicates
            | Quantity::Reordered
            | Quantity::Corruption
            | Quantity::ReadErrors
            | Quantity::WriteErrors
            | Quantity::SyncErrors
            | Quantity::MetadataErrors
            | Quantity::ReadDelayed
            | Quantity::WriteDelayed
            | Quantity::SyncDelayed
            | Quantity::MetadataDelayed
    )
}

/// The source of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source<'a> {
    /// The probes, which cross the network like any packet.
    Probes,
    /// The emulator's own counters.
    Counters,
    /// The receiving kernel, which counts packets with a wrong checksum.
    Checksums,
    /// The kernel's account of processor time.
    Cpu,
    /// A witness that measures the subject itself.
    Witness(&'a str),
}

impl<'a> Source<'a> {
    /// Its name in the findings: `probes`, `counters`, `checksums`, `cpu`, or the witness's own.
    pub(crate) fn name(self) -> Cow<'a, str> {
        Cow::Borrowed(match self {
            Source::Probes => "probes",
            Source::Counters => "counters",
            Source::Checksums => "checksums",
            Source::Cpu => "cpu",
            Source::Witness(name) => name,
        })
    }
}

/// What a source measured in some segments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measure {
    pub(crate) value: Option<f64>,
    pub(crate) samples: u64,
    /// Half-width of the 99.999 % interval of a share; the bound of a clock's error, ns.
    pub(crate) error: f64,
    /// Of checksums: the share that the emulator says that it damaged. Of CPU time: the share of the time in which a limit held the node.
    pub(crate) told: f64,
    /// It cannot see this here, however much is there.
    pub(crate) blind: bool,
    /// Some of it may be from beyond the segments: from [`LEAN`] of the time at most.
    pub(crate) leans: bool,
}

impl Measure {
    pub(crate) fn share(hits: u64, count: u64) -> Self {
        let value = (count > 0).then(|| hits as f64 / count as f64);
        Measure { value, samples: count, error: stats::share_half_width(hits, count), ..Measure::default() }
    }

    pub(crate) fn exact(value: Option<f64>, samples: u64) -> Self {
        Measure { value, samples, ..Measure::default() }
    }

    /// The median of values each of which is known within a bound, with the median of the bounds.
    pub(crate) fn bounded(readings: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut values, mut bounds): (Vec<f64>, Vec<f64>) = readings.unzip();
        let samples = values.len() as u64;
        let error = stats::quantile(&mut bounds, 0.5).unwrap_or(0.0);
        Measure { error, ..Measure::exact(stats::quantile(&mut values, 0.5), samples) }
    }
}
