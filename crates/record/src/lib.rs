//! The run store: what happened, on one time line, in one SQLite file.
//!
//! A run is written as it happens ([`Recorder`]) and can be read for ever ([`Run`]). All times are
//! nanoseconds on the run's own axis: `CLOCK_MONOTONIC` minus the run's zero, so the first thing a
//! run does is near 0. [`Recorder::at`] converts.
//!
//! The file is in WAL mode and every batch is one transaction: when the writer is killed at any
//! moment, all batches up to that moment are there and none is half there. The layout is in
//! `schema.sql`; `docs/run-file.md` explains it for people with another SQLite client.

mod assignments;
mod blob;
mod clock;
mod description;
mod design;
mod document;
mod encoded;
mod error;
mod evidence;
mod fault;
mod format;
mod latencies;
mod lost_load;
mod machine;
mod merge;
mod open;
mod placement;
mod reader;
mod readers;
mod recorder;
mod rows;
mod samples;
mod times;

pub use blob::{decode_histogram, encode_histogram};
pub use clock::ClockRow;
pub use description::{
    Description, Environment, HostDescription, LoadDescription, LoadPart, Objective, PhaseDescription,
};
pub use design::{CellRow, DesignDescription, FactorDescription, SearchDescription, SessionRow};
pub use document::Document;
pub use encoded::{EncodedTimes, add_encoded};
pub use error::RecordError;
pub use evidence::EvidenceRow;
pub use fault::{Expectation, FaultRecord, Period, Quantity, Severity, Stamp, Subject};
pub use latencies::{Latencies, Percentile, Population, percentile};
pub use lost_load::LostLoad;
pub use machine::{MachineClockRow, MachineRole, MachineRow};
pub use merge::{Intervals, TrialPart, merge};
pub use placement::{NodePlacement, OperationPlacement, PairDistance, Placement};
pub use reader::Run;
pub use readers::wait_for_readers;
pub use recorder::Recorder;
pub use rows::{
    Arm, CpuRow, Event, HostCounterRow, LatencyRow, LinkReading, LinkRow, LoadRow, OperationRows, PhaseRow, ProbeRow,
    ProbeSample, TrialRow, TrialState, WitnessRow,
};
pub use times::AddTo;

/// Latencies and errors in nanoseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;
