//! What goes wrong. One file per fault: how it is injected (a guard heals it), what the probes must
//! then show on the pairs it hits and on those it spares, and how it is told to people.

mod slow;

use brownout_network::{ImpairmentGuard, LinkControl, NetworkError};
use brownout_record::Expectation;
use brownout_units::Delay;

use crate::hosts::Hosts;
pub use slow::Slow;

/// A fault of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Everything a host sends is late.
    Slow(Slow),
}

/// The links a fault acts on, as seen by a fault: host names in, impairments out.
pub trait Links {
    /// The control of the links.
    fn control(&self) -> &dyn LinkControl;
    /// The link between two hosts of the lab.
    fn link(&self, from: &str, to: &str) -> Option<brownout_network::Link>;
}

impl Fault {
    /// The word it begins with in an experiment file.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Slow(_) => "slow",
        }
    }

    /// The host it strikes.
    pub fn subject(&self) -> &str {
        match self {
            Fault::Slow(slow) => &slow.host,
        }
    }

    /// What it does, with its direction.
    pub fn text(&self) -> String {
        match self {
            Fault::Slow(slow) => slow.text(),
        }
    }

    /// What that means for round-trip times.
    pub fn effect(&self) -> String {
        match self {
            Fault::Slow(slow) => slow.effect(),
        }
    }

    /// What the probes must show on every ordered pair.
    pub fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        match self {
            Fault::Slow(slow) => slow.expectations(hosts),
        }
    }

    /// Puts it in force until the guard goes.
    pub fn inject(&self, hosts: &Hosts, links: &dyn Links) -> Result<ImpairmentGuard, NetworkError> {
        match self {
            Fault::Slow(slow) => slow.inject(hosts, links),
        }
    }

    /// How long after a change probes may still show what was before it, or neither.
    pub fn unsettled(&self) -> Delay {
        match self {
            Fault::Slow(slow) => slow.unsettled(),
        }
    }
}
