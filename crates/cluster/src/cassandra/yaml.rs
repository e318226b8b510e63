//! `cassandra.yaml` and the small files beside it.

use std::collections::BTreeMap;

use super::CassandraSpec;
use crate::{ClusterError, system::Member};

/// Keys that cannot be given by the user, and why.
const OWNED: [(&str, &str); 18] = [
    ("authenticator", "Brownout does not log in to a cluster yet"),
    ("auto_bootstrap", "all nodes start at once, from nothing"),
    ("broadcast_address", "each host has one address"),
    ("broadcast_rpc_address", "each host has one address"),
    ("cdc_raw_directory", "each node's data lies in the run's scratch folder"),
    ("client_encryption_options", "Brownout does not speak TLS to a cluster yet"),
    ("cluster_name", "it is the cluster's own field"),
    ("commitlog_directory", "each node's data lies in the run's scratch folder"),
    ("data_file_directories", "each node's data lies in the run's scratch folder"),
    ("hints_directory", "each node's data lies in the run's scratch folder"),
    ("initial_token", "Brownout spaces the tokens evenly, one per node, and reads through them to see who is up"),
    ("listen_address", "each host has one address"),
    ("native_transport_port", "clients of the lab use 9042"),
    ("num_tokens", "Brownout spaces the tokens evenly, one per node, and reads through them to see who is up"),
    ("partitioner", "Brownout spaces the tokens of Murmur3Partitioner"),
    ("rpc_address", "each host has one address"),
    ("saved_caches_directory", "each node's data lies in the run's scratch folder"),
    ("seed_provider", "every node is a seed"),
];

/// Folders under a node's home that Cassandra writes to, and that of temporary files.
pub(super) const FOLDERS: [&str; 6] = ["data", "commitlog", "hints", "saved_caches", "cdc_raw", "tmp"];

/// Refuses settings that Brownout owns and those that are not one key and one line.
pub(super) fn check(settings: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    for (key, value) in settings {
        let no = |why: &str| Err(ClusterError::Setting { key: key.clone(), why: why.to_owned() });
        if let Some((_, why)) = OWNED.iter().find(|(owned, _)| owned == key) {
            return no(why);
        }
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return no("a key of cassandra.yaml is lower-case letters, digits and _");
        }
        if value.trim().is_empty() || value.contains(['\n', '\r']) {
            return no("its value must be YAML on one line, such as 250ms or {enabled: true}");
        }
    }
    Ok(())
}

/// The text of a member's `cassandra.yaml`.
///
/// What changes behaviour under a fault (timeouts, retries, failure detection, snitch, hints) stands as Cassandra
/// ships it: the experiment is about it. Where a key's default in the code differs from the shipped file, the shipped
/// one is written. Every entry is one line, so that a setting of the user's can take its place.
pub(super) fn cassandra_yaml(spec: &CassandraSpec, members: &[Member], tokens: &[i64], index: usize) -> String {
    let me = &members[index];
    let folder = |name: &str| quoted(&me.home.join(name).to_string_lossy());
    let seeds = members.iter().map(|member| member.address.to_string()).collect::<Vec<_>>().join(",");
    let mut yaml = Yaml { text: String::new(), settings: spec.settings.clone() };

    yaml.comment("Who and where this node is.");
    yaml.entry("cluster_name", quoted(&spec.cluster_name));
    yaml.entry("num_tokens", 1);
    yaml.entry("initial_token", tokens[index]);
    yaml.entry("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner");
    yaml.entry(
        "seed_provider",
        format!(
            "[{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: {}}}]}}]",
            quoted(&seeds)
        ),
    );
    yaml.entry("auto_bootstrap", false);
    yaml.entry("listen_address", me.address);
    yaml.entry("rpc_address", me.address);
    yaml.entry("data_file_directories", format!("[{}]", folder("data")));
    for name in ["commitlog", "hints", "saved_caches"] {
        yaml.entry(&format!("{name}_directory"), folder(name));
    }
    yaml.entry("cdc_raw_directory", folder("cdc_raw"));

    yaml.comment("For a small machine: memory and threads.");
    yaml.entry("commitlog_segment_size", "8MiB");
    yaml.entry("memtable_heap_space", "32MiB");
    yaml.entry("memtable_offheap_space", "32MiB");
    yaml.entry("file_cache_enabled", false);
    yaml.entry("networking_cache_size", "8MiB");
    yaml.entry("concurrent_reads", 16);
    yaml.entry("concurrent_writes", 16);
    yaml.entry("concurrent_counter_writes", 8);

    yaml.comment("As shipped with Cassandra 5.0: these decide how it behaves under a fault.");
    yaml.entry("endpoint_snitch", "SimpleSnitch");
    yaml.entry("dynamic_snitch_update_interval", "100ms");
    yaml.entry("dynamic_snitch_reset_interval", "600000ms");
    yaml.entry("dynamic_snitch_badness_threshold", "1.0");
    yaml.entry("read_request_timeout", "5000ms");
    yaml.entry("range_request_timeout", "10000ms");
    yaml.entry("write_request_timeout", "2000ms");
    yaml.entry("counter_write_request_timeout", "5000ms");
    yaml.entry("cas_contention_timeout", "1000ms");
    yaml.entry("truncate_request_timeout", "60000ms");
    yaml.entry("request_timeout", "10000ms");
    yaml.entry("slow_query_log_timeout", "500ms");
    yaml.entry("hinted_handoff_enabled", true);
    yaml.entry("max_hint_window", "3h");
    yaml.entry("hinted_handoff_throttle", "1024KiB");
    yaml.entry("max_hints_delivery_threads", 2);
    yaml.entry("hints_flush_period", "10000ms");
    yaml.entry("internode_compression", "dc");
    yaml.entry("commitlog_sync", "periodic");
    yaml.entry("commitlog_sync_period", "10000ms");
    yaml.entry("disk_failure_policy", "stop");
    yaml.entry("commit_failure_policy", "stop");

    yaml.finish()
}

