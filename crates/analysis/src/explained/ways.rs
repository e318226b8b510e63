//! Every way that an operation can take: who coordinates it, and which answers it waits for.

use std::collections::BTreeMap;

use brownout_record::{OperationPlacement, Placement};

use super::{
    level::{self, Group},
    ring,
};

/// Beyond so many choices of replicas for one coordinator and one set of replicas, nobody enumerates them.
const MOST_CHOICES: usize = 5_000;

/// An operation with all its ways.
pub(super) struct Operation<'a> {
    pub(super) plan: &'a OperationPlacement,
    pub(super) ways: Vec<Way>,
}

/// A coordinator and a set of replicas, and what the database can choose between.
pub(super) struct Way {
    /// Of all operations of its kind, 0 to 1.
    pub(super) share: f64,
    /// Its place among the hosts.
    pub(super) coordinator: usize,
    pub(super) choices: Vec<Choice>,
}

/// What the database may do: whom a read asks, who forwards a write in another data centre. All groups have to answer.
pub(super) struct Choice(Vec<Awaited>);

/// The coordinator waits until so many of these paths have brought an answer.
struct Awaited {
    paths: Vec<Path>,
    needed: usize,
}

/// From the coordinator to a replica and back; without hops the coordinator is the replica.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) replica: usize,
    /// Ordered pairs of hosts.
    pub(super) hops: Vec<(usize, usize)>,
}

impl Choice {
    /// What the coordinator waits for its replicas: of each group the last answer that it needs, of all groups the longest.
    pub(super) fn waits(&self, time: &impl Fn(&Path) -> f64) -> f64 {
        let of = |group: &Awaited| {
            let mut times: Vec<f64> = group.paths.iter().map(time).collect();
            times.sort_by(f64::total_cmp);
            group.needed.checked_sub(1).and_then(|last| times.get(last)).copied().unwrap_or(0.0)
        };
        self.0.iter().map(of).fold(0.0, f64::max)
    }
}

/// Every operation of the plan with all its ways. `Err` with the reason where they cannot be enumerated.
pub(super) fn operations(placement: &Placement) -> Result<Vec<Operation<'_>>, String> {
    if placement.operations.is_empty() {
        return Err("what the operations do, only their profile knows".to_owned());
    }
    let by_token = match placement.coordinators.as_str() {
        "token-aware" => true,
        "round-robin" => false,
        other => return Err(format!("who coordinates an operation by '{other}' follows from no plan")),
    };
    let is_asked = |at: usize| placement.asked.contains(&placement.ring[at].node);
    let asked: Vec<usize> = (0..placement.ring.len()).filter(|at| is_asked(*at)).collect();
    if asked.is_empty() {
        return Err("the load has a connection to no node".to_owned());
    }
    placement.operations.iter().map(|plan| operation(placement, plan, &asked, by_token)).collect()
}

fn operation<'a>(
    placement: &Placement,
    plan: &'a OperationPlacement,
    asked: &[usize],
    by_token: bool,
) -> Result<Operation<'a>, String> {
    let mut sets: BTreeMap<(usize, Vec<usize>), f64> = BTreeMap::new();
    for part in ring::parts(&placement.ring, &plan.copies) {
        let mut replicas = part.replicas;
        replicas.sort_unstable();
        let own: Vec<usize> = asked.iter().copied().filter(|at| replicas.contains(at)).collect();
        // As the load chooses: a replica if it has a connection to one, else whoever's turn it is.
        let coordinators: &[usize] = if by_token && !own.is_empty() { &own } else { asked };
        for coordinator in coordinators {
            *sets.entry((*coordinator, replicas.clone())).or_default() += part.share / coordinators.len() as f64;
        }
    }
    let way = |((coordinator, replicas), share): ((usize, Vec<usize>), f64)| {
        let choices = choices(placement, plan, coordinator, &replicas)?;
        Ok(Way { share, coordinator, choices })
    };
    Ok(Operation { plan, ways: sets.into_iter().map(way).collect::<Result<_, String>>()? })
}

