//! The seed manager.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brownout_base::random::derive;

use super::Seed;
use super::given_up::GivenUp;
use super::progress::Progress;
use super::revisit::Revisit;
use crate::distribution::{Distribution, Newest, Spec};

/// Whether seeds come as from cassandra-stress, faults included, or as its documentation says. The table is in [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// As cassandra-stress hands them out.
    Compat,
    /// As documented.
    #[default]
    Fixed,
}

/// Where seeds come from: `-pop`.
#[derive(Debug, Clone, PartialEq)]
pub enum SeedRange {
    /// `seq=first..last`: one after the other, for readers and writers together.
    Sequence {
        /// The first seed.
        first: i64,
        /// The last seed.
        last: i64,
        /// Whether it begins again after the last (no `no-wrap`).
        wrap: bool,
        /// `read-lookback`: readers take a seed that was written so many writes ago (1: the newest) instead.
        lookback: Option<Spec>,
    },
    /// `dist=`: drawn for each operation. `latest` draws for readers only: writers go through its range in order, again
    /// and again, and readers draw by the age of what these wrote (all of the range counts as written before).
    Drawn(Spec),
}

/// What a seed manager is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedSettings {
    /// Where seeds come from.
    pub range: SeedRange,
    /// `visits`: in how many parts a partition is written.
    pub visits: Spec,
    /// `revisit`: which of the partitions written in part comes next, counted from the oldest in the opposite direction of
    /// the distribution; where there is none at that index, a new partition is begun. Its range is how many may be in part.
    pub revisit: Spec,
    /// Faults of cassandra-stress or none.
    pub flavour: Flavour,
    /// Where all draws start from (cassandra-stress takes the clock).
    pub seed: u64,
}

impl SeedSettings {
    /// cassandra-stress's defaults for this range: one visit, up to a million partitions in part.
    pub fn new(range: SeedRange, flavour: Flavour, seed: u64) -> Self {
        let revisit = Spec::Uniform { min: 1, max: 1_000_000 };
        SeedSettings { range, visits: Spec::Fixed(1), revisit, flavour, seed }
    }
}

/// Why seeds cannot be handed out so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedsError {
    /// The sequence goes down.
    #[error("cannot go through the seeds {first}..{last}: the first is above the last; write seq={last}..{first}")]
    Sequence {
        /// As given.
        first: i64,
        /// As given.
        last: i64,
    },
    /// The range of `revisit` is none of positions in a list.
    #[error("sample range is invalid: revisit={0} must lie between 0 and 2147483647")]
    Revisit(String),
    /// Readers would look back further than the sequence is long.
    #[error(
        "Invalid lookback distribution; max value is {max}, but series only ranges from 0 to {longest}: make the range of read-lookback smaller"
    )]
    Lookback {
        /// The furthest that would be looked back.
        max: i64,
        /// The furthest possible.
        longest: i64,
    },
}

/// How many partitions that are being written already may be drawn in a row before one of them is taken.
const PATIENCE: u32 = 1_000;

/// Hands out seeds to all threads of a run.
#[derive(Debug)]
pub struct SeedManager {
    settings: SeedSettings,
    /// How many seeds of the sequence were taken.
    taken: AtomicI64,
    progress: Progress,
    given_up: GivenUp,
    /// What was written last, for `latest`, and its position in the sequence of writes.
    newest: Option<(Newest, AtomicI64)>,
    parts: Option<Parts>,
}

/// Partitions that are written in several visits.
#[derive(Debug)]
struct Parts {
    /// The smallest of `revisit`, which stands for the first member of the list.
    offset: i64,
    /// How many partitions may be in the list.
    limit: usize,
    /// A partition comes into the list when it begins, or else after its first visit.
    at_once: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    revisit: Revisit,
    /// Partitions begun and not yet written to their end.
    begun: HashMap<i64, Seed>,
}

impl SeedManager {
    /// A manager that begins at the beginning.
    ///
    /// # Errors
    /// A sequence that goes down, a range of `revisit` that is none of positions, a lookback longer than the sequence.
    pub fn new(settings: SeedSettings) -> Result<Arc<Self>, SeedsError> {
        if let SeedRange::Sequence { first, last, ref lookback, .. } = settings.range {
            if first > last || last.checked_sub(first).and_then(|length| length.checked_add(1)).is_none() {
                return Err(SeedsError::Sequence { first, last });
            }
            let longest = match settings.flavour {
                Flavour::Compat => first.saturating_add(last - first + 1),
                Flavour::Fixed => last - first + 1,
            };
            if let Some(max) = lookback.as_ref().map(Spec::max).filter(|max| *max > longest) {
                return Err(SeedsError::Lookback { max, longest });
            }
        }
        let newest = match &settings.range {
            SeedRange::Drawn(spec) => latest(spec).map(|(_, max)| (Newest::new(max), AtomicI64::new(-1))),
            SeedRange::Sequence { .. } => None,
        };
        // Partitions of one visit need no book-keeping; the counts of visits are what most runs leave alone.
        let parts = if settings.visits.max() > 1 { Some(Parts::new(&settings)?) } else { None };
        Ok(Arc::new(SeedManager {
            settings,
            taken: AtomicI64::new(0),
            progress: Progress::default(),
            given_up: GivenUp::default(),
            newest,
            parts,
        }))
    }

