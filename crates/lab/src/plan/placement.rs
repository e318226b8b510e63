//! Where rows lie, who is asked for them and how far hosts stand apart, as the record keeps it.

use std::collections::BTreeMap;

use brownout_cluster::{Site, cassandra};
use brownout_load::EtcdLoad;
use brownout_network::Impairment;
use brownout_record::{NodePlacement, OperationPlacement, PairDistance, Placement};
use brownout_units::Share;

use super::{Layout, PlannedLoad, Work};
use crate::{
    experiment::{Amount, CoordinatorsChoice},
    hosts::HostPlan,
};

/// Where Cassandra's simplest snitch says that every node is.
const ANYWHERE: (&str, &str) = ("datacenter1", "rack1");

/// Of a lab with this load.
pub(super) fn placement(layout: &Layout, load: &PlannedLoad, coordinators: CoordinatorsChoice) -> Placement {
    let nodes: Vec<&HostPlan> = layout.hosts.nodes().collect();
    // Every member of etcd holds every key: there is no ring.
    let ring = match &load.work {
        Work::Etcd(_) => ring(&nodes, vec![0; nodes.len()]),
        Work::KeyValue(_) | Work::Profiles(_) => ring(&nodes, tokens(&nodes)),
    };
    let near = |node: &HostPlan| {
        coordinators != CoordinatorsChoice::Local
            || node.location.as_ref().map(|location| location.site.as_str()) == layout.hosts.load_site()
    };
    Placement {
        ring,
        coordinators: match coordinators {
            CoordinatorsChoice::TokenAware | CoordinatorsChoice::Local => "token-aware",
            CoordinatorsChoice::RoundRobin => "round-robin",
            CoordinatorsChoice::Leader => "leader",
        }
        .to_owned(),
        asked: nodes.iter().filter(|node| near(node)).map(|node| node.name.clone()).collect(),
        operations: operations(load),
        distances: distances(layout),
    }
}

fn site(node: &HostPlan) -> Option<Site> {
    let location = node.location.as_ref()?;
    Some(Site { dc: location.site.clone(), rack: location.rack.clone() })
}

/// The tokens that Cassandra's nodes are given.
fn tokens(nodes: &[&HostPlan]) -> Vec<i64> {
    let sites: Vec<Option<Site>> = nodes.iter().map(|node| site(node)).collect();
    cassandra::tokens_of(&sites.iter().map(Option::as_ref).collect::<Vec<_>>())
}

fn ring(nodes: &[&HostPlan], tokens: Vec<i64>) -> Vec<NodePlacement> {
    let anywhere = || Site { dc: ANYWHERE.0.to_owned(), rack: ANYWHERE.1.to_owned() };
    let places = nodes.iter().zip(tokens).map(|(node, token)| {
        let Site { dc, rack } = site(node).unwrap_or_else(anywhere);
        NodePlacement { node: node.name.clone(), token, site: dc, rack }
    });
    places.collect()
}

/// Those of the short form; what a profile's statement does only the servers know.
fn operations(load: &PlannedLoad) -> Vec<OperationPlacement> {
    let work = match &load.work {
        Work::KeyValue(work) => work,
        Work::Etcd(work) => return operations_of_etcd(load, work),
        Work::Profiles(_) => return Vec::new(),
    };
    let copies = match work.data_centres.is_empty() {
        true => BTreeMap::from([(ANYWHERE.0.to_owned(), work.replication)]),
        false => work.data_centres.clone(),
    };
    let shares = shares(load, &[work.read, work.write]);
    let made = load.operations().into_iter().zip(shares).map(|(name, share)| OperationPlacement {
        operation: name.to_owned(),
        reads: name == "read",
        share,
        consistency: work.consistency.to_string(),
        copies: copies.clone(),
        rows: work.population,
    });
    made.collect()
}

/// Where a key lies needs no saying: at every member. Which of them an operation waits for, its consistency says: `raft` for
/// those that a majority has to agree to, `serializable` for those that whoever is asked answers alone.
fn operations_of_etcd(load: &PlannedLoad, work: &EtcdLoad) -> Vec<OperationPlacement> {
    let shares = shares(load, &[work.put, work.range, work.serializable, work.txn]);
    let made = load.operations().into_iter().zip(shares).map(|(name, share)| OperationPlacement {
        operation: name.to_owned(),
        reads: matches!(name, "range" | "serializable"),
        share,
        consistency: if name == "serializable" { "serializable" } else { "raft" }.to_owned(),
        copies: BTreeMap::new(),
        rows: work.population,
    });
    made.collect()
}

