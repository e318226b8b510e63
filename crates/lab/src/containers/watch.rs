//! Containers end and are started again, by faults, by their runtime or by people. One that was started again is in a network of
//! its own that nobody has attached yet: so it is attached again, and told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{NodeState, Restart};
use brownout_containers::Container;
use brownout_network::Network;
use brownout_units::format_ns;

use super::{AllHands, container, machine};
use crate::{
    LabError,
    controls::EndedNodes,
    experiment::{ContainersFound, moved},
};

/// Between two looks at who was started again.
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks at whether it is time: how long the end can be delayed.
const NAP: Duration = Duration::from_millis(50);

/// What became of a container; times are of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Its processes are gone, and nobody here has asked for that.
    Ended {
        /// Its name.
        host: String,
        /// When that was seen: up to a second after it was so.
        at_ns: u64,
    },
    /// It was started again, and what it sends goes through the emulator again.
    Reattached {
        /// Its name.
        host: String,
        /// From when on it does.
        at_ns: u64,
        /// For how long it was down, ns.
        gap_ns: u64,
        /// For how long it ran before that, and what it sent was as nobody had asked for, ns.
        missed_ns: u64,
        /// A fault has ended it, and started it again.
        is_asked: bool,
        /// It has another address than before, as the end of a sentence that names both; none: it has the same.
        moved: Option<String>,
    },
    /// It was started again, and could not be attached; that is tried again every second.
    Lost {
        /// Its name.
        host: String,
        /// When that was tried.
        at_ns: u64,
        /// Why not.
        why: String,
    },
}

impl Seen {
    /// The kind of its event.
    pub fn kind(&self) -> &'static str {
        match self {
            Seen::Ended { .. } => "node-died",
            Seen::Reattached { .. } => "reattached",
            Seen::Lost { .. } => "not-reattached",
        }
    }

    /// The container.
    pub fn host(&self) -> &str {
        match self {
            Seen::Ended { host, .. } | Seen::Reattached { host, .. } | Seen::Lost { host, .. } => host,
        }
    }

    /// When.
    pub fn at_ns(&self) -> u64 {
        match self {
            Seen::Ended { at_ns, .. } | Seen::Reattached { at_ns, .. } | Seen::Lost { at_ns, .. } => *at_ns,
        }
    }

    /// How much earlier it may have been, ns.
    pub fn error_ns(&self) -> u64 {
        match self {
            Seen::Ended { .. } => EVERY.as_nanos() as u64,
            Seen::Reattached { .. } | Seen::Lost { .. } => 0,
        }
    }
}

/// For people, with what it means.
impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Seen::Ended { host, .. } => {
                write!(f, "the processes of {host} have ended, and no fault has ended them; its runtime's logs say why")
            }
            Seen::Reattached { host, gap_ns, missed_ns, is_asked, moved, .. } => {
                let by = if *is_asked { "by a fault" } else { "by its runtime or by somebody else" };
                write!(
                    f,
                    "{host} was started again {by} after {}; it is in another network, in which no fault was in force for \
                     the first {}, and probes to and from it are lost until the next trial",
                    format_ns(*gap_ns as f64),
                    format_ns(*missed_ns as f64)
                )?;
                let Some(moved) = moved else { return Ok(()) };
                write!(
                    f,
                    "; it {moved}: faults strike it where it is, and whoever asks it asks where it was; begin a new run with it, \
                     or give it a fixed address (ipv4_address)"
                )
            }
            Seen::Lost { host, why, .. } => {
                let what = "was started again, and no fault of the network strikes it since: it cannot be attached";
                write!(f, "{host} {what}: {why}")
            }
        }
    }
}

