//! How links are impaired and asked, from any thread.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender, SyncSender},
    },
};

use brownout_base::{Change, HostId, Link, LongestHold, clock::monotonic_ns};

use crate::{
    counters::LinkCounters,
    emulator::{Port, Routes},
    error::NetworkError,
    impairment::Impairment,
    marker::{Look, SHORTEST},
    sys::Wakeup,
};

/// Who impairs links: here the emulator; elsewhere it may be the kernel of a host that was only entered.
pub trait LinkControl: Send + Sync {
    /// Adds `impairment` to whatever is on `links` already, until the guard goes.
    ///
    /// # Errors
    /// When a link does not exist, none is named, or the controller cannot be reached.
    fn impair(&self, links: &[Link], impairment: &Impairment) -> Result<ImpairmentGuard, NetworkError>;

    /// What `link` really does to packets at this moment, read back from where it is done: the impairments on it, the
    /// oldest first, without those that do nothing. Each is exactly as it was asked for, if it is in force.
    ///
    /// # Errors
    /// When the link does not exist or the controller cannot be reached.
    fn effective(&self, link: Link) -> Result<Vec<Impairment>, NetworkError>;

    /// What every link counted since this was last called, by whomever.
    ///
    /// # Errors
    /// When the controller cannot be reached.
    fn take_counters(&self) -> Result<Vec<LinkCounters>, NetworkError>;
}

type Heal = Box<dyn FnOnce() -> Result<Change, NetworkError> + Send>;
type Amend = Box<dyn FnMut(&Impairment) -> Result<Change, NetworkError> + Send>;

/// An impairment in force. The links heal when this is dropped, or by [`ImpairmentGuard::heal`],
/// which says when. Both return only once it is done.
#[must_use = "the links heal as soon as the guard is dropped"]
pub struct ImpairmentGuard {
    change: Change,
    amend: Option<Amend>,
    heal: Option<Heal>,
}

impl ImpairmentGuard {
    /// For those who implement [`LinkControl`]: an impairment in force since `change`, taken back by `heal`.
    pub fn new(change: Change, heal: impl FnOnce() -> Result<Change, NetworkError> + Send + 'static) -> Self {
        ImpairmentGuard { change, amend: None, heal: Some(Box::new(heal)) }
    }

    /// For those who implement [`LinkControl`]: with a way to change the impairment in place.
    #[must_use = "the links heal as soon as the guard is dropped"]
    pub fn with_amend(
        mut self,
        amend: impl FnMut(&Impairment) -> Result<Change, NetworkError> + Send + 'static,
    ) -> Self {
        self.amend = Some(Box::new(amend));
        self
    }

    /// When it came into force.
    pub fn change(&self) -> Change {
        self.change
    }

    /// Changes it in place, on all its links, and says when that was done: what the links remember (the state of a
    /// loss model, what waits for a bottleneck) goes on. No packet in flight is later than the new impairment makes it,
    /// and none overtakes another because of the change.
    ///
    /// # Errors
    /// When the controller cannot be reached, or cannot change impairments in place.
    pub fn amend(&mut self, impairment: &Impairment) -> Result<Change, NetworkError> {
        self.amend.as_mut().map_or(Err(NetworkError::CannotAmend), |amend| amend(impairment))
    }

    /// Takes it back, and says when.
    ///
    /// # Errors
    /// When the controller cannot be reached; with the emulator gone, its links are cut, not healed.
    pub fn heal(mut self) -> Result<Change, NetworkError> {
        self.heal.take().map_or(Ok(self.change), |heal| heal())
    }
}

impl Drop for ImpairmentGuard {
    fn drop(&mut self) {
        if let Some(heal) = self.heal.take() {
            // The only failure is a controller that has ended, and then there is nothing to heal.
            let _ = heal();
        }
    }
}

impl fmt::Debug for ImpairmentGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImpairmentGuard").field("change", &self.change).finish_non_exhaustive()
    }
}

/// A host that can be reached no more, by the emulator or through WireGuard: whatever it sends or should receive there is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// Which host.
    pub host: HostId,
    /// When that was seen, on the monotonic clock.
    pub at_ns: u64,
    /// What the kernel said; of an overlay's interface, also which one it is.
    pub reason: String,
}

/// A handle to the emulator of a [`crate::Network`]: cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Emulator(Arc<Shared>);

/// What the handles and the emulator's thread share.
pub(crate) struct Shared {
    commands: Sender<Command>,
    pub(crate) wakeup: Wakeup,
    /// The longest that each link may hold a packet by the impairments in force, in nanoseconds.
    pub(crate) longest_holds_ns: Vec<AtomicU64>,
    /// Hosts that failed since somebody asked.
    failures: Mutex<Vec<HostFailure>>,
    links: Vec<Link>,
    hosts: usize,
    next_id: AtomicU64,
    /// A set of counters that the thread has used before: its histograms have grown as far as they had to, so that
    /// the thread, which may be a real-time one, need not allocate while it records.
    spare: Mutex<Option<Vec<LinkCounters>>>,
}

