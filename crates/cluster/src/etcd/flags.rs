//! The flags of an etcd server: those that the lab sets itself, and those that an experiment may set.

use std::{collections::BTreeMap, net::Ipv4Addr, path::Path};

use crate::{ClusterError, database::Member, kind::DatabaseKind};

/// Where servers reach one another.
const PEER_PORT: u16 = 2380;

/// Flags that are the lab's, and why.
const OWN: [(&str, &str); 28] = [
    ("name", "servers are named after their hosts"),
    ("data-dir", "the lab makes and removes the directories; a disk fault calls it data"),
    ("wal-dir", "the lab makes and removes the directories; a disk fault calls it wal"),
    ("listen-", "the lab gives each server the address of its host"),
    ("advertise-", "the lab gives each server the address of its host"),
    ("initial-advertise-", "the lab gives each server the address of its host"),
    ("initial-cluster", "the cluster consists of the lab's nodes; write nodes: 3"),
    ("initial-cluster-", "the cluster consists of the lab's nodes; write nodes: 3"),
    ("discovery", "the cluster consists of the lab's nodes; write nodes: 3"),
    ("discovery-", "the cluster consists of the lab's nodes; write nodes: 3"),
    ("force-new-cluster", "every cluster of the lab is new"),
    ("config-file", "write its keys under settings, one by one"),
    ("enable-grpc-gateway", "the lab asks servers by it"),
    ("logger", "the lab reads the log"),
    ("log-", "the lab reads the log"),
    ("enable-log-rotation", "the lab reads the log"),
    ("cert-file", TLS),
    ("key-file", TLS),
    ("client-cert-", TLS),
    ("client-key-", TLS),
    ("client-crl-", TLS),
    ("trusted-ca-file", TLS),
    ("auto-tls", TLS),
    ("self-signed-cert-", TLS),
    ("cipher-suites", TLS),
    ("tls-", TLS),
    ("peer-", TLS),
    ("version", "it would print its version and end"),
];

const TLS: &str =
    "servers and clients of a lab speak without TLS; for an encrypted network write network: { overlay: wireguard }";

/// Flags that may be set, of the versions from 3.4 to 3.7. Whether the one that runs has it, it says itself when it starts.
const KNOWN: [&str; 55] = [
    "auth-token",
    "auth-token-ttl",
    "auto-compaction-mode",
    "auto-compaction-retention",
    "backend-batch-interval",
    "backend-batch-limit",
    "backend-bbolt-freelist-type",
    "bcrypt-cost",
    "bootstrap-defrag-threshold-megabytes",
    "compact-hash-check-enabled",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "cors",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "election-timeout",
    "enable-distributed-tracing",
    "enable-pprof",
    "enable-v2",
    "feature-gates",
    "grpc-keepalive-interval",
    "grpc-keepalive-min-time",
    "grpc-keepalive-timeout",
    "heartbeat-interval",
    "host-whitelist",
    "initial-election-tick-advance",
    "max-concurrent-streams",
    "max-learners",
    "max-request-bytes",
    "max-snapshots",
    "max-txn-ops",
    "max-wals",
    "memory-mlock",
    "metrics",
    "pre-vote",
    "quota-backend-bytes",
    "raft-read-timeout",
    "raft-write-timeout",
    "snapshot-catchup-entries",
    "snapshot-count",
    "socket-reuse-address",
    "socket-reuse-port",
    "stop-grpc-service-on-defrag",
    "strict-reconfig-check",
    "txn-mode-write-with-shared-buffer",
    "unsafe-no-fsync",
    "v2-deprecation",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Least similarity of a flag to one that was meant, from 0 to 1.
const SIMILAR: f64 = 0.5;

/// Refuses settings that are the lab's own, or no flags of etcd.
///
/// # Errors
/// [`ClusterError::Setting`], with what to do instead.
pub fn check(settings: &BTreeMap<String, String>) -> Result<(), ClusterError> {
    for (key, value) in settings {
        if let Some(why) = refusal(key, value) {
            return Err(ClusterError::Setting { database: DatabaseKind::Etcd, key: key.clone(), why });
        }
    }
    Ok(())
}

fn refusal(key: &str, value: &str) -> Option<String> {
    if KNOWN.contains(&key) || (key.starts_with("experimental-") && plain(key)) {
        let is_text = !value.contains(['\n', '\0']);
        return (!is_text).then(|| "its value has to be on one line".to_owned());
    }
    if let Some(dashed) = key.strip_prefix('-') {
        return Some(format!("write it without dashes: {}", dashed.trim_start_matches('-')));
    }
    // A name that ends in a dash stands for all that begin with it.
    let mut own = OWN.iter().filter(|(own, _)| *own == key || (own.ends_with('-') && key.starts_with(*own)));
    if let Some((_, why)) = own.next() {
        return Some((*why).to_owned());
    }
    let nearest = KNOWN
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(known, key), known))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .filter(|(similarity, _)| *similarity >= SIMILAR);
    Some(match nearest {
        Some((_, known)) => format!("etcd has no such flag; did you mean {known}?"),
        None => "etcd has no such flag; `etcd --help` lists them".to_owned(),
    })
}