struct Yaml {
    text: String,
    /// The user's, that were not yet written.
    settings: BTreeMap<String, String>,
}

impl Yaml {
    fn comment(&mut self, text: &str) {
        self.text.push_str(&format!("# {text}\n"));
    }

    fn entry(&mut self, key: &str, ours: impl std::fmt::Display) {
        match self.settings.remove(key) {
            Some(theirs) => self.text.push_str(&format!("{key}: {theirs}  # set by the experiment\n")),
            None => self.text.push_str(&format!("{key}: {ours}\n")),
        }
    }

    fn finish(mut self) -> String {
        if !self.settings.is_empty() {
            self.comment("Set by the experiment.");
        }
        for (key, value) in std::mem::take(&mut self.settings) {
            self.text.push_str(&format!("{key}: {value}\n"));
        }
        self.text
    }
}

/// A YAML string in single quotes, in which only the quote itself has to be escaped.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The logging configuration: one file, with UTC times as on the other logs of a run.
pub(super) const LOGBACK: &str = r#"<configuration>
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

/// A hosts file of the cluster, so that the JVM asks no name server: in a namespace there is none to answer.
pub(super) fn hosts(members: &[Member]) -> String {
    let lines = members.iter().map(|member| format!("{} {}\n", member.address, member.name));
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

/// The files of a member's `conf` folder, by name.
pub(super) fn files(
    spec: &CassandraSpec,
    members: &[Member],
    tokens: &[i64],
    index: usize,
) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("cassandra.yaml".to_owned(), cassandra_yaml(spec, members, tokens, index)),
        ("hosts".to_owned(), hosts(members)),
        ("logback.xml".to_owned(), LOGBACK.to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member> {
        (1..=2)
            .map(|i| Member {
                name: format!("n{i}"),
                address: [10, 0, 0, i].into(),
                home: format!("/it's/n{i}").into(),
                logs: format!("/logs/n{i}").into(),
            })
            .collect()
    }

    #[test]
    fn the_configuration_of_a_node_is_this_text() {
        let text = cassandra_yaml(&CassandraSpec::default(), &members(), &[i64::MIN, 0], 1);
        assert_eq!(text, include_str!("golden/cassandra.yaml"));
    }

    #[test]
    fn a_setting_takes_the_place_of_ours_or_comes_at_the_end() {
        let settings = [("read_request_timeout", "250ms"), ("row_cache_size", "1MiB")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let spec = CassandraSpec { settings, ..CassandraSpec::default() };
        let text = cassandra_yaml(&spec, &members(), &[i64::MIN, 0], 0);
        assert_eq!(text.matches("\nread_request_timeout:").count(), 1);
        assert!(text.contains("\nread_request_timeout: 250ms  # set by the experiment\n"), "{text}");
        assert!(text.ends_with("# Set by the experiment.\nrow_cache_size: 1MiB\n"), "{text}");
    }

    #[test]
    fn settings_that_brownout_owns_or_that_are_none_are_refused() {
        for (key, value, said) in [
            ("num_tokens", "16", "spaces the tokens"),
            ("authenticator", "PasswordAuthenticator", "log in"),
            ("Read_Timeout", "1s", "lower-case"),
            ("", "1", "lower-case"),
            ("row_cache_size", " ", "one line"),
            ("row_cache_size", "1MiB\nnum_tokens: 16", "one line"),
        ] {
            let error = check(&BTreeMap::from([(key.to_owned(), value.to_owned())])).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(&format!("'{key}'")), "{error}");
        }
        assert!(check(&BTreeMap::from([("row_cache_size".to_owned(), "1MiB".to_owned())])).is_ok());
    }

    #[test]
    fn every_key_of_ours_that_names_a_node_or_a_folder_is_owned() {
        let text = cassandra_yaml(&CassandraSpec::default(), &members(), &[i64::MIN, 0], 0);
        let identity = text.split("# For a small machine").next().unwrap();
        for key in identity.lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key) {
            assert!(OWNED.iter().any(|(owned, _)| *owned == key), "{key}");
        }
    }
}
