use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
    thread,
};

use brownout_base::EnterableHost;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The network that a node is in.
#[derive(Clone)]
pub(crate) enum Network {
    /// The one that this process is in, which nobody has to enter.
    Own,
    /// That of a host, held open so that it can be entered when the host itself is out of reach.
    Held(Arc<OwnedFd>),
    /// Whichever the host is in at the moment: a container that was started again is in another one.
    Present(Arc<dyn EnterableHost>),
}

impl Network {
    /// Opens the network of `host`.
    pub(crate) fn of(host: &dyn EnterableHost) -> io::Result<Network> {
        // In a thread of its own: entering changes the thread for good, and the caller's stays where it is.
        in_own_thread(|| {
            host.enter()?;
            Ok(Network::Held(Arc::new(File::open("/proc/thread-self/ns/net")?.into())))
        })
    }

    /// Moves the calling thread into this network. A thread that goes on for long does so again before it connects: the node
    /// may be in another one by then. What it has opened before stays where it was opened.
    pub(crate) fn enter(&self) -> io::Result<()> {
        match self {
            Network::Own => Ok(()),
            Network::Held(network) => enter(network.as_fd()),
            Network::Present(host) => host.enter(),
        }
    }

    /// Makes `command` run in this network whenever it is spawned; it keeps the network alive until it is dropped. Nodes that
    /// were not started here run nothing for us.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let Network::Held(network) = self else { return };
        let network = Arc::clone(network);
        // SAFETY: between fork and exec only `setns` is called, which is async-signal-safe, and errno read.
        unsafe { command.pre_exec(move || enter(network.as_fd())) };
    }
}

fn enter(network: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?)
}

fn in_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let handle = thread::Builder::new().name("place".into()).spawn_scoped(scope, work)?;
        handle.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered the host's network panicked")))
    })
}
