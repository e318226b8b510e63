//! What a run makes in a cluster that is not its own: a keyspace (of etcd: keys below a prefix) that nobody else has. It is
//! dropped at the end, whatever ended the run. What was there before is never touched: a name that is taken is refused.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{Access, Database as _, DatabaseKind, external::External};

use crate::{LabError, plan::Work};

/// In the end it is tried for so long to drop what was made.
const CLEARED_WITHIN: Duration = Duration::from_secs(5);
const TRY_EVERY: Duration = Duration::from_millis(250);

/// What was made, until this is dropped.
pub struct OwnData {
    external: External,
    nodes: Vec<SocketAddr>,
    /// Keyspaces, or prefixes of keys: ours from the moment on in which it was seen that nobody has them.
    claimed: Vec<String>,
}

impl OwnData {
    /// Nothing yet, in a cluster of this kind with these nodes.
    ///
    /// # Errors
    /// A file of its access cannot be used.
    pub fn new(kind: DatabaseKind, access: Access, nodes: &[(String, SocketAddr)]) -> Result<OwnData, LabError> {
        let nodes = nodes.iter().map(|(_, node)| *node).collect();
        Ok(OwnData { external: External::new(kind, access)?, nodes, claimed: Vec::new() })
    }

    /// Claims what a load is about to make, before each trial: what was made for the one before was cleared, and others
    /// may have taken its place. Returns what a person should know, the first time.
    ///
    /// # Errors
    /// The cluster has something of that name already, or does not say.
    pub fn claim(&mut self, work: &Work) -> Result<Option<String>, LabError> {
        let kind = self.external.kind();
        let mut told = None;
        for name in names(work) {
            if self.by_any(|external, node| external.holds(node, &name)).map_err(LabError::Machine)? {
                // It is not ours to drop at the end.
                self.claimed.retain(|claimed| *claimed != name);
                return Err(LabError::Machine(taken(kind, &name)));
            }
            if self.claimed.is_empty() {
                told = Some(self.remark(&name));
            }
            if !self.claimed.contains(&name) {
                self.claimed.push(name);
            }
        }
        Ok(told)
    }

    /// Claims what a load of the same run has made that cannot drop it any more: it is ours already.
    pub fn inherit(&mut self, work: &Work) {
        self.claimed.extend(names(work));
        self.claimed.sort_unstable();
        self.claimed.dedup();
    }

    /// Leaves all that was made to another one, who has been told to [`OwnData::inherit`] it.
    pub fn leave(&mut self) {
        self.claimed.clear();
    }

    /// Drops all that was made; it stays claimed, for the next trial.
    ///
    /// # Errors
    /// No node does it.
    pub fn clear(&self) -> Result<(), LabError> {
        self.claimed.iter().try_for_each(|name| {
            let cleared = self.by_any(|external, node| external.clear(node, name));
            cleared.map_err(|why| LabError::Trial(left(self.external.kind(), name, &why)))
        })
    }

    /// Drops all that was made, for good; says what has become of it, if anything was made.
    pub fn end(&mut self) -> Option<String> {
        let kind = self.external.kind();
        let begun = Instant::now();
        let mut cleared = self.clear();
        // Nodes that a fault has just left alone may have to choose a leader first.
        while cleared.is_err() && begun.elapsed() < CLEARED_WITHIN {
            thread::sleep(TRY_EVERY);
            cleared = self.clear();
        }
        let claimed = std::mem::take(&mut self.claimed);
        (!claimed.is_empty()).then(|| match cleared {
            Ok(()) => format!("{} dropped; nothing else of the cluster was changed", kind.made(&claimed)),
            Err(error) => format!("WARNING: {error}"),
        })
    }

    /// What the first node does that can.
    fn by_any<T>(&self, act: impl Fn(&External, SocketAddr) -> Result<T, String>) -> Result<T, String> {
        let mut last = "no node was asked".to_owned();
        for node in &self.nodes {
            match act(&self.external, *node) {
                Ok(done) => return Ok(done),
                Err(why) => last = format!("{node} says: {why}"),
            }
        }
        Err(last)
    }

    fn remark(&self, name: &str) -> String {
        let kind = self.external.kind();
        let keeps = self.nodes.first().is_some_and(|node| self.external.keeps_what_is_dropped(*node));
        let snapshots = match keeps {
            true => "; its nodes keep a snapshot of what is dropped (auto_snapshot): nodetool clearsnapshot removes it",
            false => "",
        };
        format!(
            "the cluster runs already, and is not ours: the load makes {}, which is dropped at the end, and nothing \
             else is changed{snapshots}",
            kind.made(&[name.to_owned()])
        )
    }
}

impl Drop for OwnData {
    fn drop(&mut self) {
        // Who wants to know what has become of it has ended it before.
        let _ = self.end();
    }
}

