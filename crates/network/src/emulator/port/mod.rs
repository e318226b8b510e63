//! Where packets are read and written: a host's TUN, or, of a host that others have made, where its packets are diverted.
//!
//! | port | what is read | what is written |
//! |---|---|---|
//! | `Tun` | what the host sends | what it gets |
//! | `Exit`, `Detour` | what the host sends by an interface | the same, which leaves by that interface |
//! | `Queue` | what has come to the host | a verdict: it may pass |

mod detour;
mod exit;
mod queue;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

pub(crate) use self::{detour::Detour, exit::Exit, queue::Queue};
use crate::{
    emulator::packet::frame::{self, VNET},
    sys::{RawSockets, Tun},
};

/// A way by which packets come from a host, or go to one.
pub(crate) enum Port {
    /// The other end of a host's only interface: what the host sends is read, what it gets is written.
    Tun(Tun),
    /// What is diverted where it leaves is read, and leaves there when it is written.
    Exit(Exit),
    /// What routes lead away is read, and leaves by the interface when it is written.
    Detour(Detour),
    /// What has come to the host is read, and passes when it is written.
    Queue(Queue),
}

impl Port {
    /// The next frame, header first; `None` when there is none at the moment.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Port::Tun(tun) => tun.read(buffer),
            Port::Exit(exit) => exit.read(buffer),
            Port::Detour(detour) => detour.tun.read(buffer),
            Port::Queue(queue) => queue.read(buffer),
        }
    }

    /// Writes a frame, header first.
    #[inline]
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<()> {
        match self {
            Port::Tun(tun) => tun.write(frame),
            Port::Exit(exit) => exit.write(frame),
            Port::Detour(detour) => detour.write(frame),
            Port::Queue(queue) => queue.write(frame),
        }
    }

    /// Says of a frame that was read here that it goes nowhere: somebody may wait for the word.
    #[inline]
    pub(in crate::emulator) fn discard(&self, frame: &[u8]) {
        if let Port::Queue(queue) = self {
            // What the kernel does not take is about a packet that is gone already.
            let _ = queue.discard(frame);
        }
    }

    /// Writes a frame of ours to the host whose port this is.
    pub(in crate::emulator) fn tell(&self, frame: &[u8]) -> io::Result<()> {
        let by = |messages: &RawSockets| match frame::destination(frame) {
            Some(to) => messages.send(frame.get(VNET..).unwrap_or(&[]), to),
            None => Ok(()),
        };
        match self {
            Port::Tun(tun) => tun.write(frame),
            Port::Exit(exit) => by(&exit.messages),
            Port::Detour(detour) => by(&detour.messages),
            Port::Queue(queue) => by(&queue.messages),
        }
    }

    /// Whether what is read here is written here: others have made the host.
    #[inline]
    pub(in crate::emulator) fn is_of_others(&self) -> bool {
        !matches!(self, Port::Tun(_))
    }

    /// Whether what is read here has come to the host whose port this is, instead of being sent by it.
    #[inline]
    pub(in crate::emulator) fn is_at_receiver(&self) -> bool {
        matches!(self, Port::Queue(_))
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Tun(tun) => tun.as_fd(),
            Port::Exit(exit) => exit.tap.as_fd(),
            Port::Detour(detour) => detour.tun.as_fd(),
            Port::Queue(queue) => queue.packets.as_fd(),
        }
    }
}
