//! `cassandra.yaml`.

use std::collections::BTreeMap;

use brownout_units::Bytes;

use super::{
    CassandraSpec,
    dialect::{Series, other_name},
    encryption,
    scalar::quoted,
    sites,
};
use crate::{ClusterError, DatabaseKind, database::Member};

/// Keys that cannot be given by the user, and why.
const OWNED: [(&str, &str); 19] = [
    ("authenticator", "Brownout does not log in to a cluster yet"),
    ("auto_bootstrap", "all nodes start at once, from nothing"),
    ("broadcast_address", "each host has one address"),
    ("broadcast_rpc_address", "each host has one address"),
    ("cdc_raw_directory", "each node's data lies in the run's scratch directory"),
    ("client_encryption_options", "write cluster.encryption: { clients: true }; the certificates are the lab's own"),
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
    ("seed_provider", "every node is a seed; of data centres the first two of each"),
    ("server_encryption_options", "write cluster.encryption: { internode: all }; the certificates are the lab's own"),
];

/// A key, as 4.1 and later call it, whose value here is not the one that Cassandra ships with.
struct Deviation {
    key: &'static str,
    here: &'static str,
    shipped: &'static str,
    /// Why it is so here, and what it may change.
    why: &'static str,
}

impl Deviation {
    /// What a series ships with: 3.11 had many more tokens.
    fn shipped_with(&self, series: Series) -> &'static str {
        if series == Series::V3_11 && self.key == "num_tokens" { "256" } else { self.shipped }
    }
}

/// Commit log segments, in MiB. A node keeps a few of them, and no mutation may be larger than half of one.
const SEGMENT_MIB: u64 = 8;
const SEGMENT: &str = "8MiB";

/// Who is a seed is said where that is decided: [`sites::seeds_in_words`].
const SEEDS: &str = "seed_provider";

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
        key: SEEDS,
        here: "every node",
        shipped: "one seed",
        why: "all nodes start at once; a node that all others name is gossiped with more often",
    },
];

/// Knows of no data centres.
const SHIPPED_SNITCH: &str = "SimpleSnitch";

/// In what the generated `cassandra.yaml` of a series differs from the one shipped, but for names, addresses and
/// directories; one sentence each. What the experiment itself sets of this node is its own affair.
pub(super) fn deviations(spec: &CassandraSpec, node: &str, series: Series) -> Vec<String> {
    let settings = spec.settings_for(node);
    let is_ours =
        |key: &str| !settings.contains_key(key) && other_name(key).is_none_or(|other| !settings.contains_key(other));
    let ours = DEVIATIONS.iter().filter(|deviation| is_ours(deviation.key));
    let mut all: Vec<String> = ours
        .filter_map(|deviation| {
            let Deviation { key, here, why, .. } = deviation;
            let shipped = deviation.shipped_with(series);
            let known = series.writes_units() || *key == SEEDS;
            let (key, here) = if known { ((*key).to_owned(), (*here).to_owned()) } else { series.entry(key, here)? };
            let here = if key == SEEDS { sites::seeds_in_words(&spec.sites) } else { here.as_str() };
            Some(format!("{key} is {here}, shipped {shipped}: {why}"))
        })
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

/// Refuses settings that Brownout owns, those that are not one key and one line, and a key by both of its names.
///
/// # Errors
/// [`ClusterError::Setting`], of the first of them.
pub fn check(settings: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    for (key, value) in settings {
        let no = |why: &str| {
            let database = DatabaseKind::Cassandra;
            Err(ClusterError::Setting { database, key: key.clone(), why: why.to_owned() })
        };
        if let Some((_, why)) = OWNED.iter().find(|(owned, _)| owned == key) {
            return no(why);
        }
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return no("a key of cassandra.yaml is lower-case letters, digits and _");
        }
        if value.trim().is_empty() || value.contains(['\n', '\r']) {
            return no("its value must be YAML on one line, such as 250ms or {enabled: true}");
        }
        if let Some(other) = other_name(key).filter(|other| settings.contains_key(*other)) {
            return no(&format!("it is the same as {other}; write one of them"));
        }
    }
    Ok(())
}

