//! Where the nodes stand on the token ring.

/// Evenly spaced tokens of Murmur3Partitioner, whose ring runs from -2⁶³ to 2⁶³-1: node `i` of `n` gets
/// -2⁶³ + i · 2⁶⁴/n. Ascending.
pub(crate) fn tokens(nodes: usize) -> Vec<i64> {
    let nodes = nodes as i128;
    (0..nodes).map(|i| (i128::from(i64::MIN) + i * (1_i128 << 64) / nodes) as i64).collect()
}

/// A CQL condition on `token(key)` that holds exactly on the part of the ring that node `index` of `tokens` is the
/// first replica of: from its predecessor's token (exclusive) to its own (inclusive).
///
/// Node 0 has the ring's least token, where the range that belongs to it wraps around, so its part is what lies
/// above the last node's.
pub(crate) fn owned_by(tokens: &[i64], index: usize, key: &str) -> String {
    match index {
        0 => format!("token({key}) > {}", tokens[tokens.len() - 1]),
        _ => format!("token({key}) > {} AND token({key}) <= {}", tokens[index - 1], tokens[index]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_evenly_spaced_from_the_least() {
        assert_eq!(tokens(1), [i64::MIN]);
        assert_eq!(tokens(2), [i64::MIN, 0]);
        assert_eq!(tokens(3), [-9223372036854775808, -3074457345618258603, 3074457345618258602]);
        assert_eq!(tokens(4), [i64::MIN, i64::MIN / 2, 0, 1 << 62]);
        for nodes in 2..=40 {
            let tokens = tokens(nodes);
            let gaps: Vec<u64> = tokens.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as u64).collect();
            let wrap = tokens[0].wrapping_sub(tokens[nodes - 1]) as u64;
            let all = || gaps.iter().copied().chain([wrap]);
            assert!(all().max().unwrap() - all().min().unwrap() <= 1, "{nodes} nodes");
        }
    }

    #[test]
    fn the_parts_cover_the_ring() {
        let tokens = tokens(3);
        assert_eq!(owned_by(&tokens, 0, "k"), "token(k) > 3074457345618258602");
        assert_eq!(owned_by(&tokens, 1, "k"), "token(k) > -9223372036854775808 AND token(k) <= -3074457345618258603");
        assert_eq!(owned_by(&tokens, 2, "k"), "token(k) > -3074457345618258603 AND token(k) <= 3074457345618258602");
    }
}
