//! What can go wrong while containers are found, entered or changed, and what to do about it.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Containers could not be found, entered or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainersError {
    /// A runtime's socket could not be used.
    #[error("cannot ask the container runtime at {path}: {source}; {remedy}", path = socket.display())]
    Socket {
        /// Its socket.
        socket: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },

    /// A runtime has answered that it will not.
    #[error("the container runtime at {path} refuses {request}: {said} (status {status})", path = socket.display())]
    Refused {
        /// Its socket.
        socket: PathBuf,
        /// What was asked, as "GET /containers/json".
        request: String,
        /// The status of HTTP, or of gRPC.
        status: u32,
        /// Its words.
        said: String,
    },

    /// What a runtime has answered is not what its API says.
    #[error(
        "what answers {request} at {path} makes no sense: {reason}; is it the socket of Docker, podman or containerd?",
        path = socket.display()
    )]
    Senseless {
        /// Its socket.
        socket: PathBuf,
        /// What was asked.
        request: String,
        /// What is wrong with it.
        reason: String,
    },

    /// There is no such container.
    #[error("found no container {what}: {looked}")]
    NotFound {
        /// Which were looked for, as "of the Compose project shop".
        what: String,
        /// Where, what was there instead, and what to do.
        looked: String,
    },

    /// A selection that can select nothing.
    #[error("containers cannot be selected by {what}: {reason}")]
    Selection {
        /// By what, as "label".
        what: &'static str,
        /// Why not, and what to write instead.
        reason: String,
    },

    /// A container does not run, or is not there any more.
    #[error("container {container} is gone: {reason}")]
    Gone {
        /// Its name.
        container: String,
        /// How that is known, and what to do.
        reason: String,
    },

    /// Nothing is known of this machine.
    #[error("cannot look at this machine's own network: {0}; is /proc mounted, for this PID namespace?")]
    Machine(io::Error),

    /// The kernel refused something to do with a container.
    #[error("cannot {action} of container {container}: {source}; {remedy}")]
    Kernel {
        /// What was tried, as "open the network namespace".
        action: &'static str,
        /// The container's name.
        container: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
}

/// What helps against an error of a runtime's socket.
pub(crate) fn socket_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "start the runtime, or name its socket (socket: /run/podman/podman.sock)",
        io::ErrorKind::PermissionDenied => "run as root, or as a member of the group that the socket belongs to",
        io::ErrorKind::ConnectionRefused => "nobody listens there any more: start the runtime",
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it hangs: look at its log, or start it again",
        _ => "is it the socket of Docker, podman or containerd?",
    }
}

/// What helps against an error of the kernel's about a process or a namespace.
pub(crate) fn kernel_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root, with CAP_SYS_PTRACE and CAP_SYS_ADMIN",
        io::ErrorKind::NotFound => "it has ended: is it started again?",
        _ => "does the process live, and is /proc that of this PID namespace?",
    }
}
