//! The emulator's counters of a trial, by pair of hosts; histograms stay encoded until they are needed.

use std::collections::{BTreeMap, HashMap};

use brownout_record::{Histogram, LinkReading, RecordError, Run, add_encoded};

use crate::{AnalysisError, latency::empty};

/// One reading of the counters of a pair: see [`brownout_record::LinkRow`].
#[derive(Debug, Clone)]
pub(crate) struct LinkCounts {
    pub(crate) starts_ns: u64,
    pub(crate) length_ns: u64,
    pub(crate) offered: u64,
    pub(crate) delivered: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) corrupted: u64,
    pub(crate) reordered: u64,
    pub(crate) cut: u64,
    pub(crate) too_big: u64,
    /// Dropped before a limit of rate, because its queue was full.
    pub(crate) dropped_queue: u64,
    held: Box<[u8]>,
    release_error: Box<[u8]>,
}

impl LinkCounts {
    fn of(reading: &LinkReading<'_>) -> Self {
        LinkCounts {
            starts_ns: reading.starts_ns,
            length_ns: reading.length_ns,
            offered: reading.offered,
            delivered: reading.delivered,
            delivered_bytes: reading.delivered_bytes,
            lost: reading.lost,
            duplicated: reading.duplicated,
            corrupted: reading.corrupted,
            reordered: reading.reordered,
            cut: reading.cut,
            too_big: reading.too_big,
            dropped_queue: reading.dropped_queue,
            held: reading.held.into(),
            release_error: reading.release_error.into(),
        }
    }

    /// Its end, ns since the run's zero.
    pub(crate) fn ends_ns(&self) -> u64 {
        self.starts_ns.saturating_add(self.length_ns)
    }

    /// Packets that came as far as the stages behind all cuts and losses.
    pub(crate) fn passed(&self) -> u64 {
        self.offered.saturating_sub(self.lost + self.cut + self.too_big)
    }
}

/// The times that packets of some readings spent in the emulator, ns.
pub(crate) fn held<'a>(readings: impl Iterator<Item = &'a LinkCounts>) -> Result<Histogram, AnalysisError> {
    sum(readings.map(|reading| &reading.held))
}

/// How much later than they were due the emulator released packets of some readings, ns.
pub(crate) fn release_error<'a>(readings: impl Iterator<Item = &'a LinkCounts>) -> Result<Histogram, AnalysisError> {
    sum(readings.map(|reading| &reading.release_error))
}

fn sum<'a>(encoded: impl Iterator<Item = &'a Box<[u8]>>) -> Result<Histogram, AnalysisError> {
    let mut sum = empty()?;
    for histogram in encoded {
        add_encoded(histogram, &mut sum)?;
    }
    Ok(sum)
}

/// Readings that together are not longer than this count as one, ns: alone they come about once a second.
const ONE_READING_NS: u64 = 1_200_000_000;

/// What the emulator counted in a trial.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkCounters {
    by_pair: HashMap<String, HashMap<String, Vec<LinkCounts>>>,
    /// Release errors of all pairs together, by the start of the reading, with its length.
    pub(crate) release: BTreeMap<u64, (u64, Histogram)>,
    /// Start and end of the readings in which the emulator itself dropped packets, ns since the run's zero.
    pub(crate) dropping: Vec<(u64, u64)>,
}

impl LinkCounters {
    pub(crate) fn read(run: &Run, trial: u32) -> Result<Self, AnalysisError> {
        let mut links = LinkCounters::default();
        let mut failure = None;
        run.each_link(trial, 0..u64::MAX, |reading| {
            if failure.is_none() {
                failure = links.add(&reading).err();
            }
            Ok::<(), RecordError>(())
        })?;
        failure.map_or(Ok(links), Err)
    }

    fn add(&mut self, reading: &LinkReading<'_>) -> Result<(), AnalysisError> {
        // Looked up before an owned name is made: there are thousands of readings of each name.
        if !self.by_pair.contains_key(reading.from) {
            self.by_pair.insert(reading.from.to_owned(), HashMap::new());
        }
        if let Some(from) = self.by_pair.get_mut(reading.from) {
            match from.get_mut(reading.to) {
                Some(counts) => counts.push(LinkCounts::of(reading)),
                None => {
                    from.insert(reading.to.to_owned(), vec![LinkCounts::of(reading)]);
                }
            }
        }
        if reading.dropped_emulator > 0 {
            self.dropping.push((reading.starts_ns, reading.starts_ns.saturating_add(reading.length_ns)));
        }
        // Readings around a change are short, and hold too few packets for a percentile: they count as one until they are as long as
        // the others. Readings come in order of time; those of several machines overlap.
        let ends_ns = reading.starts_ns + reading.length_ns;
        let goes_on = self.release.last_key_value().filter(|(starts_ns, (length_ns, _))| {
            ends_ns <= *starts_ns + length_ns || ends_ns - *starts_ns <= ONE_READING_NS
        });
        let starts_ns = goes_on.map_or(reading.starts_ns, |(starts_ns, _)| *starts_ns);
        let (length_ns, sum) = match self.release.entry(starts_ns) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert((0, empty()?)),
        };
        *length_ns = (ends_ns - starts_ns).max(*length_ns);
        Ok(add_encoded(reading.release_error, sum)?)
    }

    /// The readings of a pair, in order of time.
    pub(crate) fn of(&self, from: &str, to: &str) -> &[LinkCounts] {
        self.by_pair.get(from).and_then(|of| of.get(to)).map_or(&[], Vec::as_slice)
    }

    /// The readings of all pairs that end at a host, pair by pair.
    pub(crate) fn ending_at<'a>(&'a self, to: &'a str) -> impl Iterator<Item = &'a [LinkCounts]> {
        self.by_pair.values().filter_map(move |of| of.get(to)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use brownout_record::encode_histogram;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn readings_of_several_machines_are_not_one_that_never_ends() {
        let mut errors = Histogram::new(3).unwrap();
        errors.record(7).unwrap();
        let encoded = encode_histogram(&errors);
        let reading = |starts_ns: u64, length_ns: u64, from: &'static str| LinkReading {
            starts_ns,
            length_ns,
            from,
            to: "n9",
            offered: 1,
            offered_bytes: 1,
            delivered: 1,
            delivered_bytes: 1,
            lost: 0,
            dropped_queue: 0,
            dropped_emulator: 0,
            duplicated: 0,
            corrupted: 0,
            reordered: 0,
            cut: 0,
            too_big: 0,
            release_error: &encoded,
            held: &encoded,
        };
        let mut links = LinkCounters::default();
        for second in 0..10 {
            // Two links of one machine; the other one reads half a second later.
            links.add(&reading(second * S, S, "n1")).unwrap();
            links.add(&reading(second * S, S, "n2")).unwrap();
            links.add(&reading(second * S + S / 2, S, "n3")).unwrap();
        }
        // Around a change of a fault.
        links.add(&reading(11 * S, S / 10, "n1")).unwrap();
        links.add(&reading(11 * S + S / 10, 9 * S / 10, "n1")).unwrap();
        let lengths: Vec<u64> = links.release.values().map(|(length_ns, _)| *length_ns).collect();
        assert_eq!(lengths, [S; 21]);
        assert_eq!(links.release.values().map(|(_, errors)| errors.len()).sum::<u64>(), 32);
    }
}