/// The share of each operation that there is, by weights or by its own rate. How often users come round only the run tells.
fn shares(load: &PlannedLoad, weights: &[u32]) -> Vec<Option<f64>> {
    let weights: Vec<Option<f64>> = match &load.own {
        None => weights.iter().filter(|weight| **weight > 0).map(|weight| Some(f64::from(*weight))).collect(),
        Some(own) if own.len() == 1 => vec![Some(1.0)],
        Some(own) => own.iter().map(|one| if let Amount::Rate(rate) = one { Some(rate.get()) } else { None }).collect(),
    };
    let all: Option<f64> = weights.iter().copied().sum();
    weights.into_iter().map(|weight| weight.zip(all).map(|(weight, all)| weight / all)).collect()
}

/// Several impairments of a pair act one after the other.
fn distances(layout: &Layout) -> Vec<PairDistance> {
    let mut pairs: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for distance in &layout.distances {
        let (usual, least) = (delay_at(&distance.impairment, 0.5), delay_at(&distance.impairment, 0.0));
        for (from, to) in &distance.pairs {
            let sum = pairs.entry((from, to)).or_default();
            (sum.0, sum.1) = (sum.0 + usual, sum.1 + least);
        }
    }
    let known = pairs.into_iter().map(|((from, to), (delay_ns, least_ns))| PairDistance {
        from: from.to_owned(),
        to: to.to_owned(),
        delay_ns,
        least_ns,
    });
    known.filter(|one| one.delay_ns > 0).collect()
}

/// The delay that a share of the packets stays below, ns. Who overtakes skips the delay; no delay is below zero.
fn delay_at(impairment: &Impairment, quantile: f64) -> u64 {
    let reorder = impairment.reorder;
    let skipping = match reorder.share {
        Share::ZERO => 0.0,
        share => reorder.mean().unwrap_or(share).fraction(),
    };
    if quantile < skipping || (quantile <= 0.0 && skipping > 0.0) {
        return 0;
    }
    let of_delayed = if skipping < 1.0 { (quantile - skipping) / (1.0 - skipping) } else { 0.0 };
    let (delay, jitter) = (impairment.delay.ns() as f64, impairment.jitter.ns() as f64);
    (delay + jitter * impairment.distribution.quantile(of_delayed)).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use brownout_network::{Distribution, Reorder};
    use brownout_units::Delay;

    use super::*;
    use crate::hosts::Hosts;

    #[test]
    fn the_least_delay_of_a_pair_lies_below_its_median_by_the_jitter() {
        let wide = |jitter, distribution| Impairment {
            delay: Delay::from_ms(40),
            jitter: Delay::from_ms(jitter),
            distribution,
            ..Impairment::NONE
        };
        let both = |impairment: Impairment| (delay_at(&impairment, 0.5), delay_at(&impairment, 0.0));
        assert_eq!(both(wide(0, Distribution::Uniform)), (40_000_000, 40_000_000));
        assert_eq!(both(wide(10, Distribution::Uniform)), (40_000_000, 30_000_000));
        let (median, least) = both(wide(20, Distribution::Normal));
        assert!(median == 40_000_000 && least == 0, "no delay is below zero: {least}");
        let skipped = Reorder { share: Share::new(0.1).unwrap(), ..Reorder::NEVER };
        let (median, least) = both(Impairment { reorder: skipped, ..wide(10, Distribution::Uniform) });
        assert!(least == 0 && median < 40_000_000, "{median} {least}");
    }

    #[test]
    fn nodes_without_sites_stand_where_the_simplest_snitch_says() {
        let hosts = Hosts::new(3);
        let nodes: Vec<&HostPlan> = hosts.nodes().collect();
        let ring = ring(&nodes, tokens(&nodes));
        assert_eq!(ring[0].token, i64::MIN);
        assert!(ring.iter().all(|node| node.site == "datacenter1" && node.rack == "rack1"));
    }
}
