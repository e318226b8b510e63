//! What no network can be beyond, and what one takes of this process.

use brownout_machine::{open_files, raise_file_limit};

use crate::error::NetworkError;

/// Of a network that nobody sends on.
pub(crate) const ETHERNET_MTU: u16 = 1_500;
/// A TUN carries no more.
pub(crate) const LARGEST_MTU: u16 = 65_521;
/// Every ordered pair has state of its own; this many hosts have a million pairs.
pub(crate) const MOST_HOSTS: usize = 1_000;
/// What one host takes: its TUN (if it has one), its namespace, five of its kernel's counters, the sockets of its probes and
/// trains, and what a lab may open in it (NTP, heartbeats).
pub(crate) const FILES_PER_HOST: u64 = 13;
/// What this process opens beside.
const OTHER_FILES: u64 = 128;

/// Lets this process open what so many hosts take: `more` files than it has open now.
pub(crate) fn allow_files(hosts: usize, more: u64) -> Result<(), NetworkError> {
    let needed = open_files() + OTHER_FILES + more;
    raise_file_limit(needed).map_err(|(limit, source)| NetworkError::OpenFiles { hosts, needed, limit, source })
}
