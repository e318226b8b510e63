//! The buckets in which Cassandra counts partition sizes and cells.
//!
//! Source of the boundaries: `org.apache.cassandra.utils.EstimatedHistogram`: 1, 2, 3 …, each the rounded 1.2-fold of the
//! one before it, or one more where that is no step. All that nodetool prints of sizes are such boundaries.

/// One bucket: values above `above`, up to and including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Its index in the row of buckets.
    pub index: usize,
    /// The boundary below it.
    pub above: u64,
    /// The boundary that belongs to it; what nodetool prints for values in it.
    pub to: u64,
}

impl Bucket {
    /// The value in its middle, on the scale of ratios that the buckets are made on; at least 1.
    pub fn middle(self) -> f64 {
        if self.to - self.above <= 1 { self.to as f64 } else { (self.above.max(1) as f64 * self.to as f64).sqrt() }
    }
}

/// The bucket that a value is counted in. (0 is counted with 1.)
pub fn bucket_of(value: u64) -> Bucket {
    let mut bucket = Bucket { index: 0, above: 0, to: 1 };
    while bucket.to < value {
        // As Java computes it: the double nearest to the product, rounded.
        let next = ((bucket.to as f64) * 1.2).round() as u64;
        bucket = Bucket { index: bucket.index + 1, above: bucket.to, to: next.max(bucket.to + 1) };
    }
    bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boundaries as nodetool prints them everywhere.
    #[test]
    fn the_boundaries_are_cassandras() {
        let mut boundaries = Vec::new();
        let mut value = 1;
        while boundaries.len() < 50 {
            let bucket = bucket_of(value);
            assert_eq!(bucket.index, boundaries.len());
            boundaries.push(bucket.to);
            value = bucket.to + 1;
        }
        assert_eq!(boundaries[..12], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17]);
        assert_eq!(boundaries[22..30], [124, 149, 179, 215, 258, 310, 372, 446]);
        assert_eq!(boundaries[39..45], [2759, 3311, 3973, 4768, 5722, 6866]);
    }

    #[test]
    fn a_bucket_holds_its_upper_boundary_and_not_its_lower_one() {
        assert_eq!(bucket_of(0), bucket_of(1));
        let bucket = bucket_of(1916);
        assert_eq!((bucket.above, bucket.to), (1597, 1916));
        assert_eq!(bucket_of(1598), bucket);
        assert_eq!(bucket_of(1597).index, bucket.index - 1);
        assert!((1598.0..1916.0).contains(&bucket.middle()));
        assert_eq!(bucket_of(3).middle(), 3.0);
    }
}
