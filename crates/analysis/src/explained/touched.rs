//! The share of the operations that a fault can touch.

use brownout_record::FaultRecord;
use serde::Serialize;

use super::{
    Model,
    paths::{Operation, Path, Way},
    raft,
    subjects::{Disks, HitSubjects},
};

/// The share of operations that a fault can touch, by the plan: exact, by enumeration of coordinators, replicas and choices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Touched {
    /// Which fault: its index in the experiment's list. None: all of the trial together.
    pub fault: Option<u32>,
    /// Of which operation; none: of all, which is only told where the plan knows the shares of the operations.
    pub operation: Option<String>,
    /// Operations that have to wait for a subject that is hit, whatever the database chooses, 0 to 1.
    pub must: f64,
    /// These, and those that wait for one, or for a replica farther away, if the database chooses so, 0 to 1.
    pub may: f64,
}

/// Two numbers of a share; `must` is part of `may`.
#[derive(Clone, Copy, Default)]
struct Shares {
    must: f64,
    may: f64,
}

/// Of each fault, by operation where there are several; and of all faults together, if there are several.
pub(super) fn touched(model: &Model<'_>, faults: &[&FaultRecord]) -> Vec<Touched> {
    let each = faults.iter().map(|fault| (Some(fault.index), vec![*fault]));
    let all = (faults.len() > 1).then(|| (None, faults.to_vec()));
    each.chain(all).flat_map(|(fault, own)| by_operation(model, fault, &own)).collect()
}

fn by_operation(model: &Model<'_>, fault: Option<u32>, faults: &[&FaultRecord]) -> Vec<Touched> {
    let hit = HitSubjects::of(&model.hosts, faults, model.is_led);
    let row = |operation: Option<&str>, shares: Shares| Touched {
        fault,
        operation: operation.map(str::to_owned),
        must: shares.must,
        may: shares.may,
    };
    // Of all together only where the plan knows how many of each there are.
    let mut sum = Some(Shares::default());
    let mut rows = Vec::new();
    for operation in &model.operations {
        let own = of_operation(model, &hit, operation);
        sum = sum
            .zip(operation.plan.share)
            .map(|(sum, share)| Shares { must: sum.must + share * own.must, may: sum.may + share * own.may });
        if model.operations.len() > 1 {
            rows.push(row(Some(&operation.plan.operation), own));
        }
    }
    sum.map(|sum| row(None, sum)).into_iter().chain(rows).collect()
}

fn of_operation(model: &Model<'_>, hit: &HitSubjects, operation: &Operation<'_>) -> Shares {
    let mut shares = Shares::default();
    for way in &operation.ways {
        let (must, may) = of_way(model, hit, way, raft::disks(operation.plan));
        shares.must += if must { way.share } else { 0.0 };
        shares.may += if may { way.share } else { 0.0 };
    }
    shares
}

/// Answers that come by a subject that is hit are taken never to come: then an operation that has to wait for one never ends, and one
/// that would have waited for one ends later.
fn of_way(model: &Model<'_>, hit: &HitSubjects, way: &Way, disks: Disks) -> (bool, bool) {
    if hit.coordinator(&model.hosts, way.coordinator) {
        return (true, true);
    }
    let usual = |path: &Path| model.usual.path(path);
    let never = |path: &Path, perhaps: bool| hit.path(&model.hosts, path, disks, perhaps);
    let surely = |path: &Path| if never(path, false) { f64::INFINITY } else { usual(path) };
    let perhaps = |path: &Path| if never(path, true) { f64::INFINITY } else { usual(path) };
    let must = way.best(&surely).is_infinite();
    let may = must || way.grows(&usual, &perhaps) > 0.0;
    (must, may)
}

/// The same with one leader or another: what must be whoever leads, and what may be if the right one does. Each list has the same
/// rows.
pub(super) fn whoever(each: Vec<Vec<Touched>>) -> Vec<Touched> {
    let both = |one: Vec<Touched>, other: Vec<Touched>| {
        let wider = |(one, other): (Touched, Touched)| Touched {
            must: one.must.min(other.must),
            may: one.may.max(other.may),
            ..one
        };
        one.into_iter().zip(other).map(wider).collect()
    };
    each.into_iter().reduce(both).unwrap_or_default()
}
