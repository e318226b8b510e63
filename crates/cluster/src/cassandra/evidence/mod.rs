//! Cassandra's own evidence of what it does: counters and gauges that a node keeps, and what it and its JVM log.
//!
//! It is gathered without disturbing what is measured. Once in an interval each node is asked twenty short questions over
//! one connection that stays open (`crate::jmx`), on its own loopback address and not as a client of its database. Its logs
//! are read where they lie. Only what has changed is told.

mod pauses;
mod questions;
mod system_log;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};

pub(crate) use pauses::option as log_of_pauses;

use self::{
    pauses::Pauses,
    questions::Reading,
    system_log::{RESOLUTION_NS, Told, What},
};
use crate::{ClusterControl, ClusterError, follow::Follower, jmx::Client};

/// For each answer. A node that stands still answers none, and is asked again in the next interval.
const PATIENCE: Duration = Duration::from_millis(400);
/// Nodes are asked this long before an interval's end, so that its last reading belongs to it; and one after the other.
const BEFORE_END_NS: u64 = 50_000_000;
const APART_NS: u64 = 100_000_000;
/// All are asked in the last half of an interval.
const SHARE_OF_INTERVAL: u64 = 2;
/// Longest sleep: how long the end can be delayed.
const NAP: Duration = Duration::from_millis(50);
/// Shorter pauses of a JVM are not told: there are ten in a second, and all of them together take less than a millisecond.
const SHORTEST_PAUSE_NS: u64 = 1_000_000;
/// A JVM writes the line of a pause before its threads go on; the stamp is that of the line.
const PAUSE_ERROR_NS: u64 = 1_000_000;
/// Between the line's stamp and the line in the file.
const WRITTEN_WITHIN_NS: u64 = 20_000_000;

/// Where evidence comes from.
const JMX: &str = "jmx";
const SYSTEM_LOG: &str = "system-log";
const SAFEPOINT_LOG: &str = "safepoint-log";

/// One thing that a node's evidence shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The node that shows it.
    pub node: String,
    /// When, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The true time lies within `at_ns` ± this.
    pub error_ns: u64,
    /// `jmx`, `system-log`, `safepoint-log`.
    pub source: &'static str,
    /// Of what: another node, a verb, a thread pool, a cause; empty where there is only one.
    pub subject: String,
    /// What: see `docs/run-file.md`.
    pub name: &'static str,
    /// A count since the node's start, a gauge, or the length of what happened, ns.
    pub value: f64,
}

/// Looks at every node's evidence, until this is dropped.
#[derive(Debug)]
pub struct EvidenceWatch {
    seen: Receiver<Evidence>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl EvidenceWatch {
    /// Asks each node shortly before the end of every interval: those of length `every` that begin at `epoch_ns`
    /// (`CLOCK_MONOTONIC`). `wrong_clocks` are the nodes whose wall clock may be wrong: what they log happened at some
    /// moment since the last look.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        control: &ClusterControl,
        jmx_port: u16,
        epoch_ns: u64,
        every: Duration,
        wrong_clocks: &BTreeSet<String>,
    ) -> Result<EvidenceWatch, ClusterError> {
        let (tell, seen) = mpsc::channel();
        let mut started = EvidenceWatch { seen, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let every_ns = every.as_nanos() as u64;
        let nodes: BTreeMap<String, String> =
            control.members().map(|(member, _)| (member.address.to_string(), member.name.clone())).collect();
        let apart_ns = APART_NS.min(every_ns / SHARE_OF_INTERVAL / (nodes.len() as u64).max(1));
        for (index, (member, network)) in control.members().enumerate() {
            let node = member.name.clone();
            let mut watcher = Watcher {
                jmx: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), jmx_port),
                nodes: nodes.clone(),
                client: None,
                system_log: Follower::from_now(member.logs.join("system.log")),
                pause_log: Follower::from_now(member.logs.join(pauses::LOG)),
                pauses: Pauses::default(),
                looked_ns: monotonic_ns(),
                clock_is_right: !wrong_clocks.contains(&node),
                last: HashMap::new(),
                told: Teller { node: node.clone(), to: tell.clone() },
            };
            let (network, stop) = (network.clone(), Arc::clone(&started.stop));
            let offset_ns = every_ns.saturating_sub(BEFORE_END_NS + apart_ns * index as u64).max(every_ns / 4);
            let run = move || {
                if network.enter().is_ok() {
                    watcher.run(epoch_ns + offset_ns, every_ns, &stop);
                }
            };
            let thread = thread::Builder::new().name(format!("evidence-{node}")).spawn(run);
            started.threads.push(thread.map_err(|source| ClusterError::Network { node, source })?);
        }
        Ok(started)
    }

    /// What was seen since this was last called.
    pub fn drain(&self) -> Vec<Evidence> {
        self.seen.try_iter().collect()
    }
}

