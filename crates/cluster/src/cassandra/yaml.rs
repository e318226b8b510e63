//! `cassandra.yaml`.

use std::collections::BTreeMap;

use brownout_units::Bytes;

use super::{CassandraSpec, sites};
use crate::{ClusterError, system::Member};

/// Keys that cannot be given by the user, and why.
const OWNED: [(&str, &str); 18] = [
    ("authenticator", "Brownout does not log in to a cluster yet"),
    ("auto_bootstrap", "all nodes start at once, from nothing"),
    ("broadcast_address", "each host has one address"),
    ("broadcast_rpc_address", "each host has one address"),
    ("cdc_raw_directory", "each node's data lies in the run's scratch directory"),
    ("client_encryption_options", "Brownout does not speak TLS to a cluster yet"),
    ("cluster_name", "it is the cluster's own field"),
    ("commitlog_directory", "each node's data lies in the run's scratch directory"),
    ("data_file_directories", "each node's data lies in the run's scratch directory"),
    ("hints_directory", "each node's data lies in the run's scratch directory"),
    ("initial_token", "Brownout spaces the tokens evenly, one per node, and reads through them to see who is up"),
    ("listen_address", "each host has one address"),
    ("native_transport_port", "clients of the lab use 9042"),
    ("num_tokens", "Brownout spaces the tokens evenly, one per node, and reads through them to see who is up"),
    ("partitioner", "Brownout spaces the tokens of Murmur3Partitioner"),
    ("rpc_address", "each host has one address"),
    ("saved_caches_directory", "each node's data lies in the run's scratch directory"),
    ("seed_provider", "every node is a seed"),
];

/// A key whose value here is not the one that Cassandra 5.0 and 4.1 ship with.
struct Deviation {
    key: &'static str,
    here: &'static str,
    shipped: &'static str,
    /// Why it is so here, and what it may change.
    why: &'static str,
}

/// Commit log segments, in MiB. A node keeps a few of them, and no mutation may be larger than half of one.
const SEGMENT_MIB: u64 = 8;
const SEGMENT: &str = "8MiB";

/// Tokens, memory and threads. What stands at its default is not here.
const DEVIATIONS: [Deviation; 10] = [
    Deviation {
        key: "num_tokens",
        here: "1",
        shipped: "16",
        why: "with tokens spaced evenly all nodes own the same share; a node's ranges have few neighbours",
    },
    Deviation {
        key: "commitlog_segment_size",
        here: SEGMENT,
        shipped: "32MiB",
        why: "memory; the largest mutation is half of it, and what is larger is refused",
    },
    Deviation {
        key: "memtable_heap_space",
        here: "32MiB",
        shipped: "a quarter of the heap",
        why: "a small heap; memtables are flushed sooner",
    },
    Deviation {
        key: "memtable_offheap_space",
        here: "32MiB",
        shipped: "a quarter of the heap",
        why: "memory; memtables are flushed sooner",
    },
    Deviation {
        key: "networking_cache_size",
        here: "8MiB",
        shipped: "a sixteenth of the heap, at most 128MiB",
        why: "memory; larger bursts of messages use buffers that are not pooled",
    },
    Deviation {
        key: "concurrent_reads",
        here: "16",
        shipped: "32",
        why: "few processors; reads beyond these wait in a queue",
    },
    Deviation {
        key: "concurrent_writes",
        here: "16",
        shipped: "32",
        why: "few processors; writes beyond these wait in a queue",
    },
    Deviation {
        key: "concurrent_counter_writes",
        here: "8",
        shipped: "32",
        why: "few processors; a counter write holds its thread while it reads, so a slow replica fills these first",
    },
    Deviation {
        key: "auto_snapshot",
        here: "false",
        shipped: "true",
        why: "the tables of one trial are dropped before the next; snapshots of them would fill the disk",
    },
    Deviation {
        key: "seed_provider",
        here: "every node",
        shipped: "one seed",
        why: "all nodes start at once; a node that all others name is gossiped with more often",
    },
];

/// Knows of no data centres.
const SHIPPED_SNITCH: &str = "SimpleSnitch";

/// In what the generated `cassandra.yaml` differs from the one shipped, but for names, addresses and directories; one
/// sentence each. What the experiment itself sets is its own affair.
pub(super) fn deviations(spec: &CassandraSpec) -> Vec<String> {
    let ours = DEVIATIONS.iter().filter(|deviation| !spec.settings.contains_key(deviation.key));
    let mut all: Vec<String> = ours
        .map(|Deviation { key, here, shipped, why }| format!("{key} is {here}, shipped {shipped}: {why}"))
        .collect();
    if !spec.sites.is_empty() {
        all.push(format!(
            "endpoint_snitch is {}, shipped {SHIPPED_SNITCH}: the nodes are in data centres and racks",
            sites::SNITCH
        ));
    }
    all
}

/// What a mutation holds beside one value: its key (64 KiB at most), table, columns, times, and the log's own marks.
const AROUND_A_VALUE: u64 = 68 << 10;

