//! Probe samples as they lie in the file.

use crate::{ProbeSample, RecordError};

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
    fn samples_come_back_as_they_were() {
        let samples = [
            ProbeSample { seq: 7, sent_ns: 1 << 40, delay_ns: Some(100_000_000), copies: 1, reordered: false },
            ProbeSample { seq: 8, sent_ns: 0, delay_ns: None, copies: 0, reordered: true },
        ];
        assert_eq!(decode_samples(&encode_samples(&samples)).unwrap(), samples);
        assert!(decode_samples(&[0; 25]).is_err());
    }
}