impl Drop for EvidenceWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Tells what one node shows.
struct Teller {
    node: String,
    to: Sender<Evidence>,
}

impl Teller {
    fn tell(&self, at: (u64, u64), source: &'static str, name: &'static str, subject: String, value: f64) {
        let (at_ns, error_ns) = at;
        // Nobody listens any more when all is about to end.
        let _ = self.to.send(Evidence { node: self.node.clone(), at_ns, error_ns, source, subject, name, value });
    }
}

struct Watcher {
    jmx: SocketAddr,
    /// Names by address.
    nodes: BTreeMap<String, String>,
    client: Option<Client>,
    system_log: Follower,
    pause_log: Follower,
    pauses: Pauses,
    /// When the logs were last looked at.
    looked_ns: u64,
    clock_is_right: bool,
    /// What was last told of each counter and gauge.
    last: HashMap<(&'static str, String), f64>,
    told: Teller,
}

impl Watcher {
    /// Looks at `first_ns` and once in every `every_ns` after it.
    fn run(&mut self, first_ns: u64, every_ns: u64, stop: &AtomicBool) {
        loop {
            // A reading that took too long has missed those after it.
            let gone = monotonic_ns().checked_sub(first_ns).map_or(0, |since| since / every_ns.max(1) + 1);
            let next_ns = first_ns + gone * every_ns;
            while monotonic_ns() < next_ns && !stop.load(Ordering::Relaxed) {
                thread::sleep(NAP.min(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns()))));
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
            self.read_logs();
            self.ask();
        }
    }

    fn ask(&mut self) {
        if self.client.is_none() {
            self.client = Client::open(self.jmx, PATIENCE).ok();
        }
        let Some(client) = &mut self.client else { return };
        let asked_ns = monotonic_ns();
        match questions::ask(client, &self.nodes) {
            Ok(mut readings) => {
                readings.extend(gone(&self.last, &readings));
                let took_ns = monotonic_ns() - asked_ns;
                let at = (asked_ns + took_ns / 2, took_ns / 2);
                self.told.tell(at, JMX, "reading", String::new(), took_ns as f64);
                readings.into_iter().filter_map(|reading| changed(&mut self.last, reading)).for_each(|reading| {
                    self.told.tell(at, JMX, reading.name, reading.subject, reading.value);
                });
            }
            // Whatever it was, a new session is the way on.
            Err(_) => self.client = None,
        }
    }

    fn read_logs(&mut self) {
        let since_ns = self.looked_ns;
        let (system, pauses) = (self.system_log.lines(), self.pause_log.lines());
        let now_ns = monotonic_ns();
        self.looked_ns = now_ns;
        // Both clocks are read at once; that the wall clock is slewed meanwhile is far below a log's milliseconds.
        let ahead_ns = i128::from(realtime_ns()) - i128::from(monotonic_ns());
        for Told { unix_ns, what } in system.iter().filter_map(|line| system_log::read(line)) {
            let stamp_ns = u64::try_from(i128::from(unix_ns) - ahead_ns).ok().filter(|_| self.clock_is_right);
            let at = moment(stamp_ns, since_ns, now_ns);
            let (name, subject, value) = match what {
                What::Up(address) => ("marked-up", address, 1.0),
                What::Down(address) => ("marked-down", address, 1.0),
                What::OwnPause(length_ns) => ("noticed-pause", String::new(), length_ns as f64),
            };
            let subject = self.nodes.get(&subject).cloned().unwrap_or(subject);
            self.told.tell(at, SYSTEM_LOG, name, subject, value);
        }
        for line in &pauses {
            let Some(pause) = self.pauses.read(line).filter(|pause| pause.length_ns >= SHORTEST_PAUSE_NS) else {
                continue;
            };
            let at = (pause.began_ns, PAUSE_ERROR_NS);
            self.told.tell(at, SAFEPOINT_LOG, "pause", pause.cause, pause.length_ns as f64);
        }
    }
}

