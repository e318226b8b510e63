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
            why: format!("{} bytes are not a multiple of {SAMPLE_BYTES}", bytes.len()),
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
