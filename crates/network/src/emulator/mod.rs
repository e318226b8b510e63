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
//! In a network that others have made, what a host sends comes by another way, and goes on by it in the end: see `port`.

mod commands;
mod handle;
mod link;
mod packet;
mod port;
mod reach;
mod reactor;
mod routes;
mod shared;

pub(crate) use self::{
    commands::Command,
    port::{Detour, Exit, Port, Queue},
    reach::Reach,
    reactor::{Announcement, start},
    routes::Routes,
    shared::Shared,
};
pub use self::{
    handle::{Emulator, MarkerLook},
    shared::HostFailure,
};

/// GSO packets, for whoever else cuts them or makes them: tunnels in user space.
pub(crate) mod gso {
    pub(crate) use super::packet::{
        checksum::{complete, fold, pseudo_header, put, seal_ipv4},
        frame::{GSO_TCP4, LONGEST, NEEDS_CSUM, Shape, VNET},
        slicer::{slice, sliced_length},
    };
}
