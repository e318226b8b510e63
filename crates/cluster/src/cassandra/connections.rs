//! What a node's own log says of its connections: which were encrypted, and which in clear.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, BufReader},
    net::Ipv4Addr,
    path::Path,
};

use super::evidence::address;

/// Whom a node's log speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedPeer {
    /// A connection with the node at this address, in either direction.
    Node(Ipv4Addr),
    /// Its port for other nodes (3.11 says no more).
    Nodes,
    /// Its port for clients.
    Clients,
}

/// One thing that a node says of its connections; said once, however often it is said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Logged {
    /// With whom.
    pub peer: LoggedPeer,
    /// Whether they are encrypted.
    pub encrypted: bool,
}

/// Reads a node's log (`system.log`) from its beginning: connections are made when nodes start.
///
/// # Errors
/// When it cannot be read.
pub fn logged_connections(log: &Path) -> io::Result<BTreeSet<Logged>> {
    let mut all = BTreeSet::new();
    let mut lines = BufReader::new(File::open(log)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A log can hold whatever a client wrote: not all of it has to be text.
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(all);
        }
        all.extend(read(String::from_utf8_lossy(&line).trim_end()));
    }
}

/// Since 4.0 both ends log each connection (`OutboundConnection`, `InboundConnectionInitiator`): `FROM->TO-TYPE-ID
/// successfully connected, version = 12, framing = CRC, encryption = encrypted(factory=…)`. 3.11 logs its ports.
fn read(line: &str) -> Option<Logged> {
    let (_, said) = line.split_once(" - ")?;
    if let Some((connection, how)) = said.split_once(", encryption = ") {
        let ways = [" successfully connected", " messaging connection"];
        let (ends, _) = ways.into_iter().find_map(|way| connection.split_once(way))?;
        let (from, to) = ends.split_once("->")?;
        // The log of the end that has connected names itself first, that of the other names itself last.
        let other = if connection.contains(" successfully connected") { to } else { from };
        let peer = LoggedPeer::Node(address_in(other)?);
        return Some(Logged { peer, encrypted: how.starts_with("encrypted") });
    }
    if said.starts_with("Starting listening for CQL clients on ") {
        // A port that takes both says nothing of who comes.
        let takes_both = said.contains("(optionally encrypted)");
        let logged = Logged { peer: LoggedPeer::Clients, encrypted: said.contains("(encrypted)") };
        return (!takes_both).then_some(logged);
    }
    if said.starts_with("Starting Encrypted Messaging Service on SSL port ") {
        return Some(Logged { peer: LoggedPeer::Nodes, encrypted: true });
    }
    let plain = said.starts_with("Starting Messaging Service on ");
    plain.then_some(Logged { peer: LoggedPeer::Nodes, encrypted: false })
}

/// The address of one end: `/10.0.0.1:7000`, `n1/10.0.0.1:7000(/10.0.0.1:50012)`,
/// `/10.0.0.2:7000-URGENT_MESSAGES-1ea5b3f0`.
fn address_in(end: &str) -> Option<Ipv4Addr> {
    let first = end.split('(').next()?;
    address(first).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(said: &str) -> Option<Logged> {
        read(&format!("2026-11-23T07:59:13.496Z INFO  [Messaging-EventLoop-3-1] OutboundConnection - {said}"))
    }

    #[test]
    fn connections_are_told_by_the_other_end_and_by_how_they_are_encrypted() {
        let node = |last, encrypted| Some(Logged { peer: LoggedPeer::Node([10, 77, 0, last].into()), encrypted });
        let encrypted = "encrypted(factory=openssl;protocol=TLSv1.3;cipher=TLS_AES_128_GCM_SHA256)";
        let out = "/10.77.0.1:7000(/10.77.0.1:50012)->/10.77.0.2:7000-URGENT_MESSAGES-1ea5b3f0 successfully connected, \
                   version = 12, framing = CRC, encryption = ";
        assert_eq!(of(&format!("{out}{encrypted}")), node(2, true));
        assert_eq!(of(&format!("{out}unencrypted")), node(2, false));
        let into = "n3/10.77.0.3:7000(/10.77.0.3:49152)->/10.77.0.1:7000-SMALL_MESSAGES-5d0c8f7a messaging connection \
                    established, version = 12, framing = CRC, encryption = ";
        assert_eq!(of(&format!("{into}{encrypted}")), node(3, true));
    }

    #[test]
    fn ports_are_told_and_one_that_takes_both_tells_nothing() {
        let clients = |encrypted| Some(Logged { peer: LoggedPeer::Clients, encrypted });
        let on = "Starting listening for CQL clients on /10.77.0.1:9042";
        assert_eq!(of(&format!("{on} (encrypted)...")), clients(true));
        assert_eq!(of(&format!("{on} (unencrypted)...")), clients(false));
        assert_eq!(of(&format!("{on} (optionally encrypted)...")), None);
        let nodes = |encrypted| Some(Logged { peer: LoggedPeer::Nodes, encrypted });
        assert_eq!(of("Starting Encrypted Messaging Service on SSL port 7001"), nodes(true));
        assert_eq!(of("Starting Messaging Service on /10.77.0.1:7000 (eth0)"), nodes(false));
        assert_eq!(of("Node /10.77.0.2:7000 is now part of the cluster"), None);
        assert_eq!(read("\tat java.lang.Thread.run(Thread.java:840)"), None);
    }

    #[test]
    fn a_log_is_read_to_its_end_whatever_bytes_are_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("system.log");
        let line = b"T INFO  [main] Server - Starting listening for CQL clients on /1.2.3.4:9042 (encrypted)...\n";
        std::fs::write(&log, [b"T - \xff\xfe\n".as_slice(), line, line].concat()).unwrap();
        let told: Vec<Logged> = logged_connections(&log).unwrap().into_iter().collect();
        assert_eq!(told, [Logged { peer: LoggedPeer::Clients, encrypted: true }]);
        assert!(logged_connections(&directory.path().join("none")).is_err());
    }
}
