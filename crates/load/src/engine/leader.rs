//! Who leads an etcd, as its members say.

use crate::etcd::message::StatusResponse;

/// What the members have said last.
#[derive(Debug)]
pub(super) struct Leader {
    /// By coordinator, its number in the cluster; 0: not known.
    members: Vec<u64>,
    /// The newest term that was heard of, and who leads in it; 0: not known.
    term: u64,
    leads: u64,
}

impl Leader {
    pub(super) fn new(coordinators: usize) -> Self {
        Leader { members: vec![0; coordinators], term: 0, leads: 0 }
    }

    /// A coordinator has told its status. What is said of an older term is old.
    pub(super) fn told(&mut self, coordinator: usize, status: &StatusResponse) {
        if let (Some(member), Some(header)) = (self.members.get_mut(coordinator), &status.header) {
            *member = header.member;
        }
        // A term begins without a leader, and one that has lost sight of it says so.
        if status.term > self.term || (status.term == self.term && status.leader != 0) {
            (self.term, self.leads) = (status.term, status.leader);
        }
    }

    /// The coordinator that leads, as far as is known.
    pub(super) fn coordinator(&self) -> Option<usize> {
        self.members.iter().position(|member| *member == self.leads).filter(|_| self.leads != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::message::Header;

    #[test]
    fn the_newest_term_counts_and_a_member_that_sees_no_leader_changes_nothing_in_it() {
        let mut leader = Leader::new(3);
        let mut told = |coordinator: usize, term, leads| {
            let member = 100 + coordinator as u64;
            let header = Some(Header { member, revision: 1, term });
            leader.told(coordinator, &StatusResponse { header, leader: leads, term });
            leader.coordinator()
        };
        assert_eq!(told(0, 2, 101), None, "nobody is known by that number yet");
        assert_eq!(told(1, 2, 101), Some(1));
        assert_eq!(told(2, 2, 0), Some(1), "it has lost sight of the leader");
        assert_eq!(told(2, 3, 0), None, "an election");
        assert_eq!(told(1, 2, 101), None, "who was cut off does not know of it");
        assert_eq!(told(0, 3, 102), Some(2));
    }
}
