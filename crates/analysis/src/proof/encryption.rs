//! Was encrypted what was to be?
//!
//! Two that know nothing of each other have to say so: the emulator, which looked on every link for a marker that a
//! client wrote, and the nodes, whose logs name each of their connections. That the look can see a marker at all is
//! shown by the links that are not to be encrypted; where all are, by the same look in a run without encryption.

use std::collections::BTreeSet;

use brownout_record::{Description, EvidenceRow};
use serde::Serialize;

use crate::{Proof, TrialEvidence};

/// What the record says of encryption: `lab/src/clear_text.rs` writes it.
const WRITES: &str = "marker-writes";
const ON_ENCRYPTED: &str = "marker-on-encrypted-link";
const ON_OPEN: &str = "marker-on-open-link";
const ENCRYPTED: &str = "encrypted-connection";
const UNENCRYPTED: &str = "unencrypted-connection";
/// The only host that is no node.
const LOAD: &str = "load";
/// In the place of a node's name: its port for clients, or for nodes.
const CLIENTS: &str = "clients";
const NODES: &str = "nodes";
/// Overlays below which all is cipher text, whatever the database does.
const ENCRYPTING: [&str; 2] = ["wireguard", "openvpn"];
/// Reasons named in words.
const NAMED: usize = 4;

/// One ordered pair of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkedLink {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// Whether the database is to encrypt what passes.
    pub encrypted: bool,
    /// How often the marker passed in clear.
    pub sightings: u64,
}

/// What a node logged of its connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedConnection {
    /// The node.
    pub node: String,
    /// With which other node; `nodes` and `clients`: its port for them.
    pub with: String,
    /// Whether they were encrypted.
    pub encrypted: bool,
}

/// Whether a trial's database encrypted what it was to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncryptionFindings {
    /// `proven`: on no link that is to be encrypted was the marker seen, and no log contradicts.
    pub verdict: Proof,
    /// Rows with the marker that all replicas acknowledged.
    pub writes: u64,
    /// What the emulator saw on every link.
    pub links: Vec<MarkedLink>,
    /// What the nodes say.
    pub connections: Vec<LoggedConnection>,
    /// Why it is not proven.
    pub reasons: Vec<String>,
}

