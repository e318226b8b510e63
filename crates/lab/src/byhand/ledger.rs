//! What commands have put in force, by kind and host: the second `slow` on a host replaces the first. Each is a fault of an
//! experiment file with the guard that its injection gave.

use std::collections::BTreeMap;

use brownout_base::Change;
use brownout_cluster::NodeState;

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

    /// Whether the key's fault is in force, if it still is what was put there then. One that did not come into force is
    /// forgotten, and says why.
    pub(super) fn settled(&mut self, key: &Key, id: u64) -> Result<Option<Settled>, LabError> {
        let Some(held) = self.held.get_mut(key).filter(|held| held.id == id) else { return Ok(None) };
        if held.guard.is_settling() {
            return Ok(Some(Settled::NotYet));
        }
        if let Err(error) = held.guard.outcome() {
            self.held.remove(key);
            return Err(error);
        }
        Ok(Some(Settled::Since(held.guard.change())))
    }

    /// Whether what the key has was asked for, and is not in force in every place yet.
    pub(super) fn is_settling(&self, key: &Key) -> bool {
        self.held.get(key).is_some_and(|held| held.guard.is_settling())
    }

    /// Makes room for another fault of a node's process, which is in this state now; or says why it has to wait.
    pub(super) fn make_room(&mut self, key: &Key, state: NodeState) -> Result<(), &'static str> {
        // One that ends is up, too, until it has ended: paused in the middle of that, it would not end in good order.
        if self.is_settling(key) {
            return Err("it is ending already; wait until `status` says DOWN");
        }
        // A node that is up is not what a command has made it any more: somebody has undone that.
        if state == NodeState::Up {
            self.held.remove(key);
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{faults::from_entry, hosts::Hosts};

    /// What is asked for and comes into force when this says so, if it does.
    struct Coming {
        settling: bool,
        fails: bool,
    }

    impl ActiveFault for Coming {
        fn change(&self) -> Change {
            Change::between(1, 3)
        }

        fn is_settling(&self) -> bool {
            self.settling
        }

        fn outcome(&mut self) -> Result<(), LabError> {
            if self.fails { Err(LabError::Trial("it did not end".to_owned())) } else { Ok(()) }
        }

        fn heal(self: Box<Self>) -> Result<Healing, LabError> {
            Ok(Healing::Done(self.change()))
        }
    }

    /// A ledger in which n2 is being stopped, by an entry with the id 7.
    fn stopping(settling: bool, fails: bool) -> (Ledger, Key) {
        let entry = serde_json::from_str(r#"{"stop":{"host":"n2"}}"#).unwrap();
        let fault = from_entry(&entry, &Hosts::new(3), 1).unwrap();
        let key = Key::of(fault.as_ref(), "n2");
        let entry = Entry { id: 7, fault, guard: Box::new(Coming { settling, fails }) };
        (Ledger { held: BTreeMap::from([(key.clone(), entry)]), last: 7 }, key)
    }

    #[test]
    fn what_did_not_come_into_force_is_told_and_not_kept() {
        let (mut ledger, key) = stopping(false, true);
        assert!(ledger.settled(&key, 7).is_err_and(|error| error.to_string() == "it did not end"));
        assert_eq!(ledger.iter().count(), 0);
        let (mut ledger, key) = stopping(false, false);
        assert!(matches!(ledger.settled(&key, 7), Ok(Some(Settled::Since(change))) if change == Change::between(1, 3)));
        assert!(matches!(ledger.settled(&key, 6), Ok(None)), "another has taken its place");
        let (mut ledger, key) = stopping(true, true);
        assert!(matches!(ledger.settled(&key, 7), Ok(Some(Settled::NotYet))));
        assert_eq!(ledger.iter().count(), 1);
    }

    #[test]
    fn a_node_that_is_ending_is_not_paused_before_it_has_ended() {
        let (mut ledger, key) = stopping(true, false);
        assert!(ledger.is_settling(&key));
        assert!(ledger.make_room(&key, NodeState::Up).is_err());
        assert_eq!(ledger.iter().count(), 1, "what --for has promised to heal is still there");
        let (mut ledger, key) = stopping(false, false);
        assert!(!ledger.is_settling(&key));
        assert!(ledger.make_room(&key, NodeState::Down).is_ok() && ledger.iter().count() == 1);
        assert!(ledger.make_room(&key, NodeState::Up).is_ok() && ledger.iter().count() == 0);
    }
}
