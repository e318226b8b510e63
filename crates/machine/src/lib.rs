//! The machine as a lab may use it: which processors and how much memory, and who else used them.
//!
//! [`Processors`] and [`available_memory`] are bounded by what this process may use (affinity, cpuset, cgroup quota and
//! limit), not by what the machine has. Everything that is a share of "the processors" is a share of
//! [`Processors::capacity`]. [`Processors::cores`] says which of them belong together, and [`bind_this_thread`] gives a part of
//! them to a thread and all that it starts. [`Usage`], [`Waits`], [`Programs`] and [`pressure`] tell how they were used;
//! [`run_urgently`] has a thread run before others, [`Awake`] keeps processors from sleeping,
//! and [`raise_file_limit`] lets this process open more files.

mod cgroup;
mod cores;
mod files;
mod idle;
mod memory;
mod pressure;
mod processors;
mod programs;
mod scheduling;
mod tasks;
mod usage;

pub use cores::{Core, bind_this_thread, cpu_list, is_bound_to};
pub use files::{open_files, raise_file_limit};
pub use idle::Awake;
pub use memory::{available_memory, total_memory};
pub use pressure::pressure_ns;
pub use processors::Processors;
pub use programs::{Others, Program, Programs};
pub use scheduling::{Scheduling, run_urgently};
pub use tasks::{OwnWaits, Thread, Waits, threads, waits_are_counted};
pub use usage::Usage;

/// A tick of `/proc`'s clocks (`USER_HZ`), ns.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}
