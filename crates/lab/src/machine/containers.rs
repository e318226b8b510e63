//! What it takes to attach to containers that run already.

use brownout_network::attach_way;

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
    match attach_way() {
        Ok(way) => Check::good("attaching", format!("packets of containers can be {way}")),
        Err(error) => Check::not(
            CheckState::Lacking,
            "attaching",
            error.to_string(),
            "`brownout doctor` says what each of three ways lacks here: a kernel from 5.17 on with nf_tables has the best, and \
             routes alone, which /dev/net/tun is enough for, carry the least; or leave ground out for a lab",
        ),
    }
}
