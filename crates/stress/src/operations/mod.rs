//! Operations: what is asked of the database, and what its answers mean.

mod bound;
mod choice;
pub mod complaints;
mod kind;
pub mod permits;
pub mod predefined;
mod slab;
pub mod user;
mod workload;

pub use bound::{Bound, Cells};
pub use choice::Choice;
pub use kind::{Kind, KindThread, Slot};
pub use permits::Permits;
pub use workload::{Flow, Named, Operations, StressWorkload};

/// Bytes as lower-case hexadecimal digits, as CQL writes them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number of a source of seeds: each thread of each kind of operation has its own.
pub(crate) fn source_index(thread: usize, kind: usize) -> u64 {
    (kind as u64) << 16 | thread as u64
}
