//! What a lab reports while it works; the command line decides how it is shown.

use std::time::Duration;

/// Listens to a lab.
pub trait Progress {
    /// Something is being set up or ended.
    fn step(&mut self, text: &str);
    /// Something happened that a person should see: a fault came into force, a node died.
    fn note(&mut self, text: &str);
    /// Another process shows what comes next on the same terminal, until this one tells again.
    fn hand_over(&mut self);
    /// A second of load has passed.
    fn tick(&mut self, tick: &Tick);
}

/// One second of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// From 1.
    pub trial: u32,
    /// Of this many.
    pub trials: u32,
    /// `warm-up (flood)`, `baseline`, …
    pub phase: String,
    /// Left of the phase, at most.
    pub left: Duration,
    /// Operations per second that were to start.
    pub offered: f64,
    /// Operations per second answered without error.
    pub delivered: f64,
    /// Failed and timed out in this second.
    pub failed: u64,
    /// Of the operations that ended in this second, ns.
    pub p50_ns: u64,
    /// Of the operations that ended in this second, ns.
    pub p99_ns: u64,
    /// Median response per coordinator, ns.
    pub coordinators: Vec<(String, u64)>,
    /// By the names of operations, of those that began in the last whole second: answered ok, and median response, ns.
    pub operations: Vec<(String, u64, u64)>,
    /// The faults in force, in words.
    pub faults: Vec<String>,
    /// Share of the machine's processors in use, 0 to 1.
    pub busy: f64,
}
