//! What commands have put in force, by kind and host: the second `slow` on a host replaces the first. Each is a fault of an
//! experiment file with the guard that its injection gave.

use std::collections::BTreeMap;

use brownout_base::Change;

use crate::{
    LabError,
    faults::{ActiveFault, Capabilities, Fault, Healing},
};

/// What is in force where: at most one thing for each key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The fault's word; `process` for all that stop or end a node.
    pub(super) kind: String,
    /// The host; for `link` the pair, for `partition` nothing.
    pub(super) owner: String,
}

impl Key {
    /// A node is paused or down, whichever fault did it: no other may do it as well.
    pub(super) const PROCESS: &str = "process";

    pub(super) fn new(kind: &str, owner: &str) -> Key {
        Key { kind: kind.to_owned(), owner: owner.to_owned() }
    }

    /// That of this fault on this host.
    pub(super) fn of(fault: &dyn Fault, owner: &str) -> Key {
        Key::new(if fault.stills().is_empty() { fault.kind() } else { Key::PROCESS }, owner)
    }
}

/// Something in force.
pub(super) struct Entry {
    /// Another one after each change: who wants to heal this later has to bring it.
    pub(super) id: u64,
    pub(super) fault: Box<dyn Fault>,
    guard: Box<dyn ActiveFault>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Ledger {
    held: BTreeMap<Key, Entry>,
    last: u64,
}

impl Ledger {
    /// By kind and host.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.held.iter()
    }

    /// The keys that fit.
    pub(super) fn keys(&self, fits: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.held.keys().filter(|key| fits(key)).cloned().collect()
    }

    /// Makes what the key has in force this fault, without healing it in between; gives the fault back where that cannot be.
    pub(super) fn amend(&mut self, key: &Key, fault: Box<dyn Fault>) -> Result<Amended, LabError> {
        let id = self.next();
        let Some(held) = self.held.get_mut(key) else { return Ok(Amended::No(fault)) };
        let Some(change) = held.guard.amend(fault.as_ref())? else { return Ok(Amended::No(fault)) };
        (held.id, held.fault) = (id, fault);
        Ok(Amended::Yes(id, change))
    }

    /// Injects this fault. What the key had in force before is dropped once this is there.
    pub(super) fn put(
        &mut self,
        key: &Key,
        fault: Box<dyn Fault>,
        capabilities: &Capabilities,
    ) -> Result<(u64, Change), LabError> {
        let guard = fault.inject(capabilities)?;
        let (id, change) = (self.next(), guard.change());
        self.held.insert(key.clone(), Entry { id, fault, guard });
        Ok((id, change))
    }

    /// Whether the key's fault is in force, if it still is what was put there then.
    pub(super) fn settled(&self, key: &Key, id: u64) -> Option<Settled> {
        let guard = &self.held.get(key).filter(|held| held.id == id)?.guard;
        Some(if guard.is_settling() { Settled::NotYet } else { Settled::Since(guard.change()) })
    }

    /// Begins to take back what the key has in force; none if there is nothing. What takes its time is waited for without
    /// the ledger: others look into it meanwhile.
    pub(super) fn heal(&mut self, key: &Key) -> Option<Result<Healing, LabError>> {
        Some(self.held.remove(key)?.guard.heal())
    }

    /// The same, if it is still what was put there then.
    pub(super) fn heal_if(&mut self, key: &Key, id: u64) -> Option<Result<Healing, LabError>> {
        self.held.get(key).filter(|held| held.id == id)?;
        self.heal(key)
    }

    /// Drops what the key has in force.
    pub(super) fn forget(&mut self, key: &Key) {
        self.held.remove(key);
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// Whether a fault could become another.
pub(super) enum Amended {
    /// With this id, since then.
    Yes(u64, Change),
    /// It has to be injected.
    No(Box<dyn Fault>),
}

/// How far a fault has come.
pub(super) enum Settled {
    /// It is on its way.
    NotYet,
    /// It is in force since then.
    Since(Change),
}
