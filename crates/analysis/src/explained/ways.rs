//! Every way that each operation of a plan can take.

use std::collections::BTreeMap;

use brownout_record::{OperationPlacement, Placement};

use super::{
    level::{self, Group},
    paths::{Awaited, Choices, Operation, Path, Routes, Way},
    raft, ring,
};

/// Beyond so many ways to send a write to other data centres, nobody enumerates them.
const MOST_CHOICES: usize = 100;

/// Every operation of the plan with all its ways, of a database that is led with this leader. `Err` with the reason where they
/// cannot be enumerated.
pub(super) fn operations<'a>(placement: &'a Placement, leader: Option<&str>) -> Result<Vec<Operation<'a>>, String> {
    if placement.operations.is_empty() {
        return Err("what the operations do, only their profile knows".to_owned());
    }
    let is_asked = |at: usize| placement.asked.contains(&placement.ring[at].node);
    let asked: Vec<usize> = (0..placement.ring.len()).filter(|at| is_asked(*at)).collect();
    if asked.is_empty() {
        return Err("the load has a connection to no node".to_owned());
    }
    if raft::is_led(placement) {
        return raft::operations(placement, &asked, leader);
    }
    let by_token = match placement.coordinators.as_str() {
        "token-aware" => true,
        "round-robin" => false,
        other => return Err(format!("who coordinates an operation by '{other}' follows from no plan")),
    };
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
) -> Result<Choices, String> {
    let groups = level::groups(&plan.consistency, &placement.ring, coordinator, replicas)?;
    if plan.reads {
        return Ok(Choices::Read(routes(&groups, |replica| direct(coordinator, replica))));
    }
    let forwarded = forwarded(placement, coordinator, &groups);
    forwarded.map(Choices::Write).ok_or_else(|| format!("there are more than {MOST_CHOICES} ways to forward a write"))
}

fn routes(groups: &[Group], path: impl Fn(usize) -> Path) -> Routes {
    let of = |group: &Group| Awaited {
        paths: group.members.iter().map(|replica| path(*replica)).collect(),
        needed: group.needed,
    };
    Routes(groups.iter().map(of).collect())
}

/// There and back; nowhere for the coordinator itself.
fn direct(coordinator: usize, replica: usize) -> Path {
    let hops = if replica == coordinator { Vec::new() } else { vec![(coordinator, replica), (replica, coordinator)] };
    Path { replica, hops }
}

/// A write is sent to every replica, in another data centre by way of one of them, who forwards it; each answers by itself
/// (`StorageProxy.sendToHintedReplicas`). None if there are too many ways.
fn forwarded(placement: &Placement, coordinator: usize, groups: &[Group]) -> Option<Vec<Routes>> {
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
        all = longer;
        if all.len() > MOST_CHOICES {
            return None;
        }
    }
    let path = |forwarders: &BTreeMap<&str, usize>, replica: usize| match forwarders.get(site(replica)) {
        Some(by) if *by != replica => {
            Path { replica, hops: vec![(coordinator, *by), (*by, replica), (replica, coordinator)] }
        }
        _ => direct(coordinator, replica),
    };
    Some(all.iter().map(|forwarders| routes(groups, |replica| path(forwarders, replica))).collect())
}
