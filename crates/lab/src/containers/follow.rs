//! Who measures at containers goes with them: told when one is gone, and where it is then.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brownout_network::{Host, HostId};
use brownout_probe::{Probes, Trains};

use crate::LabError;

/// One who measures at hosts, and goes on where they are after they were away.
pub(crate) trait Follower: Send + Sync {
    /// The host is not there any more since then, `CLOCK_MONOTONIC`: what is sent to it or by it shows nothing.
    fn left(&self, host: HostId, since_ns: u64);

    /// It is there again, where it says by itself. It has left before.
    ///
    /// # Errors
    /// When nothing can be sent from there; it stays left.
    fn came(&self, host: &Host) -> Result<(), LabError>;
}

impl Follower for Probes {
    fn left(&self, host: HostId, since_ns: u64) {
        Probes::left(self, host, since_ns);
    }

    fn came(&self, host: &Host) -> Result<(), LabError> {
        Ok(Probes::came(self, host.id(), host)?)
    }
}

impl Follower for Trains {
    fn left(&self, host: HostId, since_ns: u64) {
        Trains::left(self, host, since_ns);
    }

    fn came(&self, host: &Host) -> Result<(), LabError> {
        Ok(Trains::came(self, host.id(), host)?)
    }
}

/// Those who follow at the moment, and what has to be told to those who begin.
#[derive(Default)]
pub(super) struct Followers(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: Vec<Arc<dyn Follower>>,
    /// Hosts that are away, since when.
    away: BTreeMap<HostId, u64>,
    /// Hosts that came again, when.
    came: BTreeMap<HostId, (u64, Host)>,
}

impl Followers {
    /// Tells all of them that a host has left.
    pub(super) fn left(&self, host: HostId, since_ns: u64) {
        let mut known = self.known();
        known.away.entry(host).or_insert(since_ns);
        known.all.iter().for_each(|follower| follower.left(host, since_ns));
    }

    /// Tells all of them that it is there again, at this moment; the first refusal.
    pub(super) fn came(&self, host: &Host, at_ns: u64) -> Result<(), LabError> {
        let mut known = self.known();
        known.away.remove(&host.id());
        known.came.insert(host.id(), (at_ns, host.clone()));
        known.all.iter().map(|follower| follower.came(host)).fold(Ok(()), Result::and)
    }

    /// Those who have been made since `made_ns`, and nobody else.
    fn begin(&self, all: Vec<Arc<dyn Follower>>, made_ns: u64) -> Result<(), LabError> {
        let mut known = self.known();
        known.all = all;
        let Known { all, away, came } = &*known;
        let mut result = Ok(());
        for follower in all {
            away.iter().for_each(|(host, since_ns)| follower.left(*host, *since_ns));
            // Where they looked for it, it may not have been any more.
            for (at_ns, host) in
                came.values().filter(|(at_ns, host)| *at_ns >= made_ns && !away.contains_key(&host.id()))
            {
                follower.left(host.id(), *at_ns);
                result = result.and(follower.came(host));
            }
        }
        result
    }

    /// Each is told whole, so a panic of another thread has broken nothing.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as this is there, some follow.
pub(crate) struct Following(Arc<Followers>);

impl Following {
    pub(super) fn begin(
        followers: &Arc<Followers>,
        all: Vec<Arc<dyn Follower>>,
        made_ns: u64,
    ) -> Result<Following, LabError> {
        let following = Following(Arc::clone(followers));
        followers.begin(all, made_ns)?;
        Ok(following)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // They are dropped outside of the lock: some wait for their threads.
        let all = std::mem::take(&mut self.0.known().all);
        drop(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes who has left.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(HostId, u64)>>);

    impl Follower for Notes {
        fn left(&self, host: HostId, since_ns: u64) {
            self.0.lock().unwrap().push((host, since_ns));
        }

        fn came(&self, _: &Host) -> Result<(), LabError> {
            Ok(())
        }
    }

    #[test]
    fn who_begins_is_told_who_is_away_and_who_has_ended_is_told_nothing() {
        let followers = Arc::new(Followers::default());
        followers.left(HostId(1), 7);
        followers.left(HostId(1), 9);
        let notes = Arc::new(Notes::default());
        let told = || notes.0.lock().unwrap().clone();
        let following = Following::begin(&followers, vec![Arc::clone(&notes) as Arc<dyn Follower>], 8).unwrap();
        assert_eq!(told(), [(HostId(1), 7)], "since the first moment");
        followers.left(HostId(2), 11);
        assert_eq!(told().len(), 2);
        drop(following);
        followers.left(HostId(0), 12);
        assert_eq!((told().len(), Arc::strong_count(&notes)), (2, 1));
    }
}
