//! The pace of the load in each part of a trial.

use brownout_load::{Arrivals, Engine, EtcdLoad, KeyValue, LoadError, Pace};
use brownout_units::Rate;

use crate::{
    LabError,
    experiment::{Amount, ArrivalsChoice, RateChoice},
    plan::{Plan, Work, words},
    warmup,
};

/// The flood of the warm-up: a closed loop. Operations that are loads of their own each have their users in it: those with rates by
/// their rates, those with users by these; where there are both kinds, each kind has as many for each of its operations.
pub fn flood(plan: &Plan) -> Vec<Pace> {
    let users = f64::from(warmup::FLOOD_THREADS);
    let Some(own) = &plan.load.own else { return vec![Pace::Closed { threads: warmup::FLOOD_THREADS }] };
    let alike = |one: &Amount, other: &Amount| std::mem::discriminant(one) == std::mem::discriminant(other);
    let share = |one: &Amount| {
        let kind = || own.iter().filter(|other| alike(one, other));
        let of_kind: f64 = kind().map(size).sum();
        let users = users * kind().count() as f64 / own.len() as f64;
        (users * size(one) / of_kind).round().max(1.0) as u32
    };
    own.iter().map(|one| Pace::Closed { threads: share(one) }).collect()
}

fn size(amount: &Amount) -> f64 {
    match amount {
        Amount::Rate(rate) => rate.get(),
        Amount::Threads(threads) => threads.0 as f64,
    }
}

/// Whether the load that is measured is a share of what the flood is answered at.
pub fn is_of_capacity(plan: &Plan) -> bool {
    plan.load.own.is_none() && matches!(plan.experiment.load.rate, Some(RateChoice::OfCapacity(_)))
}

/// The load that is measured, and in words what it is; `capacity` is what the flood was answered at, per second.
pub fn measured(plan: &Plan, capacity: f64) -> Result<(Vec<Pace>, String), LabError> {
    let load = &plan.experiment.load;
    let arrivals = match load.arrivals {
        ArrivalsChoice::Constant => Arrivals::Constant,
        ArrivalsChoice::Poisson => Arrivals::Poisson,
    };
    if let Some(own) = &plan.load.own {
        let pace = |amount: &Amount| match amount {
            Amount::Rate(rate) => Pace::Open { rate: *rate, arrivals },
            Amount::Threads(threads) => Pace::Closed { threads: users(threads.0) },
        };
        return Ok((own.iter().map(pace).collect(), words(plan.load.parts())));
    }
    let (pace, words) = match (load.rate, load.threads) {
        (Some(RateChoice::Fixed(rate)), _) => (Pace::Open { rate, arrivals }, rate.to_string()),
        (Some(RateChoice::OfCapacity(share)), _) => {
            // Whole operations per second are what people compare; below ten, rounding would change the load.
            let asked = capacity * share.fraction();
            let rate = Rate::per_second(if asked >= 10.0 { asked.round() } else { asked }).ok_or_else(|| {
                LabError::Trial("the flood of the warm-up delivered nothing, so there is no capacity".to_owned())
            })?;
            (Pace::Open { rate, arrivals }, format!("{rate}, which is {share} of it"))
        }
        (None, threads) => {
            let threads = threads.map_or(1, |threads| users(threads.0));
            (Pace::Closed { threads }, format!("a closed loop of {threads} threads"))
        }
    };
    Ok((vec![pace], words))
}

fn users(threads: u64) -> u32 {
    u32::try_from(threads).unwrap_or(u32::MAX)
}

/// Puts them in force, from then on (`CLOCK_MONOTONIC`), or at once if that is over.
pub fn set(engine: &Engine, plan: &Plan, paces: Vec<Pace>, from_ns: u64) -> Result<(), LoadError> {
    let changed = match (&plan.load.work, &paces[..]) {
        // Its engine has flows for filling and for both operations, too.
        (Work::KeyValue(_), [pace]) if plan.load.own.is_none() => engine.set_pace_from(from_ns, pace.clone()),
        (Work::KeyValue(_), _) => engine.set_paces_from(from_ns, apart(&plan.load.operations(), &paces)),
        (Work::Profiles(_), _) => engine.set_paces_from(from_ns, paces),
        (Work::Etcd(_), [pace]) if plan.load.own.is_none() => engine.set_pace_from(from_ns, pace.clone()),
        (Work::Etcd(_), _) => {
            let operations = plan.load.operations();
            engine.set_paces_from(
                from_ns,
                EtcdLoad::apart(EtcdLoad::OPERATIONS.map(|name| pace_of(name, &operations, &paces))),
            )
        }
    };
    changed.map(drop)
}