fn choices(
    placement: &Placement,
    plan: &OperationPlacement,
    coordinator: usize,
    replicas: &[usize],
) -> Result<Vec<Choice>, String> {
    let groups = level::groups(&plan.consistency, &placement.ring, coordinator, replicas)?;
    let made =
        if plan.reads { asked_by_read(coordinator, &groups) } else { sent_by_write(placement, coordinator, groups) };
    made.ok_or_else(|| format!("there are more than {MOST_CHOICES} ways to answer a {}", plan.operation))
}

/// There and back; nowhere for the coordinator itself.
fn direct(coordinator: usize, replica: usize) -> Path {
    let hops = if replica == coordinator { Vec::new() } else { vec![(coordinator, replica), (replica, coordinator)] };
    Path { replica, hops }
}

/// A read asks as many replicas as it needs, and needs an answer of each.
fn asked_by_read(coordinator: usize, groups: &[Group]) -> Option<Vec<Choice>> {
    let mut all = vec![Vec::new()];
    for group in groups {
        let subsets = subsets(&group.members, group.needed)?;
        let mut longer = Vec::new();
        for chosen in &all {
            for subset in &subsets {
                let mut chosen: Vec<Vec<usize>> = chosen.clone();
                chosen.push(subset.clone());
                longer.push(chosen);
            }
        }
        all = within(longer)?;
    }
    let awaited = |members: Vec<usize>| Awaited {
        needed: members.len(),
        paths: members.into_iter().map(|replica| direct(coordinator, replica)).collect(),
    };
    Some(all.into_iter().map(|groups| Choice(groups.into_iter().map(awaited).collect())).collect())
}

/// A write is sent to every replica, in another data centre by way of one of them, who forwards it; each answers by itself
/// (`StorageProxy.sendToHintedReplicas`).
fn sent_by_write(placement: &Placement, coordinator: usize, groups: Vec<Group>) -> Option<Vec<Choice>> {
    let site = |at: usize| placement.ring[at].site.as_str();
    let mut remote: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in groups.iter().flat_map(|group| &group.members) {
        if site(*at) != site(coordinator) {
            remote.entry(site(*at)).or_default().push(*at);
        }
    }
    let mut all: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new()];
    for (name, members) in &remote {
        let mut longer = Vec::new();
        for chosen in &all {
            for by in members {
                let mut chosen = chosen.clone();
                chosen.insert(*name, *by);
                longer.push(chosen);
            }
        }
        all = within(longer)?;
    }
    let path = |forwarders: &BTreeMap<&str, usize>, replica: usize| match forwarders.get(site(replica)) {
        Some(by) if *by != replica => {
            Path { replica, hops: vec![(coordinator, *by), (*by, replica), (replica, coordinator)] }
        }
        _ => direct(coordinator, replica),
    };
    let choice = |forwarders: BTreeMap<&str, usize>| {
        let of = |group: &Group| Awaited {
            paths: group.members.iter().map(|replica| path(&forwarders, *replica)).collect(),
            needed: group.needed,
        };
        Choice(groups.iter().map(of).collect())
    };
    Some(all.into_iter().map(choice).collect())
}

/// None if there are too many.
fn within<T>(all: Vec<T>) -> Option<Vec<T>> {
    (all.len() <= MOST_CHOICES).then_some(all)
}

/// Every way to choose so many.
fn subsets(members: &[usize], count: usize) -> Option<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, member) in members.iter().enumerate() {
        let left = members.len() - at - 1;
        let mut longer = Vec::new();
        for chosen in all {
            if chosen.len() < count {
                longer.push(chosen.iter().copied().chain([*member]).collect());
            }
            // Without it, only if those that follow are enough.
            if chosen.len() + left >= count {
                longer.push(chosen);
            }
        }
        all = within(longer)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_comes_once() {
        let mut found = subsets(&[1, 2, 3], 2).unwrap();
        found.sort();
        assert_eq!(found, [[1, 2], [1, 3], [2, 3]]);
        assert_eq!(subsets(&[1, 2], 0), Some(vec![vec![]]));
        assert_eq!(subsets(&[1, 2], 2), Some(vec![vec![1, 2]]));
        assert_eq!(subsets(&(0..8).collect::<Vec<_>>(), 5).unwrap().len(), 56);
        assert_eq!(subsets(&(0..40).collect::<Vec<_>>(), 20), None, "too many to enumerate");
    }
}
