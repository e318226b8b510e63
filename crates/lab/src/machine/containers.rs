//! What it takes to attach to containers that run already.

use brownout_network::attach_check;

use super::check::{Check, CheckState};
use crate::ground::Privilege;

/// All of it.
pub(super) fn checks() -> Vec<Check> {
    vec![rights(), diverting()]
}

/// Whether this process may enter containers and divert what they send.
fn rights() -> Check {
    match Privilege::current() {
        Privilege::Root => Check::good("privilege", "root: containers can be entered"),
        Privilege::UserNamespace => Check::not(
            CheckState::Lacking,
            "privilege",
            "not root, and the network of containers belongs to root",
            "run as root, with the capabilities SYS_ADMIN, NET_ADMIN, NET_RAW and SYS_PTRACE; or leave ground out for a lab",
        ),
    }
}

/// Whether the kernel diverts packets as attaching needs it, tried in namespaces of its own.
fn diverting() -> Check {
    match attach_check() {
        Ok(()) => Check::good("attaching", "the kernel diverts what containers send"),
        Err(error) => Check::not(
            CheckState::Lacking,
            "attaching",
            error.to_string(),
            "a kernel of 5.17 or later with nftables can be attached to; or leave ground out for a lab",
        ),
    }
}