    /// The draws of one thread, or of one operation of a thread. Sources of different `index` draw independently.
    pub fn source(self: &Arc<Self>, index: u64) -> SeedSource {
        let seed = |part: u64| derive(self.settings.seed, index.wrapping_mul(4).wrapping_add(part)) as i64;
        self.seeded_source(seed(0), seed(1), seed(2))
    }

    pub(super) fn seeded_source(self: &Arc<Self>, visits: i64, revisit: i64, range: i64) -> SeedSource {
        let mut drawn = match &self.settings.range {
            SeedRange::Sequence { lookback, .. } => lookback.as_ref().map(|spec| spec.build(range)),
            SeedRange::Drawn(spec) => Some(spec.build(range)),
        };
        if let (Some(drawn), Some((newest, _))) = (&mut drawn, &self.newest) {
            drawn.follow(newest);
        }
        let revisit = self.settings.revisit.build(revisit).inverted();
        SeedSource { manager: Arc::clone(self), drawn, visits: self.settings.visits.build(visits), revisit }
    }

    /// The rows of one visit of a writer have been made: the partition's first rows if `first`, its last if `last`.
    /// Without this call, a partition of several visits stays in the list for ever.
    pub fn visited(&self, seed: &Seed, first: bool, last: bool) {
        if let Some(parts) = &self.parts {
            let mut state = parts.lock();
            if first && !last && !parts.at_once {
                state.revisit.append(seed);
            }
            if last && state.begun.remove(&seed.value()).is_some() {
                state.revisit.remove(seed);
            }
        }
        if first && self.settings.flavour == Flavour::Compat {
            self.ended(seed.value());
            self.newer(seed);
        }
    }

    /// The write of this seed was acknowledged. Where neither this nor [`SeedManager::given_up`] is called, `read-lookback`
    /// and `latest` stand still. (In [`Flavour::Compat`], [`SeedManager::visited`] counts already.)
    pub fn written(&self, seed: &Seed) {
        if self.settings.flavour == Flavour::Fixed {
            self.ended(seed.ordinal() + 1);
            self.newer(seed);
        }
    }

    /// The write of this seed has ended, and nobody knows whether it was done. Readers get past it, but are not sent there.
    pub fn given_up(&self, seed: &Seed) {
        if let (Flavour::Fixed, SeedRange::Sequence { first, last, lookback: Some(_), .. }) =
            (self.settings.flavour, &self.settings.range)
        {
            // Before it has ended, so that no reader comes in between.
            self.given_up.add(seed.ordinal(), self.progress.contiguous() - (last - first + 1));
            self.ended(seed.ordinal() + 1);
        }
    }

    fn ended(&self, number: i64) {
        if let SeedRange::Sequence { lookback: Some(_), .. } = self.settings.range {
            self.progress.ended(number);
        }
    }

    fn newer(&self, seed: &Seed) {
        if let Some((newest, ordinal)) = &self.newest
            && ordinal.fetch_max(seed.ordinal(), Ordering::Relaxed) < seed.ordinal()
        {
            newest.set(seed.value());
        }
    }

    /// The next of `first..=last` in order; none when it is through and does not wrap.
    fn in_order(&self, first: i64, last: i64, wrap: bool, visits: i32) -> Option<Seed> {
        let ordinal = self.taken.fetch_add(1, Ordering::Relaxed);
        let length = last - first + 1;
        (wrap || ordinal < length).then(|| Seed::at(first + ordinal % length, visits, ordinal))
    }

    fn look_back(&self, first: i64, last: i64, wrap: bool, back: i64) -> Option<Seed> {
        let (ended, length) = (self.progress.contiguous(), last - first + 1);
        let offset = match self.settings.flavour {
            Flavour::Fixed if ended == 0 => 0,
            Flavour::Fixed => {
                // What is overwritten in a later round is as new as that round.
                let written = ended.min(length);
                let back = (back.max(1) - 1) % written + 1;
                self.given_up.step_past(ended - back, ended - written..ended) % length
            }
            Flavour::Compat if ended >= back => ended - back,
            Flavour::Compat if ended == length && !wrap => return None,
            Flavour::Compat if ended == 0 => 0,
            Flavour::Compat => back % ended,
        };
        Some(Seed::new(first + offset, -1))
    }
}

