//! The text format in which an etcd server tells its metrics (Prometheus, version 0.0.4).

use std::collections::BTreeMap;

/// What a server told at one moment.
pub(super) struct Metrics<'a>(Vec<Sample<'a>>);

struct Sample<'a> {
    name: &'a str,
    /// As written between the braces.
    labels: &'a str,
    value: f64,
}

impl<'a> Metrics<'a> {
    /// Reads all whose names are etcd's or the Go runtime's; lines that cannot be read are left out.
    pub(super) fn read(text: &'a str) -> Metrics<'a> {
        let told = text.lines().filter(|line| line.starts_with("etcd_") || line.starts_with("go_gc_"));
        Metrics(told.filter_map(sample).collect())
    }

    /// The sum over all labels; none if there is no such metric.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|sample| sample.value).reduce(|sum, value| sum + value)
    }

    /// The sums by the values of one label.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<&'a str, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.of(name) {
            if let Some(value) = label_of(sample.labels, label) {
                *sums.entry(value).or_insert(0.0) += sample.value;
            }
        }
        sums
    }

    /// The buckets of a histogram over all other labels, in order: upper edges, and how many lie at or below them.
    pub(super) fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = self
            .by(&format!("{name}_bucket"), "le")
            .into_iter()
            .filter_map(|(edge, count)| Some((if edge == "+Inf" { f64::INFINITY } else { edge.parse().ok()? }, count)))
            .collect();
        buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        buckets
    }

    fn of(&self, name: &str) -> impl Iterator<Item = &Sample<'a>> {
        self.0.iter().filter(move |sample| sample.name == name)
    }
}

/// `name{label="value",other="value"} 12.5`
fn sample(line: &str) -> Option<Sample<'_>> {
    let (series, value) = match line.rfind('}') {
        Some(end) => line.split_at(end + 1),
        None => line.split_at(line.find(' ')?),
    };
    // What may follow the value is a time.
    let value = value.split_whitespace().next()?.parse().ok()?;
    let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
    Some(Sample { name, labels, value })
}

/// The value of a label. Those of etcd hold no quotes, commas or backslashes.
fn label_of<'a>(labels: &'a str, label: &str) -> Option<&'a str> {
    labels.split(',').find_map(|one| {
        let (name, value) = one.split_once('=')?;
        (name.trim() == label).then(|| value.trim().trim_matches('"'))
    })
}

/// The upper edge of the bucket that the 99th percentile lies in of what came between two looks; none if nothing did. Beyond the
/// last edge, that edge. A count that is smaller than before is one of a server that was started again.
pub(super) fn p99(before: &[(f64, f64)], now: &[(f64, f64)]) -> Option<f64> {
    let counted = |edge: f64| {
        let known = before.iter().find(|(known, _)| *known == edge);
        known.map_or(0.0, |(_, count)| *count)
    };
    let restarted = now.iter().any(|(edge, count)| *count < counted(*edge));
    let rises: Vec<(f64, f64)> =
        now.iter().map(|(edge, count)| (*edge, count - if restarted { 0.0 } else { counted(*edge) })).collect();
    let all = rises.last().map(|(_, all)| *all).filter(|all| *all > 0.0)?;
    let edge = rises.iter().find(|(_, below)| *below >= all * 0.99).map(|(edge, _)| *edge)?;
    if edge.is_finite() { Some(edge) } else { rises.iter().rev().map(|(edge, _)| *edge).find(|edge| edge.is_finite()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "# HELP etcd_server_is_leader Whether or not this member is a leader. 1 if is, 0 otherwise.\n\
        # TYPE etcd_server_is_leader gauge\n\
        etcd_server_is_leader 1\n\
        etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.001\"} 90\n\
        etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.002\"} 99\n\
        etcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 100\n\
        etcd_disk_wal_fsync_duration_seconds_sum 0.034\n\
        etcd_disk_wal_fsync_duration_seconds_count 100\n\
        etcd_network_active_peers{Local=\"8e9e05c52164694d\",Remote=\"91bc3c398fb3c146\"} 1\n\
        etcd_network_active_peers{Local=\"8e9e05c52164694d\",Remote=\"fd422379fda50e48\"} 0\n\
        etcd_server_apply_duration_seconds_sum{op=\"Put\",success=\"true\",version=\"v3\"} 0.5\n\
        etcd_server_apply_duration_seconds_sum{op=\"Txn\",success=\"true\",version=\"v3\"} 0.25\n\
        go_gc_duration_seconds{quantile=\"1\"} 0.0002\n\
        go_gc_duration_seconds_sum 1.5e-05\n\
        go_goroutines 120\n\
        etcd_cut{le=\"\n";

    #[test]
    fn what_a_server_tells_is_read_by_name_and_by_label() {
        let metrics = Metrics::read(TOLD);
        assert_eq!(metrics.sum("etcd_server_is_leader"), Some(1.0));
        assert_eq!(metrics.sum("etcd_server_apply_duration_seconds_sum"), Some(0.75));
        assert_eq!(metrics.sum("go_gc_duration_seconds_sum"), Some(1.5e-5));
        assert_eq!(metrics.sum("go_goroutines"), None, "it is of no use here");
        let peers = metrics.by("etcd_network_active_peers", "Remote");
        assert_eq!(peers, BTreeMap::from([("91bc3c398fb3c146", 1.0), ("fd422379fda50e48", 0.0)]));
        let edges = [(0.001, 90.0), (0.002, 99.0), (f64::INFINITY, 100.0)];
        assert_eq!(metrics.buckets("etcd_disk_wal_fsync_duration_seconds"), edges);
    }

    #[test]
    fn a_percentile_is_of_what_came_since_the_last_look_and_a_new_server_counts_anew() {
        let now = |a: f64, b: f64, c: f64| [(1.0, a), (2.0, b), (f64::INFINITY, c)];
        let before = now(10.0, 10.0, 10.0);
        assert_eq!(p99(&before, &now(10.0, 10.0, 10.0)), None);
        assert_eq!(p99(&before, &now(110.0, 110.0, 110.0)), Some(1.0));
        assert_eq!(p99(&before, &now(11.0, 110.0, 110.0)), Some(2.0));
        assert_eq!(p99(&before, &now(10.0, 10.0, 20.0)), Some(2.0), "beyond the last edge");
        assert_eq!(p99(&before, &now(0.0, 5.0, 5.0)), Some(2.0));
        assert_eq!(p99(&[], &[]), None);
    }
}