/// When a line was logged that came into the file between two looks, and within which error: by its own stamp, where that
/// can be; else somewhere in between.
fn moment(stamp_ns: Option<u64>, since_ns: u64, now_ns: u64) -> (u64, u64) {
    match stamp_ns {
        Some(stamp_ns) if (since_ns.saturating_sub(WRITTEN_WITHIN_NS)..=now_ns + RESOLUTION_NS).contains(&stamp_ns) => {
            (stamp_ns, RESOLUTION_NS)
        }
        _ => (since_ns + (now_ns - since_ns) / 2, (now_ns - since_ns) / 2),
    }
}

/// A reading that is not what was last told. Nought goes without saying until there is more; a score of nought does not.
fn changed(last: &mut HashMap<(&'static str, String), f64>, reading: Reading) -> Option<Reading> {
    let key = (reading.name, reading.subject.clone());
    let told = last.get(&key).copied();
    if told == Some(reading.value) || (told.is_none() && reading.value == 0.0 && !ALWAYS_TOLD.contains(&reading.name)) {
        return None;
    }
    last.insert(key, reading.value);
    Some(reading)
}

/// Scores that were told and are there no more: the snitch forgets all from time to time, and who has none counts as one of 0.
fn gone(last: &HashMap<(&'static str, String), f64>, readings: &[Reading]) -> Vec<Reading> {
    let is_there = |of: &str| readings.iter().any(|one| one.name == SCORE && one.subject == of);
    let told = last.keys().filter(|(name, of)| *name == SCORE && !is_there(of));
    told.map(|(name, of)| Reading { name, subject: of.clone(), value: 0.0 }).collect()
}

/// Of these, nought says something.
const ALWAYS_TOLD: [&str; 2] = [SCORE, "considered-up"];
/// A coordinator's score of a replica.
const SCORE: &str = "snitch-score";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_told_and_nought_only_after_something_else() {
        let mut last = HashMap::new();
        let mut told = |name: &'static str, value: f64| {
            changed(&mut last, Reading { name, subject: "n2".to_owned(), value }).map(|reading| reading.value)
        };
        assert_eq!(told("timeouts", 0.0), None);
        assert_eq!(told("timeouts", 3.0), Some(3.0));
        assert_eq!(told("timeouts", 3.0), None);
        // A node that was started again counts from nought.
        assert_eq!(told("timeouts", 0.0), Some(0.0));
        assert_eq!(told("snitch-score", 0.0), Some(0.0));
        assert_eq!(told("snitch-score", 0.0), None);
    }

    #[test]
    fn a_score_that_is_forgotten_is_told_as_nought_and_nothing_else_is() {
        let score = |of: &str, value| Reading { name: SCORE, subject: of.to_owned(), value };
        let last = HashMap::from([
            ((SCORE, "n1".to_owned()), 0.5),
            ((SCORE, "n2".to_owned()), 1.0),
            (("timeouts", "n2".to_owned()), 3.0),
        ]);
        assert_eq!(gone(&last, &[score("n1", 0.4)]), [score("n2", 0.0)]);
        assert_eq!(gone(&last, &[score("n1", 0.4), score("n2", 0.9)]), []);
    }

    #[test]
    fn a_line_has_its_own_time_or_if_that_cannot_be_the_time_between_two_looks() {
        let (since, now) = (10_000_000_000, 11_000_000_000);
        assert_eq!(moment(Some(10_300_500_000), since, now), (10_300_500_000, 500_000));
        // Written right after the look before, stamped right before it.
        assert_eq!(moment(Some(9_999_500_000), since, now), (9_999_500_000, 500_000));
        for stamp in [None, Some(9_000_000_000), Some(12_000_000_000), Some(0)] {
            assert_eq!(moment(stamp, since, now), (10_500_000_000, 500_000_000), "{stamp:?}");
        }
    }
}