/// The largest value of one column that can be written with the generated `cassandra.yaml`, whatever its key: a larger
/// mutation than half a commit log segment is refused (`max_mutation_size`). A setting of the experiment's for
/// `commitlog_segment_size` or `max_mutation_size` moves this limit.
pub const fn largest_value() -> Bytes {
    Bytes((SEGMENT_MIB << 20) / 2 - AROUND_A_VALUE)
}

/// Directories under a node's home that Cassandra writes to, and that of temporary files.
pub(super) const DIRECTORIES: [&str; 6] = ["data", "commitlog", "hints", "saved_caches", "cdc_raw", "tmp"];

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
/// Timeouts, retries, failure detection, snitch and hints stand as Cassandra ships them: the experiment is about them.
/// Where a key's default in the code differs from the shipped file, the shipped one is written. Tokens, memory and
/// threads do not (see [`deviations`]), and can change behaviour under a fault too: each says so where it stands.
/// Every entry is one line, so that a setting of the user's can take its place.
pub(super) fn cassandra_yaml(spec: &CassandraSpec, members: &[Member], tokens: &[i64], index: usize) -> String {
    let me = &members[index];
    let directory = |name: &str| quoted(&me.home.join(name).to_string_lossy());
    let seeds = members.iter().map(|member| member.address.to_string()).collect::<Vec<_>>().join(",");
    let mut yaml = Yaml { text: String::new(), settings: spec.settings.clone() };

    yaml.comment("Who and where this node is.");
    yaml.entry("cluster_name", quoted(&spec.cluster_name));
    yaml.deviation("num_tokens");
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
    yaml.entry("data_file_directories", format!("[{}]", directory("data")));
    for name in ["commitlog", "hints", "saved_caches"] {
        yaml.entry(&format!("{name}_directory"), directory(name));
    }
    yaml.entry("cdc_raw_directory", directory("cdc_raw"));

    yaml.comment("For a small machine: memory and threads. Not as shipped, so a larger cluster may behave otherwise.");
    for key in [
        "commitlog_segment_size",
        "memtable_heap_space",
        "memtable_offheap_space",
        "networking_cache_size",
        "concurrent_reads",
        "concurrent_writes",
        "concurrent_counter_writes",
    ] {
        yaml.deviation(key);
    }

    yaml.comment("As shipped with Cassandra 5.0 and 4.1: with the above, these decide how it behaves under a fault.");
    yaml.entry("file_cache_enabled", false);
    match sites::of(&spec.sites, me) {
        Some(_) => yaml.entry("endpoint_snitch", format!("{}  # shipped: {SHIPPED_SNITCH}", sites::SNITCH)),
        None => yaml.entry("endpoint_snitch", SHIPPED_SNITCH),
    }
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
    yaml.deviation("auto_snapshot");
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

    /// The entry of a key in [`DEVIATIONS`], with what is shipped beside it.
    fn deviation(&mut self, key: &str) {
        if let Some(Deviation { here, shipped, .. }) = DEVIATIONS.iter().find(|deviation| deviation.key == key) {
            self.entry(key, format!("{here}  # shipped: {shipped}"));
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
    fn what_is_not_as_shipped_is_said_in_the_file_and_in_the_record() {
        let spec = CassandraSpec::default();
        let text = cassandra_yaml(&spec, &members(), &[i64::MIN, 0], 0);
        let all = deviations(&spec);
        assert!(all.iter().any(|d| d.starts_with("num_tokens is 1, shipped 16: ")), "{all:?}");
        for Deviation { key, here, shipped, .. } in DEVIATIONS.iter().filter(|d| d.key != "seed_provider") {
            assert!(text.contains(&format!("\n{key}: {here}  # shipped: {shipped}\n")), "{key}");
        }
        let settings = BTreeMap::from([("concurrent_reads".to_owned(), "32".to_owned())]);
        let fewer = deviations(&CassandraSpec { settings, ..CassandraSpec::default() });
        assert_eq!(fewer.len(), all.len() - 1);
        assert!(!fewer.iter().any(|d| d.starts_with("concurrent_reads")));
    }

    #[test]
    fn the_largest_value_fits_half_a_segment_with_the_longest_key() {
        assert_eq!(SEGMENT.parse::<Bytes>().unwrap(), Bytes(SEGMENT_MIB << 20));
        let Bytes(value) = largest_value();
        assert!(value + 65_535 + 1_024 < (SEGMENT_MIB << 20) / 2);
        assert!(value > 3 << 20, "{value}");
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
    fn every_key_of_ours_that_names_a_node_or_a_directory_is_owned() {
        let text = cassandra_yaml(&CassandraSpec::default(), &members(), &[i64::MIN, 0], 0);
        let identity = text.split("# For a small machine").next().unwrap();
        for key in identity.lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key) {
            assert!(OWNED.iter().any(|(owned, _)| *owned == key), "{key}");
        }
    }
}
