//! `cluster:` of an experiment file: one database, whose nodes are started in the lab or run already.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use brownout_cluster::{DEFAULT_HEAP, DatabaseKind, version_words};
use brownout_units::{Bytes, Count};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::CassandraChoice;

/// `cluster:` — one database: `cassandra` or `etcd`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClusterSection {
    /// Which Cassandra: a line (`"5.0"`, `"4.1"`, `"4.0"`, `"3.11"`), a full version, or `{ home: DIR }` for an unpacked tarball.
    /// Default: "5.0", unless there is `etcd`.
    pub cassandra: Option<CassandraChoice>,
    /// Cassandra: single nodes, by name, that run another version than the rest. Default: none.
    pub versions: BTreeMap<String, CassandraChoice>,
    /// Which etcd: `"3"` (3.6 built from its module where Go is found, else the distribution's package), a line (`"3.6"`), a full
    /// version, or `{ binary: PATH }`. Default: none; then the database is Cassandra.
    pub etcd: Option<EtcdChoice>,
    /// A cluster that runs already: where its nodes answer clients, `[10.0.0.5:9042, …]`, named n1, n2, … in this order. It is put
    /// under load and asked, and nothing else of it is touched. Default: none; the lab starts its own.
    pub external: Option<Addresses>,
    /// What its nodes are called, if not n1, n2, …: the containers that an experiment is run on have names of their own.
    #[serde(skip)]
    pub names: Vec<String>,
    /// What it takes to be let in to an `external` cluster. Default: nothing.
    pub access: Option<AccessSection>,
    /// Settings of all nodes: any key of `cassandra.yaml`, or any flag of etcd's command line without its dashes. Default: none.
    pub settings: BTreeMap<String, Setting>,
    /// The same of single nodes, by name; these count before `settings`. Default: none.
    pub settings_of: BTreeMap<String, BTreeMap<String, Setting>>,
    /// Cassandra: what its nodes encrypt, with certificates that the lab makes. Default: nothing.
    pub encryption: Option<EncryptionSection>,
    /// Nodes, named n1, n2, … Default: 3.
    pub nodes: Option<Count>,
    /// Cassandra: the Java heap of each node. Default: 512MiB.
    pub heap: Option<Bytes>,
    /// Cassandra: Java's compiler: `c1` warms up in seconds, `default` (C1 and C2) is faster once warm. Default: default.
    pub jit: Option<JitChoice>,
}

impl ClusterSection {
    /// Which database it is.
    pub fn kind(&self) -> DatabaseKind {
        match self.etcd {
            Some(_) => DatabaseKind::Etcd,
            None => DatabaseKind::Cassandra,
        }
    }

    /// Whether it runs already, and is not ours.
    pub fn is_external(&self) -> bool {
        self.external.is_some()
    }

    /// Which Cassandra, if it is one.
    pub fn cassandra(&self) -> CassandraChoice {
        let default = || CassandraChoice::Version(brownout_cluster::cassandra::DEFAULT.to_owned());
        self.cassandra.clone().unwrap_or_else(default)
    }

    /// The database with its version, as written: "Cassandra 5.0", "Cassandra 5.0 (n1, n2), 4.1 (n3)", "etcd 3". What runs already
    /// and is not said to be of a version is only named.
    pub fn words(&self) -> String {
        let kind = self.kind();
        let version = match (&self.etcd, &self.cassandra) {
            (Some(choice), _) => choice.to_string(),
            (None, None) if self.is_external() => return kind.to_string(),
            (None, _) => {
                let most = self.cassandra();
                let nodes = self.node_names();
                let of_node = |node: &String| self.versions.get(node).unwrap_or(&most).to_string();
                let versions: Vec<String> = nodes.iter().map(of_node).collect();
                version_words(nodes.iter().map(String::as_str).zip(versions.iter().map(String::as_str)))
            }
        };
        format!("{kind} {version}")
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u64 {
        match &self.external {
            Some(addresses) => addresses.0.len() as u64,
            None => self.nodes.map_or(3, |nodes| nodes.0),
        }
    }

    /// The names of the nodes, in order.
    pub fn node_names(&self) -> Vec<String> {
        match self.names.is_empty() {
            true => (1..=self.nodes()).map(|number| format!("n{number}")).collect(),
            false => self.names.clone(),
        }
    }

    /// The Java heap of each node.
    pub fn heap(&self) -> Bytes {
        self.heap.unwrap_or(DEFAULT_HEAP)
    }

    /// Java's compiler.
    pub fn jit(&self) -> JitChoice {
        self.jit.unwrap_or(JitChoice::Default)
    }

    /// Settings as their database takes them.
    pub fn settings(&self) -> BTreeMap<String, String> {
        texts(&self.settings)
    }

    /// The same of single nodes.
    pub fn settings_of(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.settings_of.iter().map(|(node, settings)| (node.clone(), texts(settings))).collect()
    }
}

fn texts(settings: &BTreeMap<String, Setting>) -> BTreeMap<String, String> {
    settings.iter().map(|(key, setting)| (key.clone(), setting.text.clone())).collect()
}

/// Java's compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitChoice {
    /// The quick compiler alone.
    C1,
    /// As Java comes.
    Default,
}

