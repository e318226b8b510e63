//! The lab: an experiment file becomes a [`Design`], its cells become plans, its blocks become trials, and all of it happens in
//! namespaces that vanish with it.
//!
//! Outside ([`launch()`]): check the machine, provide Cassandra and Java, make the run's directory, start the lab's first process
//! and wait. Inside ([`inside`]): furnish the mounts, then trial after trial a stand (a network with a cluster on it, the one of the
//! trial before if it has come to rest), the load, the phases and the faults, everything recorded second by second. A run that ended
//! early is gone on with by what its file says of it ([`resume()`]). Where a file asks for several labs at once, each is bound to
//! processors of its own ([`labs`]).
//!
//! An experiment may be run on containers that run already: then there is no lab, and its hosts are entered where they are.

pub mod byhand;
mod clear_text;
mod competition;
mod containers;
mod controls;
mod cpu;
pub mod design;
mod error;
mod evidence;
pub mod experiment;
pub mod faults;
mod filling;
mod ground;
mod host_failures;
pub mod hosts;
pub mod labs;
mod launch;
mod live;
mod load_engine;
pub mod machine;
pub mod machines;
mod made;
mod observer;
mod own_data;
mod paces;
mod phases;
pub mod plan;
pub mod planner;
pub mod progress;
mod provided;
mod request;
mod resume;
mod run;
mod run_directory;
mod schedule;
mod selftest;
mod shares;
mod silence;
mod software;
mod spec;
mod stand;
mod testbed;
mod timeline;
mod trial;
mod warmup;
mod watched;
mod witness;
mod worker;

pub use design::Design;
pub use error::LabError;
pub use ground::{Interrupts, catch_interrupts};
pub use launch::{Ended, RunOptions, inside, launch};
pub use plan::Plan;
pub use request::INSIDE;
pub use resume::{More, Resumed, resume};
