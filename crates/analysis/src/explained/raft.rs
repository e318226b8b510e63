//! The ways of operations where a leader decides (Raft, as etcd has it): quorum arithmetic.
//!
//! - **A proposal** (`put`, `txn`): the member that is asked passes it to the leader, who writes it to its log and sends it to all
//!   others. When as many of them have it on their disks as make a majority with the leader, it is committed; the member that was
//!   asked hears so from the leader, applies it, and answers. Proposals follow each other without waiting.
//! - **A linearizable read** (`range`): the member that is asked has the leader say up to where the log is committed, and the leader
//!   asks a majority first whether it still leads (ReadIndex: Ongaro, "Consensus: Bridging Theory and Practice", 2014, 6.4). A
//!   member has one such round under way at a time (`linearizableReadLoop` in etcd's `v3_server.go`): what comes meanwhile waits
//!   for its end, and then for the next one. So a read takes between one round and two.
//! - **A serializable read** is answered from what the member that is asked has.

use brownout_record::{OperationPlacement, Placement};

use super::{
    paths::{Awaited, Choices, Operation, Path, Routes, Way},
    subjects::Disks,
};

/// The consistency of what a leader decides.
const RAFT: &str = "raft";
/// The consistency of what a member answers by itself.
const SERIALIZABLE: &str = "serializable";

/// Whether a leader decides in this cluster.
pub(super) fn is_led(placement: &Placement) -> bool {
    placement.operations.iter().any(|plan| matches!(plan.consistency.as_str(), RAFT | SERIALIZABLE))
}

/// Whose disks an operation waits for.
pub(super) fn disks(plan: &OperationPlacement) -> Disks {
    match (plan.consistency.as_str(), plan.reads) {
        (SERIALIZABLE, _) => Disks::Own,
        (RAFT, true) => Disks::Round,
        (_, true) => Disks::Read,
        (_, false) => Disks::Write,
    }
}

/// Every operation with all its ways. `Err` with the reason where they cannot be enumerated.
pub(super) fn operations<'a>(
    placement: &'a Placement,
    asked: &[usize],
    leader: Option<&str>,
) -> Result<Vec<Operation<'a>>, String> {
    let index = |leader: &str| placement.ring.iter().position(|node| node.node == leader);
    let Some(leader) = leader.and_then(index) else {
        return Err("no member says who led".to_owned());
    };
    let asked = match placement.coordinators.as_str() {
        "round-robin" => asked.to_vec(),
        "leader" => vec![leader],
        other => return Err(format!("who is asked by '{other}' follows from no plan")),
    };
    let members = placement.ring.len();
    let operation = |plan: &'a OperationPlacement| {
        let way = |coordinator: &usize| Way {
            share: 1.0 / asked.len() as f64,
            coordinator: *coordinator,
            choices: choices(plan, members, *coordinator, leader),
        };
        Operation { plan, ways: asked.iter().map(way).collect() }
    };
    Ok(placement.operations.iter().map(operation).collect())
}

fn choices(plan: &OperationPlacement, members: usize, asked: usize, leader: usize) -> Choices {
    let own = || Awaited { paths: vec![Path { replica: asked, hops: Vec::new() }], needed: 1 };
    if plan.consistency == SERIALIZABLE {
        return Choices::Read(Routes(vec![own()]));
    }
    // From the member that is asked to the leader, to another one and back, and back.
    let path = |member: usize| {
        let ends = [asked, leader, member, leader, asked];
        let hops = ends.windows(2).map(|ends| (ends[0], ends[1])).filter(|(from, to)| from != to);
        Path { replica: member, hops: hops.collect() }
    };
    let followers = (0..members).filter(|member| *member != leader).map(path).collect();
    let routes = Routes(vec![
        // With the leader they are a majority.
        Awaited { paths: followers, needed: members / 2 },
        Awaited { paths: vec![path(leader)], needed: 1 },
        own(),
    ]);
    if plan.reads { Choices::Round(routes) } else { Choices::Write(vec![routes]) }
}
