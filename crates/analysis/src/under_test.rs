//! What a cell ran on, in words: the database, the network, the overlay and the encryption. The same for `check`, the terminal,
//! the report and comparisons.

use brownout_record::{Description, HostDescription};

use crate::CellFindings;

/// What a cell ran on, or will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderTest {
    /// "Cassandra 5.0.9 on n1 n2 n3", and whether its nodes were there before.
    pub database: String,
    /// What lies between hosts, one line each; never empty.
    pub network: Vec<String>,
    /// "none", "wireguard".
    pub overlay: String,
    /// "none", "between all nodes; to clients".
    pub encryption: String,
}

impl UnderTest {
    /// Of a plan.
    pub fn planned(plan: &Description) -> UnderTest {
        let Description { database, external, hosts, network, overlay, encryption, .. } = plan;
        UnderTest::of(database, *external, hosts, network, overlay, encryption)
    }

    /// Of a cell of findings.
    pub fn of_cell(cell: &CellFindings) -> UnderTest {
        let CellFindings { database, external, hosts, network, overlay, encryption, .. } = cell;
        UnderTest::of(database, *external, hosts, network, overlay, encryption)
    }

    fn of(
        database: &str,
        external: bool,
        hosts: &[HostDescription],
        network: &[String],
        overlay: &str,
        encryption: &[String],
    ) -> UnderTest {
        let nodes = hosts.iter().filter(|host| host.role == NODE);
        let nodes: Vec<String> = nodes.map(|host| if external { asked(host) } else { host.name.clone() }).collect();
        let nodes = nodes.join(" ");
        let (database, whose) = match external {
            true => (format!("{database} on {nodes}, which ran before"), NOT_OURS),
            false => (format!("{database} on {nodes}"), ONE_LAN),
        };
        UnderTest {
            database,
            network: if network.is_empty() { vec![whose.to_owned()] } else { network.to_vec() },
            overlay: or_none(overlay),
            encryption: or_none(&encryption.join("; ")),
        }
    }

    /// All of it, each line with what it is of, from the network on: what stands beneath the database's own line.
    pub fn lines(&self) -> Vec<(&'static str, &str)> {
        let network = self.network.iter().map(|line| ("network", line.as_str()));
        network.chain([("overlay", self.overlay.as_str()), ("encryption", self.encryption.as_str())]).collect()
    }
}

/// What [`HostDescription::role`] says of a node.
const NODE: &str = "node";
/// A network of which there is nothing to say.
const ONE_LAN: &str = "one LAN without limits";
/// The network of a cluster that is not the lab's.
const NOT_OURS: &str = "the cluster's own, neither emulated nor measured";

/// "n1 (10.0.0.5:9042)": the nodes of an external cluster have their names from us.
fn asked(host: &HostDescription) -> String {
    if host.address.is_empty() { host.name.clone() } else { format!("{} ({})", host.name, host.address) }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, address: &str, role: &str) -> HostDescription {
        HostDescription { name: name.to_owned(), address: address.to_owned(), role: role.to_owned() }
    }

    #[test]
    fn what_is_not_there_is_said_to_be_none_and_an_external_clusters_network_is_not_called_a_lan() {
        let load = host("load", "10.77.0.250", "load");
        let hosts = [host("n1", "10.77.0.1", "node"), host("n2", "10.77.0.2", "node"), load];
        let own = UnderTest::of("etcd 3.6.16", false, &hosts, &[], "", &[]);
        assert_eq!(own.database, "etcd 3.6.16 on n1 n2");
        let lines = [("network", "one LAN without limits"), ("overlay", "none"), ("encryption", "none")];
        assert_eq!(own.lines(), lines);
        let words = ["among n1, n2: 40ms".to_owned()];
        let encrypted = ["between all nodes".to_owned(), "to clients".to_owned()];
        let own = UnderTest::of("Cassandra 5.0.9", false, &hosts, &words, "wireguard", &encrypted);
        assert_eq!(own.encryption, "between all nodes; to clients");
        assert_eq!((own.network.as_slice(), own.overlay.as_str()), (&words[..], "wireguard"));
        let hosts = [host("n1", "10.0.0.5:9042", "node"), host("load", "", "load")];
        let external = UnderTest::of("Cassandra 5.0.9", true, &hosts, &[], "", &[]);
        assert_eq!(external.database, "Cassandra 5.0.9 on n1 (10.0.0.5:9042), which ran before");
        assert_eq!(external.network, [NOT_OURS]);
    }
}
