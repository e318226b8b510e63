//! etcd's own evidence of what it does: who leads, by its status; what it counts, by its metrics; when elections were, by its log.
//!
//! It is gathered without disturbing what is measured: three short questions over a connection that stays open, once in an
//! interval, on the node itself; none of them is a request of raft. Only what has changed is told.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};

use super::{
    ask::{self, Known},
    http::{Client, Door},
    log::{self, Told, What},
    metrics::{Metrics, p99},
};
use crate::{
    database::{Looker, Member, Shown},
    follow::Follower,
    last_told::LastTold,
};

/// For each answer. A node that stands still answers none, and is asked again in the next interval.
const PATIENCE: Duration = Duration::from_millis(400);
/// Between a line's stamp and the line in the file.
const WRITTEN_WITHIN_NS: u64 = 20_000_000;

/// Where evidence comes from.
const STATUS: &str = "status";
const METRICS: &str = "metrics";
const LOG: &str = "log";

/// Metrics that are told as they are, with what they are of.
const NUMBERS: [(&str, &str, &str); 12] = [
    ("etcd_server_leader_changes_seen_total", "leader-changes", ""),
    ("etcd_server_proposals_committed_total", "proposals-committed", ""),
    ("etcd_server_proposals_applied_total", "proposals-applied", ""),
    ("etcd_server_proposals_failed_total", "proposals-failed", ""),
    ("etcd_server_proposals_pending", "pending", "proposals"),
    ("etcd_server_slow_apply_total", "slow-applies", ""),
    ("etcd_server_slow_read_indexes_total", "slow-read-indexes", ""),
    ("etcd_server_read_indexes_failed_total", "read-indexes-failed", ""),
    ("etcd_server_heartbeat_send_failures_total", "late-heartbeats", ""),
    ("etcd_network_snapshot_send_success", "snapshots-sent", ""),
    ("etcd_debugging_mvcc_keys_total", "keys", ""),
    ("go_gc_duration_seconds_count", "gc-pauses", ""),
];

/// Durations: the metric, how many there were, how long all of them took, and their 99th percentile.
const DURATIONS: [(&str, &str, &str, &str); 3] = [
    ("etcd_disk_wal_fsync_duration_seconds", "wal-fsyncs", "wal-fsync-time", "wal-fsync-p99"),
    ("etcd_disk_backend_commit_duration_seconds", "backend-commits", "backend-commit-time", "backend-commit-p99"),
    ("etcd_server_apply_duration_seconds", "applies", "apply-time", "apply-p99"),
];

/// Metrics by the other member that they are of: the metric, its label, what it is told as, and times what.
const OF_PEERS: [(&str, &str, &str, f64); 4] = [
    ("etcd_network_active_peers", "Remote", CONNECTED, 1.0),
    ("etcd_network_peer_sent_failures_total", "To", "send-failures", 1.0),
    ("etcd_network_peer_round_trip_time_seconds_count", "To", "peer-round-trips", 1.0),
    ("etcd_network_peer_round_trip_time_seconds_sum", "To", "peer-round-trip-time", 1e9),
];

/// Of this, nought says something from the beginning.
const CONNECTED: &str = "connected";

/// Looks at one server.
pub(crate) struct Watcher {
    door: Door,
    to: SocketAddr,
    members: Vec<Member>,
    client: Option<Client>,
    /// The members' names by their numbers, once they are known.
    names: BTreeMap<u64, String>,
    log: Option<Log>,
    /// What was last told of each counter and gauge.
    last: LastTold,
    leader: Option<(String, u64)>,
    /// The buckets of each histogram at the last look.
    buckets: HashMap<&'static str, Vec<(f64, f64)>>,
}

struct Log {
    lines: Follower,
    /// When it was last looked at.
    looked_ns: u64,
    clock_is_right: bool,
}

impl Watcher {
    /// Of `members[index]`; `log`: the file that it logs to, and whether its clock shows the machine's time.
    pub(crate) fn new(door: Door, members: &[Member], index: usize, log: Option<(PathBuf, bool)>) -> Watcher {
        let follow =
            |(path, clock_is_right)| Log { lines: Follower::from_now(path), looked_ns: monotonic_ns(), clock_is_right };
        Watcher {
            door,
            to: members[index].client,
            members: members.to_vec(),
            client: None,
            names: BTreeMap::new(),
            log: log.map(follow),
            last: LastTold::with(&[CONNECTED]),
            leader: None,
            buckets: HashMap::new(),
        }
    }

