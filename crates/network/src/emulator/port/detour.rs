//! A detour: routes lead what leaves a host by one of its interfaces to a TUN.

use std::io;

use crate::{
    emulator::packet::frame::{self, VNET},
    sys::{RawSockets, Tun},
};

/// Its devices. The kernel does all that it could leave undone before it hands packets over, so that raw sockets take them.
pub(crate) struct Detour {
    /// Gets what is led here.
    pub(crate) tun: Tun,
    /// Send by the interface that packets would have left by.
    pub(crate) packets: RawSockets,
    /// Tells a sender that its packet does not pass, by the routes.
    pub(crate) messages: RawSockets,
}

impl Detour {
    pub(super) fn write(&self, frame: &[u8]) -> io::Result<()> {
        match frame::destination(frame) {
            Some(to) => self.packets.send(frame.get(VNET..).unwrap_or(&[]), to),
            None => Ok(()),
        }
    }
}
