//! The ways by which what hosts of others send each other comes to the emulator, and what each cannot do.

use std::fmt;

use brownout_units::Share;

use crate::impairment::{Chance, Impairment};

/// A way to divert packets of hosts that run already. All vanish with this process, however it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// What leaves a host is forwarded to a TAP by a table of nf_tables at the host's way out, and leaves from there. All can be
    /// done to it. Linux 5.17.
    Forward,
    /// What has come to a host waits in a queue of the kernel's (NFQUEUE), where a table of nf_tables at the host's way in puts
    /// it, until it may pass. The emulator gets a copy of each packet, and gives a verdict. Linux 5.12.
    Queue,
    /// Routes lead what leaves a host to a TUN, and a raw socket sends it on. Needs nothing of nf_tables, and carries the least.
    Route,
}

impl Way {
    /// All of them, the best first.
    pub const ALL: [Way; 3] = [Way::Forward, Way::Queue, Way::Route];

    /// Its name: one word.
    pub fn name(self) -> &'static str {
        match self {
            Way::Forward => "forward",
            Way::Queue => "queue",
            Way::Route => "route",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Way> {
        Way::ALL.into_iter().find(|way| way.name() == name)
    }

    /// Why no link of a network that is attached to in this way can do so; `None` if it can.
    pub fn refuses(self, impairment: &Impairment) -> Option<&'static str> {
        match self {
            Way::Queue if impairment.duplicate.share != Share::ZERO => {
                Some("cannot duplicate packets: of each there is one, which waits in the receiving kernel")
            }
            Way::Queue if impairment.mtu.is_some() => {
                Some("cannot take a smaller MTU: packets have come to their receiver in one piece, and stay so")
            }
            Way::Forward | Way::Queue | Way::Route => None,
        }
    }

    /// Why what comes from outside of all hosts cannot be impaired; `None` if it can.
    pub fn refuses_outside(self) -> Option<&'static str> {
        (self == Way::Route)
            .then_some("cannot hold what comes from outside: routes of this machine would have to be others, too")
    }

    /// All that it cannot do, each as [`Way::refuses`] and [`Way::refuses_outside`] say it.
    pub fn limits(self) -> Vec<&'static str> {
        let twice = Impairment { duplicate: Chance::of(Share::ALL), ..Impairment::NONE };
        let small = Impairment { mtu: Some(0), ..Impairment::NONE };
        let refused = [twice, small].into_iter().filter_map(|impairment| self.refuses(&impairment));
        refused.chain(self.refuses_outside()).collect()
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Forward => "forwarded by nf_tables where they leave",
            Way::Queue => "queued by nf_tables where they arrive",
            Way::Route => "led by routes",
        })
    }
}
