//! What can go wrong while a network is built or used, and what to do about it.

use std::{io, path::PathBuf, time::Duration};

use thiserror::Error;

use crate::{overlay_kind::Overlay, way::Way};

/// A network could not be built, changed or asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The specification itself cannot be built anywhere.
    #[error("the network cannot be built as specified: {0}")]
    Spec(String),

    /// The TUN device could not be used.
    #[error("cannot use {path} for host {host}: {source}; {remedy}", path = path.display())]
    Tun {
        /// The host that was being built.
        host: String,
        /// The device file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },

    /// A network namespace could not be made.
    #[error(
        "cannot make a network namespace for host {host}: {source}; \
         run as root, or inside a user namespace in which you are root"
    )]
    Namespace {
        /// The host that was being built.
        host: String,
        /// What the kernel said.
        source: io::Error,
    },

    /// This process may not have as many files open as that many hosts take.
    #[error(
        "{hosts} hosts take up to {needed} open files, and this process may have {limit} ({source}); \
         raise the hard limit of open files where you start it: as root `ulimit -Hn {needed}` and, if that is refused, \
         `sysctl fs.nr_open={needed}` first; for a service LimitNOFILE={needed}, for a container --ulimit nofile={needed}"
    )]
    OpenFiles {
        /// How many hosts there are.
        hosts: usize,
        /// How many open files they may take, with those that are open already.
        needed: u64,
        /// The limit.
        limit: u64,
        /// What the kernel said to raising it.
        source: io::Error,
    },

    /// A setting of a host could not be made.
    #[error("cannot {action} on host {host}: {source}")]
    Configure {
        /// The host that was being built.
        host: String,
        /// What was tried, as a verb phrase: "set the MTU to 1500".
        action: String,
        /// What the kernel said.
        source: io::Error,
    },

    /// The kernel has no such TCP congestion control.
    #[error(
        "host {host} cannot use the TCP congestion control '{asked}' ({source}); \
         this kernel has: {available} (load another with `modprobe tcp_{asked}`)"
    )]
    CongestionControl {
        /// The host that was being built.
        host: String,
        /// What was asked for.
        asked: String,
        /// What `/proc/sys/net/ipv4/tcp_available_congestion_control` lists.
        available: String,
        /// What the kernel said.
        source: io::Error,
    },

    /// A socket of a host was found to use another congestion control than the one asked for.
    #[error("host {host} was told to use the TCP congestion control '{asked}', but its sockets use '{found}'")]
    CongestionControlIgnored {
        /// The host that was being built.
        host: String,
        /// What was asked for.
        asked: String,
        /// What a socket reported.
        found: String,
    },

    /// An overlay could not be built.
    #[error("the overlay {overlay} cannot be built: cannot {action}: {source}; {remedy}")]
    Overlay {
        /// Which one.
        overlay: Overlay,
        /// What was tried, as a verb phrase: "make its VXLAN interface on host n1".
        action: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },

    /// An overlay was built and carries nothing.
    #[error(
        "the overlay {overlay} carries nothing from {from} to {to} within {secs} s{said}; a packet filter in these hosts, or a \
         machine that is busy with other work, would explain it",
        secs = within.as_secs()
    )]
    OverlaySilent {
        /// Which one.
        overlay: Overlay,
        /// Who asked.
        from: String,
        /// Who did not answer.
        to: String,
        /// How long it was waited for.
        within: Duration,
        /// What its processes have said, if it has any: "; the log of …", or nothing.
        said: String,
    },

    /// The namespace of a host that others have made could not be entered.
    #[error(
        "cannot enter the network namespace of host {host}: {source}; run as root, with the rights CAP_SYS_ADMIN and \
         CAP_NET_ADMIN; if what ran there has ended, look again for what runs"
    )]
    Enter {
        /// Which host.
        host: String,
        /// What the kernel said.
        source: io::Error,
    },

    /// Packets of a host that others have made could not be diverted.
    #[error("cannot divert {what} of host {host}: {source}; {remedy}")]
    Divert {
        /// Which host.
        host: String,
        /// Which packets: "what leaves by eth0".
        what: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },

    /// Somebody else diverts them already.
    #[error(
        "host {host} is attached to already (EBUSY): {what} is diverted by {holder}; end that first, with `brownout detach` or \
         by ending the process"
    )]
    AlreadyAttached {
        /// Which host.
        host: String,
        /// Which packets: "what leaves by eth0".
        what: String,
        /// Who does it, in words of its own.
        holder: String,
    },

    /// No link of a network that was attached to in this way can do so.
    #[error(
        "links of hosts that are attached to by the way `{name}` {reason}; `brownout doctor` says what the way `{best}` lacks \
         here, by which all can be done",
        name = way.name(),
        best = Way::ALL[0].name()
    )]
    Unable {
        /// How it was attached to.
        way: Way,
        /// What it cannot do, and why: "cannot duplicate packets: …".
        reason: &'static str,
    },

    /// The emulator's thread could not be started.
    #[error("cannot start the emulator: cannot {action}: {source}")]
    Emulator {
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },

    /// The emulator's thread has ended, and with it every link.
    #[error("the emulator has ended: all links are cut; stop this trial and start a new network")]
    EmulatorGone,

    /// A link between these two does not exist.
    #[error("there is no link from host number {from} to host number {to}: this network has {hosts} hosts")]
    NoSuchLink {
        /// Index of the sending host.
        from: u16,
        /// Index of the receiving host.
        to: u16,
        /// How many hosts there are.
        hosts: usize,
    },

    /// A host of this number does not exist.
    #[error("there is no host number {host}: this network has {hosts} hosts")]
    NoSuchHost {
        /// What was asked for.
        host: u16,
        /// How many hosts there are.
        hosts: usize,
    },

    /// What a host's kernel counted could not be read.
    #[error("cannot read the network counters of host {host}: {source}; is /proc mounted for this PID namespace?")]
    Statistics {
        /// Which host.
        host: String,
        /// What was read, or what the kernel said.
        source: io::Error,
    },

    /// An impairment of nothing was asked for; it would look like a fault without effect.
    #[error("no link was named to be impaired; name at least one ordered pair of hosts")]
    NoLinks,

    /// A marker that packets could hold by chance.
    #[error("a marker of {length} bytes could be seen by chance; take at least {least}")]
    ShortMarker {
        /// Its length.
        length: usize,
        /// The least.
        least: usize,
    },

    /// The controller of these links has no way to change an impairment in place.
    #[error("this impairment cannot be changed in place; heal it and make another")]
    CannotAmend,
}
