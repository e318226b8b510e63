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

/// The network of a host, held open so that it can be entered when the host itself is out of reach; or the one that this
/// process is in, which nobody has to enter.
#[derive(Clone)]
pub(crate) struct Network(Option<Arc<OwnedFd>>);

impl Network {
    /// The network that this process is in.
    pub(crate) fn own() -> Network {
        Network(None)
    }

    /// Opens the network of `host`.
    pub(crate) fn of(host: &dyn EnterableHost) -> io::Result<Network> {
        // In a thread of its own: entering changes the thread for good, and the caller's stays where it is.
        in_own_thread(|| {
            host.enter()?;
            Ok(Network(Some(Arc::new(File::open("/proc/thread-self/ns/net")?.into()))))
        })
    }

    /// Moves the calling thread into this network.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |network| enter(network.as_fd()))
    }

    /// Makes `command` run in this network whenever it is spawned; it keeps the network alive until it is dropped.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let Some(network) = self.0.clone() else { return };
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
