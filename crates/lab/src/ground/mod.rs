//! The ground a lab stands on: namespaces of its own.
//!
//! Everything of a lab — processes, mounts, network namespaces, interfaces — lives in a mount, PID,
//! network, IPC and UTS namespace (and a user namespace when not root) that one child process owns
//! as its PID 1. When that process ends, by whatever signal, the kernel ends all the rest; it ends
//! itself when its parent does. So nothing can be left behind, and nothing of the machine is touched.

mod enclose;
mod inside;
mod signals;

pub use enclose::{answer, enclose, parent_is_gone, request};
pub use inside::{Furnished, furnish};
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
    /// That of this process.
    pub fn current() -> Self {
        // SAFETY: geteuid has no preconditions and cannot fail.
        if unsafe { libc::geteuid() } == 0 { Privilege::Root } else { Privilege::UserNamespace }
    }

    /// That of the lab which this process, its PID 1, is in: a user namespace of its own maps exactly one user.
    pub fn current_inside() -> Self {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let lengths: Vec<&str> = map.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        if lengths == ["1"] { Privilege::UserNamespace } else { Privilege::Root }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user namespace",
        }
    }
}
