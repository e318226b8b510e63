//! The tables of the studies: published beside measured, and what arithmetic has for both.

mod clocks;
mod delays;
mod etcd;
mod losses;
mod lost_writes;
mod runs;
mod topologies;
mod virtual_network;

use std::collections::BTreeMap;

use crate::{
    published::{Published, SlowAndFlaky, TopologiesAndClocks, VirtualNetwork},
    stored::Stored,
};

/// What stands instead of a table of ours for which there are no findings.
pub const NOT_MEASURED: &str = "*Not measured yet.*";

/// Nodes of the cluster, published and ours, where there are three.
const NODES: f64 = 3.0;

/// All tables of a study, in the order in which they are printed.
pub fn names(published: &Published) -> &'static [&'static str] {
    match published {
        Published::SlowAndFlaky(_) => &[
            "published",
            "one-slow-node",
            "two-slow-nodes",
            "ratios",
            "delay-proof",
            "loss",
            "loss-proof",
            "tolerance",
            "tolerance-proof",
            "danger-zones",
            "etcd-published",
            "etcd-tolerance",
            "etcd-throughput",
            "etcd-zones",
            "etcd-proof",
            "provenance",
        ],
        Published::VirtualNetwork(_) => &[
            "published",
            "closed-r1",
            "closed-r3-one",
            "closed-r3-quorum",
            "open-r1",
            "open-r3-one",
            "open-r3-quorum",
            "processors",
            "provenance",
        ],
        Published::TopologiesAndClocks(_) => {
            &["published", "closed", "open", "clocks", "clocks-wrong", "lost-writes", "provenance"]
        }
    }
}

/// A table by name; none if there is no such table.
pub fn table(name: &str, published: &Published, findings: &BTreeMap<String, Stored>) -> Option<String> {
    if name == "provenance" {
        return Some(ours((!findings.is_empty()).then(|| runs::provenance(findings))));
    }
    match published {
        Published::SlowAndFlaky(published) => of_slow_and_flaky(name, published, findings),
        Published::VirtualNetwork(published) => of_virtual_network(name, published, findings),
        Published::TopologiesAndClocks(published) => of_topologies_and_clocks(name, published, findings),
    }
}

fn ours(table: Option<String>) -> String {
    table.unwrap_or_else(|| format!("{NOT_MEASURED}\n"))
}

fn of_slow_and_flaky(name: &str, published: &SlowAndFlaky, findings: &BTreeMap<String, Stored>) -> Option<String> {
    let run = |name: &str| findings.get(name);
    Some(match name {
        "published" => delays::published(published),
        "one-slow-node" => ours(run("slow").and_then(|run| delays::slow(run, 0, &published.delay))),
        "two-slow-nodes" => ours(run("slow").and_then(|run| delays::slow(run, 1, &published.two_nodes))),
        "ratios" => delays::ratios(published, run("slow"), run("few-users")),
        "delay-proof" => ours(run("slow").map(|run| losses::proofs(run, "one-way-delay", None))),
        "loss" => ours(run("flaky").map(|run| losses::lossy(run, &published.paper))),
        "loss-proof" => losses::loss_proof(&published.ping, run("flaky")),
        "tolerance" => ours(run("tolerance").map(losses::tolerance)),
        "tolerance-proof" => ours(run("tolerance").map(losses::all_proofs)),
        // Zones of ours are in the findings that are called after fault and load: `delay-reads`.
        "danger-zones" => {
            runs::danger_zones(&published.paper.zones, findings, |zone| format!("{}-{}", zone.fault, zone.load))
        }
        "etcd-published" => etcd::published(&published.etcd),
        "etcd-tolerance" => ours(run("etcd").map(etcd::tolerance)),
        "etcd-throughput" => ours(run("etcd-closed").map(etcd::throughput)),
        "etcd-zones" => {
            runs::danger_zones(&published.etcd.zones, findings, |zone| format!("etcd-{}-{}", zone.load, zone.fault))
        }
        "etcd-proof" => ours(run("etcd").map(losses::all_proofs)),
        _ => return None,
    })
}

fn of_virtual_network(name: &str, published: &VirtualNetwork, findings: &BTreeMap<String, Stored>) -> Option<String> {
    if name == "published" {
        return Some(virtual_network::published(published));
    }
    if name == "processors" {
        return Some(ours(virtual_network::processors(findings)));
    }
    let (pace, replication) = virtual_network::of(name)?;
    let run = findings.get(name);
    Some(ours(run.map(|run| virtual_network::compared(run, published, pace, replication))))
}

fn of_topologies_and_clocks(
    name: &str,
    published: &TopologiesAndClocks,
    findings: &BTreeMap<String, Stored>,
) -> Option<String> {
    let run = |name: &str| findings.get(name);
    Some(match name {
        "published" => topologies::published(published),
        "closed" => ours(run("closed").map(|run| topologies::closed(run, published))),
        "open" => ours(run("open").map(topologies::open)),
        "clocks" => ours(run("clocks").map(clocks::matrices)),
        "clocks-wrong" => ours(run("clocks").map(clocks::wrong)),
        "lost-writes" => {
            let runs: Vec<&Stored> = ["skew", "skew-client"].into_iter().filter_map(run).collect();
            ours((!runs.is_empty()).then(|| lost_writes::lost_writes(&runs)))
        }
        _ => return None,
    })
}
