/// A host, by its number: hosts of a network are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u16);

impl HostId {
    /// Its index among all hosts.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One direction between two hosts: what `from` sends to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
}

impl Link {
    /// Every ordered pair of `hosts` hosts, in the order of [`Link::position`].
    pub fn all(hosts: usize) -> Vec<Link> {
        let ids = || (0..hosts).filter_map(|index| u16::try_from(index).ok()).map(HostId);
        ids().flat_map(|from| ids().filter(move |to| *to != from).map(move |to| Link { from, to })).collect()
    }

    /// Where this link stands among all ordered pairs; `None` if it is none of them.
    pub fn position(self, hosts: usize) -> Option<usize> {
        let (from, to) = (self.from.index(), self.to.index());
        if from == to || from >= hosts || to >= hosts {
            return None;
        }
        Some(from * (hosts - 1) + if to > from { to - 1 } else { to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordered_pair_stands_where_its_position_says() {
        for hosts in 0..6 {
            let links = Link::all(hosts);
            assert_eq!(links.len(), hosts * hosts.saturating_sub(1));
            for (index, link) in links.iter().enumerate() {
                assert_eq!(link.position(hosts), Some(index), "{link:?} of {hosts}");
            }
        }
    }

    #[test]
    fn a_host_has_no_link_to_itself_or_to_strangers() {
        let link = |from, to| Link { from: HostId(from), to: HostId(to) };
        assert_eq!(link(1, 1).position(3), None);
        assert_eq!(link(0, 3).position(3), None);
        assert_eq!(link(3, 0).position(3), None);
    }
}
