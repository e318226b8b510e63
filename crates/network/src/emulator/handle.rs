//! How the emulator is told and asked, from any thread.

use std::{
    fmt,
    sync::{
        Arc, PoisonError,
        atomic::Ordering,
        mpsc::{self, Receiver, SyncSender},
    },
};

use brownout_base::{Change, Link, LongestHold, clock::monotonic_ns};

use super::{
    commands::Command,
    reach::Reach,
    shared::{HostFailure, Shared},
};
use crate::{
    control::{ImpairmentGuard, LinkControl},
    counters::LinkCounters,
    error::NetworkError,
    impairment::Impairment,
    marker::{Look, SHORTEST},
    sys::Wakeup,
};

/// A handle to the emulator of a [`crate::Network`]: cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Emulator(Arc<Shared>);

impl Emulator {
    pub(crate) fn new(hosts: usize, wakeup: Wakeup) -> (Emulator, Receiver<Command>) {
        let (commands, receiver) = mpsc::channel();
        (Emulator(Arc::new(Shared::new(commands, hosts, wakeup))), receiver)
    }

    /// From the next impairment on, all randomness of links is drawn from another seed, as if the network had just been
    /// started with it. What is on links already goes on as it was.
    ///
    /// # Errors
    /// When the emulator's thread cannot be reached.
    pub fn reseed(&self, seed: u64) -> Result<(), NetworkError> {
        self.change(|done| Command::Reseed { seed, done }).map(drop)
    }

    /// Refuses from now on what links cannot do. Said once: the first word counts.
    pub(crate) fn limit_to(&self, reach: Reach) {
        let _ = self.0.reach.set(reach);
    }

