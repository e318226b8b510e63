//! What findings say of hosts that others have made.

use std::net::Ipv4Addr;

use serde_json::Value;

/// The ordered pairs that a fault of one kind of quantity hit, or spared: from, to.
pub fn pairs(fault: &Value, quantity: &str, hit: bool) -> Vec<(String, String)> {
    let rows = fault["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["quantity"] == quantity && row["hit"] == hit && row["subject"]["kind"] == "pair");
    let name = |row: &Value, end: &str| row["subject"][end].as_str().unwrap_or_else(|| panic!("{row}")).to_owned();
    let mut all: Vec<(String, String)> = rows.map(|row| (name(row, "from"), name(row, "to"))).collect();
    all.sort();
    all
}

/// The name of the host with this address.
pub fn named(findings: &Value, address: Ipv4Addr) -> String {
    let hosts = findings["cells"][0]["hosts"].as_array().unwrap();
    let has = |host: &&Value| {
        let told = host["address"].as_str().unwrap();
        told == address.to_string() || told.starts_with(&format!("{address}:"))
    };
    let host = hosts.iter().find(has).unwrap_or_else(|| panic!("nobody has {address}: {hosts:?}"));
    host["name"].as_str().unwrap().to_owned()
}

/// The findings have one fault of each of these kinds, and say this of it.
pub fn assert_all_are(expected: &str, kinds: &[&str], findings: &Value) {
    let faults = findings["trials"][0]["faults"].as_array().unwrap();
    let mut told: Vec<&str> = faults.iter().map(|fault| fault["kind"].as_str().unwrap()).collect();
    let mut asked = kinds.to_vec();
    told.sort_unstable();
    asked.sort_unstable();
    assert_eq!(told, asked);
    let other: Vec<String> = (faults.iter().filter(|fault| fault["verdict"] != expected))
        .map(|fault| format!("{}: {}: {}", fault["kind"], fault["verdict"], fault["reasons"]))
        .collect();
    assert!(other.is_empty(), "not {expected}: {}", other.join("; "));
}

/// Every kind of fault that acts on links.
pub const LINK_KINDS: [&str; 9] =
    ["slow", "flaky", "duplicate", "corrupt", "reorder", "rate", "mtu", "link", "partition"];
/// One of each, one after the other, on any database of three nodes.
pub const LINK_FAULTS: &str = "
  - duplicate: { host: n2, share: 20% }
    start: 0s
    length: 6s
  - corrupt: { host: n2, share: 10% }
    start: 8s
    length: 6s
  - reorder: { host: n2, share: 20%, delay: 40ms }
    start: 16s
    length: 6s
  - slow: { host: n3, delay: 50ms, jitter: 10ms, distribution: normal, direction: both }
    start: 24s
    length: 6s
  - flaky: { host: n1, loss: 20% }
    start: 32s
    length: 6s
  - rate: { host: n2, rate: 5mbit }
    start: 40s
    length: 13s
  - mtu: { host: n2, bytes: 1200 }
    start: 56s
    length: 7s
  - link: { from: n1, to: n3, delay: 30ms }
    start: 65s
    length: 6s
  - partition: { isolate: n3 }
    start: 73s
    length: 6s
";
/// How long that takes.
pub const LINK_PHASES: &str = "{ warm-up: 30s, baseline: 14s, fault: 82s, recovery: 15s }";
