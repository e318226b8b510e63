//! The ports of the engine, as they come and go.

use brownout_base::HostId;

use super::engine::Engine;
use crate::emulator::{port::Port, routes::Routes};

impl Engine {
    /// All ports that are open, and their numbers.
    pub(in crate::emulator) fn ports(&self) -> impl Iterator<Item = (usize, &Port)> {
        self.ports.iter().enumerate().filter_map(|(number, port)| Some((number, port.as_ref()?)))
    }

    /// A port, if it is open.
    pub(in crate::emulator) fn port(&self, number: usize) -> Option<&Port> {
        self.ports.get(number)?.as_ref()
    }

    /// Whose a port is.
    pub(in crate::emulator) fn owner(&self, port: usize) -> HostId {
        self.owners[port]
    }

    /// One more port of a host; says its number, which no other ever has.
    pub(in crate::emulator) fn open(&mut self, owner: HostId, port: Port) -> usize {
        self.ports.push(Some(port));
        self.owners.push(owner);
        self.has_failed.push(false);
        self.ports.len() - 1
    }

    /// Takes a port away. What was to leave by it is dropped when it is due.
    pub(in crate::emulator) fn close(&mut self, port: usize) -> Option<Port> {
        self.ports.get_mut(port)?.take()
    }

    /// Packets go by these from now on.
    pub(in crate::emulator) fn route(&mut self, routes: Routes) {
        self.routes = routes;
    }

    /// Lets all that is held go at once, in the order in which it was to leave, and holds nothing more: what is read from now
    /// on passes.
    pub(in crate::emulator) fn let_go(&mut self) {
        self.is_ending = true;
        while self.agenda.next().is_some() {
            self.release_due(u64::MAX);
        }
    }
}