    /// Whether all of these links can do so.
    fn check(&self, links: &[Link], impairment: &Impairment) -> Result<(), NetworkError> {
        self.0.reach.get().map_or(Ok(()), |reach| reach.check(links, impairment))
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// The longest that any link may hold a packet by the impairments in force, in nanoseconds.
    pub fn longest_hold_ns(&self) -> u64 {
        let holds = self.0.longest_holds_ns.iter().map(|hold| hold.load(Ordering::Relaxed));
        holds.max().unwrap_or(0)
    }

    /// Hosts whose interface failed since this was last called, by whomever: each is told once. It stays failed.
    pub fn take_failures(&self) -> Vec<HostFailure> {
        std::mem::take(&mut *self.0.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks for these bytes in all that hosts send to each other from now on, until what is returned is dropped. It
    /// takes the emulator's thread some 10 µs for each 10 kB that are sent, so it is no part of what is measured.
    ///
    /// # Errors
    /// When there are fewer than 16 bytes, or the emulator's thread cannot be reached.
    pub fn look_for(&self, marker: &[u8]) -> Result<MarkerLook, NetworkError> {
        if marker.len() < SHORTEST {
            return Err(NetworkError::ShortMarker { length: marker.len(), least: SHORTEST });
        }
        let look = Some(Box::new(Look::new(marker, self.0.links.len())));
        self.change(|done| Command::Look { look, done })?;
        Ok(MarkerLook { emulator: self.clone() })
    }

    /// Per host, packets whose destination is no other host.
    pub(crate) fn unroutable(&self) -> Result<Vec<u64>, NetworkError> {
        self.ask(|answer| Command::Unroutable { answer })
    }

    /// Ends the emulator's thread. Nothing is left to end if it cannot be told.
    pub(crate) fn stop(&self) {
        if self.0.commands.send(Command::Stop).is_ok() {
            self.0.wakeup.notify();
        }
    }

    fn position(&self, link: Link) -> Result<usize, NetworkError> {
        let Link { from, to } = link;
        let unknown = || NetworkError::NoSuchLink { from: from.0, to: to.0, hosts: self.0.hosts };
        link.position(self.0.hosts).ok_or_else(unknown)
    }

    pub(crate) fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, NetworkError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.0.commands.send(command(answer)).map_err(|_| NetworkError::EmulatorGone)?;
        self.0.wakeup.notify();
        answered.recv().map_err(|_| NetworkError::EmulatorGone)
    }

    /// The thread answers with the time at which it was done.
    pub(crate) fn change(&self, command: impl FnOnce(SyncSender<u64>) -> Command) -> Result<Change, NetworkError> {
        let asked_ns = monotonic_ns();
        Ok(Change::between(asked_ns, self.ask(command)?))
    }
}

/// A look for a marker, on all links of a network. It ends when this is dropped; a later one takes its place.
#[must_use = "nothing is looked for once this is dropped"]
#[derive(Debug)]
pub struct MarkerLook {
    emulator: Emulator,
}

impl MarkerLook {
    /// How often the marker was seen so far on each link.
    ///
    /// # Errors
    /// When the emulator's thread cannot be reached.
    pub fn sightings(&self) -> Result<Vec<(Link, u64)>, NetworkError> {
        let sightings = self.emulator.ask(|answer| Command::Sightings { answer })?;
        Ok(self.emulator.0.links.iter().copied().zip(sightings).collect())
    }
}

impl Drop for MarkerLook {
    fn drop(&mut self) {
        // Without its thread nothing is looked for either.
        let _ = self.emulator.change(|done| Command::Look { look: None, done });
    }
}

impl LongestHold for Emulator {
    fn longest_hold_of_ns(&self, link: Link) -> u64 {
        let hold = link.position(self.0.hosts).and_then(|position| self.0.longest_holds_ns.get(position));
        hold.map_or(0, |hold| hold.load(Ordering::Relaxed))
    }
}

impl LinkControl for Emulator {
    fn impair(&self, links: &[Link], impairment: &Impairment) -> Result<ImpairmentGuard, NetworkError> {
        let named = links.to_vec();
        let mut links = named.iter().map(|link| self.position(*link)).collect::<Result<Vec<_>, _>>()?;
        if links.is_empty() {
            return Err(NetworkError::NoLinks);
        }
        self.check(&named, impairment)?;
        // A link named twice is meant once.
        links.sort_unstable();
        links.dedup();
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let impairment = prepared(impairment);
        let change = self.change(|done| Command::Add { id, links, impairment, done })?;
        let (amends, heals) = (self.clone(), self.clone());
        let amend = move |impairment: &Impairment| {
            amends.check(&named, impairment)?;
            let impairment = prepared(impairment);
            amends.change(|done| Command::Amend { id, impairment, done })
        };
        let guard = ImpairmentGuard::new(change, move || heals.change(|done| Command::Remove { id, done }));
        Ok(guard.with_amend(amend))
    }

    fn effective(&self, link: Link) -> Result<Vec<Impairment>, NetworkError> {
        let link = self.position(link)?;
        self.ask(|answer| Command::Effective { link, answer })
    }

    fn take_counters(&self) -> Result<Vec<LinkCounters>, NetworkError> {
        let spare = || self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = spare().take();
        let fresh = fresh.unwrap_or_else(|| LinkCounters::of_all(&self.0.links));
        let mut used = self.ask(|answer| Command::TakeCounters { fresh, answer })?;
        let taken = used.clone();
        used.iter_mut().for_each(LinkCounters::reset);
        *spare() = Some(used);
        Ok(taken)
    }
}

/// A copy, with all made that takes a while to make: here rather than in the emulator's thread.
fn prepared(impairment: &Impairment) -> Impairment {
    impairment.distribution.prepare();
    *impairment
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator").field("links", &self.0.links.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_gets_counters_back_that_have_grown_already() {
        let (emulator, commands) = Emulator::new(2, Wakeup::new().unwrap());
        // In the emulator's place: records one long wait per turn, and tells how far the histogram it got can count.
        let thread = std::thread::spawn(move || {
            let mut counters = LinkCounters::of_all(&Link::all(2));
            let mut reach = Vec::new();
            while let Ok(Command::TakeCounters { fresh, answer }) = commands.recv() {
                let used = std::mem::replace(&mut counters, fresh);
                assert!(counters.iter().all(|c| c.held.is_empty() && c.frames == 0 && c.offered_packets == 0));
                reach.push(counters[0].held.distinct_values());
                counters[0].held.record(10_000_000_000).unwrap();
                (counters[0].frames, counters[0].offered_packets) = (1, 2);
                answer.send(used).unwrap();
            }
            reach
        });
        let taken: Vec<_> = (0..5).map(|_| emulator.take_counters().unwrap().remove(0)).collect();
        drop(emulator);
        let reach = thread.join().unwrap();
        assert!(taken[1..].iter().all(|t| t.held.len() == 1 && (t.frames, t.offered_packets) == (1, 2)));
        // Two sets take turns; each grows once.
        assert!(reach[2..].iter().all(|reach| *reach == taken[1].held.distinct_values()), "{reach:?}");
    }
}