/// What a node's configuration is made from.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) spec: &'a CassandraSpec,
    /// Of its own version.
    pub(super) series: Series,
    /// Others of the cluster are of another series.
    pub(super) mixed: bool,
    pub(super) members: &'a [Member],
    pub(super) tokens: &'a [i64],
    pub(super) index: usize,
}

impl Node<'_> {
    pub(super) fn member(&self) -> &Member {
        &self.members[self.index]
    }
}

/// The text of a member's `cassandra.yaml`.
///
/// Timeouts, retries, failure detection, snitch and hints stand as Cassandra ships them: the experiment is about them.
/// Where a key's default in the code differs from the shipped file, the shipped one is written. Tokens, memory and
/// threads do not (see [`deviations`]), and can change behaviour under a fault too: each says so where it stands. Every
/// entry is one line, so that a setting of the user's can take its place. Keys and values stand here as 4.1 and 5.0
/// have them; a node of an older series has its own words for them ([`Series::entry`]).
pub(super) fn cassandra_yaml(node: &Node<'_>) -> String {
    let Node { spec, series, mixed, members, tokens, index } = *node;
    let me = node.member();
    let directory = |name: &str| quoted(&me.home.join(name).to_string_lossy());
    let seeds = sites::seeds(&spec.sites, members);
    let seeds = seeds.iter().map(|member| member.address.to_string()).collect::<Vec<_>>().join(",");
    let mut yaml = Yaml { text: String::new(), series, settings: spec.settings_for(&me.name) };

    yaml.comment("Who and where this node is.");
    yaml.entry("cluster_name", quoted(&spec.cluster_name));
    yaml.deviation("num_tokens");
    yaml.entry("initial_token", tokens[index]);
    yaml.entry("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner");
    yaml.entry(
        SEEDS,
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

    let shipped = if series.writes_units() { "5.0 and 4.1" } else { series.word() };
    yaml.comment(&format!(
        "As shipped with Cassandra {shipped}: with the above, these decide how it behaves under a fault."
    ));
    if series == Series::V3_11 {
        // Its code has these two the other way round.
        yaml.entry("start_rpc", false);
    }
    if series < Series::V4_1 {
        yaml.entry("start_native_transport", true);
    }
    yaml.entry("file_cache_enabled", false);
    match sites::of(&spec.sites, me) {
        Some(_) => yaml.entry("endpoint_snitch", format!("{}  # shipped: {SHIPPED_SNITCH}", sites::SNITCH)),
        None => yaml.entry("endpoint_snitch", SHIPPED_SNITCH),
    }
    yaml.entry("dynamic_snitch_update_interval", "100ms");
    yaml.entry("dynamic_snitch_reset_interval", "600000ms");
    yaml.entry("dynamic_snitch_badness_threshold", if series == Series::V3_11 { "0.1" } else { "1.0" });
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
    if mixed && series == Series::V5_0 {
        // As shipped, too: so it speaks to nodes of 4.x as one of them.
        yaml.entry("storage_compatibility_mode", "CASSANDRA_4");
    }
    let encryption = encryption::options(spec.encryption, series, &me.home.join("conf"));
    if !encryption.is_empty() {
        yaml.comment("Encryption, with certificates of an authority that is this cluster's alone.");
    }
    for (key, options) in encryption {
        yaml.entry(key, options);
    }

    yaml.finish()
}

struct Yaml {
    text: String,
    series: Series,
    /// The user's, that were not yet written.
    settings: BTreeMap<String, String>,
}

impl Yaml {
    fn comment(&mut self, text: &str) {
        self.text.push_str(&format!("# {text}\n"));
    }

    /// An entry in the words of the series, which may have none for it; the user's own goes before, by whichever of its
    /// names.
    fn entry(&mut self, key: &str, ours: impl std::fmt::Display) {
        self.commented(key, ours, "");
    }

    /// The entry of a key in [`DEVIATIONS`], with what is shipped beside it.
    fn deviation(&mut self, key: &str) {
        if let Some(deviation) = DEVIATIONS.iter().find(|deviation| deviation.key == key) {
            let shipped = deviation.shipped_with(self.series);
            self.commented(key, deviation.here, &format!("  # shipped: {shipped}"));
        }
    }

    fn commented(&mut self, key: &str, ours: impl std::fmt::Display, comment: &str) {
        let theirs = [Some(key), other_name(key)].into_iter().flatten().find_map(|key| self.settings.remove_entry(key));
        match (theirs, self.series.entry(key, &ours.to_string())) {
            (Some((key, theirs)), _) => self.text.push_str(&format!("{key}: {theirs}  # set by the experiment\n")),
            (None, Some((key, ours))) => self.text.push_str(&format!("{key}: {ours}{comment}\n")),
            (None, None) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member> {
        (1..=2)
            .map(|i| Member {
                name: format!("n{i}"),
                address: [10, 0, 0, i].into(),
                client: ([10, 0, 0, i], 9042).into(),
                home: format!("/it's/n{i}").into(),
                logs: format!("/logs/n{i}").into(),
            })
            .collect()
    }

    /// The configuration of the first node of this series.
    fn text_of(spec: &CassandraSpec, series: Series) -> String {
        let (members, tokens) = (members(), [i64::MIN, 0]);
        cassandra_yaml(&Node { spec, series, mixed: false, members: &members, tokens: &tokens, index: 0 })
    }

    fn map(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_configuration_of_a_node_is_this_text() {
        let (spec, members, tokens) = (CassandraSpec::default(), members(), [i64::MIN, 0]);
        let series = Series::V5_0;
        let node = Node { spec: &spec, series, mixed: false, members: &members, tokens: &tokens, index: 1 };
        assert_eq!(cassandra_yaml(&node), include_str!("golden/cassandra.yaml"));
        let mixed = cassandra_yaml(&Node { mixed: true, ..node });
        assert!(mixed.contains("\nstorage_compatibility_mode: CASSANDRA_4\n"), "{mixed}");
    }

    #[test]
    fn an_old_series_has_the_same_values_by_its_own_names() {
        let golden = include_str!("golden/cassandra.yaml");
        let unknown = [(Series::V4_0, vec![]), (Series::V3_11, vec!["file_cache_enabled", "networking_cache"])];
        for (series, without) in unknown {
            let text = text_of(&CassandraSpec::default(), series);
            let keys = |text: &str| -> Vec<String> {
                text.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect()
            };
            for key in keys(golden).iter().filter(|key| !key.starts_with('#')) {
                let known = [key.as_str(), other_name(key).unwrap_or(key.as_str())];
                let there = keys(&text).iter().any(|own| known.contains(&own.as_str()));
                assert_eq!(there, !without.iter().any(|gone| key.starts_with(*gone)), "{key} of {series:?}");
            }
            for line in ["commitlog_segment_size_in_mb: 8  # shipped: 32MiB", "read_request_timeout_in_ms: 5000"] {
                assert!(text.lines().any(|own| own == line), "{text}");
            }
        }
        let old = text_of(&CassandraSpec::default(), Series::V3_11);
        assert!(old.contains("\nstart_native_transport: true\n"), "{old}");
        assert!(old.contains("\nnum_tokens: 1  # shipped: 256\n"), "{old}");
        let told = deviations(&CassandraSpec::default(), "n1", Series::V3_11);
        assert!(told.iter().all(|d| !d.starts_with("networking")));
    }

    #[test]
    fn a_setting_of_one_node_goes_before_that_of_all() {
        let spec = CassandraSpec {
            settings: map(&[("concurrent_reads", "32"), ("row_cache_size", "1MiB")]),
            settings_of: BTreeMap::from([("n1".to_owned(), map(&[("concurrent_reads", "4")]))]),
            ..CassandraSpec::default()
        };
        let first = text_of(&spec, Series::V5_0);
        assert!(first.contains("\nconcurrent_reads: 4  # set by the experiment\n"), "{first}");
        assert!(first.ends_with("\nrow_cache_size: 1MiB\n"), "{first}");
        assert_eq!(spec.settings_for("n2")["concurrent_reads"], "32");
        assert!(!deviations(&spec, "n1", Series::V5_0).iter().any(|what| what.starts_with("concurrent_reads")));
    }

    #[test]
    fn a_setting_of_one_node_goes_before_that_of_all_by_either_of_its_names() {
        let (new, old) = (("read_request_timeout", "1s"), ("read_request_timeout_in_ms", "250"));
        for (all, own) in [(new, old), (old, new)] {
            let spec = CassandraSpec {
                settings: map(&[all]),
                settings_of: BTreeMap::from([("n1".to_owned(), map(&[own]))]),
                ..CassandraSpec::default()
            };
            assert_eq!(spec.settings_for("n1"), map(&[own]));
            assert_eq!(spec.settings_for("n2"), map(&[all]));
            let text = text_of(&spec, Series::V5_0);
            assert_eq!(text.matches("\nread_request_timeout").count(), 1, "{text}");
            let error = check(&map(&[all, own])).unwrap_err().to_string();
            assert!(error.contains("it is the same as") && error.contains("write one of them"), "{error}");
        }
    }

    #[test]
    fn what_is_set_of_one_node_alone_is_as_shipped_for_nobody_else() {
        let spec = CassandraSpec {
            settings_of: BTreeMap::from([("n1".to_owned(), map(&[("concurrent_writes", "32")]))]),
            ..CassandraSpec::default()
        };
        let of = |node: &str| deviations(&spec, node, Series::V5_0).iter().any(|d| d.starts_with("concurrent_writes"));
        assert!(!of("n1") && of("n2"));
    }

    #[test]
    fn a_setting_takes_the_place_of_ours_by_either_of_its_names() {
        for series in [Series::V4_1, Series::V4_0] {
            let settings = map(&[("write_request_timeout_in_ms", "250")]);
            let text = text_of(&CassandraSpec { settings, ..CassandraSpec::default() }, series);
            assert_eq!(text.matches("\nwrite_request_timeout").count(), 1, "{text}");
            assert!(text.contains("\nwrite_request_timeout_in_ms: 250  # set by the experiment\n"), "{text}");
        }
    }

    #[test]
    fn a_setting_takes_the_place_of_ours_or_comes_at_the_end() {
        let settings = map(&[("read_request_timeout", "250ms"), ("row_cache_size", "1MiB")]);
        let text = text_of(&CassandraSpec { settings, ..CassandraSpec::default() }, Series::V5_0);
        assert_eq!(text.matches("\nread_request_timeout:").count(), 1);
        assert!(text.contains("\nread_request_timeout: 250ms  # set by the experiment\n"), "{text}");
        assert!(text.ends_with("# Set by the experiment.\nrow_cache_size: 1MiB\n"), "{text}");
    }

    #[test]
    fn what_is_not_as_shipped_is_said_in_the_file_and_in_the_record() {
        let spec = CassandraSpec::default();
        let text = text_of(&spec, Series::V5_0);
        let all = deviations(&spec, "n1", Series::V5_0);
        assert!(all.iter().any(|d| d.starts_with("num_tokens is 1, shipped 16: ")), "{all:?}");
        for Deviation { key, here, shipped, .. } in DEVIATIONS.iter().filter(|d| d.key != SEEDS) {
            assert!(text.contains(&format!("\n{key}: {here}  # shipped: {shipped}\n")), "{key}");
        }
        let settings = map(&[("concurrent_reads", "32")]);
        let fewer = deviations(&CassandraSpec { settings, ..CassandraSpec::default() }, "n1", Series::V5_0);
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
            ("server_encryption_options", "{internode_encryption: all}", "cluster.encryption"),
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
        let text = text_of(&CassandraSpec::default(), Series::V5_0);
        let identity = text.split("# For a small machine").next().unwrap();
        for key in identity.lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key) {
            assert!(OWNED.iter().any(|(owned, _)| *owned == key), "{key}");
        }
    }
}
