//! Working inside of a namespace.

use std::{os::fd::OwnedFd, thread};

use crate::{error::NetworkError, sys};

/// Runs `work` on a thread inside of a host's namespace. Only a thread of its own can go there without taking the caller along.
pub(super) fn inside<T: Send>(
    host: &str,
    namespace: &OwnedFd,
    work: impl FnOnce() -> Result<T, NetworkError> + Send,
) -> Result<T, NetworkError> {
    let failed = |source| NetworkError::Enter { host: host.to_owned(), source };
    thread::scope(|scope| {
        let work = || {
            sys::enter(namespace).map_err(failed)?;
            work()
        };
        thread::Builder::new()
            .name(format!("in-{host}"))
            .spawn_scoped(scope, work)
            .map_err(failed)?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
