//! A place where packets of a host are diverted, open.

use std::io;

use super::{
    diversion::{Diversion, Place},
    spec::{AttachedSpec, Exit},
};
use crate::{error::NetworkError, sys};

/// One that is open.
pub(super) struct Opened {
    /// The interface by which packets leave; `None`: it is where they arrive.
    pub(super) exit: Option<Exit>,
    /// The interface's number in its namespace.
    index: u32,
    /// The largest packet, in bytes, that the host's links carry there.
    pub(super) mtu: u32,
    /// The interface of ours that packets are diverted to, if they are.
    pub(super) device: Option<String>,
    /// The number of the emulator's port.
    pub(super) port: usize,
    /// `None` when nothing is diverted any more.
    diversion: Option<Box<dyn Diversion>>,
}

impl Opened {
    /// At an interface of this number, diverting to the one of ours that is called `device`.
    pub(super) fn at(exit: &Exit, index: u32, mtu: u32, device: String, diversion: impl Diversion + 'static) -> Opened {
        let diversion: Option<Box<dyn Diversion>> = Some(Box::new(diversion));
        Opened { exit: Some(exit.clone()), index, mtu, device: Some(device), port: 0, diversion }
    }

    /// Where packets arrive.
    pub(super) fn at_arrival(mtu: u32, diversion: impl Diversion + 'static) -> Opened {
        let diversion: Option<Box<dyn Diversion>> = Some(Box::new(diversion));
        Opened { exit: None, index: 0, mtu, device: None, port: 0, diversion }
    }

    /// Whether it is where it was, seen from the namespace of the calling thread.
    pub(super) fn is_in_place(&self) -> bool {
        self.exit
            .as_ref()
            .is_none_or(|exit| sys::interface_index(&exit.interface).is_ok_and(|index| index == self.index))
    }

    /// Diverts from now on what is on a link.
    pub(super) fn begin(&mut self, place: &Place<'_>) -> Result<(), NetworkError> {
        self.diversion.as_mut().map_or(Ok(()), |diversion| diversion.begin(place))
    }

    /// The same where hosts are others now than they were.
    pub(super) fn change(&mut self, before: &[AttachedSpec], place: &Place<'_>) -> Result<(), NetworkError> {
        self.diversion.as_mut().map_or(Ok(()), |diversion| diversion.change(before, place))
    }

    /// Goes on for another two seconds; whether this came in time. `None` where nothing has to be said.
    pub(super) fn refresh(&self) -> Option<io::Result<bool>> {
        self.diversion.as_ref().and_then(|diversion| diversion.refresh())
    }

    /// Lets pass what comes from now on. What was diverted is still to be read.
    pub(super) fn pass(&mut self) {
        if let Some(diversion) = &mut self.diversion {
            diversion.pass();
        }
    }

    /// Diverts nothing any more.
    pub(super) fn end(&mut self) {
        drop(self.diversion.take());
    }
}