    fn ask(&mut self, shown: &mut Vec<Shown>) -> Result<(), String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.door.open(self.to, PATIENCE)?,
        };
        if self.names.len() < self.members.len() {
            self.know(&ask::members_of(&mut client)?);
        }
        let asked_ns = monotonic_ns();
        let status = ask::status_of(&mut client)?;
        let text = client.get("/metrics")?;
        // After an error the connection is not used again.
        self.client = Some(client);
        let took_ns = monotonic_ns() - asked_ns;
        let at = (asked_ns + took_ns / 2, took_ns / 2);
        let mut tell = |source, name, subject: String, value| {
            shown.push(Shown { at_ns: at.0, error_ns: at.1, source, name, subject, value });
        };
        tell(STATUS, "reading", String::new(), took_ns as f64);
        let leader = (status.leader.map(|id| name_of(&self.names, id)).unwrap_or_default(), status.term);
        if self.leader.as_ref() != Some(&leader) {
            tell(STATUS, "leader", leader.0.clone(), leader.1 as f64);
            self.leader = Some(leader);
        }
        let metrics = Metrics::read(&text);
        let mut told = vec![
            (STATUS, "behind", String::new(), status.committed.saturating_sub(status.applied) as f64),
            (STATUS, "database-bytes", String::new(), status.database_bytes as f64),
        ];
        told.extend(self.counted(&metrics).into_iter().map(|(name, subject, value)| (METRICS, name, subject, value)));
        for (source, name, subject, value) in told {
            if self.last.is_news(name, &subject, value) {
                tell(source, name, subject, value);
            }
        }
        for (metric, _, _, name) in DURATIONS {
            let now = metrics.buckets(metric);
            let before = self.buckets.insert(metric, now.clone());
            // What came before the first look is of nobody knows when.
            if let Some(p99) = before.and_then(|before| p99(&before, &now)) {
                tell(METRICS, name, String::new(), p99 * 1e9);
            }
        }
        Ok(())
    }

    /// The counters and gauges.
    fn counted(&self, metrics: &Metrics<'_>) -> Vec<(&'static str, String, f64)> {
        let mut all = Vec::new();
        for (metric, name, of) in NUMBERS {
            all.extend(metrics.sum(metric).map(|value| (name, of.to_owned(), value)));
        }
        for (metric, count, time, _) in DURATIONS {
            all.extend(metrics.sum(&format!("{metric}_count")).map(|value| (count, String::new(), value)));
            all.extend(metrics.sum(&format!("{metric}_sum")).map(|value| (time, String::new(), value * 1e9)));
        }
        let pauses = metrics.sum("go_gc_duration_seconds_sum");
        all.extend(pauses.map(|value| ("gc-pause-time", String::new(), value * 1e9)));
        for (metric, label, name, factor) in OF_PEERS {
            for (id, value) in metrics.by(metric, label) {
                if let Ok(id) = u64::from_str_radix(id, 16) {
                    all.push((name, name_of(&self.names, id), value * factor));
                }
            }
        }
        all
    }

    fn know(&mut self, known: &[Known]) {
        self.names = ask::names(known, &self.members);
        if self.log.is_some() {
            return;
        }
        // Members that are not ours may be called otherwise, and be known by names of hosts: each tells its own number.
        for member in &self.members {
            if let Ok(status) = ask::status(&self.door, member.client, PATIENCE) {
                self.names.retain(|_, name| *name != member.name);
                self.names.insert(status.id, member.name.clone());
            }
        }
    }

    fn read_log(&mut self, shown: &mut Vec<Shown>) {
        let Some(log) = &mut self.log else { return };
        let (since_ns, lines) = (log.looked_ns, log.lines.lines());
        let now_ns = monotonic_ns();
        log.looked_ns = now_ns;
        // Both clocks are read at once; that the wall clock is slewed meanwhile is far below what elections take.
        let ahead_ns = i128::from(realtime_ns()) - i128::from(monotonic_ns());
        for Told { unix_ns, resolution_ns, what } in lines.iter().filter_map(|line| log::read(line)) {
            let stamp_ns = u64::try_from(i128::from(unix_ns) - ahead_ns).ok().filter(|_| log.clock_is_right);
            let (at_ns, error_ns) = moment(stamp_ns, resolution_ns, since_ns, now_ns);
            let (name, subject, value) = match what {
                What::Elected { leader, term } => ("elected", name_of(&self.names, leader), term as f64),
                What::Lost { leader, term } => ("lost-leader", name_of(&self.names, leader), term as f64),
                What::Campaign { term } => ("campaign", String::new(), term as f64),
                What::SlowSync { took_ns } => ("slow-fsync", String::new(), took_ns),
            };
            shown.push(Shown { at_ns, error_ns, source: LOG, name, subject, value });
        }
    }
}