/// `cluster.encryption:`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EncryptionSection {
    /// Between which nodes: `all`, `dc` (those in different data centres), `rack` (those in different racks), `none`. Default:
    /// none.
    pub internode: InternodeChoice,
    /// Whether connections of clients are encrypted. Default: false.
    pub clients: bool,
    /// Whether nodes take connections that are not encrypted as well. Default: false.
    pub optional: bool,
}

/// Between which nodes connections are encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InternodeChoice {
    /// None.
    #[default]
    None,
    /// Those in different racks.
    Rack,
    /// Those in different data centres.
    Dc,
    /// All.
    All,
}

/// `cluster.access:` — files are found from where the experiment file is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct AccessSection {
    /// Certificates of the authorities that vouch for the nodes (PEM); connections are then encrypted. Default: they are not.
    pub ca: Option<PathBuf>,
    /// This client's own certificate (PEM), for clusters that want one. Default: none.
    pub certificate: Option<PathBuf>,
    /// Its key (PEM). Default: it is in the same file.
    pub key: Option<PathBuf>,
    /// The name to log in with. Default: none.
    pub user: Option<String>,
    /// The file whose first line is the password; it is read when the run begins, and not recorded. Required with `user`.
    pub password_file: Option<PathBuf>,
}

/// A version to build or to find, or a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EtcdChoice {
    /// `"3"`, `"3.6"` or a full version.
    Version(String),
    /// `{ binary: PATH }`.
    Binary(PathBuf),
}

