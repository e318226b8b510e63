//! The faults. One file per fault: how it is injected (a guard heals it), what must then be seen where it hits and where
//! it must not, and its description. docs/adding-a-fault.md shows how to add one.

pub mod capabilities;
mod chaos;
mod clock;
mod corrupt;
mod cpu;
mod disk;
mod duplicate;
mod ends;
mod entry;
pub(crate) mod expected;
mod fault;
mod flaky;
pub(crate) mod here;
mod link;
mod links;
mod mtu;
mod names;
mod needs;
mod partition;
mod pause;
mod provable;
mod rate;
mod reorder;
mod role;
mod role_fault;
pub mod sabotage;
mod slow;

pub use capabilities::Capabilities;
pub(crate) use capabilities::together;
pub use chaos::{Drawn, draw, kinds};
pub use disk::LOOK_EVERY as DISK_LOOK_EVERY;
pub(crate) use ends::{BACK_WITHIN, STOP_WITHIN};
pub use entry::from_entry;
pub use fault::{ActiveFault, Fault, Healing};
pub use links::LinkFault;
pub use needs::{Needs, TrainNeed};
pub use role::Role;
pub(crate) use role_fault::Roles;
