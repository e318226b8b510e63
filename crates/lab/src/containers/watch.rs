//! Containers end and are started again, by faults, by their runtime or by people. One that was started again is in a network of
//! its own that nobody has attached yet: so it is attached again, those who measure there follow it, and it is told.

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
use brownout_cluster::Hands;
use brownout_containers::Container;
use brownout_network::Network;

use super::{
    container,
    eyes::{Eyes, Glimpse, Start},
    follow::{Follower, Followers, Following},
    machine,
    seen::Seen,
};
use crate::{
    LabError,
    controls::EndedNodes,
    experiment::{ContainersFound, moved},
};

/// Between two looks at who has ended or was started again; also how long the end can be delayed. A probe that does not arrive
/// counts as lost much later: until then it is known whose gap it is of.
const EVERY: Duration = Duration::from_millis(50);
/// Between two tries to attach one that could not be.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Containers that are attached, and a thread that looks after them, until this is dropped.
pub struct Attached {
    words: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    followers: Arc<Followers>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attached {
    /// Begins to look. `ended` knows which ends were asked for.
    pub(crate) fn watch(
        found: ContainersFound,
        network: Arc<Network>,
        hands: &[(String, Arc<dyn Hands>)],
        ended: EndedNodes,
    ) -> Result<Attached, LabError> {
        let (words, seen, stop) = (found.words(), Arc::<Mutex<Vec<Seen>>>::default(), Arc::new(AtomicBool::new(false)));
        let (told, stopped, followers) = (Arc::clone(&seen), Arc::clone(&stop), Arc::<Followers>::default());
        let eyes = found.here().filter_map(|container| {
            let eyes = Eyes::on(container, hands)?;
            Some(Watched {
                host: container.name.clone(),
                eyes,
                there_ns: monotonic_ns(),
                is_away: false,
                is_told: false,
            })
        });
        let mut watcher = Watcher {
            watched: eyes.collect(),
            found,
            network,
            ended,
            followers: Arc::clone(&followers),
            waiting: BTreeMap::new(),
        };
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                let news = watcher.look();
                if !news.is_empty() {
                    told.lock().unwrap_or_else(PoisonError::into_inner).extend(news);
                }
                thread::sleep(EVERY);
            }
        };
        let failed = |source| LabError::Ground { doing: "start the thread that looks after containers", source };
        let thread = thread::Builder::new().name("containers".to_owned()).spawn(run).map_err(failed)?;
        Ok(Attached { words, seen, followers, stop, thread: Some(thread) })
    }

    /// "3 containers of the Compose project shop, Docker 20.10.24".
    pub fn words(&self) -> &str {
        &self.words
    }

    /// What was seen since the last call.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has these follow the containers, in the place of those who did, until what is returned is dropped. They have been made since
    /// `made_ns` (`CLOCK_MONOTONIC`): of what has changed since then they are told.
    ///
    /// # Errors
    /// When one of them cannot measure where a container is now.
    pub(crate) fn followed_by(&self, all: Vec<Arc<dyn Follower>>, made_ns: u64) -> Result<Following, LabError> {
        Following::begin(&self.followers, all, made_ns)
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

/// One container.
struct Watched {
    host: String,
    eyes: Eyes,
    /// When it was last seen to be there.
    there_ns: u64,
    is_away: bool,
    /// That it has ended was told.
    is_told: bool,
}

/// One that was started again and is not attached yet.
struct Waiting {
    start: Start,
    /// A fault has started it.
    is_asked: bool,
    /// When it is tried next.
    next_ns: u64,
    /// That it cannot be attached was told.
    is_told: bool,
}

struct Watcher {
    watched: Vec<Watched>,
    /// As they were last seen.
    found: ContainersFound,
    network: Arc<Network>,
    ended: EndedNodes,
    followers: Arc<Followers>,
    waiting: BTreeMap<String, Waiting>,
}

impl Watcher {
    fn look(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut watched = std::mem::take(&mut self.watched);
        for one in &mut watched {
            let Glimpse { start, is_there } = one.eyes.look();
            if let Some(start) = start {
                seen.extend(self.started(one, start));
            }
            match is_there {
                Some(true) => (one.there_ns, one.is_away, one.is_told) = (monotonic_ns(), false, false),
                Some(false) => seen.extend(self.ended(one)),
                None => {}
            }
        }
        let away = watched.iter().filter(|one| one.is_away).map(|one| one.host.clone()).collect();
        self.watched = watched;
        seen.extend(self.attach_again(away));
        seen
    }

    /// It is not there: what that is to be told, the first time.
    fn ended(&self, one: &mut Watched) -> Option<Seen> {
        let (since_ns, now_ns) = (one.there_ns, monotonic_ns());
        if !std::mem::replace(&mut one.is_away, true) {
            self.left(&one.host, since_ns);
        }
        if self.ended.is_asked(&one.host) || std::mem::replace(&mut one.is_told, true) {
            return None;
        }
        Some(Seen::Ended { host: one.host.clone(), at_ns: now_ns, error_ns: now_ns.saturating_sub(since_ns) })
    }

    /// It was started again: that it had ended is told, if it was too short to be seen.
    fn started(&mut self, one: &Watched, start: Start) -> Option<Seen> {
        let ended_ns = start.at_ns.saturating_sub(start.gap_ns);
        let is_news = !one.is_told && !self.ended.is_asked(&one.host);
        let is_asked = self.ended.take_started(&one.host);
        self.left(&one.host, ended_ns);
        let waiting = Waiting { start, is_asked, next_ns: 0, is_told: false };
        self.waiting.insert(one.host.clone(), waiting);
        is_news.then(|| Seen::Ended { host: one.host.clone(), at_ns: ended_ns, error_ns: 0 })
    }

    /// Tells those who measure.
    fn left(&self, host: &str, since_ns: u64) {
        if let Some(host) = self.network.host(host) {
            self.followers.left(host.id(), since_ns);
        }
    }

    /// Attaches those that were started again, as far as their time has come; `away` are those that are not there.
    fn attach_again(&mut self, mut away: BTreeSet<String>) -> Vec<Seen> {
        let mut seen = Vec::new();
        away.extend(self.waiting.keys().cloned());
        for (host, mut waiting) in std::mem::take(&mut self.waiting) {
            if monotonic_ns() < waiting.next_ns {
                self.waiting.insert(host, waiting);
                continue;
            }
            away.remove(&host);
            match self.reattach(&host, &away) {
                Ok(moved) => {
                    let at_ns = monotonic_ns();
                    let Waiting { start: Start { at_ns: started_ns, gap_ns }, is_asked, .. } = waiting;
                    let followed = self.network.host(&host).map_or(Ok(()), |host| self.followers.came(host, at_ns));
                    let missed_ns = at_ns.saturating_sub(started_ns);
                    let unmeasured = followed.err().map(|error| (host.clone(), error.to_string()));
                    seen.push(Seen::Reattached { host, at_ns, gap_ns, missed_ns, is_asked, moved });
                    seen.extend(unmeasured.map(|(host, why)| Seen::Unmeasured { host, at_ns: monotonic_ns(), why }));
                }
                Err(error) => {
                    away.insert(host.clone());
                    let at_ns = monotonic_ns();
                    if !std::mem::replace(&mut waiting.is_told, true) {
                        seen.push(Seen::Lost { host: host.clone(), at_ns, why: error.to_string() });
                    }
                    waiting.next_ns = at_ns + TRY_EVERY.as_nanos() as u64;
                    self.waiting.insert(host, waiting);
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