impl Parts {
    fn new(settings: &SeedSettings) -> Result<Self, SeedsError> {
        let (offset, size) = (settings.revisit.min(), settings.revisit.max() - settings.revisit.min());
        let limit = i32::try_from(size).ok().and_then(|size| size.checked_add(1)).filter(|_| offset >= 0);
        let limit = limit.ok_or_else(|| SeedsError::Revisit(settings.revisit.to_string()))? as usize;
        let at_once = settings.visits.build(0).average() > 1 || settings.flavour == Flavour::Fixed;
        Ok(Parts { offset, limit, at_once, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The range of `latest`, mirrored or not.
fn latest(spec: &Spec) -> Option<(i64, i64)> {
    match spec {
        Spec::Latest { min, max, .. } => Some((*min, *max)),
        Spec::Inverted(inner) => latest(inner),
        _ => None,
    }
}

/// What one thread draws seeds with.
#[derive(Debug, Clone)]
pub struct SeedSource {
    manager: Arc<SeedManager>,
    /// The range or the lookback, whichever is drawn.
    drawn: Option<Distribution>,
    visits: Distribution,
    revisit: Distribution,
}

impl SeedSource {
    /// The manager that it draws from.
    pub fn manager(&self) -> &Arc<SeedManager> {
        &self.manager
    }

    /// The partition that a reader reads next.
    #[inline]
    pub fn next_read(&mut self) -> Option<Seed> {
        let manager = &*self.manager;
        let seed = match (&manager.settings.range, &mut self.drawn) {
            (SeedRange::Sequence { first, last, wrap, .. }, Some(lookback)) => {
                manager.look_back(*first, *last, *wrap, lookback.next())?
            }
            (SeedRange::Sequence { first, last, wrap, .. }, None) => manager.in_order(*first, *last, *wrap, -1)?,
            (SeedRange::Drawn(_), drawn) => Seed::new(drawn.as_mut()?.next(), -1),
        };
        match &manager.parts {
            Some(parts) if manager.settings.flavour == Flavour::Fixed => {
                Some(parts.lock().begun.get(&seed.value()).cloned().unwrap_or(seed))
            }
            _ => Some(seed),
        }
    }

    /// The partition that a writer writes next: one that is written in part, or a new one.
    #[inline]
    pub fn next_write(&mut self) -> Option<Seed> {
        if self.manager.parts.is_none() { self.begin(1) } else { self.revisit_or_begin() }
    }

    fn revisit_or_begin(&mut self) -> Option<Seed> {
        let manager = Arc::clone(&self.manager);
        let parts = manager.parts.as_ref()?;
        let mut met = 0;
        loop {
            let index = self.revisit.next() - parts.offset;
            if let Some(seed) = usize::try_from(index).ok().and_then(|index| parts.lock().revisit.get(index).cloned()) {
                return Some(seed);
            }
            let visits = self.visits.next() as i32;
            let fixed = manager.settings.flavour == Flavour::Fixed;
            if fixed {
                // Without room for another, it would be drawn in vain, and be missing from the sequence.
                let state = parts.lock();
                if state.revisit.len() >= parts.limit {
                    let any = state.revisit.get(index.unsigned_abs() as usize % state.revisit.len());
                    return any.cloned();
                }
            }
            let Some(seed) = self.begin(visits) else {
                // The sequence is through; what is in part is still to be finished.
                let state = parts.lock();
                let any = index.unsigned_abs() as usize % state.revisit.len().max(1);
                return if fixed { state.revisit.get(any).cloned() } else { None };
            };
            let seed = seed.share();
            let mut state = parts.lock();
            if let Some(begun) = state.begun.get(&seed.value()) {
                // Drawn while it is being written. cassandra-stress draws until it finds another, which takes ever longer in a
                // small population.
                met += 1;
                if fixed || met > PATIENCE {
                    return Some(begun.clone());
                }
                continue;
            }
            if parts.at_once && !(fixed && visits <= 1) {
                // cassandra-stress drops the seed where there is no room; here threads may overstep the limit by one each.
                if !fixed && state.revisit.len() >= parts.limit {
                    continue;
                }
                state.revisit.append(&seed);
            }
            state.begun.insert(seed.value(), seed.clone());
            return Some(seed);
        }
    }

    /// A new partition.
    #[inline]
    fn begin(&mut self, visits: i32) -> Option<Seed> {
        let manager = &*self.manager;
        match &manager.settings.range {
            SeedRange::Sequence { first, last, wrap, .. } => manager.in_order(*first, *last, *wrap, visits),
            SeedRange::Drawn(spec) => match latest(spec) {
                Some((first, last)) => manager.in_order(first, last, true, visits),
                None => Some(Seed::at(self.drawn.as_mut()?.next(), visits, 0)),
            },
        }
    }
}