/// Reads and writes, each by its pace; idle where the load has none.
fn apart(operations: &[&str], paces: &[Pace]) -> Vec<Pace> {
    let of = |operation| pace_of(operation, operations, paces);
    KeyValue::apart(of("read"), of("write"))
}

/// The pace of one of the operations that have one each; idle if it is none of them.
fn pace_of(operation: &str, operations: &[&str], paces: &[Pace]) -> Pace {
    let at = operations.iter().position(|name| *name == operation);
    at.and_then(|at| paces.get(at).cloned()).unwrap_or(Pace::Idle)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::*;
    use crate::experiment::Source;

    const PROFILE: &str = "{ keyspace: k, table: t, table_definition: 'CREATE TABLE t (a int PRIMARY KEY, b int)' }";

    fn plan(load: &str) -> Plan {
        let text = format!("load: {{ {load} }}\nphases: {{ warm-up: 20s, baseline: 5s }}\nobjective: {{ p99: 1s }}\n");
        let files = BTreeMap::from([("p.yaml".to_owned(), PROFILE.to_owned())]);
        let source = Source::from_text(Path::new("e.yaml"), text).unwrap().with_attached(files);
        Plan::new(&source).unwrap()
    }

    #[test]
    fn operations_with_rates_of_their_own_share_the_flood_by_them() {
        let plan = plan("profile: p.yaml, ops: { insert: 100/s, validate: 300/s }, arrivals: poisson");
        assert_eq!(flood(&plan), [Pace::Closed { threads: 12 }, Pace::Closed { threads: 36 }]);
        let (paces, words) = measured(&plan, 5_000.0).unwrap();
        let open = |rate| Pace::Open { rate: Rate::per_second(rate).unwrap(), arrivals: Arrivals::Poisson };
        assert_eq!(paces, [open(100.0), open(300.0)]);
        assert_eq!(words, "insert 100/s, validate 300/s");
    }

    #[test]
    fn reads_and_writes_are_loads_of_their_own() {
        let plan = plan("mix: { read: 300/s, write: { threads: 4 } }");
        // Rates and users are not of one kind: half of the flood for each.
        let half = Pace::Closed { threads: warmup::FLOOD_THREADS / 2 };
        assert_eq!(flood(&plan), [half.clone(), half]);
        assert!(!is_of_capacity(&plan));
        let (paces, words) = measured(&plan, 5_000.0).unwrap();
        let read = Pace::Open { rate: Rate::per_second(300.0).unwrap(), arrivals: Arrivals::Constant };
        assert_eq!(
            (&paces[..], words.as_str()),
            (&[read, Pace::Closed { threads: 4 }][..], "read 300/s, write 4 threads")
        );
    }

    #[test]
    fn users_of_their_own_share_the_flood_by_their_number_and_a_single_operation_has_all_of_it() {
        let users = plan("mix: { read: { threads: 1 }, write: { threads: 5 } }");
        assert_eq!(flood(&users), [Pace::Closed { threads: 8 }, Pace::Closed { threads: 40 }]);
        let single = plan("mix: { write: { threads: 5 } }");
        assert_eq!(flood(&single), [Pace::Closed { threads: warmup::FLOOD_THREADS }]);
        let tiny = plan("mix: { read: 1000/s, write: 1/s }");
        assert_eq!(flood(&tiny)[1], Pace::Closed { threads: 1 });
    }

    #[test]
    fn each_pace_goes_to_the_flow_of_its_operation() {
        let (one, other) = (Pace::Closed { threads: 1 }, Pace::Closed { threads: 2 });
        let both = apart(&["read", "write"], &[one.clone(), other.clone()]);
        assert_eq!(both, KeyValue::apart(one.clone(), other));
        assert_eq!(apart(&["write"], std::slice::from_ref(&one)), KeyValue::apart(Pace::Idle, one));
    }

    #[test]
    fn weights_are_one_flow_at_the_rate_or_a_share_of_what_the_flood_was_answered_at() {
        let plan = plan("profile: p.yaml, ops: { insert: 1, validate: 3 }, rate: 30%");
        assert_eq!(flood(&plan), [Pace::Closed { threads: warmup::FLOOD_THREADS }]);
        let (paces, _) = measured(&plan, 1_000.0).unwrap();
        assert_eq!(paces, [Pace::Open { rate: Rate::per_second(300.0).unwrap(), arrivals: Arrivals::Constant }]);
        assert!(measured(&plan, 0.0).is_err(), "a share of nothing");
    }
}
