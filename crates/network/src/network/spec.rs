//! Networks that are to be made.

use crate::{host::HostSpec, overlay::Overlay};

/// A network to be made.
#[derive(Debug, Clone)]
pub struct NetworkSpec {
    /// All hosts. Names and addresses are unique.
    pub hosts: Vec<HostSpec>,
    /// The largest IP packet on any link, in bytes; 1500 as on Ethernet.
    pub mtu: u16,
    /// The TCP congestion control of connections between hosts, for those without [`HostSpec::congestion_control`];
    /// `None` leaves the kernel's default.
    pub congestion_control: Option<String>,
    /// Whatever is random on a link follows from this and from the link alone.
    pub seed: u64,
    /// Try to run the emulator with `SCHED_FIFO`; see [`crate::Network::realtime`] for what came of it.
    pub realtime: bool,
    /// A second network on top of this one; see [`crate::Network::overlay`].
    pub overlay: Option<Overlay>,
}
