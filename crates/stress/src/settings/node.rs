//! `-node`: which nodes.

use std::path::Path;

use super::{
    Files, SettingsError,
    grammar::{Alternative, Pattern, select, value},
    number::{self, null},
};

/// Which nodes are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Names or addresses of the contact points.
    pub hosts: Vec<String>,
    /// Whether only those nodes are used.
    pub whitelist: bool,
    /// The local data centre.
    pub datacenter: Option<String>,
    /// The rack whose nodes are preferred; `None`: no rack is.
    pub rack: Option<String>,
    /// How coordinators are chosen; `None`: among the replicas of the key.
    pub load_balance: Option<LoadBalance>,
    /// How many hosts of every remote data centre may be used as well.
    pub remote_hosts: Option<u32>,
    /// The one node that coordinates every operation.
    pub pin: Option<String>,
    /// `rack=` as written, for the block of settings.
    rack_text: Option<String>,
}

/// How coordinators are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBalance {
    /// Round robin.
    RoundRobin,
    /// Those of the local data centre.
    Datacenter,
    /// Those of the local rack, then of the local data centre.
    Rack,
}

impl LoadBalance {
    fn name(self) -> &'static str {
        match self {
            LoadBalance::RoundRobin => "round-robin",
            LoadBalance::Datacenter => "dc-aware",
            LoadBalance::Rack => "rack-aware",
        }
    }
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("datacenter=", Pattern::Something, "the local data centre"),
        value("rack=", Pattern::Something, "the local rack"),
        value("whitelist", Pattern::Nothing, "ask no others than the nodes named"),
        value("file=", Pattern::Something, "a file that names nodes, one on a line"),
        value("loadbalance=", Pattern::Something, "round-robin, dc-aware or rack-aware (default: the key's replicas)"),
        value("remote-dc=", Pattern::Positive, "ask so many hosts of each remote data centre as well"),
        value("pin=", Pattern::Something, "one node that coordinates every operation"),
        value("", Pattern::Hosts, "nodes to begin with").or("localhost"),
    ])]
}

impl Node {
    pub(super) fn parse(
        words: Option<&[String]>,
        files: Files<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let words = words.unwrap_or_default();
        let (_, taken) = select("-node", words, alternatives()).map_err(|error| match error {
            // A misspelt option looks like a host name with '=' in it.
            SettingsError::Value { value, .. } if value.contains('=') => {
                SettingsError::word("-node", &value, alternatives().iter().flat_map(|a| &a.subs).map(|sub| sub.name))
            }
            other => other,
        })?;
        let hosts = match taken.get("file=") {
            Some(file) => {
                let path = Path::new(file);
                let refuse = |reason| SettingsError::File { option: "-node file=", file: path.to_owned(), reason };
                let text = files(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
                let lines: Vec<String> =
                    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
                if lines.is_empty() {
                    return Err(refuse("names no node; write one on each line".to_owned()));
                }
                lines
            }
            None => taken.text("").split(',').map(str::to_owned).collect(),
        };
        let load_balance = match taken.get("loadbalance=").map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("rr" | "roundrobin" | "round-robin") => Some(LoadBalance::RoundRobin),
            Some("dc" | "dc-aware") => Some(LoadBalance::Datacenter),
            Some("rack" | "rack-aware") => Some(LoadBalance::Rack),
            Some(other) => {
                return Err(SettingsError::senseless(
                    format!("Unknown load balance strategy: {other}"),
                    "write round-robin, dc-aware or rack-aware",
                ));
            }
        };
        let remote = taken.get("remote-dc=");
        let rack_text = taken.get("rack=").map(str::to_owned);
        match (load_balance, &rack_text) {
            (Some(LoadBalance::Datacenter), Some(rack)) => {
                notes.push(format!("-node rack={rack} has no effect: loadbalance=dc-aware prefers no rack"));
            }
            (Some(LoadBalance::Rack), None) => notes.push(
                "-node loadbalance=rack-aware has no effect without rack=: no rack is preferred, and none is guessed from the \
                 first node"
                    .to_owned(),
            ),
            _ => {}
        }
        Ok(Node {
            hosts,
            whitelist: taken.flag("whitelist"),
            datacenter: taken.get("datacenter=").map(str::to_owned),
            rack: rack_text.clone().filter(|_| load_balance != Some(LoadBalance::Datacenter)),
            load_balance,
            remote_hosts: remote.map(|text| number::whole("-node remote-dc=", text)).transpose()?,
            pin: taken.get("pin=").map(str::to_owned),
            rack_text,
        })
    }

    pub(super) fn block(&self) -> String {
        format!(
            "  Nodes: [{}]\n  Is White List: {}\n  Datacenter: {}\n  Rack: {}\n  Load Balance: {}\n  Remote DC Hosts: {}\n",
            self.hosts.join(", "),
            self.whitelist,
            null(self.datacenter.as_ref()),
            null(self.rack_text.as_ref()),
            self.load_balance.map_or("auto", LoadBalance::name),
            self.remote_hosts.map_or_else(|| "disabled".to_owned(), |hosts| hosts.to_string()),
        )
    }
}
