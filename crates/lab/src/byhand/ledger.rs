//! What commands have put in force, by kind and host: the second `slow` on a host replaces the first.

use std::collections::BTreeMap;

use brownout_base::{Change, clock::monotonic_ns};
use brownout_clock::HostClock;
use brownout_network::{Impairment, ImpairmentGuard, Link};

use crate::{
    LabError,
    faults::{Fault, Healing, InForce, Reach, together},
};

/// A clock that is this near to the true one, without a drift, has been healed.
const ROUNDING_NS: u64 = 10_000;

/// What is in force where: at most one thing for each key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The fault's word.
    pub(super) kind: String,
    /// The host; for `link` the pair, for `partition` nothing.
    pub(super) owner: String,
}

impl Key {
    pub(super) fn new(kind: &str, owner: &str) -> Key {
        Key { kind: kind.to_owned(), owner: owner.to_owned() }
    }
}

/// Something in force.
pub(super) struct Held {
    /// Another one after each change: who wants to heal this later has to bring it.
    pub(super) id: u64,
    /// The pairs of hosts, for faults of links.
    pub(super) links: Vec<(String, String)>,
    /// What was asked of each of them.
    pub(super) impairment: Option<Impairment>,
    guard: Guard,
}

enum Guard {
    Links(ImpairmentGuard),
    Fault(Box<dyn InForce>),
    Clock { clock: HostClock, offset_ns: i64, drift_ppb: i64, since_ns: u64 },
}

/// All of them.
#[derive(Default)]
pub(super) struct Ledger {
    held: BTreeMap<Key, Held>,
    last: u64,
}

impl Ledger {
    /// By kind and host.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.held.iter()
    }

    /// The keys that fit.
    pub(super) fn keys(&self, fits: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.held.keys().filter(|key| fits(key)).cloned().collect()
    }

    /// Impairs these links: in place, if they are those that the key has already.
    pub(super) fn put_links(
        &mut self,
        key: Key,
        links: Vec<(String, String)>,
        impairment: &Impairment,
        reach: &Reach,
    ) -> Result<(u64, Change), LabError> {
        let id = self.next();
        if let Some(held) = self.held.get_mut(&key)
            && held.links == links
            && let Guard::Links(guard) = &mut held.guard
        {
            let change = guard.amend(impairment)?;
            (held.id, held.impairment) = (id, Some(*impairment));
            return Ok((id, change));
        }
        let healed = self.heal(&key)?;
        let on: Vec<Link> = links.iter().filter_map(|(from, to)| reach.link(from, to)).collect();
        let guard = reach.links().impair(&on, impairment)?;
        let change = guard.change();
        self.held.insert(key, Held { id, links, impairment: Some(*impairment), guard: Guard::Links(guard) });
        Ok((id, together(healed.into_iter().chain([change]))))
    }

    /// Puts a fault of a node in force, in the place of the key's last one.
    pub(super) fn put_fault(&mut self, key: Key, fault: &dyn Fault, reach: &Reach) -> Result<(u64, Change), LabError> {
        let healed = self.heal(&key)?;
        let in_force = fault.inject(reach)?;
        let (id, change) = (self.next(), in_force.change());
        self.held.insert(key, Held { id, links: Vec::new(), impairment: None, guard: Guard::Fault(in_force) });
        Ok((id, together(healed.into_iter().chain([change]))))
    }

    /// Makes a clock wrong by this much, in one step from where the key's last one has brought it.
    pub(super) fn put_clock(
        &mut self,
        key: Key,
        clock: &HostClock,
        offset_ns: i64,
        drift_ppb: i64,
    ) -> Result<(u64, Change), LabError> {
        let (back_ns, back_ppb) = match self.held.get(&key) {
            Some(Held { guard: Guard::Clock { offset_ns, drift_ppb, since_ns, .. }, .. }) => {
                (offset_ns + drifted(*drift_ppb, *since_ns), *drift_ppb)
            }
            _ => (0, 0),
        };
        let (asked_ns, done_ns) = clock.shift(offset_ns - back_ns, drift_ppb - back_ppb)?;
        let id = self.next();
        let guard = Guard::Clock { clock: clock.clone(), offset_ns, drift_ppb, since_ns: done_ns };
        self.held.insert(key, Held { id, links: Vec::new(), impairment: None, guard });
        Ok((id, Change::between(asked_ns, done_ns)))
    }

    /// Takes back what the key has in force; none if there is nothing.
    pub(super) fn heal(&mut self, key: &Key) -> Result<Option<Change>, LabError> {
        let Some(held) = self.held.remove(key) else { return Ok(None) };
        Ok(Some(match held.guard {
            Guard::Links(guard) => guard.heal()?,
            Guard::Fault(in_force) => match in_force.heal()? {
                Healing::Done(change) => change,
                Healing::UnderWay(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            },
            Guard::Clock { clock, offset_ns, drift_ppb, since_ns } => {
                let (asked_ns, done_ns) = clock.shift(-offset_ns - drifted(drift_ppb, since_ns), -drift_ppb)?;
                // What the rounding of a drift leaves; with another fault on the clock it is far more.
                let left = clock.skew();
                if left.drift_ppb == 0 && left.offset_ns.unsigned_abs() < ROUNDING_NS {
                    clock.reset()?;
                }
                Change::between(asked_ns, done_ns)
            }
        }))
    }

    /// The same, if it is still what was put there then.
    pub(super) fn heal_if(&mut self, key: &Key, id: u64) -> Result<Option<Change>, LabError> {
        match self.held.get(key) {
            Some(held) if held.id == id => self.heal(key),
            _ => Ok(None),
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// What a drift has gained since then, ns.
fn drifted(ppb: i64, since_ns: u64) -> i64 {
    (monotonic_ns().saturating_sub(since_ns) as f64 * ppb as f64 / 1e9) as i64
}
