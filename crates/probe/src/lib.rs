//! Probes and trains: one-way delay, loss, copies, reordering and rate, measured between hosts that can be entered.
//!
//! What is measured is a [`Mesh`](brownout_base::Mesh): hosts on one machine, a network namespace each, whoever made them
//! and the links between them. Whatever is sent travels as the packets of the hosts' own programs do.
//!
//! - [`Probes`] are small datagrams on every link all the time. They give delay, loss, copies and reordering.
//! - [`Trains`] are short bursts on links whose rate is asked for.
//!
//! Both go on where a host is somewhere else after a while (`left`, `came`). Where hosts are on several machines, each machine measures the
//! links that begin there, and is told by the others ([`FarEnd`]) what has arrived.

mod error;
mod far_end;
mod moves;
mod probes;
mod prompt;
mod selection;
mod socket;
mod stamps;
mod train;

use std::time::Duration;

pub use error::ProbeError;
pub use far_end::{FarArrival, FarEnd, Tell};
pub use probes::{ProbeHealth, ProbeSample, Probes};
pub use train::{TrainSample, TrainSpec, Trains};

/// What has not arrived after this and the longest that its link may hold it will not arrive.
const LOST_AFTER: Duration = Duration::from_secs(2);
