//! Cassandra's own evidence of what it does: counters and gauges that a node keeps, and what it and its JVM log.
//!
//! It is gathered without disturbing what is measured. Once in an interval each node is asked twenty short questions over
//! one connection that stays open (`crate::jmx`), on its own loopback address and not as a client of its database. Its logs
//! are read where they lie. Only what has changed is told.

mod pauses;
mod questions;
mod system_log;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};

pub(crate) use pauses::option as log_of_pauses;
pub(super) use system_log::address;

use self::{
    pauses::Pauses,
    questions::Reading,
    system_log::{RESOLUTION_NS, Told, What},
};
use crate::{
    database::{Looker, Member, Shown},
    follow::Follower,
    jmx::Client,
    last_told::LastTold,
};

/// For each answer. A node that stands still answers none, and is asked again in the next interval.
const PATIENCE: Duration = Duration::from_millis(400);
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

/// Looks at one node.
pub(super) struct Watcher {
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
    last: LastTold,
    /// What this look has shown so far.
    shown: Vec<Shown>,
}

impl Looker for Watcher {
    fn look(&mut self) -> Vec<Shown> {
        self.read_logs();
        self.ask();
        std::mem::take(&mut self.shown)
    }
}

impl Watcher {
    /// Of `members[index]`; what it logged before now is not told.
    pub(super) fn new(members: &[Member], index: usize, jmx_port: u16, clock_is_right: bool) -> Watcher {
        let logs = &members[index].logs;
        Watcher {
            jmx: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), jmx_port),
            nodes: members.iter().map(|member| (member.address.to_string(), member.name.clone())).collect(),
            client: None,
            system_log: Follower::from_now(logs.join("system.log")),
            pause_log: Follower::from_now(logs.join(pauses::LOG)),
            pauses: Pauses::default(),
            looked_ns: monotonic_ns(),
            clock_is_right,
            last: LastTold::with(&ALWAYS_TOLD),
            shown: Vec::new(),
        }
    }

    fn tell(&mut self, at: (u64, u64), source: &'static str, name: &'static str, subject: String, value: f64) {
        let (at_ns, error_ns) = at;
        self.shown.push(Shown { at_ns, error_ns, source, name, subject, value });
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
                self.tell(at, JMX, "reading", String::new(), took_ns as f64);
                for Reading { name, subject, value } in readings {
                    if self.last.is_news(name, &subject, value) {
                        self.tell(at, JMX, name, subject, value);
                    }
                }
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
            self.tell(at, SYSTEM_LOG, name, subject, value);
        }
        for line in &pauses {
            let Some(pause) = self.pauses.read(line).filter(|pause| pause.length_ns >= SHORTEST_PAUSE_NS) else {
                continue;
            };
            let at = (pause.began_ns, PAUSE_ERROR_NS);
            self.tell(at, SAFEPOINT_LOG, "pause", pause.cause, pause.length_ns as f64);
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

/// Scores that were told and are there no more: the snitch forgets all from time to time, and who has none counts as one of 0.
fn gone(last: &LastTold, readings: &[Reading]) -> Vec<Reading> {
    let is_there = |of: &str| readings.iter().any(|one| one.name == SCORE && one.subject == of);
    let told = last.subjects(SCORE).filter(|of| !is_there(of));
    told.map(|of| Reading { name: SCORE, subject: of.to_owned(), value: 0.0 }).collect()
}

/// Of these, nought says something.
const ALWAYS_TOLD: [&str; 2] = [SCORE, "considered-up"];
/// A coordinator's score of a replica.
const SCORE: &str = "snitch-score";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_that_is_forgotten_is_told_as_nought_and_nothing_else_is() {
        let score = |of: &str, value| Reading { name: SCORE, subject: of.to_owned(), value };
        let mut last = LastTold::default();
        for (name, of, value) in [(SCORE, "n1", 0.5), (SCORE, "n2", 1.0), ("timeouts", "n2", 3.0)] {
            assert!(last.is_news(name, of, value));
        }
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
