//! Where a frame belongs that was read at a port.

use std::net::{IpAddr, Ipv4Addr};

use brownout_base::{HostId, Link};

use super::engine::Engine;
use crate::emulator::packet::frame;

/// What is to be done with a frame.
pub(super) struct Course {
    /// The link that it is on.
    pub(super) link: usize,
    /// The port that it leaves by.
    pub(super) leaves_by: usize,
    /// The port by which its sender is told if it does not pass.
    pub(super) told_by: Option<usize>,
}

impl Engine {
    /// The course of the frame that was read last, at this port; `None` if it is on no link.
    #[inline]
    pub(super) fn course(&self, port: usize) -> Option<Course> {
        let (open, owner) = (self.ports[port].as_ref()?, self.owners[port]);
        if open.is_at_receiver() {
            let from = self.routes.find(frame::source(&self.frame)?)?;
            let link = Link { from, to: owner }.position(self.hosts)?;
            return Some(Course { link, leaves_by: port, told_by: self.home_of(from, link) });
        }
        let to = self.routes.find(frame::destination(&self.frame)?)?;
        let link = Link { from: owner, to }.position(self.hosts)?;
        let leaves_by = if open.is_of_others() { port } else { self.links[link].to };
        Some(Course { link, leaves_by, told_by: Some(port) })
    }

    /// A port of the host that sends on this link, wherever its packets are read. It is looked for only where there may be
    /// something to tell.
    fn home_of(&self, from: HostId, link: usize) -> Option<usize> {
        self.links[link].gate().cut?;
        self.owners.iter().zip(&self.ports).position(|(owner, port)| *owner == from && port.is_some())
    }

    /// What is on no link. Of a host of ours it goes nowhere; where others have made the network, it goes on as if we were not
    /// there.
    pub(super) fn leave_alone(&mut self, port: usize) {
        let others = self.ports[port].as_ref().filter(|port| port.is_of_others());
        // Kernels announce themselves to groups of neighbours; there are none on a link between two.
        if others.is_none() && frame::destination(&self.frame).is_some_and(is_group) {
            return;
        }
        self.unroutable[self.owners[port].index()] += 1;
        if let Some(others) = others {
            // What does not pass here would not have passed without us.
            let _ = others.write(&self.frame);
        }
    }
}

/// A group of receivers rather than one.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}
