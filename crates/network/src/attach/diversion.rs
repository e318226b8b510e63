//! What diverts packets of a host, whichever way it does.

use std::io;

use super::spec::AttachedSpec;
use crate::error::NetworkError;

/// What the emulator sends carries this mark on its way out, so that it is not diverted again: "brow".
pub(super) const MARK: u32 = 0x6272_6F77;

/// A host among others.
pub(super) struct Place<'a> {
    /// All of them.
    pub(super) hosts: &'a [AttachedSpec],
    /// Which of them it is.
    pub(super) number: usize,
    /// The interfaces in it that are ours.
    pub(super) devices: &'a [String],
}

/// Diverts packets of one host, in some way, until it is dropped.
pub(super) trait Diversion: Send {
    /// Diverts from now on what is on a link.
    fn begin(&mut self, place: &Place<'_>) -> Result<(), NetworkError>;

    /// The same where hosts are others now than they were.
    fn change(&mut self, before: &[AttachedSpec], place: &Place<'_>) -> Result<(), NetworkError>;

    /// Goes on for another two seconds; whether this came in time. `None` if it goes on anyway.
    fn refresh(&self) -> Option<io::Result<bool>>;

    /// Lets pass what comes from now on. What was diverted is still to be read.
    fn pass(&mut self);
}

/// Why packets cannot be diverted: somebody else does it already (`holder`), or the kernel lacks something, of which `remedy`
/// tells.
pub(super) fn refused(
    (host, what): (&str, String),
    source: io::Error,
    holder: io::Result<Option<String>>,
    remedy: &'static str,
) -> NetworkError {
    let host = host.to_owned();
    let is_taken = [libc::EPERM, libc::EEXIST, libc::EBUSY].map(Some).contains(&source.raw_os_error());
    match (holder, source.raw_os_error()) {
        (Ok(Some(holder)), _) if is_taken => NetworkError::AlreadyAttached { host, what, holder },
        (_, Some(libc::EPERM)) => {
            let remedy = "run as root, or with CAP_NET_ADMIN over the host's namespace";
            NetworkError::Divert { host, what, source, remedy }
        }
        _ => NetworkError::Divert { host, what, source, remedy },
    }
}
