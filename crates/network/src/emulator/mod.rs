//! The emulator: one thread that carries every packet between hosts.
//!
//! It owns all state of all links, so that nothing is locked; others send it commands. With nothing
//! to carry it sleeps.
//!
//! ```text
//!            reactor               packet                  reactor                  link
//!  host a ─ TUN ─▶ engine ─▶ frame: how many packets? ─▶ entrance: may they enter? ─▶ stages, bottleneck:
//!                                                                                     what becomes of each?
//!                                                                                       │
//!  host b ◀─ TUN ◀─ engine ◀─ queue: when is it due? ◀─ damage: a flipped bit ◀─ slicer: runs with one fate
//!            reactor          link                      packet                   packet
//! ```
//!
//! In a network that others have made, a host has *exits* instead of a TUN: what leaves by one of its interfaces is diverted
//! to a TAP, read there, taken to its link, and leaves in the end by the same interface.

mod link;
mod packet;
mod reactor;

pub(crate) use self::reactor::{Announcement, Exit, Port, Routes, start};

/// GSO packets, for whoever else cuts them or makes them: tunnels in user space.
pub(crate) mod gso {
    pub(crate) use super::packet::{
        checksum::{complete, fold, pseudo_header, put, seal_ipv4},
        frame::{GSO_TCP4, LONGEST, NEEDS_CSUM, Shape, VNET},
        slicer::{slice, sliced_length},
    };
}
