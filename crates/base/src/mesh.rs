use std::{io, net::Ipv4Addr, sync::Arc};

use crate::Link;

/// A host that can be entered: a network namespace with an address of its own, whoever made it.
pub trait EnterableHost: Send + Sync {
    /// The host's name, such as `n1`.
    fn name(&self) -> &str;

    /// Where it is reached.
    fn address(&self) -> Ipv4Addr;

    /// Moves the calling thread into the host's network, for good.
    ///
    /// # Errors
    /// The kernel's, when the thread may not enter.
    fn enter(&self) -> io::Result<()>;

    /// Whether packets that have arrived are held back after the kernel has stamped them: then its stamps say nothing of how long
    /// they took.
    fn holds_arrived(&self) -> bool {
        false
    }
}

/// Hosts with a link between every ordered pair of them, whoever made either: what has to be known of a network to
/// measure it.
pub trait Mesh: Sync {
    /// All hosts, in the order of their [`HostId`](crate::HostId)s.
    fn enterable_hosts(&self) -> Vec<&dyn EnterableHost>;

    /// The largest IP packet that a host sends, in bytes.
    fn mtu(&self) -> u16;

    /// Whether those who measure are to ask for `SCHED_FIFO`.
    fn is_realtime(&self) -> bool;

    /// Whoever knows how long links may hold a packet, whenever asked.
    fn holds(&self) -> Arc<dyn LongestHold>;
}

/// How long a link may hold a packet on purpose: later than that, it is lost or the machine is late.
pub trait LongestHold: Send + Sync {
    /// The longest that `link` may hold a packet by what is in force now, in nanoseconds; 0 if there is no such link.
    fn longest_hold_of_ns(&self, link: Link) -> u64;
}
