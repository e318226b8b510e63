//! What the emulator is told where others have made the network.

use brownout_base::HostId;

use crate::{
    emulator::{Command, Emulator, Port, Routes},
    error::NetworkError,
};

impl Emulator {
    /// Waits until the thread answers; which ports can be read no more.
    pub(crate) fn broken_ports(&self) -> Result<Vec<usize>, NetworkError> {
        self.ask(|broken| Command::Answer { broken })
    }

    /// Has one more port read and written; its number.
    pub(crate) fn open(&self, owner: HostId, port: Port) -> Result<usize, NetworkError> {
        let failed = |source| NetworkError::Emulator { action: "wait for packets", source };
        self.ask(|answer| Command::Open { owner, port, answer })?.map_err(failed)
    }

    /// Has a port read and written no more. It goes here, which takes a while, and not in the thread.
    pub(crate) fn close(&self, port: usize) -> Result<(), NetworkError> {
        self.ask(|answer| Command::Close { port, answer }).map(drop)
    }

    pub(crate) fn route(&self, routes: Routes) -> Result<(), NetworkError> {
        self.change(|done| Command::Route { routes, done }).map(drop)
    }

    /// Lets all go that links hold, and has them hold nothing any more; what was diverted until now passes, too.
    pub(crate) fn let_go(&self) -> Result<(), NetworkError> {
        self.change(|done| Command::LetGo { done }).map(drop)
    }
}
