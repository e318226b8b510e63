//! Binary columns: histograms and probe samples.

use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::{Histogram, ProbeSample, RecordError};

/// A histogram as an HdrHistogram V2 blob (uncompressed; its run-length form is already short).
pub fn encode_histogram(histogram: &Histogram) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into a Vec cannot fail; a histogram too large to address cannot exist in memory.
    let _ = V2Serializer::new().serialize(histogram, &mut bytes);
    bytes
}

/// The inverse of [`encode_histogram`].
pub fn decode_histogram(bytes: &[u8]) -> Result<Histogram, RecordError> {
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| RecordError::Damaged { what: "histogram", why: format!("{error:?}") })
}

/// Adds a histogram that [`encode_histogram`] wrote to another, without building it first: decoded, one with a value of
/// a second takes 160 kB, and a lab of 50 hosts leaves thousands of them in each second.
///
/// The format is that of HdrHistogram's V2 encoding: 40 bytes of header, then counts in ZigZag LEB128, in which a
/// negative number stands for so many zeros.
pub fn add_encoded(bytes: &[u8], to: &mut Histogram) -> Result<(), RecordError> {
    // Of three significant digits: 2048 steps below the first doubling, 1024 in each further one.
    const HALF: u64 = 1024;
    let damaged = |why: &str| RecordError::Damaged { what: "histogram", why: why.to_owned() };
    let word = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(u32::from_be_bytes).ok_or_else(|| damaged("its header is cut"))
    };
    let ours = word(0)? == 0x1c84_9313 && word(8)? == 0 && word(12)? == 3 && word(16)? == 0 && word(20)? == 1;
    if !ours {
        let other = decode_histogram(bytes)?;
        return to.add(&other).map_err(|error| damaged(&format!("{error:?}")));
    }
    let end = HEADER_BYTES + word(4)? as usize;
    let mut counts = bytes.get(HEADER_BYTES..end).ok_or_else(|| damaged("its counts are cut"))?;
    let mut index: u64 = 0;
    while !counts.is_empty() {
        let (count, rest) = zigzag(counts).ok_or_else(|| damaged("its last count is cut"))?;
        counts = rest;
        if count < 0 {
            index = index.saturating_add(count.unsigned_abs());
            continue;
        }
        let doublings = (index / HALF).saturating_sub(1);
        if doublings > 52 {
            return Err(damaged("it has more counts than there are values"));
        }
        let value = (index - doublings * HALF) << doublings;
        to.record_n(value, count.unsigned_abs()).map_err(|error| damaged(&error.to_string()))?;
        index += 1;
    }
    Ok(())
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

const SAMPLE_BYTES: usize = 26;
const NO_ARRIVAL: u64 = u64::MAX;

/// Probe samples, 26 bytes each, little-endian: sequence number u64, sent u64 (ns since the run's
/// zero), delay u64 (ns; all ones when it never arrived), copies u8, reordered u8.
pub(crate) fn encode_samples(samples: &[ProbeSample]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(samples.len() * SAMPLE_BYTES);
    for sample in samples {
        bytes.extend_from_slice(&sample.seq.to_le_bytes());
        bytes.extend_from_slice(&sample.sent_ns.to_le_bytes());
        bytes.extend_from_slice(&sample.delay_ns.unwrap_or(NO_ARRIVAL).to_le_bytes());
        bytes.push(sample.copies);
        bytes.push(u8::from(sample.reordered));
    }
    bytes
}

/// The inverse of [`encode_samples`].
pub(crate) fn decode_samples(bytes: &[u8]) -> Result<Vec<ProbeSample>, RecordError> {
    if !bytes.len().is_multiple_of(SAMPLE_BYTES) {
        return Err(RecordError::Damaged {
            what: "probe samples",
            why: format!("{} bytes are no multiple of {SAMPLE_BYTES}", bytes.len()),
        });
    }
    let word = |chunk: &[u8], at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&chunk[at..at + 8]);
        u64::from_le_bytes(word)
    };
    Ok(bytes
        .chunks_exact(SAMPLE_BYTES)
        .map(|chunk| {
            let delay = word(chunk, 16);
            ProbeSample {
                seq: word(chunk, 0),
                sent_ns: word(chunk, 8),
                delay_ns: (delay != NO_ARRIVAL).then_some(delay),
                copies: chunk[24],
                reordered: chunk[25] != 0,
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    #[test]
    fn a_histogram_comes_back_as_it_was() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in [1, 1_000, 1_000_000, 100_000_000, 100_000_000] {
            histogram.record(value).unwrap();
        }
        assert_eq!(decode_histogram(&encode_histogram(&histogram)).unwrap(), histogram);
    }

    #[test]
    fn adding_an_encoded_histogram_is_adding_the_histogram() {
        let mut histogram = Histogram::new(3).unwrap();
        let mut random = Random::new(1);
        for at in 0..5_000_u64 {
            histogram.record_n(random.between(0, 1 << (at % 48)), 1 + (at % 3) * 200_000).unwrap();
        }
        for histogram in [histogram, Histogram::new(3).unwrap()] {
            let mut sum = Histogram::new(3).unwrap();
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
        let mut sum = Histogram::new(3).unwrap();
        add_encoded(&encode_histogram(&coarse), &mut sum).unwrap();
        assert_eq!(sum.len(), 1);
    }

    #[test]
    fn samples_come_back_as_they_were() {
        let samples = [
            ProbeSample { seq: 7, sent_ns: 1 << 40, delay_ns: Some(100_000_000), copies: 1, reordered: false },
            ProbeSample { seq: 8, sent_ns: 0, delay_ns: None, copies: 0, reordered: true },
        ];
        assert_eq!(decode_samples(&encode_samples(&samples)).unwrap(), samples);
        assert!(decode_samples(&[0; 25]).is_err());
        assert!(decode_histogram(&[1, 2, 3]).is_err());
    }
}
