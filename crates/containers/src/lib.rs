//! Containers that run already: who they are, what can be done to each and why not, and doing it to their processes.
//!
//! [`find`] asks the runtime (Docker and podman by their HTTP API, containerd and CRI-O by CRI), or looks at processes
//! and network namespaces where no runtime is to be asked. What it says of a container's network is not what the
//! runtime was told to make, but what is there: the interfaces are looked at from inside of its namespace. Nothing is
//! changed, and nothing is installed. Whether it was started with a clock of its own (`brownout wrap`), its processes show.
//!
//! [`processes`] pauses, kills, stops and starts them, and takes processor time away.

mod ability;
mod clock;
mod container;
mod error;
mod interface;
mod machine;
mod netlink;
pub mod processes;
mod runtime;
mod select;
mod selection;

pub use ability::{Ability, What};
pub use container::Container;
pub use error::ContainersError;
pub use interface::Interface;
pub use processes::ContainerHands;
pub use runtime::{Answering, Runtime, answering};
pub use select::{described, find};
pub use selection::{By, Selection};
