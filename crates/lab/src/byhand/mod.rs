//! The lab by hand: a cluster on its network that runs until it is ended, with faults injected from any shell.
//!
//! [`up`] checks, provides and claims a directory for the lab; then it starts the *keeper*, a process in a session of its own,
//! which encloses the lab's first process as a run does. Keeper and first process hold the lock of the lab's directory: as
//! long as one of them lives, the lab does, and when either ends, the kernel ends the rest. The first process listens on
//! the socket that [`up`] made, and answers [`Request`]s. Whatever is put in force is a fault of an experiment file
//! ([`crate::faults`]), held in a [`ledger`] until it is healed.
//!
//! A lab may be attached to containers that run already ([`attach()`]): the same keeper and the same first process, without walls
//! around it, on hosts that were there before. Its end heals what commands have put in force, and leaves the containers as they are.

mod answers;
mod attach;
mod attached;
mod begin;
mod chaos;
mod check;
mod client;
mod clocks;
mod events;
mod exec;
mod failed_hosts;
mod failure;
mod healing;
mod in_force;
mod inject;
mod keeper;
mod lab;
mod lab_file;
mod leaving;
mod ledger;
mod link_state;
mod objects;
mod ping;
mod processes;
mod protocol;
mod registry;
mod roles;
mod rounds;
mod server;
mod status;
mod timer;
mod wire;

pub use attach::{Attach, Ground, attach};
pub use begin::{Up, up};
pub use client::{Client, detach, end};
pub use events::LabEvent;
pub use failure::Failure;
pub use keeper::{KEEP, keep};
pub use lab_file::LabFile;
pub use objects::{CheckStatus, ClockRow, ClockStatus, HostStatus, LinkStatus, Matrix, Status};
pub use protocol::{Ask, Reply, Verb, Who};
pub use registry::{LabDirectory, LabRegistry};
pub(crate) use server::inside;
