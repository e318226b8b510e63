//! What differs between the versions of Cassandra that are known: how keys are called, what they run on, what they can
//! be asked.

use std::{collections::BTreeMap, ops::RangeInclusive};

use super::heartbeat;
use crate::{ClusterError, DatabaseKind};

/// A line of versions. Within one, configuration and options are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Series {
    V3_11,
    V4_0,
    V4_1,
    V5_0,
}

impl Series {
    /// Oldest first.
    const ALL: [Series; 4] = [Series::V3_11, Series::V4_0, Series::V4_1, Series::V5_0];

    /// As versions begin.
    pub(super) fn word(self) -> &'static str {
        match self {
            Series::V3_11 => "3.11",
            Series::V4_0 => "4.0",
            Series::V4_1 => "4.1",
            Series::V5_0 => "5.0",
        }
    }

    /// The series of a version: of `5.0`, `5.0.9` and `5.0-rc2` the same.
    pub(super) fn of(version: &str) -> Option<Series> {
        Series::ALL.into_iter().find(|series| {
            version
                .strip_prefix(series.word())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('-'))
        })
    }

    /// Of a distribution, whose version is of a known series: [`super::tarball`] and [`super::maven`] bring no others.
    pub(super) fn of_known(version: &str) -> Series {
        Series::of(version).unwrap_or(Series::V5_0)
    }

    /// Major versions of Java that it runs on. 3.11 is compiled for 8 and does not start on 11; 4.0 and 4.1 are
    /// released for 8 and 11, and run on 17 with what [`super::jvm::Jvm`] adds for their memory meter; 5.0 needs 11.
    /// None runs on 25: it has no security manager any more.
    pub(super) fn java(self) -> RangeInclusive<u32> {
        match self {
            Series::V3_11 => 8..=8,
            Series::V4_0 | Series::V4_1 => 8..=17,
            Series::V5_0 => 11..=17,
        }
    }

    /// Values of `cassandra.yaml` bear their units (`250ms`); before, the names of keys do
    /// (`read_request_timeout_in_ms: 250`).
    pub(super) fn writes_units(self) -> bool {
        self >= Series::V4_1
    }

    /// Certificates and keys may be PEM (`PEMBasedSslContextFactory`); before, only key stores.
    pub(super) fn reads_pem(self) -> bool {
        self >= Series::V4_1
    }

    /// Its keyspace `system_views` tells of pools and compactions.
    pub(super) fn has_virtual_tables(self) -> bool {
        self >= Series::V4_0
    }

    /// `system_views.pending_hints` is there.
    pub(super) fn tells_hints(self) -> bool {
        self >= Series::V4_1
    }

    /// CQL by which a node tells its wall clock, in ms since 1970. 3.11 has only `now()`, which makes identifiers that
    /// are unique and ascending: it follows a clock forwards, and not backwards.
    pub(super) fn clock(self) -> &'static str {
        match self {
            Series::V3_11 => "SELECT toUnixTimestamp(now()) FROM system.local",
            _ => heartbeat::CLOCK,
        }
    }

    /// An entry of `cassandra.yaml` that is written as 4.1 and later have it, in the words of this series; none: it
    /// knows no such key.
    pub(super) fn entry(self, key: &str, value: &str) -> Option<(String, String)> {
        let as_it_is = || Some((key.to_owned(), value.to_owned()));
        if self.writes_units() {
            return as_it_is();
        }
        if self == Series::V3_11 && SINCE_4_0.contains(&key) {
            return None;
        }
        match OLD_KEYS.iter().find(|(new, ..)| *new == key) {
            Some((_, old, unit)) => Some(((*old).to_owned(), unit.count(value)?.to_string())),
            None => as_it_is(),
        }
    }
}

/// What the numbers of old keys count.
#[derive(Clone, Copy)]
enum Unit {
    Ms,
    KiB,
    MiB,
}

