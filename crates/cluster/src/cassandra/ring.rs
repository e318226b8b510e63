//! Where the nodes stand on the token ring.

use std::collections::{BTreeMap, BTreeSet};

use super::site::Site;

/// The ring of Murmur3Partitioner runs from -2⁶³ to 2⁶³-1.
const RING: i128 = 1 << 64;

/// Evenly spaced tokens: node `i` of `n` gets -2⁶³ + i · 2⁶⁴/n. Ascending.
pub(crate) fn tokens(nodes: usize) -> Vec<i64> {
    let nodes = nodes as i128;
    (0..nodes).map(|i| at(i, nodes)).collect()
}

/// The same for nodes in data centres, each of which is a ring of its own (NetworkTopologyStrategy places replicas in each
/// data centre by the tokens of that data centre alone): evenly spaced in each, and turned a little against the others,
/// so that no two nodes share a token. Along the ring, the racks of a data centre take turns: replicas go to different
/// racks, and a rack whose nodes are neighbours would hold more of them.
pub(crate) fn tokens_at(sites: &[&Site]) -> Vec<i64> {
    let mut centres: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (node, site) in sites.iter().enumerate() {
        centres.entry(&site.dc).or_default().push(node);
    }
    // All places of all data centres are multiples of 1/together of the ring; a turn is a part of one such multiple.
    let together = centres.values().map(|nodes| nodes.len() as i128).fold(1, least_common_multiple);
    let turns = together * centres.len() as i128;
    let mut tokens = vec![0; sites.len()];
    for (turn, nodes) in centres.values().enumerate() {
        let steps = turns / nodes.len() as i128;
        for (place, node) in racks_take_turns(nodes, sites).into_iter().enumerate() {
            tokens[node] = at(place as i128 * steps + turn as i128, turns);
        }
    }
    tokens
}

/// The tokens of nodes, in their order: of each its site, or none of any.
pub fn tokens_of(sites: &[Option<&Site>]) -> Vec<i64> {
    match sites.iter().copied().collect::<Option<Vec<&Site>>>() {
        Some(all) => tokens_at(&all),
        None => tokens(sites.len()),
    }
}

/// The `i`th of `n` places.
fn at(i: i128, n: i128) -> i64 {
    // Divided last: rounded once. The number of places is some millions at most, far from 2⁶³.
    (i128::from(i64::MIN) + i * RING / n) as i64
}

fn least_common_multiple(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// The first node of each rack, then the second of each, and so on.
fn racks_take_turns(nodes: &[usize], sites: &[&Site]) -> Vec<usize> {
    let mut racks: BTreeMap<&str, usize> = BTreeMap::new();
    let mut order: Vec<(usize, &str, usize)> = Vec::new();
    for &node in nodes {
        let rack = sites[node].rack.as_str();
        let count = racks.entry(rack).or_default();
        order.push((*count, rack, node));
        *count += 1;
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, node)| node).collect()
}

/// A CQL condition on `token(key)` that holds exactly on the part of the ring that node `index` of `tokens` is the
/// first replica of: from the token before its own (exclusive) to its own (inclusive).
///
/// The part of the node with the ring's least value as its token wraps around, so it is what lies above the last token.
pub(crate) fn owned_by(tokens: &[i64], index: usize, key: &str) -> String {
    let (mine, all) = (tokens[index], tokens.iter().copied().collect::<BTreeSet<i64>>());
    match (all.range(..mine).next_back(), all.last()) {
        (Some(before), _) => format!("token({key}) > {before} AND token({key}) <= {mine}"),
        (None, Some(last)) => format!("token({key}) > {last}"),
        // No set is empty that holds `mine`.
        (None, None) => String::new(),
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
            even(&tokens(nodes));
        }
    }

    /// Whether the gaps between ascending tokens, around the ring, are the same.
    fn even(tokens: &[i64]) {
        let gaps: Vec<u64> = tokens.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as u64).collect();
        let wrap = tokens[0].wrapping_sub(tokens[tokens.len() - 1]) as u64;
        let all = || gaps.iter().copied().chain([wrap]).filter(|_| tokens.len() > 1);
        assert!(all().max().unwrap_or(0) - all().min().unwrap_or(0) <= 1, "{tokens:?}");
    }

    #[test]
    fn the_parts_cover_the_ring() {
        let tokens = tokens(3);
        assert_eq!(owned_by(&tokens, 0, "k"), "token(k) > 3074457345618258602");
        assert_eq!(owned_by(&tokens, 1, "k"), "token(k) > -9223372036854775808 AND token(k) <= -3074457345618258603");
        assert_eq!(owned_by(&tokens, 2, "k"), "token(k) > -3074457345618258603 AND token(k) <= 3074457345618258602");
        assert_eq!(owned_by(&[0, i64::MIN, -9], 0, "k"), "token(k) > -9 AND token(k) <= 0", "in whatever order");
    }

    fn sites(text: &str) -> Vec<Site> {
        let site = |word: &str| {
            let (dc, rack) = word.split_once('.').unwrap();
            Site { dc: dc.to_owned(), rack: rack.to_owned() }
        };
        text.split_whitespace().map(site).collect()
    }

    #[test]
    fn tokens_are_evenly_spaced_in_each_data_centre_and_no_two_are_the_same() {
        for text in ["a.r a.r a.r", "a.r b.r", "a.r a.r b.r b.r", "a.r b.r a.r c.r a.r b.r a.r c.r c.r a.r a.r a.r"] {
            let sites = sites(text);
            let all = tokens_at(&sites.iter().collect::<Vec<_>>());
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{text}: {all:?}");
            assert_eq!(all.iter().min(), Some(&i64::MIN), "the part that wraps around belongs to somebody");
            for dc in ["a", "b", "c"] {
                let mut own: Vec<i64> =
                    sites.iter().zip(&all).filter(|(site, _)| site.dc == dc).map(|(_, token)| *token).collect();
                own.sort_unstable();
                if !own.is_empty() {
                    even(&own);
                }
            }
        }
        let one = sites("a.r a.r a.r");
        assert_eq!(tokens_at(&one.iter().collect::<Vec<_>>()), tokens(3), "one data centre is as none");
        let two = sites("a.r a.r b.r b.r");
        let mut all = tokens_at(&two.iter().collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, tokens(4), "data centres of one size share the ring evenly");
    }

    #[test]
    fn many_data_centres_of_sizes_without_a_common_factor_share_no_token() {
        let text: String =
            [2, 3, 5, 7, 11, 13, 9].iter().enumerate().flat_map(|(dc, &n)| vec![format!("d{dc}.r "); n]).collect();
        let sites = sites(&text);
        let all = tokens_at(&sites.iter().collect::<Vec<_>>());
        assert_eq!(all.len(), 50);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 50);
    }

    #[test]
    fn the_racks_of_a_data_centre_take_turns_along_the_ring() {
        let sites = sites("a.r1 a.r1 a.r2 a.r2 a.r3 a.r3");
        let tokens = tokens_at(&sites.iter().collect::<Vec<_>>());
        let mut ring: Vec<(i64, &str)> = tokens.into_iter().zip(sites.iter().map(|site| site.rack.as_str())).collect();
        ring.sort_unstable();
        assert_eq!(ring.iter().map(|(_, rack)| *rack).collect::<String>(), "r1r2r3r1r2r3");
    }
}
