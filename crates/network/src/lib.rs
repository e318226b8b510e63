//! Hosts, links and impairments: an emulated network on one machine.
//!
//! Each host is a network namespace with one interface, an IPv4 and an IPv6 address; every packet
//! between hosts passes one emulator thread, which can delay, jitter and lose it and more, per
//! *ordered* pair of hosts. It knows nothing of what runs on the hosts, and never touches the
//! network namespace it is called from.
//!
//! [`Network::attach`] does the same for hosts that others have made and that run already, such as containers.
//!
//! ```no_run
//! use brownout_network::{HostSpec, Impairment, LinkControl, Network, NetworkSpec};
//! use std::process::Command;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = |name: &str, last| HostSpec::new(name, [10, 77, 0, last].into());
//! let network = Network::start(NetworkSpec {
//!     hosts: vec![host("n1", 1), host("n2", 2), host("load", 9)],
//!     mtu: 1500,
//!     congestion_control: Some("cubic".into()),
//!     seed: 1,
//!     realtime: true,
//!     overlay: None,
//! })?;
//!
//! // All that n2 sends is 100 ms late, until the guard goes.
//! let late: Vec<_> = network.links().into_iter().filter(|link| network.name(link.from) == Some("n2")).collect();
//! let guard = network.control().impair(&late, &Impairment::delay("100ms".parse()?))?;
//!
//! let mut ping = Command::new("ping");
//! ping.args(["-c", "3", "10.77.0.2"]);
//! if let Some(host) = network.host("n1") {
//!     host.prepare(&mut ping);
//! }
//! ping.status()?;
//! let healed = guard.heal()?;
//! println!("healed at {} ns", healed.at_ns);
//! # Ok(())
//! # }
//! ```

mod attach;
mod control;
mod counters;
mod emulator;
mod error;
mod host;
mod impairment;
mod limits;
mod marker;
mod network;
pub mod overlay;
mod overlay_kind;
mod subnet;
mod sys;
mod way;

pub use attach::{AttachSpec, AttachedKind, AttachedSpec, Exit, attach_trials, attach_way};
pub use brownout_base::{HostId, Link};
pub use control::{ImpairmentGuard, LinkControl};
pub use counters::{HostCounters, LinkCounters};
pub use emulator::{Emulator, HostFailure, MarkerLook};
pub use error::NetworkError;
pub use host::{ChecksumErrors, Host, HostSpec, INTERFACE};
pub use impairment::{
    Chance, Cut, Distribution, Impairment, Loss, QueueLimit, RateLimit, Reorder, UnknownDistribution,
};
pub use network::{Network, NetworkSpec};
pub use way::Way;
