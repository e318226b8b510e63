//! Runs over several machines: one controller, and on each machine a part.
//!
//! A part is a process of this program on the machine where it has something to do, which a controller has started there and speaks to
//! over its standard input and output, whoever carries those ([`part`]). An *agent* is attached to the hosts of its machine: it carries
//! what they send, puts faults in force, probes, and looks at the database, as a lab does. A *load* sends its share of the operations.
//! Each records by its own clock; in the end the controller makes one record of all ([`brownout_record::merge`]).
//!
//! ```text
//! controller ─┬─ agent on machine a   hosts n1, n2    the links that begin there
//!             ├─ agent on machine b   host n3         the links that begin there
//!             ├─ load 0                               operations 0, 2, 4, …
//!             └─ load 1                               operations 1, 3, 5, …
//! ```
//!
//! Agents tell each other what has arrived ([`relay`]) and what their clocks show ([`brownout_clock::offset`]). What is to happen
//! is told ahead, in times of one of their clocks, so that it comes on time whatever becomes of the controller; but without a sign of
//! life from it for [`LEASE`], every part heals what it has done, and ends.

mod agent;
mod find;
mod fleet;
mod left;
mod line;
mod load;
mod mesh;
mod message;
mod part;
mod pods;
mod relay;
mod run;
mod scratch;
mod shares;
mod trial;
mod waiting;

use std::{path::Path, time::Duration};

pub use brownout_kubernetes::manifests;
pub use find::PART;
pub(crate) use find::{ByCommands, find_on, provided, survey};
pub use fleet::{Happening, Reach, Started, by_command};
pub use part::part;
pub(crate) use pods::{ByPods, LoadPods, find_pods};
pub use pods::{leave_nothing, remove_all};
pub(crate) use run::{Attempted, Machines, settings};
pub use waiting::wait_in_pod;

use crate::{LabError, plan::Layout};

/// How long a part goes on without a sign of life from the controller.
pub const LEASE: Duration = Duration::from_secs(10);

/// In which way the machines of a layout are reached, in a run whose directory this is.
pub(crate) fn reach(layout: &Layout, run: &Path) -> Result<Box<dyn Reach>, LabError> {
    Ok(match &layout.pods {
        Some(pods) => Box::new(ByPods::of_run(pods, run).map_err(LabError::Machine)?),
        None => Box::new(ByCommands(layout.machines.clone())),
    })
}
