//! Network namespaces: making one, entering one.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Moves the calling thread, and only it, into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: the table of open files stays shared, so that no descriptor changes its meaning.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Moves the calling thread, and only it, into the namespace behind `namespace`.
pub(crate) fn enter(namespace: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Makes `command` start inside the namespace behind `namespace`, which it keeps open.
pub(crate) fn prepare(namespace: Arc<OwnedFd>, command: &mut Command) {
    // SAFETY: between fork and exec only `setns` is called, which is async-signal-safe: it neither
    // allocates nor locks.
    unsafe { command.pre_exec(move || enter(&namespace)) };
}