/// Judges the encryption of a trial; none where nothing was to be encrypted and nobody looked.
pub(crate) fn encryption(description: &Description, evidence: &TrialEvidence) -> Option<EncryptionFindings> {
    let rows = &evidence.database;
    let is_asked = !description.encryption.is_empty() && !description.external;
    if !is_asked && !rows.iter().any(|row| row.name == WRITES) {
        return None;
    }
    let links = links(rows);
    let connections: Vec<LoggedConnection> = rows.iter().filter_map(connection).collect();
    let writes = rows.iter().filter(|row| row.name == WRITES).map(|row| row.value as u64).sum();
    let refuted = refutations(&links, &connections);
    let missing = lacks(description, &links, &connections, writes);
    let (verdict, mut reasons) = match (refuted.is_empty(), missing.is_empty()) {
        (false, _) => (Proof::Refuted, refuted),
        (true, false) => (Proof::Unproven, missing),
        (true, true) => (Proof::Proven, Vec::new()),
    };
    let more = reasons.len().saturating_sub(NAMED);
    reasons.truncate(NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    Some(EncryptionFindings { verdict, writes, links, connections, reasons })
}

fn links(rows: &[EvidenceRow]) -> Vec<MarkedLink> {
    let link = |row: &EvidenceRow| {
        let encrypted = match row.name.as_str() {
            ON_ENCRYPTED => true,
            ON_OPEN => false,
            _ => return None,
        };
        let (from, to) = (row.node.clone(), row.subject.clone());
        Some(MarkedLink { from, to, encrypted, sightings: row.value as u64 })
    };
    rows.iter().filter_map(link).collect()
}

fn connection(row: &EvidenceRow) -> Option<LoggedConnection> {
    let encrypted = match row.name.as_str() {
        ENCRYPTED => true,
        UNENCRYPTED => false,
        _ => return None,
    };
    Some(LoggedConnection { node: row.node.clone(), with: row.subject.clone(), encrypted })
}

/// The hosts that speak of their connections: the nodes.
fn nodes(links: &[MarkedLink]) -> BTreeSet<&str> {
    links.iter().map(|link| link.from.as_str()).filter(|host| *host != LOAD).collect()
}

/// Clear text where there is to be none.
fn refutations(links: &[MarkedLink], connections: &[LoggedConnection]) -> Vec<String> {
    let nodes = nodes(links);
    let seen = links.iter().filter(|link| link.encrypted && link.sightings > 0).map(|link| {
        let MarkedLink { from, to, sightings, .. } = link;
        format!("{from} → {to}: the marker passed in clear {sightings} times")
    });
    let mut all: Vec<String> = seen.collect();
    for LoggedConnection { node, with, .. } in connections.iter().filter(|logged| !logged.encrypted) {
        let is_to_a_node = |link: &&MarkedLink| link.from == *node && nodes.contains(link.to.as_str());
        let to_nodes: Vec<&MarkedLink> = links.iter().filter(is_to_a_node).collect();
        let is_to_be_encrypted = match with.as_str() {
            CLIENTS => links.iter().filter(|link| link.to == *node).any(|link| link.from == LOAD && link.encrypted),
            // A port for some of the others may be open to clear text.
            NODES => !to_nodes.is_empty() && to_nodes.iter().all(|link| link.encrypted),
            other => to_nodes.iter().any(|link| link.to == other && link.encrypted),
        };
        if is_to_be_encrypted {
            all.push(format!("{node} logged connections with {with} that are not encrypted"));
        }
    }
    all
}

/// What is missing for a proof.
fn lacks(
    description: &Description,
    links: &[MarkedLink],
    connections: &[LoggedConnection],
    writes: u64,
) -> Vec<String> {
    if writes == 0 || links.is_empty() {
        return vec!["no marker was looked for".to_owned()];
    }
    let is_below = ENCRYPTING.iter().any(|word| description.overlay.contains(word));
    let takes_both = description.encryption.iter().any(|words| words.contains("taken"));
    let has_logged = |node: &str, with: &[&str]| {
        connections.iter().any(|logged| logged.node == node && logged.encrypted && with.contains(&logged.with.as_str()))
    };
    let mut all = Vec::new();
    for MarkedLink { from, to, .. } in links.iter().filter(|link| link.encrypted) {
        if from == LOAD {
            // Of a port that takes both no log says who came encrypted: there the look has to tell, where it can.
            if (is_below || !takes_both) && !has_logged(to, &[CLIENTS]) {
                all.push(format!("the log of {to} does not say that its port for clients is encrypted"));
            }
        } else if to != LOAD && !has_logged(from, &[to.as_str(), NODES]) {
            all.push(format!("the log of {from} names no encrypted connection with {to}"));
        }
    }
    let is_between_nodes = |link: &MarkedLink| link.from != LOAD && link.to != LOAD;
    // Where nodes encrypt to some others, they may do so to any: who does not know yet where another one is, does.
    let may_nodes_encrypt = links.iter().any(|link| link.encrypted && is_between_nodes(link));
    let is_unseen =
        |link: &MarkedLink| !link.encrypted && link.sightings == 0 && !(may_nodes_encrypt && is_between_nodes(link));
    if !is_below && links.iter().any(is_unseen) {
        all.push("the marker was not seen where it passes in clear: the look cannot tell".to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: &str, to: &str, encrypted: bool, sightings: u64) -> MarkedLink {
        MarkedLink { from: from.to_owned(), to: to.to_owned(), encrypted, sightings }
    }

    fn logged(node: &str, with: &str, encrypted: bool) -> LoggedConnection {
        LoggedConnection { node: node.to_owned(), with: with.to_owned(), encrypted }
    }

    #[test]
    fn clear_text_on_a_link_that_is_to_be_encrypted_refutes_and_on_another_does_not() {
        let links = [link("n1", "n2", true, 0), link("load", "n1", false, 24), link("n2", "n1", true, 3)];
        assert_eq!(refutations(&links, &[]), ["n2 → n1: the marker passed in clear 3 times"]);
        assert_eq!(refutations(&links[..2], &[]), Vec::<String>::new());
    }

    #[test]
    fn a_log_contradicts_only_where_the_connection_is_to_be_encrypted() {
        // n1 and n2 are in one data centre, n3 in another: only what passes between these is encrypted.
        let links = [
            link("n1", "n2", false, 8),
            link("n1", "n3", true, 0),
            link("n2", "n1", false, 8),
            link("n3", "n1", true, 0),
            link("load", "n1", true, 0),
        ];
        let of = |logged: LoggedConnection| refutations(&links, &[logged]);
        assert!(of(logged("n1", "n2", false)).is_empty());
        assert!(of(logged("n1", "n3", true)).is_empty());
        assert_eq!(of(logged("n1", "n3", false)), ["n1 logged connections with n3 that are not encrypted"]);
        assert!(of(logged("n1", "nodes", false)).is_empty(), "its port takes those of n2, too");
        assert_eq!(of(logged("n3", "nodes", false)).len(), 1, "all of its links are to be encrypted");
        assert_eq!(of(logged("n1", "clients", false)).len(), 1);
    }
}
