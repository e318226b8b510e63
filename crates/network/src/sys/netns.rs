//! Network namespaces: making one, entering one.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
};

use super::check;

/// Moves the calling thread, and only it, into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no memory is involved; only this thread's namespace changes.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Moves the calling thread, and only it, into the namespace behind `namespace`.
pub(crate) fn enter(namespace: &OwnedFd) -> io::Result<()> {
    set_namespace(namespace.as_raw_fd())
}

/// Makes `command` start inside the namespace behind `namespace`, which it keeps open.
pub(crate) fn prepare(namespace: Arc<OwnedFd>, command: &mut Command) {
    // SAFETY: between fork and exec only `setns` is called, which is async-signal-safe: it neither
    // allocates nor locks. `last_os_error` reads errno and allocates nothing.
    unsafe { command.pre_exec(move || set_namespace(namespace.as_raw_fd())) };
}

fn set_namespace(namespace: RawFd) -> io::Result<()> {
    // SAFETY: no memory is involved; a wrong descriptor is refused by the kernel.
    check(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) })?;
    Ok(())
}
