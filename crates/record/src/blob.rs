//! Histograms as they lie in the file.

use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::{Histogram, RecordError};

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
        assert!(decode_histogram(&[1, 2, 3]).is_err());
    }
}