impl Looker for Watcher {
    fn look(&mut self) -> Vec<Shown> {
        let mut shown = Vec::new();
        // What it does not answer is asked again, on a connection of its own.
        let _ = self.ask(&mut shown);
        self.read_log(&mut shown);
        shown
    }
}

/// The name of the member of that number; of one that is none of the nodes, the number as etcd prints it.
fn name_of(names: &BTreeMap<u64, String>, id: u64) -> String {
    names.get(&id).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("{id:x}"))
}

/// When a line was logged that came into the file between two looks, and within which error: by its own stamp, where that
/// can be; else somewhere in between.
fn moment(stamp_ns: Option<u64>, resolution_ns: u64, since_ns: u64, now_ns: u64) -> (u64, u64) {
    let possible = since_ns.saturating_sub(WRITTEN_WITHIN_NS)..=now_ns;
    match stamp_ns.filter(|stamp| possible.contains(stamp)) {
        // A stamp is cut down to its last digit.
        Some(stamp_ns) => (stamp_ns + resolution_ns / 2, resolution_ns.div_ceil(2)),
        None => (since_ns + (now_ns - since_ns) / 2, (now_ns - since_ns) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::http, *};

    #[test]
    fn a_line_has_its_own_time_or_if_that_cannot_be_the_time_between_two_looks() {
        let (since, now) = (10_000_000_000, 11_000_000_000);
        assert_eq!(moment(Some(10_300_000_000), 1_000, since, now), (10_300_000_500, 500));
        // Written right after the look before, stamped right before it.
        assert_eq!(moment(Some(9_999_000_000), 1_000_000, since, now), (9_999_500_000, 500_000));
        for stamp in [None, Some(9_000_000_000), Some(12_000_000_000), Some(0)] {
            assert_eq!(moment(stamp, 1_000, since, now), (10_500_000_000, 500_000_000), "{stamp:?}");
        }
    }

    fn member(name: &str, client: SocketAddr) -> Member {
        let address = std::net::Ipv4Addr::LOCALHOST;
        Member { name: name.to_owned(), address, client, home: "/".into(), logs: "/".into() }
    }

    #[test]
    fn members_of_a_cluster_that_is_not_ours_are_told_by_the_numbers_that_they_have_of_themselves() {
        let infra_a = http::server(|_| (200, r#"{"header":{"member_id":"47"},"version":"3.6.16"}"#));
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let members = [member("n1", gone), member("n2", infra_a)];
        let mut watcher = Watcher::new(Door::new(http::Plain), &members, 0, None);
        // What a server calls n2 is another one; the one that it calls infra-a is n2.
        watcher.know(&[Known::of(46, "n2"), Known::of(47, "infra-a"), Known::of(48, "infra-b")]);
        let names = [46, 47, 48].map(|id| name_of(&watcher.names, id));
        assert_eq!(names, ["2e", "n2", "infra-b"]);
    }

    #[test]
    fn counters_are_told_by_the_names_of_nodes_and_in_nanoseconds() {
        let nowhere = "127.0.0.1:2379".parse().unwrap();
        let members = ["n1", "n2"].map(|name| member(name, nowhere));
        let mut watcher = Watcher::new(Door::new(http::Plain), &members, 0, None);
        watcher.names = BTreeMap::from([(0x2f, "n2".to_owned())]);
        let text = "etcd_server_leader_changes_seen_total 2\n\
                    etcd_disk_wal_fsync_duration_seconds_sum 0.5\n\
                    etcd_disk_wal_fsync_duration_seconds_count 10\n\
                    etcd_network_peer_round_trip_time_seconds_sum{To=\"2f\"} 0.25\n\
                    etcd_network_active_peers{Local=\"1\",Remote=\"3a\"} 1\n";
        let told = watcher.counted(&Metrics::read(text));
        for (name, subject, value) in [
            ("leader-changes", "", 2.0),
            ("wal-fsyncs", "", 10.0),
            ("wal-fsync-time", "", 5e8),
            ("peer-round-trip-time", "n2", 2.5e8),
            (CONNECTED, "3a", 1.0),
        ] {
            assert!(told.contains(&(name, subject.to_owned(), value)), "{name}: {told:?}");
        }
        assert_eq!(told.len(), 5);
    }
}
