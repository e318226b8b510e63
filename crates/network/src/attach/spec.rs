//! Networks that others have made, as they are told to us.

use std::{net::IpAddr, os::fd::OwnedFd, sync::Arc};

/// A network that others have made: its hosts are entered, and what they send each other is diverted through the emulator.
#[derive(Debug, Clone)]
pub struct AttachSpec {
    /// All hosts. Names and addresses are unique, and no two share a namespace.
    pub hosts: Vec<AttachedSpec>,
    /// Whatever is random on a link follows from this and from the link alone.
    pub seed: u64,
    /// Try to run the emulator with `SCHED_FIFO`; see [`crate::Network::realtime`] for what came of it.
    pub realtime: bool,
}

/// A host that others have made.
#[derive(Debug, Clone)]
pub struct AttachedSpec {
    /// Unique in its network.
    pub name: String,
    /// All at which others reach it; the first IPv4 one is [`crate::Host::address`].
    pub addresses: Vec<IpAddr>,
    /// Its network namespace.
    pub namespace: Arc<OwnedFd>,
    /// The interfaces by which what it sends leaves: its own (`eth0`), or, of the host that stands for all others, this machine's
    /// ends of the containers' (`vethab12`). A host without any is only sent to.
    pub exits: Vec<Exit>,
    /// What it stands for.
    pub kind: AttachedKind,
}

/// What a host of an attached network stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachedKind {
    /// Itself, in its namespace.
    Host,
    /// All addresses that are no other host's, beside its own: at most one host.
    Outside,
    /// A host of another machine, which cannot be entered and is only sent to: links *to* it are carried here, and links from it
    /// there. Its namespace is not looked at, and it has no exits.
    Elsewhere,
}

impl AttachedSpec {
    pub(super) fn is_outside(&self) -> bool {
        self.kind == AttachedKind::Outside
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        self.kind == AttachedKind::Elsewhere
    }
}

/// An interface by which packets of a host leave, in the host's namespace. It has to be an Ethernet one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its name there.
    pub interface: String,
    /// `None`: it leads to all other hosts. Else only to those of these names (a machine's veth leads to one container).
    pub to: Option<Vec<String>>,
}
