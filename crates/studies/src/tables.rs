//! The tables of the study slow-and-flaky: published beside measured, and what arithmetic has for both.

mod delays;
mod losses;
mod runs;

use std::collections::BTreeMap;

use crate::{published::Published, stored::Stored};

/// What stands instead of a table of ours for which there are no findings.
pub const NOT_MEASURED: &str = "*Not measured yet.*";

/// Nodes of the cluster, published and ours.
const NODES: f64 = 3.0;

/// All of them, in the order in which they are printed.
pub const NAMES: [&str; 11] = [
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
    "provenance",
];

/// A table by name; none if there is no such table.
pub fn table(name: &str, published: &Published, findings: &BTreeMap<String, Stored>) -> Option<String> {
    let run = |name: &str| findings.get(name);
    let ours = |table: Option<String>| table.unwrap_or_else(|| format!("{NOT_MEASURED}\n"));
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
        "danger-zones" => runs::danger_zones(&published.paper, findings),
        "provenance" => ours((!findings.is_empty()).then(|| runs::provenance(findings))),
        _ => return None,
    })
}