impl Unit {
    /// A value with its unit (of those that we write: `3h`, `10000ms`, `8MiB`) as a count of this one.
    fn count(self, value: &str) -> Option<u64> {
        let digits = value.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = value.split_at(digits);
        let number: u64 = number.parse().ok()?;
        match (self, unit) {
            (Unit::Ms, "ms") | (Unit::KiB, "KiB") | (Unit::MiB, "MiB") => Some(number),
            (Unit::Ms, "s") => Some(number * 1000),
            (Unit::Ms, "h") => Some(number * 3_600_000),
            _ => None,
        }
    }
}

/// Keys of the generated file that 3.11 does not know: it refuses a file that has them.
const SINCE_4_0: [&str; 2] = ["file_cache_enabled", "networking_cache_size"];

/// Keys as 4.1 and later call them, as those before do, and what numbers there count (CASSANDRA-15234).
const OLD_KEYS: [(&str, &str, Unit); 18] = [
    ("commitlog_segment_size", "commitlog_segment_size_in_mb", Unit::MiB),
    ("memtable_heap_space", "memtable_heap_space_in_mb", Unit::MiB),
    ("memtable_offheap_space", "memtable_offheap_space_in_mb", Unit::MiB),
    ("networking_cache_size", "networking_cache_size_in_mb", Unit::MiB),
    ("dynamic_snitch_update_interval", "dynamic_snitch_update_interval_in_ms", Unit::Ms),
    ("dynamic_snitch_reset_interval", "dynamic_snitch_reset_interval_in_ms", Unit::Ms),
    ("read_request_timeout", "read_request_timeout_in_ms", Unit::Ms),
    ("range_request_timeout", "range_request_timeout_in_ms", Unit::Ms),
    ("write_request_timeout", "write_request_timeout_in_ms", Unit::Ms),
    ("counter_write_request_timeout", "counter_write_request_timeout_in_ms", Unit::Ms),
    ("cas_contention_timeout", "cas_contention_timeout_in_ms", Unit::Ms),
    ("truncate_request_timeout", "truncate_request_timeout_in_ms", Unit::Ms),
    ("request_timeout", "request_timeout_in_ms", Unit::Ms),
    ("slow_query_log_timeout", "slow_query_log_timeout_in_ms", Unit::Ms),
    ("max_hint_window", "max_hint_window_in_ms", Unit::Ms),
    ("hinted_handoff_throttle", "hinted_handoff_throttle_in_kb", Unit::KiB),
    ("hints_flush_period", "hints_flush_period_in_ms", Unit::Ms),
    ("commitlog_sync_period", "commitlog_sync_period_in_ms", Unit::Ms),
];

/// The other name of a key, old or new; 4.1 and later take both.
pub(super) fn other_name(key: &str) -> Option<&'static str> {
    OLD_KEYS.iter().find_map(|(new, old, _)| match key {
        _ if key == *new => Some(*old),
        _ if key == *old => Some(*new),
        _ => None,
    })
}

/// Refuses settings that a node of this version calls by another name: it would not start.
///
/// # Errors
/// [`ClusterError::Setting`], with the right name.
pub fn check_setting_names(version: &str, settings: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    check_names(Series::of_known(version), settings)
}

/// The same of a series.
pub(super) fn check_names(series: Series, settings: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    if series.writes_units() {
        return Ok(());
    }
    for key in settings.keys() {
        if let Some((_, old, unit)) = OLD_KEYS.iter().find(|(new, ..)| new == key) {
            let unit = match unit {
                Unit::Ms => "milliseconds",
                Unit::KiB => "KiB",
                Unit::MiB => "MiB",
            };
            let why = format!("Cassandra {} calls it {old}, a number of {unit}", series.word());
            return Err(ClusterError::Setting { database: DatabaseKind::Cassandra, key: key.clone(), why });
        }
    }
    Ok(())
}

