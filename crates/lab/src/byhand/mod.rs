//! The lab by hand: a cluster on its network that stands until it is ended, and is told from any shell what shall go wrong.
//!
//! [`up`] checks, provides and claims a directory for the lab; then it starts the *keeper*, a process in a session of its own,
//! which encloses the lab's first process as a run does. Keeper and first process hold the lock of the lab's directory: as
//! long as one of them lives, the lab does, and when either ends, the kernel ends the rest. The first process listens on
//! the socket that [`up`] made, and answers [`Request`]s. Whatever is put in force is a fault of an experiment file
//! ([`crate::faults`]), held in a [`ledger`] until it is healed.

mod answers;
mod begin;
mod chaos;
mod check;
mod client;
mod clocks;
mod events;
mod exec;
mod failure;
mod healing;
mod keeper;
mod lab;
mod layers;
mod ledger;
mod ping;
mod place;
mod processes;
mod protocol;
mod server;
mod status;
mod timer;
mod wire;

use std::{os::fd::RawFd, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::provided::Provided;

pub use begin::{LabFile, Up, up};
pub use check::CheckStatus;
pub use client::{Client, end};
pub use clocks::{ClockRow, Matrix};
pub use events::Event;
pub use failure::Failure;
pub use keeper::{KEEP, keep};
pub use place::{LabDirectory, Place};
pub use protocol::{Ask, Reply, Verb, Who};
pub(crate) use server::inside;
pub use status::{ClockStatus, HostStatus, LinkStatus, Status};

/// What a lab's keeper and its first process are asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    name: String,
    /// Where its directory lies.
    place: PathBuf,
    provided: Provided,
    /// The lab file, its text, and what was set in it.
    file: PathBuf,
    text: String,
    set: Vec<String>,
    /// Why there are no disks that can be slow; none: there are.
    no_disk: Option<String>,
    started_unix_ms: u64,
    who: String,
    /// Inherited; each is the same in the keeper and in the first process.
    lock: RawFd,
    listener: RawFd,
    birth: RawFd,
}