impl Shared {
    /// Tells whoever asks that a host has failed.
    pub(crate) fn failed(&self, host: HostId, reason: String) {
        let failure = HostFailure { host, at_ns: monotonic_ns(), reason };
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// What the emulator's thread is told. Each is answered, after it is done, on the channel it brings.
pub(crate) enum Command {
    /// Add an impairment, called by this number from now on, to the links at these positions.
    Add { id: u64, links: Vec<usize>, impairment: Impairment, done: SyncSender<u64> },
    /// Change it on all links that have it.
    Amend { id: u64, impairment: Impairment, done: SyncSender<u64> },
    /// Take it off all links.
    Remove { id: u64, done: SyncSender<u64> },
    /// Say what the impairments of the link at this position do.
    Effective { link: usize, answer: SyncSender<Vec<Impairment>> },
    /// Exchange the counters for these fresh ones, so that the thread need not make any.
    TakeCounters { fresh: Vec<LinkCounters>, answer: SyncSender<Vec<LinkCounters>> },
    /// Draw what impairments need from this seed, from the next one on.
    Reseed { seed: u64, done: SyncSender<u64> },
    /// Look for this in all that is sent from now on; for nothing more.
    Look { look: Option<Box<Look>>, done: SyncSender<u64> },
    /// Say how often it was seen, by the links' positions; nothing is looked for: of none.
    Sightings { answer: SyncSender<Vec<u64>> },
    /// Say how many packets of each host went nowhere.
    Unroutable { answer: SyncSender<Vec<u64>> },
    /// Say that the thread is there, and which ports can be read no more.
    Answer { broken: SyncSender<Vec<usize>> },
    /// Read and write one more port; say its number.
    Open { owner: HostId, port: Port, answer: SyncSender<io::Result<usize>> },
    /// Give back the port of this number.
    Close { port: usize, answer: SyncSender<Option<Port>> },
    /// Take packets to hosts by these from now on.
    Route { routes: Routes, done: SyncSender<u64> },
    /// Hold nothing any more, whatever is in force: what is held goes at once.
    LetGo { done: SyncSender<u64> },
    /// End.
    Stop,
}

impl Emulator {
    pub(crate) fn new(hosts: usize, wakeup: Wakeup) -> (Emulator, Receiver<Command>) {
        let (commands, receiver) = mpsc::channel();
        let links = Link::all(hosts);
        let shared = Shared {
            commands,
            wakeup,
            longest_holds_ns: links.iter().map(|_| AtomicU64::new(0)).collect(),
            failures: Mutex::default(),
            links,
            hosts,
            next_id: AtomicU64::new(0),
            spare: Mutex::new(None),
        };
        (Emulator(Arc::new(shared)), receiver)
    }

    /// From the next impairment on, all randomness of links is drawn from another seed, as if the network had just been
    /// started with it. What is on links already goes on as it was.
    ///
    /// # Errors
    /// When the emulator's thread cannot be reached.
    pub fn reseed(&self, seed: u64) -> Result<(), NetworkError> {
        self.change(|done| Command::Reseed { seed, done }).map(drop)
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
        let mut links = links.iter().map(|link| self.position(*link)).collect::<Result<Vec<_>, _>>()?;
        if links.is_empty() {
            return Err(NetworkError::NoLinks);
        }
        // A link named twice is meant once.
        links.sort_unstable();
        links.dedup();
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let impairment = prepared(impairment);
        let change = self.change(|done| Command::Add { id, links, impairment, done })?;
        let (amends, heals) = (self.clone(), self.clone());
        let amend = move |impairment: &Impairment| {
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
    fn a_change_spans_from_asking_to_done() {
        assert_eq!(Change::between(100, 201), Change { at_ns: 150, error_ns: 51 });
        assert_eq!(Change::between(100, 100), Change { at_ns: 100, error_ns: 0 });
    }

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

    #[test]
    fn a_guard_heals_once() {
        let healed = Arc::new(AtomicU64::new(0));
        let guard = |at_ns| {
            let healed = Arc::clone(&healed);
            ImpairmentGuard::new(Change { at_ns, error_ns: 0 }, move || {
                healed.fetch_add(1, Ordering::Relaxed);
                Ok(Change { at_ns: at_ns + 1, error_ns: 0 })
            })
        };
        assert_eq!(guard(1).heal().unwrap().at_ns, 2);
        assert_eq!(healed.load(Ordering::Relaxed), 1);
        drop(guard(1));
        assert_eq!(healed.load(Ordering::Relaxed), 2);
    }
}