/// Containers that are attached, and a thread that looks after them, until this is dropped.
pub struct Attached {
    words: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attached {
    /// Begins to look. `ended` knows which ends were asked for.
    pub(crate) fn watch(
        found: ContainersFound,
        network: Arc<Network>,
        hands: AllHands,
        ended: EndedNodes,
    ) -> Result<Attached, LabError> {
        let (words, seen, stop) = (found.words(), Arc::<Mutex<Vec<Seen>>>::default(), Arc::new(AtomicBool::new(false)));
        let (told, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let mut watcher = Watcher {
            found,
            network,
            hands,
            ended,
            waiting: BTreeMap::new(),
            down: BTreeSet::new(),
            lost: BTreeSet::new(),
        };
        let run = move || {
            let mut next_ns = monotonic_ns();
            while !stopped.load(Ordering::Relaxed) {
                if monotonic_ns() >= next_ns {
                    let news = watcher.look();
                    told.lock().unwrap_or_else(PoisonError::into_inner).extend(news);
                    next_ns = monotonic_ns() + EVERY.as_nanos() as u64;
                }
                thread::sleep(NAP);
            }
        };
        let failed = |source| LabError::Ground { doing: "start the thread that looks after containers", source };
        let thread = thread::Builder::new().name("containers".to_owned()).spawn(run).map_err(failed)?;
        Ok(Attached { words, seen, stop, thread: Some(thread) })
    }

    /// "3 containers of the Compose project shop, Docker 20.10.24".
    pub fn words(&self) -> &str {
        &self.words
    }

    /// What was seen since the last call.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Watcher {
    /// As they were last seen.
    found: ContainersFound,
    network: Arc<Network>,
    hands: AllHands,
    ended: EndedNodes,
    /// Those that were started again, and are not attached yet; and whether a fault has done so.
    waiting: BTreeMap<String, (Restart, bool)>,
    /// Those that were told to have ended.
    down: BTreeSet<String>,
    /// Those that were told not to be attached.
    lost: BTreeSet<String>,
}

impl Watcher {
    fn look(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut away: BTreeSet<String> = BTreeSet::new();
        for (host, hands) in &self.hands {
            if let Some(restart) = hands.restarted() {
                self.waiting.insert(host.clone(), (restart, self.ended.take_started(host)));
            }
            match hands.state() {
                Ok(NodeState::Down) => {
                    away.insert(host.clone());
                    if !self.ended.is_asked(host) && self.down.insert(host.clone()) {
                        seen.push(Seen::Ended { host: host.clone(), at_ns: monotonic_ns() });
                    }
                }
                Ok(NodeState::Up | NodeState::Paused) => {
                    self.down.remove(host);
                }
                Err(_) => {}
            }
        }
        away.extend(self.waiting.keys().cloned());
        for (host, (restart, is_asked)) in std::mem::take(&mut self.waiting) {
            away.remove(&host);
            match self.reattach(&host, &away) {
                Ok(moved) => {
                    self.lost.remove(&host);
                    let at_ns = monotonic_ns();
                    let missed_ns = at_ns.saturating_sub(restart.at_ns);
                    seen.push(Seen::Reattached { host, at_ns, gap_ns: restart.gap_ns, missed_ns, is_asked, moved });
                }
                Err(error) => {
                    away.insert(host.clone());
                    if self.lost.insert(host.clone()) {
                        seen.push(Seen::Lost { host: host.clone(), at_ns: monotonic_ns(), why: error.to_string() });
                    }
                    self.waiting.insert(host, (restart, is_asked));
                }
            }
        }
        seen
    }

    /// Attaches a container where it is now. This machine's end of its interface is another one, too; those of containers that are
    /// `away` are not there. Says if its addresses are others, and which.
    fn reattach(&mut self, host: &str, away: &BTreeSet<String>) -> Result<Option<String>, LabError> {
        let is_it = |container: &Container| container.name == host;
        let Some(index) = self.found.containers.iter().position(is_it) else { return Ok(None) };
        let mut now = self.found.clone();
        let (before, again) = (&self.found.containers[index], self.found.containers[index].again()?);
        let moved = moved(before, &again);
        now.containers[index] = again;
        self.network.reattach(container(&now.containers[index])?)?;
        self.network.reattach(machine(&now, away)?)?;
        self.found = now;
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_told_with_its_gap_and_with_what_was_missed() {
        let seen = |is_asked| Seen::Reattached {
            host: "cassandra-2".to_owned(),
            at_ns: 9,
            gap_ns: 1_500_000_000,
            missed_ns: 800_000_000,
            is_asked,
            moved: None,
        };
        let text = seen(false).to_string();
        assert!(
            text.starts_with("cassandra-2 was started again by its runtime or by somebody else after 1.50s"),
            "{text}"
        );
        assert!(text.contains("for the first 800ms"), "{text}");
        assert!(seen(true).to_string().contains("by a fault") && !seen(true).to_string().contains("address"));
        let Seen::Reattached { host, at_ns, gap_ns, missed_ns, is_asked, .. } = seen(false) else { panic!("{text}") };
        let moved = Some("had the address 172.18.0.3 and has 172.18.0.9".to_owned());
        let text = Seen::Reattached { host, at_ns, gap_ns, missed_ns, is_asked, moved }.to_string();
        assert!(text.contains("; it had the address 172.18.0.3 and has 172.18.0.9: faults strike it"), "{text}");
        assert_eq!((seen(true).kind(), seen(true).host(), seen(true).at_ns()), ("reattached", "cassandra-2", 9));
    }
}
