//! Which partition is next: the seeds of partitions, in order or drawn, and the revisits of partitions that are written in
//! several parts.
//!
//! One [`SeedManager`] serves all threads of a run; each thread draws through a [`SeedSource`] of its own. A warm-up makes
//! a manager of its own, and so goes over the same seeds.
//!
//! Per operation:
//! 1. [`SeedSource::next_write`] or [`SeedSource::next_read`] gives a [`Seed`]; `None` means that a sequence without wrap
//!    has come to its end.
//! 2. The rows of this visit are made from it. A writer calls [`Seed::move_forwards`] by the rows that it takes, and, when it
//!    has made the last of them, [`SeedManager::visited`].
//! 3. When the write was acknowledged, [`SeedManager::written`]: from then on readers may look back at it. When it was
//!    given up, [`SeedManager::given_up`]: readers look past it.
//!
//! [`Flavour::Compat`] hands out what cassandra-stress would, its faults included; [`Flavour::Fixed`] does what its
//! documentation says. They differ in:
//!
//! | | compat | fixed |
//! |---|---|---|
//! | `read-lookback` | works for sequences from 0 or 1 only, counts writes as soon as they are made | any sequence, acknowledged writes only (a) |
//! | readers of a partition written in part | see all of its rows | see the rows written so far |
//! | a sequence without wrap ends | with partitions half written | when all are written |
//!
//! (a) In place of a write that was given up readers get the next older one that was not, or else the next newer. In a later
//! round of the sequence that holds also where an earlier round wrote the partition: it may be the old row or the new one.
//! Where nothing that they may look at was acknowledged, they get what they drew. The newest 65,536 runs of ordinals that
//! were given up are remembered. With several visits, one that was given up counts for all of its partition.
//!
//! One fault is in neither: where some partitions take one visit and others several, cassandra-stress keeps those of one
//! visit in its list of partitions to be revisited for ever, until it hands out nothing else and hangs.

mod given_up;
mod manager;
mod progress;
mod revisit;
mod seed;
#[cfg(test)]
mod tests;

pub use manager::{Flavour, SeedManager, SeedRange, SeedSettings, SeedSource, SeedsError};
pub use seed::Seed;