impl fmt::Display for EtcdChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EtcdChoice::Version(version) => f.pad(version),
            EtcdChoice::Binary(path) => write!(f, "of {}", path.display()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BinaryMap {
    binary: PathBuf,
}

impl<'de> Deserialize<'de> for EtcdChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = EtcdChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version such as \"3\" or \"3.6\", or { binary: PATH } of an etcd")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<EtcdChoice, E> {
                match text.trim() {
                    "" => Err(E::custom("which etcd is missing; write etcd: \"3\"")),
                    text => Ok(EtcdChoice::Version(text.to_owned())),
                }
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<EtcdChoice, E> {
                Ok(EtcdChoice::Version(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<EtcdChoice, E> {
                Ok(EtcdChoice::Version(format!("{number:?}")))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EtcdChoice, A::Error> {
                BinaryMap::deserialize(MapAccessDeserializer::new(map)).map(|map| EtcdChoice::Binary(map.binary))
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

/// One address with its port, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses(pub Vec<String>);

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = Addresses;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("where nodes answer clients, such as [10.0.0.5:9042, 10.0.0.6:9042]")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Addresses, E> {
                Ok(Addresses(vec![text.trim().to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Addresses, A::Error> {
                let mut addresses = Vec::new();
                while let Some(address) = list.next_element::<String>()? {
                    addresses.push(address.trim().to_owned());
                }
                Ok(Addresses(addresses))
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

/// The value of a setting, as one line of YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The line: `250ms`, `{enabled: true, ports: [1, 2]}`.
    pub text: String,
    /// Whether it is one word or number, and neither a list nor a mapping.
    pub is_plain: bool,
}

impl Setting {
    fn plain(text: impl fmt::Display) -> Setting {
        Setting { text: text.to_string(), is_plain: true }
    }

    /// As a part of a list or a mapping on one line.
    fn inside(&self) -> String {
        // What else means something to YAML there (1.2, section 7.3.3).
        let means = |c: char| ",[]{}#&*!|>'\"%@`:".contains(c) || c.is_control();
        let is_bare = !self.text.is_empty() && self.text.trim() == self.text && !self.text.contains(means);
        if self.is_plain && !is_bare { format!("'{}'", self.text.replace('\'', "''")) } else { self.text.clone() }
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = Setting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value such as 250ms, a list, or a mapping")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Setting, E> {
                Ok(Setting::plain(text))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Setting, E> {
                Ok(Setting::plain(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Setting, E> {
                Ok(Setting::plain(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Setting, E> {
                Ok(Setting::plain(value))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Setting, E> {
                Ok(Setting::plain(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Setting, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element::<Setting>()? {
                    parts.push(part.inside());
                }
                Ok(Setting { text: format!("[{}]", parts.join(", ")), is_plain: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Setting, A::Error> {
                let mut parts = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Setting>()? {
                    parts.push(format!("{}: {}", Setting::plain(key).inside(), value.inside()));
                }
                Ok(Setting { text: format!("{{{}}}", parts.join(", ")), is_plain: false })
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(json: &str) -> ClusterSection {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_file_that_says_nothing_means_three_nodes_of_cassandra() {
        let section = section("{}");
        assert_eq!((section.kind(), section.nodes(), section.is_external()), (DatabaseKind::Cassandra, 3, false));
        assert_eq!(section.cassandra(), CassandraChoice::Version("5.0".to_owned()));
    }

    #[test]
    fn etcd_is_named_by_a_version_with_quotes_or_without_or_by_a_program() {
        let choice = |json: &str| section(&format!(r#"{{"etcd":{json}}}"#)).etcd.unwrap();
        assert_eq!(choice("\"3.6\""), EtcdChoice::Version("3.6".to_owned()));
        assert_eq!(choice("3"), EtcdChoice::Version("3".to_owned()));
        assert_eq!(choice("3.6"), EtcdChoice::Version("3.6".to_owned()));
        assert_eq!(choice(r#"{"binary":"/usr/bin/etcd"}"#), EtcdChoice::Binary("/usr/bin/etcd".into()));
        assert!(serde_json::from_str::<ClusterSection>(r#"{"etcd":{"home":"/x"}}"#).is_err());
        assert_eq!(section(r#"{"etcd":"3"}"#).kind(), DatabaseKind::Etcd);
    }

    #[test]
    fn an_external_cluster_has_as_many_nodes_as_addresses() {
        let section = section(r#"{"external":["10.0.0.5:9042"," db-2:9042 "]}"#);
        assert_eq!((section.nodes(), section.is_external()), (2, true));
        assert_eq!(section.external.unwrap().0[1], "db-2:9042");
    }

    #[test]
    fn the_database_is_named_as_written() {
        assert_eq!(section("{}").words(), "Cassandra 5.0");
        assert_eq!(section(r#"{"versions":{"n3":"4.1"}}"#).words(), "Cassandra 5.0 (n1, n2), 4.1 (n3)");
        assert_eq!(section(r#"{"etcd":"3.6"}"#).words(), "etcd 3.6");
        assert_eq!(section(r#"{"external":["a:1"]}"#).words(), "Cassandra");
        assert_eq!(section(r#"{"external":["a:1"],"etcd":"3"}"#).words(), "etcd 3");
    }

    #[test]
    fn settings_become_one_line_of_yaml_whatever_they_hold() {
        let text = |json: &str| section(&format!(r#"{{"settings":{{"key":{json}}}}}"#)).settings()["key"].clone();
        assert_eq!([text("\"250ms\""), text("true"), text("5")], ["250ms", "true", "5"]);
        assert_eq!(text(r#"{"enabled":true,"ports":[1,2]}"#), "{enabled: true, ports: [1, 2]}");
        // As a person may write it, too.
        assert_eq!(text(r#""{enabled: true}""#), "{enabled: true}");
        assert_eq!(text(r#"["a, b", "it's", ""]"#), "['a, b', 'it''s', '']");
    }
}
