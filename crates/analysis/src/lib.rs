//! From a run to findings: pure functions of what was recorded.
//!
//! [`findings`] reads a run and says what it shows; [`exit_code`] is what a program should end with.
//! The definitions of all numbers are in `docs/definitions.md`, the object they make in `docs/json.md`.
//!
//! One file has one definition: [`phases`](PhaseFindings) what the load met, [`goodput`](Effect) what the fault took,
//! [`recovery`](RecoveryOverTrials) when it came back, [`proof`](FaultFindings) whether it was in force (its `segments`
//! of time, the `subject`s looked at, the `target` to be seen there, and how to `judge` that), [`balance`](Balance)
//! whether every operation ended somewhere, [`instrument`](Instrument) whether the measurement itself was sound,
//! [`effects`](CellEffect) what the faults of a cell did and [`factors`](FactorFindings) what its levels do, both judged by
//! `family`, `drift` whether baselines changed in the course of a run or within themselves, `cost` whether one took more CPU
//! time for the same work than the others, `disturbance` whether the nodes had the processors to themselves,
//! [`harm`](HarmFindings) what nobody asked for, `possible` whether its latencies can be true, [`little`](ClosedLoop),
//! [`standstill`](Standstill) and [`explained`](Explained) what arithmetic alone explains, [`clocks`](ClockMatrix) how far
//! apart hosts and their clocks are, [`database`](DatabaseFindings) what the database says that it did, `leaders`
//! ([`Leadership`]) who led it, `timed` ([`Mean`]) how long its fsyncs took, `watches` ([`WatchLag`]) how far its watches
//! lagged, [`detectors`] whether anyone would have noticed, [`search`] where a search goes on and what it has
//! found, [`verdict`](Verdict) what follows; [`compare`] puts runs beside each other, and
//! [`glimpse`](Glimpse) says without a run what a short look shows of a fault.

mod balance;
mod cell_effect;
mod cells;
mod clocks;
mod clustered;
mod compare;
mod cost;
mod database;
mod detector_summary;
pub mod detectors;
mod distribution;
mod disturbance;
mod drift;
mod effects;
mod error;
mod evidence;
mod explained;
mod factors;
mod family;
mod findings;
mod gave_up;
mod glimpse;
mod goodput;
mod harm;
mod index;
mod instrument;
mod judge;
mod judgement;
mod labs;
mod latency;
mod leaders;
mod lingering;
mod links;
mod little;
mod losses;
mod machines;
mod measure;
mod membership;
mod missed;
mod objective;
mod observe;
mod operations;
mod outcome;
mod phases;
mod pilot;
mod pooled;
mod possible;
mod proof;
mod recovery;
mod routes;
mod samples;
pub mod search;
mod segments;
mod stalls;
mod standstill;
pub mod stats;
mod steady;
mod strain;
mod subject;
mod sums;
mod target;
mod timed;
mod timeline;
mod trial;
mod under_test;
mod verdict;
mod warnings;
mod watches;
pub mod words;

pub use balance::Balance;
pub use cell_effect::CellEffect;
pub use cells::{CellFindings, DesignFindings, Factor};
pub use clocks::{ClockMatrix, ClockPair};
pub use compare::{COMPARISON_FORMAT, Compared, Comparison, Sample, Setting, Side, compare};
pub use database::{Counter, DatabaseFindings, DatabasePhase, Gauge, Mark, NodeEvidence, Pauses, Score, Values};
pub use detector_summary::{DetectorSummary, summaries as detector_summaries};
pub use detectors::DetectorFindings;
pub use disturbance::{HINDERED_SHARE, OTHERS_SHARE, Taker, UNSEEN_SHARE};
#[doc(hidden)]
pub use effects::effects;
pub use effects::trial_effect;
pub use error::AnalysisError;
pub use evidence::{Interval, PhaseWindow, TrialEvidence, phase};
pub use explained::{
    Candidate, Delayed, Explained, Floor, Loss, Prediction, Shifted, Touched, touchable, touchable_by_role,
};
pub use factors::{FactorFindings, FactorOutcome, factors};
pub use family::MARGIN;
pub use findings::{FORMAT, Findings, Judge, Judged, findings};
pub use glimpse::{Glimpse, Worked, clock_glimpse, limit_glimpse};
pub use goodput::Effect;
pub use harm::HarmFindings;
pub use instrument::{
    CHANGED_SHARE, Cpu, Errors, Instrument, LATE_LOAD_NS, LATE_RELEASE_NS, LATE_SHARE, Punctuality, SATURATED_SHARE,
    STOOD_STILL_SHARE,
};
pub use judgement::{Proof, SourceSeen};
pub use labs::LabFindings;
pub use latency::{Due, Latencies, Quantile, Response, Short};
pub use leaders::{Leadership, Led};
pub use little::{ClosedLoop, Little};
pub use machines::{LOST_SHARE, MachineClock, MachineFindings, MachineLost};
pub use objective::ObjectiveMiss;
pub use operations::OperationEffect;
pub use outcome::Outcome;
pub use phases::{Counts, Part, PhaseFindings, Range, Rates, Spread};
pub use pilot::{Visible, factor_of_one, visible};
pub use proof::{EncryptionFindings, FaultFindings, LoggedConnection, MarkedLink, PeriodFindings, ProofRow};
pub use recovery::RecoveryOverTrials;
pub use routes::Routes;
pub use search::{
    CapacityFindings, CapacityOutcome, DangerZone, Lesson, LevelFindings, MaxRate, SearchFindings, ThresholdFindings,
    ThresholdOutcome,
};
pub use segments::{BRIEF_NS, REACH_NS, SETTLE_NS, margin_within, reach_within, sent_margin, stall_margin};
pub use stalls::{LATE_PROBE_NS, WAITED_SHARE};
pub use standstill::{Standstill, StandstillQuantile};
pub use stats::ENOUGH;
pub use target::clumping;
pub use timed::{Mean, Timed, TimedStep, timed};
pub use timeline::{Point, phase_latencies, timeline};
pub use trial::{Meanwhile, NodeDeath, TrialFindings, Validity};
pub use under_test::UnderTest;
pub use verdict::Verdict;
pub use watches::WatchLag;

/// The exit code that follows from findings: 0 valid · 1 the objective was missed in a phase in which it must hold ·
/// 3 the evidence is disturbed, invalid or inconclusive · 130 interrupted.
pub fn exit_code(findings: &Findings) -> u8 {
    findings.verdict.exit_code
}