fn plain(key: &str) -> bool {
    key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Where clients reach a server.
pub(super) fn client_url(address: Ipv4Addr, port: u16) -> String {
    format!("http://{address}:{port}")
}

/// The flags that run `members[index]`, on whatever it finds in its directories: a server that has been a member before goes by
/// its own data, and by nothing that is said of the initial cluster.
pub(super) fn arguments(
    settings: &BTreeMap<String, String>,
    own: Option<&BTreeMap<String, String>>,
    members: &[Member],
    index: usize,
) -> Vec<String> {
    let me = &members[index];
    let peer = |member: &Member| format!("http://{}:{PEER_PORT}", member.address);
    let clients = client_url(me.address, me.client.port());
    let cluster: Vec<String> = members.iter().map(|member| format!("{}={}", member.name, peer(member))).collect();
    // A server moves a new log into place under the directory's own name, which a mount point does not allow: so its
    // directories lie in those that can be mounted.
    let within = |directory: &str| me.home.join(directory).join("etcd").display().to_string();
    let mut flags = vec![
        ("name", me.name.clone()),
        ("data-dir", within("data")),
        ("wal-dir", within("wal")),
        ("listen-peer-urls", peer(me)),
        ("listen-client-urls", clients.clone()),
        ("initial-advertise-peer-urls", peer(me)),
        ("advertise-client-urls", clients),
        ("initial-cluster", cluster.join(",")),
        ("initial-cluster-state", "new".to_owned()),
        ("initial-cluster-token", "brownout".to_owned()),
        ("logger", "zap".to_owned()),
        ("log-level", "info".to_owned()),
        ("log-outputs", "stderr".to_owned()),
    ];
    let mut all = settings.clone();
    all.extend(own.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    flags.extend(all.iter().map(|(key, value)| (key.as_str(), value.clone())));
    flags.into_iter().map(|(key, value)| format!("--{key}={value}")).collect()
}

/// In what a server of the lab differs from one that is started by hand.
pub(super) fn deviations() -> Vec<String> {
    vec![
        "wal-dir is a directory of its own, shipped: below data-dir (so that a disk fault can hit it alone)".to_owned(),
    ]
}

/// Whether a directory's path can be told to etcd.
pub(super) fn is_text(path: &Path) -> bool {
    path.to_str().is_some()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn member(index: u8) -> Member {
        let address = Ipv4Addr::new(10, 77, 0, index);
        Member {
            name: format!("n{index}"),
            address,
            client: SocketAddr::new(address.into(), 2379),
            home: format!("/scratch/n{index}").into(),
            logs: format!("/logs/n{index}").into(),
        }
    }

    #[test]
    fn flags_that_are_the_labs_or_none_are_refused_with_what_to_do() {
        for (key, said) in [
            ("name", "after their hosts"),
            ("listen-metrics-urls", "address of its host"),
            ("initial-cluster-token", "nodes: 3"),
            ("peer-auto-tls", "overlay: wireguard"),
            ("log-level", "reads the log"),
            ("--heartbeat-interval", "without dashes: heartbeat-interval"),
            ("heartbeat-intervall", "did you mean heartbeat-interval?"),
            ("Election-Timeout", "did you mean election-timeout?"),
            ("xyz", "etcd --help"),
            ("experimental-X", "no such flag"),
        ] {
            let error = check(&settings(&[(key, "1")])).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(key), "{error}");
        }
        assert!(check(&settings(&[("heartbeat-interval", "1\n2")])).is_err());
        let fine = [("heartbeat-interval", "50"), ("pre-vote", "false"), ("experimental-warning-apply-duration", "1s")];
        check(&settings(&fine)).unwrap();
        assert!(KNOWN.is_sorted() && KNOWN.iter().all(|key| plain(key)));
    }

    #[test]
    fn a_server_has_its_own_address_the_whole_cluster_and_its_own_settings_last() {
        let members = [member(1), member(2)];
        let common = settings(&[("heartbeat-interval", "50"), ("pre-vote", "false")]);
        let own = settings(&[("pre-vote", "true")]);
        let flags = arguments(&common, Some(&own), &members, 1);
        for flag in [
            "--name=n2",
            "--data-dir=/scratch/n2/data/etcd",
            "--wal-dir=/scratch/n2/wal/etcd",
            "--listen-client-urls=http://10.77.0.2:2379",
            "--initial-cluster=n1=http://10.77.0.1:2380,n2=http://10.77.0.2:2380",
            "--heartbeat-interval=50",
            "--pre-vote=true",
        ] {
            assert_eq!(flags.iter().filter(|one| *one == flag).count(), 1, "{flag} in {flags:?}");
        }
        assert!(!flags.contains(&"--pre-vote=false".to_owned()));
    }
}
