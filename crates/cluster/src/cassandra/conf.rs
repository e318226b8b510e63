//! The directory of a node's configuration: `cassandra.yaml` and the small files beside it.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use super::{
    certificates::Authority,
    sites,
    yaml::{self, Node},
};
use crate::{ClusterError, database::Member};

/// The logging configuration: one file, with UTC times as on the other logs of a run.
const LOGBACK: &str = r#"<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>${cassandra.logdir}/system.log</file>
    <encoder>
      <pattern>%date{"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", UTC} %-5level [%thread] %logger{0} - %msg%n</pattern>
    </encoder>
  </appender>
  <root level="INFO">
    <appender-ref ref="FILE"/>
  </root>
</configuration>
"#;

/// The logging configuration of tools: what they print is their answer, so only trouble is logged, and beside it.
const LOGBACK_OF_TOOLS: &str = r#"<configuration>
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder>
      <pattern>%-5level %logger{0} - %msg%n</pattern>
    </encoder>
  </appender>
  <root level="WARN">
    <appender-ref ref="STDERR"/>
  </root>
</configuration>
"#;

/// The name of its file.
pub(super) const TOOLS_LOGBACK: &str = "logback-tools.xml";

/// A hosts file of the cluster, so that the JVM asks no name server: in a namespace there is none to answer.
fn hosts(members: &[Member]) -> String {
    let lines = members.iter().map(|member| format!("{} {}\n", member.address, member.name));
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

/// The files of a member's `conf` directory, by name, but for keys and certificates: what the record keeps.
pub(super) fn files(node: &Node<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        ("cassandra.yaml".to_owned(), yaml::cassandra_yaml(node)),
        ("hosts".to_owned(), hosts(node.members)),
        ("logback.xml".to_owned(), LOGBACK.to_owned()),
        (TOOLS_LOGBACK.to_owned(), LOGBACK_OF_TOOLS.to_owned()),
    ]);
    if let Some(site) = sites::of(&node.spec.sites, node.member()) {
        files.insert(sites::FILE.to_owned(), sites::properties(site));
    }
    files
}

/// Writes them, readable for everybody; and what the authority signs, where there is one.
pub(super) fn write(node: &Node<'_>, authority: Option<&Authority>) -> Result<(), ClusterError> {
    let conf = node.member().home.join("conf");
    fs::create_dir_all(&conf).map_err(ClusterError::files("create", &conf))?;
    fs::set_permissions(&conf, Permissions::from_mode(0o755)).map_err(ClusterError::files("open up", &conf))?;
    if let Some(authority) = authority {
        authority.write(node.member(), node.series, &conf)?;
    }
    for (name, text) in files(node) {
        let path = conf.join(name);
        fs::write(&path, text).map_err(ClusterError::files("write", &path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(ClusterError::files("open up", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CassandraSpec, Site, dialect::Series},
        *,
    };

    #[test]
    fn a_node_in_a_data_centre_says_so_and_with_which_snitch() {
        let member = |i: u8| Member {
            name: format!("n{i}"),
            address: [10, 0, 0, i].into(),
            client: ([10, 0, 0, i], 9042).into(),
            home: format!("/n{i}").into(),
            logs: format!("/logs/n{i}").into(),
        };
        let site = |dc: &str| Site { dc: dc.to_owned(), rack: "r1".to_owned() };
        let sites = BTreeMap::from([("n1".to_owned(), site("east")), ("n2".to_owned(), site("west"))]);
        let spec = CassandraSpec { sites, ..CassandraSpec::default() };
        let (members, tokens) = ([member(1), member(2)], [i64::MIN, 0]);
        let text = |spec: &CassandraSpec| {
            files(&Node { spec, series: Series::V5_0, mixed: false, members: &members, tokens: &tokens, index: 1 })
        };
        assert_eq!(text(&spec)["cassandra-rackdc.properties"], "dc=west\nrack=r1\n");
        let snitch = "\nendpoint_snitch: GossipingPropertyFileSnitch  # shipped: SimpleSnitch\n";
        assert!(text(&spec)["cassandra.yaml"].contains(snitch));
        let of_sites = yaml::deviations(&spec, "n1", Series::V5_0);
        assert!(of_sites.iter().any(|what| what.starts_with("endpoint_snitch is Gossiping")));
        let none = CassandraSpec::default();
        assert!(!text(&none).contains_key("cassandra-rackdc.properties"));
        assert!(!yaml::deviations(&none, "n1", Series::V5_0).iter().any(|what| what.starts_with("endpoint_snitch")));
    }
}
