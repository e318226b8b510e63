//! What all crates must mean the same by: the [`clock`] that everything is stamped on, the [`Change`] that
//! says when something came into force and how exactly that is known, [`random`] numbers that follow from a seed, and
//! the hosts ([`EnterableHost`]) and ordered pairs of hosts ([`Link`]) that some make and others measure ([`Mesh`]).

mod change;
pub mod clock;
mod link;
mod mesh;
mod natural;
pub mod random;

pub use change::Change;
pub use link::{HostId, Link};
pub use mesh::{ArrivalElsewhere, ArrivalsElsewhere, EnterableHost, LongestHold, Mesh};
pub use natural::natural;
