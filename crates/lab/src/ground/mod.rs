//! The ground a lab stands on: namespaces of its own.
//!
//! Everything of a lab — processes, mounts, network namespaces, interfaces — lives in a mount, PID,
//! network, IPC and UTS namespace (and a user namespace when not root) that one child process owns
//! as its PID 1. When that process ends, by whatever signal, the kernel ends all the rest; it ends
//! itself when its parent does. So nothing can be left behind, and nothing of the machine is touched.
//!
//! A run on a cluster that is not ours has nothing to keep in, and stands on the machine itself ([`Walls::None`]).

mod enclose;
mod inside;
mod signals;

pub use enclose::{Walls, answer, enclose, keep_request_from_children, parent_is_gone, request};
pub use inside::{Furnished, furnish, unfurnished};
pub use signals::{Interrupts, catch_interrupts};

/// How a lab gets its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Real root: no user namespace is needed, and real-time scheduling is allowed.
    Root,
    /// An ordinary user: all happens in a user namespace.
    UserNamespace,
}

impl Privilege {
    /// That of this process. Root without the capabilities, as in most containers, is an ordinary user.
    pub fn current() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if capable(&status) { Privilege::Root } else { Privilege::UserNamespace }
    }

    /// That of the lab which this process, its PID 1, is in: a user namespace of its own maps exactly one user.
    pub fn current_inside() -> Self {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let lengths: Vec<&str> = map.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        if lengths == ["1"] { Privilege::UserNamespace } else { Privilege::Root }
    }

    /// That of the labs which this process would start.
    pub fn of_labs() -> Self {
        match Privilege::current() {
            // Without a user namespace of its own, a lab has ours.
            Privilege::Root => Privilege::current_inside(),
            Privilege::UserNamespace => Privilege::UserNamespace,
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user namespace",
        }
    }
}

/// [`Privilege::name`] of a run that needs none.
pub const NO_PRIVILEGE: &str = "none needed";

/// Whether `/proc/self/status` tells of CAP_NET_ADMIN (12) and CAP_SYS_ADMIN (21), capabilities(7).
fn capable(status: &str) -> bool {
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & NEEDED == NEEDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_who_has_the_capabilities() {
        assert!(capable("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        // What Docker leaves to root.
        assert!(!capable("CapEff:\t00000000a80425fb\n"));
        assert!(!capable("CapEff:\t0000000000000000\n"));
        assert!(!capable(""));
    }
}