/// What a load makes, by name.
fn names(work: &Work) -> Vec<String> {
    match work {
        Work::KeyValue(load) => vec![load.keyspace.clone()],
        Work::Etcd(load) => vec![load.prefix.clone()],
        Work::Profiles(load) => {
            let mut names: Vec<String> = load.keyspaces().collect();
            names.sort_unstable();
            names.dedup();
            names
        }
    }
}

fn taken(kind: DatabaseKind, name: &str) -> String {
    // Profiles are of CQL.
    let other =
        if kind.speaks_cql() { "; else give the load a keyspace of its own, by a profile (load.profile)" } else { "" };
    format!(
        "the cluster has {} already, and this run would make and drop that; where a run that was killed has left it: \
         {}{other}",
        kind.made(&[name.to_owned()]),
        kind.remedy(name)
    )
}

/// That a load has made something, and nobody is left who could drop it.
pub fn orphaned(kind: DatabaseKind, work: &Work) -> String {
    let why = "the load that made it is lost; the next trial of this run would drop it";
    names(work).iter().map(|name| left(kind, name, why)).collect::<Vec<_>>().join("\n")
}

fn left(kind: DatabaseKind, name: &str, why: &str) -> String {
    let what = kind.made(&[name.to_owned()]);
    format!("{what} could not be dropped from the cluster ({why}); drop it yourself: {}", kind.remedy(name))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Ipv4Addr, TcpListener},
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
    };

    use super::*;

    fn work() -> Work {
        Work::KeyValue(brownout_load::KeyValue {
            keyspace: "brownout".to_owned(),
            table: "kv".to_owned(),
            replication: 1,
            data_centres: Default::default(),
            consistency: brownout_load::Consistency::One,
            timestamps: Default::default(),
            read: 1,
            write: 1,
            population: 1,
            value_size: 16,
        })
    }

    /// An etcd that has so many keys below every prefix, until the test ends.
    fn etcd(keys: Arc<AtomicU64>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let body = format!(r#"{{"count":"{}"}}"#, keys.load(Ordering::Relaxed));
                if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                }
            }
        });
        address
    }

    #[test]
    fn what_is_left_or_taken_is_named_with_the_way_to_get_rid_of_it() {
        let has = |text: &str, words: [&str; 2]| assert!(words.iter().all(|word| text.contains(word)), "{text}");
        let text = taken(DatabaseKind::Cassandra, "brownout");
        has(&text, ["the keyspace brownout already", "DROP KEYSPACE \"brownout\""]);
        let text = left(DatabaseKind::Etcd, "brownout/", "10.0.0.5:2379 says: no leader");
        has(&text, ["the keys below brownout/ could not", "del --prefix brownout/"]);
        assert!(text.contains("no leader"));
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(DatabaseKind::Cassandra.made(&names), "the keyspaces a and b");
    }

    #[test]
    fn of_a_cluster_that_does_not_answer_nothing_is_claimed_and_nothing_has_to_be_dropped() {
        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let nodes = [("n1".to_owned(), gone)];
        let mut own = OwnData::new(DatabaseKind::Cassandra, Access::default(), &nodes).unwrap();
        let error = own.claim(&work()).unwrap_err();
        assert!(error.to_string().contains(&gone.to_string()), "{error}");
        assert_eq!((error.exit_code(), own.end()), (4, None));
    }

    #[test]
    fn what_a_lost_load_of_the_run_has_made_is_dropped_by_another() {
        let keys = Arc::new(AtomicU64::new(1));
        let nodes = [("n1".to_owned(), etcd(Arc::clone(&keys)))];
        let heir = || {
            let mut own = OwnData::new(DatabaseKind::Etcd, Access::default(), &nodes).unwrap();
            own.inherit(&work());
            own
        };
        assert!(heir().end().is_some_and(|told| told.starts_with("the keys below brownout dropped")));
        let mut again = heir();
        again.clear().unwrap();
        keys.store(0, Ordering::Relaxed);
        assert_eq!(again.claim(&work()).unwrap(), None, "the run has told of it before");
        let mut left = heir();
        left.leave();
        assert_eq!(left.end(), None);
        let text = orphaned(DatabaseKind::Cassandra, &work());
        assert!(text.contains("DROP KEYSPACE \"brownout\"") && text.contains("is lost"), "{text}");
    }

    #[test]
    fn what_others_have_made_between_two_trials_is_refused_and_not_dropped_at_the_end() {
        let keys = Arc::new(AtomicU64::new(0));
        let nodes = [("n1".to_owned(), etcd(Arc::clone(&keys)))];
        let mut own = OwnData::new(DatabaseKind::Etcd, Access::default(), &nodes).unwrap();
        assert!(own.claim(&work()).unwrap().is_some_and(|told| told.contains("the keys below brownout")));
        own.clear().unwrap();
        assert_eq!(own.claim(&work()).unwrap(), None, "it was told");
        keys.store(1, Ordering::Relaxed);
        assert!(own.claim(&work()).unwrap_err().to_string().contains("already"));
        assert_eq!(own.end(), None, "nothing is ours any more");
    }
}
