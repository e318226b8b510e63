use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use crate::{HostId, Link};

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

    /// Of a host that cannot be entered, since it is on another machine: what arrives there. Only links *to* it can be measured
    /// here.
    fn elsewhere(&self, _: HostId) -> Option<Arc<dyn ArrivalsElsewhere>> {
        None
    }
}

/// Datagrams that arrive at a host of another machine, as that one tells of them: each once, and in the order of their coming.
pub trait ArrivalsElsewhere: Send + Sync {
    /// Where to send them, at this moment.
    fn address(&self) -> SocketAddr;

    /// The next one that was told of; none at the moment.
    fn next(&self) -> Option<ArrivalElsewhere>;
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalElsewhere {
    /// Its beginning, as much as was asked for.
    pub datagram: Vec<u8>,
    /// When it arrived, on the [monotonic clock](crate::clock::monotonic_ns) of *this* machine; none where that cannot be told.
    pub at_ns: Option<u64>,
    /// How many the socket there had dropped by then, since it was made.
    pub dropped: u32,
}

/// How long a link may hold a packet on purpose: later than that, it is lost or the machine is late.
pub trait LongestHold: Send + Sync {
    /// The longest that `link` may hold a packet by what is in force now, in nanoseconds; 0 if there is no such link.
    fn longest_hold_of_ns(&self, link: Link) -> u64;
}
