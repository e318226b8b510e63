//! Diverting what leaves by an interface to another one: a table of the family `netdev` with a chain on the interface's way out
//! (`NF_NETDEV_EGRESS`, Linux 5.16; `fwd` there, 5.17).

use std::io;

use super::{
    diverted::{Diverted, Family},
    rules,
    table::{Batch, Hook, Owner, Table},
};

/// The chain's name.
const CHAIN: &str = "out";

/// Diverts what leaves by one interface, as long as it is there.
pub(crate) struct Diverter {
    owner: Owner,
    table: Table,
}

impl Diverter {
    /// One for the interface of this name in the calling thread's namespace, which diverts nothing yet.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let table = Table::new(libc::NFPROTO_NETDEV, format!("brownout-{interface}"));
        Ok(Diverter { owner: Owner::open()?, table })
    }

    /// Diverts from now on what leaves by `interface`, which has the number `at`, to the one with number `to`, but for packets with
    /// this mark.
    ///
    /// # Errors
    /// The kernel's: `EPERM`, `EEXIST` or `EBUSY` where somebody else diverts it already (see [`Diverter::holder`]);
    /// `ENOENT` or `EOPNOTSUPP` where it lacks what is needed.
    pub(crate) fn start(&self, interface: &str, [at, to]: [u32; 2], mark: u32, diverted: &Diverted) -> io::Result<()> {
        let mut batch = Batch::new();
        self.table.add(&mut batch);
        for family in [Family::V4, Family::V6] {
            self.table.add_sets(&mut batch, family, diverted);
        }
        let hook = Hook { number: libc::NF_NETDEV_EGRESS, priority: 0, device: Some(interface) };
        self.table.add_chain(&mut batch, CHAIN, &hook, rules::forwarding(diverted, at, to, mark));
        self.owner.run(batch)
    }

    /// Diverts from now on other addresses, at once. What kind of [`Addresses`](super::Addresses) they are has to be as it was.
    pub(crate) fn change(&self, diverted: &Diverted) -> io::Result<()> {
        let mut batch = Batch::new();
        for family in [Family::V4, Family::V6] {
            self.table.change_sets(&mut batch, family, diverted);
        }
        self.owner.run(batch)
    }

    /// Diverts for another two seconds. Says whether it came in time: where it did not, packets have passed meanwhile.
    pub(crate) fn refresh(&self) -> io::Result<bool> {
        self.owner.refresh(&self.table)
    }

    /// Who diverts what leaves by this interface, in the words that they left; `None` if nobody does.
    pub(crate) fn holder(&self) -> io::Result<Option<String>> {
        self.owner.holder(&self.table)
    }
}
