use std::net::IpAddr;

use crate::Coordinator;

/// Who replicates what: for every token of the ring, the replicas of the range that ends with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRing {
    /// Sorted by token.
    pub ranges: Vec<TokenRange>,
}

/// A range of tokens: above the token of the range before it, up to and including `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRange {
    /// Its last token.
    pub end: i64,
    /// Addresses of the nodes that hold it.
    pub replicas: Vec<IpAddr>,
}

/// The ring with replicas as indices of coordinators, for the hot path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replicas {
    ends: Vec<i64>,
    of: Vec<Box<[usize]>>,
}

impl Replicas {
    /// Replicas that are not coordinators are left out.
    pub(crate) fn new(mut ring: TokenRing, coordinators: &[Coordinator]) -> Self {
        ring.ranges.sort_by_key(|range| range.end);
        let index = |ip: &IpAddr| coordinators.iter().position(|node| node.address.ip() == *ip);
        Replicas {
            ends: ring.ranges.iter().map(|range| range.end).collect(),
            of: ring.ranges.iter().map(|range| range.replicas.iter().filter_map(index).collect()).collect(),
        }
    }

    /// The coordinators that replicate `token`; empty if none does.
    pub(crate) fn of(&self, token: i64) -> &[usize] {
        let place = self.ends.partition_point(|end| *end < token);
        // Beyond the last token the ring wraps around.
        self.of.get(place).or(self.of.first()).map_or(&[], |replicas| replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_the_range_that_ends_at_or_after_it() {
        let nodes: Vec<Coordinator> =
            (1..=3).map(|n| Coordinator { name: format!("n{n}"), address: ([10, 0, 0, n], 9042).into() }).collect();
        let range = |end, hosts: [u8; 2]| TokenRange { end, replicas: hosts.map(|n| [10, 0, 0, n].into()).to_vec() };
        let ring = TokenRing { ranges: vec![range(100, [3, 1]), range(-100, [1, 2]), range(0, [2, 9])] };
        let replicas = Replicas::new(ring, &nodes);
        assert_eq!(replicas.of(i64::MIN), [0, 1]);
        assert_eq!(replicas.of(-100), [0, 1]);
        assert_eq!(replicas.of(-99), [1], "node 9 is no coordinator");
        assert_eq!(replicas.of(100), [2, 0]);
        assert_eq!(replicas.of(101), [0, 1], "the ring begins again");
        assert!(Replicas::default().of(0).is_empty());
    }
}
