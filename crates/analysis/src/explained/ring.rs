//! Which nodes hold which part of the token ring.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::NodePlacement;

/// A part of the ring, all rows of which lie on the same nodes.
pub(super) struct Part {
    /// Of all rows, 0 to 1.
    pub(super) share: f64,
    /// Indices of the nodes in the list of all, in the order in which they are found.
    pub(super) replicas: Vec<usize>,
}

/// The parts of the ring, for so many copies in each data centre.
///
/// As NetworkTopologyStrategy places them (`calculateNaturalReplicas` in Cassandra 4.0 and later): along the ring from a
/// row's token, each data centre takes the nodes it meets of its own, first one of each rack; of a rack that it has already
/// only as many as there are copies more than racks.
pub(super) fn parts(ring: &[NodePlacement], copies: &BTreeMap<String, u32>) -> Vec<Part> {
    let mut order: Vec<usize> = (0..ring.len()).collect();
    order.sort_by_key(|at| ring[*at].token);
    let part = |at: usize| {
        let before = order[(at + order.len() - 1) % order.len()];
        let width = ring[order[at]].token.wrapping_sub(ring[before].token) as u64;
        // One node alone has all of it: 2⁶⁴, which wraps to 0.
        let share = if order.len() == 1 { 1.0 } else { width as f64 / 2f64.powi(64) };
        let along = (0..order.len()).map(|step| order[(at + step) % order.len()]);
        Part { share, replicas: replicas(ring, copies, along) }
    };
    (0..order.len()).map(part).collect()
}

/// What one data centre still takes.
struct Taking<'a> {
    left: usize,
    repeats: usize,
    racks: BTreeSet<&'a str>,
}

fn replicas(ring: &[NodePlacement], copies: &BTreeMap<String, u32>, along: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut taking: BTreeMap<&str, Taking<'_>> = BTreeMap::new();
    for (site, copies) in copies {
        let own = || ring.iter().filter(|node| node.site == *site);
        let racks = own().map(|node| node.rack.as_str()).collect::<BTreeSet<_>>().len();
        let copies = *copies as usize;
        let (left, repeats) = (copies.min(own().count()), copies.saturating_sub(racks));
        taking.insert(site, Taking { left, repeats, racks: BTreeSet::new() });
    }
    let mut found = Vec::new();
    for at in along {
        let node = &ring[at];
        let Some(site) = taking.get_mut(node.site.as_str()).filter(|site| site.left > 0) else { continue };
        if !site.racks.insert(&node.rack) {
            if site.repeats == 0 {
                continue;
            }
            site.repeats -= 1;
        }
        site.left -= 1;
        found.push(at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dc.rack` of each node, evenly spaced in this order.
    fn ring(text: &str) -> Vec<NodePlacement> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let step = (1_i128 << 64) / words.len() as i128;
        let node = |(at, word): (usize, &&str)| {
            let (site, rack) = word.split_once('.').unwrap();
            let token = (i128::from(i64::MIN) + at as i128 * step) as i64;
            NodePlacement { node: format!("n{}", at + 1), token, site: site.into(), rack: rack.into() }
        };
        words.iter().enumerate().map(node).collect()
    }

    fn placed(nodes: &str, copies: &[(&str, u32)]) -> Vec<Vec<usize>> {
        let copies = copies.iter().map(|(site, count)| ((*site).to_owned(), *count)).collect();
        let parts = parts(&ring(nodes), &copies);
        assert!((parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9);
        parts.into_iter().map(|part| part.replicas).collect()
    }

    #[test]
    fn rows_lie_on_the_next_nodes_along_the_ring() {
        assert_eq!(placed("a.r a.r a.r", &[("a", 1)]), [[0], [1], [2]]);
        assert_eq!(placed("a.r a.r a.r", &[("a", 2)]), [[0, 1], [1, 2], [2, 0]]);
        assert_eq!(placed("a.r", &[("a", 1)]), [[0]]);
    }

    #[test]
    fn each_data_centre_takes_its_own_nodes() {
        let placed = placed("a.r b.r a.r b.r", &[("a", 1), ("b", 2)]);
        assert_eq!(placed, [[0, 1, 3], [1, 2, 3], [2, 3, 1], [3, 0, 1]]);
    }

    #[test]
    fn racks_come_before_repetitions() {
        assert_eq!(placed("a.r1 a.r1 a.r2 a.r2", &[("a", 2)]), [[0, 2], [1, 2], [2, 0], [3, 0]]);
        // Three copies in two racks: one rack may repeat once.
        assert_eq!(placed("a.r1 a.r1 a.r2 a.r2", &[("a", 3)])[0], [0, 1, 2]);
    }
}