/// Refuses versions, by node, that cannot be in one cluster.
///
/// 3.11 speaks an older version of the messages between nodes than all others, and neither sends a schema to nodes of
/// another version of messages nor takes one from them (`MigrationManager.shouldPushSchemaTo`): a table made on one
/// would never be on the other. 4.0, 4.1 and 5.0 (as it is shipped: `storage_compatibility_mode: CASSANDRA_4`) speak
/// the same one.
///
/// # Errors
/// [`ClusterError::Mixed`], with the nodes.
pub fn check_mixed(versions: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    let is_old = |version: &&String| Series::of(version) == Some(Series::V3_11);
    let old = versions.iter().find(|(_, version)| is_old(version));
    let new = versions.iter().find(|(_, version)| !is_old(version));
    match (old, new) {
        (Some((old, old_version)), Some((new, version))) => Err(ClusterError::Mixed(format!(
            "{old} has {old_version} and {new} has {version}, and nodes of 3.11 take no schema from later ones and give \
             them none: a cluster that starts so has no table in common; give all of them 3.11, or none"
        ))),
        _ => Ok(()),
    }
}

/// Whether nodes of these versions hold schemas whose versions can never be equal: those of different series describe
/// their own tables differently.
pub(super) fn is_mixed<'a>(versions: impl IntoIterator<Item = &'a str>) -> bool {
    let mut all = versions.into_iter().map(Series::of_known);
    let first = all.next();
    all.any(|series| Some(series) != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_the_series_that_it_begins_with() {
        for (version, series) in [
            ("5.0", Some(Series::V5_0)),
            ("5.0.9", Some(Series::V5_0)),
            ("5.0-rc2", Some(Series::V5_0)),
            ("4.1.10", Some(Series::V4_1)),
            ("4.0.19", Some(Series::V4_0)),
            ("3.11.19", Some(Series::V3_11)),
            ("3.1", None),
            ("3.110", None),
            ("5.01", None),
            ("", None),
        ] {
            assert_eq!(Series::of(version), series, "{version}");
        }
    }

    #[test]
    fn old_series_have_the_unit_in_the_name_and_the_number_alone_as_the_value() {
        let entry = |series: Series, key: &str, value: &str| {
            series.entry(key, value).map(|(key, value)| format!("{key}: {value}")).unwrap_or_default()
        };
        assert_eq!(entry(Series::V4_1, "max_hint_window", "3h"), "max_hint_window: 3h");
        assert_eq!(entry(Series::V4_0, "max_hint_window", "3h"), "max_hint_window_in_ms: 10800000");
        assert_eq!(entry(Series::V3_11, "hinted_handoff_throttle", "1024KiB"), "hinted_handoff_throttle_in_kb: 1024");
        assert_eq!(entry(Series::V4_0, "networking_cache_size", "8MiB"), "networking_cache_size_in_mb: 8");
        assert_eq!(entry(Series::V3_11, "networking_cache_size", "8MiB"), "", "it has none");
        assert_eq!(entry(Series::V3_11, "concurrent_reads", "16"), "concurrent_reads: 16");
    }

    #[test]
    fn a_setting_by_the_name_of_another_series_is_refused_with_the_right_one() {
        let settings = BTreeMap::from([("read_request_timeout".to_owned(), "1s".to_owned())]);
        let error = check_names(Series::V4_0, &settings).unwrap_err().to_string();
        assert!(error.contains("read_request_timeout_in_ms, a number of milliseconds"), "{error}");
        assert!(check_names(Series::V4_1, &settings).is_ok());
        assert_eq!(other_name("read_request_timeout_in_ms"), Some("read_request_timeout"));
        assert_eq!(other_name("concurrent_reads"), None);
    }

    #[test]
    fn only_3_11_cannot_be_mixed_with_others() {
        let check = |versions: &[&str]| {
            let named = versions.iter().enumerate().map(|(i, version)| (format!("n{}", i + 1), (*version).to_owned()));
            check_mixed(&named.collect())
        };
        assert!(check(&["5.0.9", "4.1.10", "4.0.19"]).is_ok());
        assert!(check(&["3.11.19", "3.11.18"]).is_ok());
        let error = check(&["3.11.19", "4.0.19"]).unwrap_err().to_string();
        assert!(error.contains("n1 has 3.11.19 and n2 has 4.0.19"), "{error}");
        assert!(is_mixed(["5.0.9", "4.1.10"]) && !is_mixed(["5.0.9", "5.0.8"]) && !is_mixed([]));
    }
}
