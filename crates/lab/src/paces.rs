//! The pace of the load in each part of a trial.

use brownout_load::{Arrivals, Engine, LoadError, Pace};
use brownout_units::Rate;

use crate::{
    LabError,
    experiment::{ArrivalsChoice, RateChoice},
    plan::{Plan, Work},
    warmup,
};

/// The flood of the warm-up: a closed loop; operations with rates of their own take part in it by their rates.
pub fn flood(plan: &Plan) -> Vec<Pace> {
    let Some(rates) = plan.load.rates() else { return vec![Pace::Closed { threads: warmup::FLOOD_THREADS }] };
    let all: f64 = rates.iter().map(|rate| rate.get()).sum();
    let share = |rate: &Rate| (f64::from(warmup::FLOOD_THREADS) * rate.get() / all).round().max(1.0);
    rates.iter().map(|rate| Pace::Closed { threads: share(rate) as u32 }).collect()
}

/// Whether the load that is measured is a share of what the flood is answered at.
pub fn is_of_capacity(plan: &Plan) -> bool {
    plan.load.rates().is_none() && matches!(plan.experiment.load.rate, Some(RateChoice::OfCapacity(_)))
}

/// The load that is measured, and in words what it is; `capacity` is what the flood was answered at, per second.
pub fn measured(plan: &Plan, capacity: f64) -> Result<(Vec<Pace>, String), LabError> {
    let load = &plan.experiment.load;
    let arrivals = match load.arrivals {
        ArrivalsChoice::Constant => Arrivals::Constant,
        ArrivalsChoice::Poisson => Arrivals::Poisson,
    };
    if let Some(rates) = plan.load.rates() {
        let names = plan.load.operations();
        let words: Vec<String> = names.iter().zip(rates).map(|(name, rate)| format!("{name} {rate}")).collect();
        let paces = rates.iter().map(|rate| Pace::Open { rate: *rate, arrivals });
        return Ok((paces.collect(), words.join(", ")));
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
            let threads = threads.map_or(1, |threads| u32::try_from(threads.0).unwrap_or(u32::MAX));
            (Pace::Closed { threads }, format!("a closed loop of {threads} threads"))
        }
    };
    Ok((vec![pace], words))
}

/// Puts them in force.
pub fn set(engine: &Engine, plan: &Plan, paces: Vec<Pace>) -> Result<(), LoadError> {
    let changed = match (&plan.load.work, &paces[..]) {
        // Its engine has a flow for filling, too.
        (Work::KeyValue(_), [pace]) => engine.set_pace(pace.clone()),
        _ => engine.set_paces(paces),
    };
    changed.map(drop)
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
    fn weights_are_one_flow_at_the_rate_or_a_share_of_what_the_flood_was_answered_at() {
        let plan = plan("profile: p.yaml, ops: { insert: 1, validate: 3 }, rate: 30%");
        assert_eq!(flood(&plan), [Pace::Closed { threads: warmup::FLOOD_THREADS }]);
        let (paces, _) = measured(&plan, 1_000.0).unwrap();
        assert_eq!(paces, [Pace::Open { rate: Rate::per_second(300.0).unwrap(), arrivals: Arrivals::Constant }]);
        assert!(measured(&plan, 0.0).is_err(), "a share of nothing");
    }
}
