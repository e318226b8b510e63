//! What the emulator's thread is told.

use std::{io, sync::mpsc::SyncSender};

use brownout_base::HostId;

use super::{port::Port, routes::Routes};
use crate::{counters::LinkCounters, impairment::Impairment, marker::Look};

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
