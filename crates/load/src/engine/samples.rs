//! Latencies, kept raw until histograms are requested.
//!
//! A histogram of three digits takes some 100 kB, and a bucket has three for every operation, coordinator and outcome.
//! So samples are kept raw, 8 or 16 bytes each, until there are so many that histograms are smaller.

use hdrhistogram::Histogram;

use crate::histogram;

/// With this many raw samples they are folded into histograms: 128 kB.
const MOST_RAW: usize = 1 << 13;

/// A latency as it was measured: (wait, service) in ns.
pub(super) type Sample = (u64, u64);

/// The latencies of one series.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    raw: Vec<Sample>,
    folded: Option<Box<Latencies>>,
}

/// The histograms of a series, in ns.
#[derive(Debug, Clone)]
pub(super) struct Latencies {
    pub(super) wait: Histogram<u64>,
    pub(super) service: Histogram<u64>,
    pub(super) response: Histogram<u64>,
}

impl Latencies {
    fn new() -> Self {
        Latencies { wait: histogram(), service: histogram(), response: histogram() }
    }

    // They grow as they need to, so neither recording nor adding can fail.
    fn record(&mut self, samples: &[Sample]) {
        for (wait, service) in samples {
            let _ = self.wait.record(*wait);
            let _ = self.service.record(*service);
            let _ = self.response.record(wait + service);
        }
    }

    fn add(&mut self, other: &Latencies) {
        let _ = self.wait.add(&other.wait);
        let _ = self.service.add(&other.service);
        let _ = self.response.add(&other.response);
    }
}

impl Samples {
    pub(super) fn push(&mut self, sample: Sample) {
        self.raw.push(sample);
        if self.raw.len() >= MOST_RAW {
            self.fold();
        }
    }

    fn fold(&mut self) {
        self.folded.get_or_insert_with(|| Box::new(Latencies::new())).record(&self.raw);
        self.raw.clear();
    }

    /// Adds all of `other`.
    pub(super) fn append(&mut self, mut other: Samples) {
        if self.raw.is_empty() {
            std::mem::swap(&mut self.raw, &mut other.raw);
        } else {
            self.raw.append(&mut other.raw);
        }
        match (&mut self.folded, other.folded) {
            (Some(mine), Some(theirs)) => mine.add(&theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        if self.raw.len() >= MOST_RAW {
            self.fold();
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.raw.len() as u64 + self.folded.as_ref().map_or(0, |folded| folded.response.len())
    }

    /// The histograms of all of them.
    pub(super) fn latencies(&self) -> Latencies {
        let mut latencies = self.folded.as_deref().cloned().unwrap_or_else(Latencies::new);
        latencies.record(&self.raw);
        latencies
    }
}

/// Single times in ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    raw: Vec<u64>,
    folded: Option<Box<Histogram<u64>>>,
}

impl Times {
    pub(super) fn push(&mut self, ns: u64) {
        self.raw.push(ns);
        if self.raw.len() >= MOST_RAW {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let folded = self.folded.get_or_insert_with(|| Box::new(histogram()));
        for ns in self.raw.drain(..) {
            let _ = folded.record(ns);
        }
    }

    /// Adds all of `other`.
    pub(super) fn append(&mut self, mut other: Times) {
        self.raw.append(&mut other.raw);
        match (&mut self.folded, other.folded) {
            (Some(mine), Some(theirs)) => drop(mine.add(&*theirs)),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        if self.raw.len() >= MOST_RAW {
            self.fold();
        }
    }

    /// The histogram of all of them.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut all = self.folded.as_deref().cloned().unwrap_or_else(histogram);
        for ns in &self.raw {
            let _ = all.record(*ns);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_loses_nothing_however_the_samples_came_together() {
        let count = 3 * MOST_RAW as u64 + 17;
        let (mut whole, mut expected, mut parts) = (Samples::default(), Latencies::new(), Samples::default());
        let (mut times, mut part) = (Times::default(), Samples::default());
        for number in 0..count {
            let sample = (number % 977, number % 7_919);
            whole.push(sample);
            expected.record(&[sample]);
            part.push(sample);
            times.push(sample.1);
            if number % 10_007 == 0 {
                parts.append(std::mem::take(&mut part));
            }
        }
        parts.append(part);
        for samples in [&whole, &parts] {
            assert_eq!(samples.count(), count);
            assert!(samples.raw.len() < MOST_RAW, "memory is bounded");
            let latencies = samples.latencies();
            assert_eq!(latencies.wait, expected.wait);
            assert_eq!(latencies.service, expected.service);
            assert_eq!(latencies.response, expected.response);
        }
        let mut doubled = times.clone();
        doubled.append(times.clone());
        assert_eq!(times.histogram(), expected.service);
        assert_eq!(doubled.histogram().len(), 2 * count);
    }
}
