//! The keeper of a lab: a process in a session of its own that starts the lab's first process, waits for its end, and
//! removes what it has left on the disk. It holds the lab's lock; when it dies, the kernel ends the first process.

use std::{
    io::{self, Read},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use super::{
    Failure,
    protocol::Reply,
    registry::{self, LabRegistry},
    wire,
};
use crate::{
    LabError, ground,
    request::{INSIDE, LabRequest, Request},
};

/// The hidden command that a keeper is started with.
pub const KEEP: &str = "keep-lab";

/// Keeps the lab that is ordered on stdin. Returns the exit code.
pub fn keep() -> u8 {
    let interrupts = ground::catch_interrupts();
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes).and_then(|_| Ok(serde_json::from_slice(&bytes)?));
    let Ok(Request::ByHand(request)) = read else {
        eprintln!("brownout: this command is internal; start a lab with: brownout up");
        return 2;
    };
    let registry = LabRegistry::at(request.registry.clone());
    let Ok(directory) = registry.lab(&request.name) else { return 2 };
    // SAFETY: `up` handed these over to this process alone. The lock stays open to the end.
    let (birth, listener) =
        unsafe { (UnixStream::from(OwnedFd::from_raw_fd(request.birth)), OwnedFd::from_raw_fd(request.listener)) };
    let begun = directory
        .write_keeper(std::process::id())
        .map_err(|source| LabError::Ground { doing: "write the keeper's process id", source });
    // What works on containers that were there before has nothing to keep in.
    let walls = if request.attached.is_some() { ground::Walls::None } else { ground::Walls::Own };
    let enclosed = begun.and_then(|()| ground::enclose(&[INSIDE], &bytes, interrupts, walls));
    drop(listener);
    let code = match enclosed {
        Ok(enclosed) => {
            // The first process has its own: when that ends, `up` learns of it.
            drop(birth);
            let status = enclosed.wait();
            status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
        }
        Err(error) => {
            // If nobody listens any more, nobody wants to know.
            let _ = wire::send(&birth, &Reply::Failed(Failure::from(error)));
            4
        }
    };
    clean_up(&request, &registry);
    code
}

fn clean_up(request: &LabRequest, registry: &LabRegistry) {
    let Ok(directory) = registry.lab(&request.name) else { return };
    registry::remove_directory(&request.provided.directory);
    registry.remove(&directory);
}
