//! Histograms of times as they lie in the file: added up without being decoded.

use serde::{Deserialize, Serialize};

use crate::{
    AddTo, Histogram, RecordError,
    blob::{decode_histogram, encode_histogram},
    times::empty,
};

/// Times of operations as they lie in the file, in a few hundred bytes, and added up without being decoded first. Elsewhere they are
/// written as pairs: a time, and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", try_from = "Vec<(u64, u64)>")]
pub struct EncodedTimes(Box<[u8]>);

impl EncodedTimes {
    /// Of what [`encode_histogram`] or another writer of HdrHistogram's V2 format wrote.
    pub(crate) fn read(bytes: &[u8]) -> Result<EncodedTimes, RecordError> {
        if !is_ours(bytes)? {
            return Ok(EncodedTimes::from(&decode_histogram(bytes)?));
        }
        // What comes after its counts is none of it.
        let end = HEADER_BYTES + word(bytes, 4)? as usize;
        Entries::of(bytes)?.try_for_each(|entry| entry.map(drop))?;
        Ok(EncodedTimes(bytes[..end].into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Each time that occurs, ns, and how often; from the least on. Of all that the format does not distinguish it is
    /// the least: see [`EncodedTimes::most_of`].
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        // What was read or made is whole.
        Entries::of(&self.0).into_iter().flatten().flatten()
    }

    /// The greatest time that the format does not distinguish from this one, ns.
    pub fn most_of(ns: u64) -> u64 {
        ns | ((1 << doublings(ns)) - 1)
    }

    /// How many took at most so long, ns, as far as the format distinguishes them.
    pub fn within(&self, ns: u64) -> u64 {
        self.iter().take_while(|(least, _)| *least <= ns).fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}

impl AddTo for EncodedTimes {
    fn add_to(&self, sum: &mut Histogram) {
        for (ns, count) in self.iter() {
            let _ = sum.record_n(ns, count);
        }
    }
}

impl From<EncodedTimes> for Vec<(u64, u64)> {
    fn from(times: EncodedTimes) -> Vec<(u64, u64)> {
        times.iter().collect()
    }
}

impl TryFrom<Vec<(u64, u64)>> for EncodedTimes {
    type Error = RecordError;

    fn try_from(pairs: Vec<(u64, u64)>) -> Result<EncodedTimes, RecordError> {
        let mut histogram = empty();
        let record = |(ns, count): (u64, u64)| histogram.record_n(ns, count);
        pairs.into_iter().try_for_each(record).map_err(|error| damaged(&error.to_string()))?;
        Ok(EncodedTimes::from(&histogram))
    }
}

impl From<&Histogram> for EncodedTimes {
    fn from(histogram: &Histogram) -> EncodedTimes {
        let is_ours = histogram.sigfig() == 3 && histogram.low() == 1;
        if is_ours {
            return EncodedTimes(encode_histogram(histogram).into());
        }
        let mut same = empty();
        histogram.add_to(&mut same);
        EncodedTimes(encode_histogram(&same).into())
    }
}

/// Adds a histogram that [`encode_histogram`] wrote to another, without building it first: decoded, one with a value of
/// a second takes 160 kB, and a lab of 50 hosts leaves thousands of them in each second.
pub fn add_encoded(bytes: &[u8], to: &mut Histogram) -> Result<(), RecordError> {
    if !is_ours(bytes)? {
        let other = decode_histogram(bytes)?;
        return to.add(&other).map_err(|error| damaged(&format!("{error:?}")));
    }
    for entry in Entries::of(bytes)? {
        let (value, count) = entry?;
        to.record_n(value, count).map_err(|error| damaged(&error.to_string()))?;
    }
    Ok(())
}

/// Below the first doubling values are distinguished in steps of one, 2048 of them; each further doubling has 1024
/// steps.
const HALF: u64 = 1024;

/// How often the steps of this value have doubled.
fn doublings(value: u64) -> u32 {
    u64::BITS.saturating_sub((2 * HALF).trailing_zeros() + value.leading_zeros())
}

fn damaged(why: &str) -> RecordError {
    RecordError::Damaged { what: "histogram", why: why.to_owned() }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, RecordError> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(|| damaged("its header is cut"))
}

/// Whether it is as we write it: V2, from one on, of three significant digits.
fn is_ours(bytes: &[u8]) -> Result<bool, RecordError> {
    let word = |at| word(bytes, at);
    Ok(word(0)? == 0x1c84_9313 && word(8)? == 0 && word(12)? == 3 && word(16)? == 0 && word(20)? == 1)
}

/// The counts of an encoded histogram of ours that are not 0, with the least value that each stands for.
///
/// The format is that of HdrHistogram's V2 encoding: 40 bytes of header, then counts in ZigZag LEB128, in which a
/// negative number stands for so many zeros.
struct Entries<'a> {
    counts: &'a [u8],
    index: u64,
}

impl<'a> Entries<'a> {
    fn of(bytes: &'a [u8]) -> Result<Entries<'a>, RecordError> {
        let end = HEADER_BYTES + word(bytes, 4)? as usize;
        let counts = bytes.get(HEADER_BYTES..end).ok_or_else(|| damaged("its counts are cut"))?;
        Ok(Entries { counts, index: 0 })
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<(u64, u64), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.counts.is_empty() {
            let Some((count, rest)) = zigzag(self.counts) else {
                self.counts = &[];
                return Some(Err(damaged("its last count is cut")));
            };
            self.counts = rest;
            let steps = if count < 0 { count.unsigned_abs() } else { 1 };
            let index = self.index;
            self.index = index.saturating_add(steps);
            if count <= 0 {
                continue;
            }
            let doublings = (index / HALF).saturating_sub(1);
            if doublings > 52 {
                self.counts = &[];
                return Some(Err(damaged("it has more counts than there are values")));
            }
            return Some(Ok(((index - doublings * HALF) << doublings, count.unsigned_abs())));
        }
        None
    }
}

const HEADER_BYTES: usize = 40;

/// The first number in ZigZag LEB128 of at most nine bytes (of which the ninth has no bit to go on), and what follows it.
fn zigzag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value: u64 = 0;
    for at in 0..9 {
        let byte = u64::from(*bytes.get(at)?);
        let last = at == 8 || byte & 0x80 == 0;
        value |= (if at == 8 { byte } else { byte & 0x7f }) << (7 * at);
        if last {
            return Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    fn random_times() -> Histogram {
        let mut histogram = empty();
        let mut random = Random::new(1);
        for at in 0..5_000_u64 {
            histogram.record_n(random.between(0, 1 << (at % 48)), 1 + (at % 3) * 200_000).unwrap();
        }
        histogram
    }

    #[test]
    fn adding_an_encoded_histogram_is_adding_the_histogram() {
        for histogram in [random_times(), empty()] {
            let mut sum = empty();
            sum.record(77).unwrap();
            let mut expected = sum.clone();
            expected.add(&histogram).unwrap();
            let bytes = encode_histogram(&histogram);
            add_encoded(&bytes, &mut sum).unwrap();
            assert_eq!(sum, expected);
            for cut in [0, 10, 39, bytes.len() - 1] {
                let cut = add_encoded(&bytes[..cut], &mut sum);
                assert!(cut.is_err() || histogram.is_empty());
            }
        }
        // One of other digits goes the long way.
        let mut coarse = Histogram::new(2).unwrap();
        coarse.record(1_000_000).unwrap();
        let mut sum = empty();
        add_encoded(&encode_histogram(&coarse), &mut sum).unwrap();
        assert_eq!(sum.len(), 1);
    }

    #[test]
    fn times_come_out_of_a_message_as_they_went_in() {
        for histogram in [random_times(), empty()] {
            let times = EncodedTimes::from(&histogram);
            let message = serde_json::to_string(&times).unwrap();
            assert_eq!(serde_json::from_str::<EncodedTimes>(&message).unwrap(), times, "{message}");
        }
    }

    #[test]
    fn times_tell_what_their_histogram_tells() {
        for histogram in [random_times(), empty()] {
            let times = EncodedTimes::from(&histogram);
            assert_eq!(EncodedTimes::read(&encode_histogram(&histogram)).unwrap(), times);
            let each: Vec<(u64, u64)> = histogram
                .iter_recorded()
                .map(|value| (histogram.lowest_equivalent(value.value_iterated_to()), value.count_at_value()))
                .collect();
            assert_eq!(times.iter().collect::<Vec<_>>(), each);
            for limit in [0, 1, 2_047, 2_048, 2_049, 4_095, 4_096, 1_000_000, 123_456_789, 1 << 50] {
                assert_eq!(times.within(limit), histogram.count_between(0, limit), "{limit}");
                assert_eq!(EncodedTimes::most_of(limit), histogram.highest_equivalent(limit), "{limit}");
            }
            let mut sum = empty();
            times.add_to(&mut sum);
            assert_eq!(sum, histogram);
        }
    }

    #[test]
    fn times_of_another_resolution_are_read_and_damaged_ones_are_not() {
        let mut coarse = Histogram::new(2).unwrap();
        coarse.record_n(1_000_000, 3).unwrap();
        let times = EncodedTimes::read(&encode_histogram(&coarse)).unwrap();
        assert_eq!((times.within(u64::MAX), times.within(900_000)), (3, 0));
        assert_eq!(times, EncodedTimes::from(&coarse));
        let whole = encode_histogram(&random_times());
        for cut in [0, 10, 39, whole.len() - 1] {
            assert!(EncodedTimes::read(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
