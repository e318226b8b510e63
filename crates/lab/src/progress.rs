//! What a lab reports while it works; the command line decides how it is shown.

use std::time::Duration;

/// Listens to a lab, or to several at once.
pub trait Progress: Send {
    /// What is told from now on is of this one of several labs, numbered from 1; never called where there is only one.
    fn of_lab(&mut self, lab: u32);
    /// Something is being set up or ended.
    fn step(&mut self, text: &str);
    /// Something happened that a person should see: a fault came into force, a node died.
    fn note(&mut self, text: &str);
    /// Another process shows what comes next on the same terminal, until this one tells again.
    fn hand_over(&mut self);
    /// A second of load has passed.
    fn tick(&mut self, tick: &Tick);
}

/// Where a trial stands among all of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Its number in the design, from 1.
    pub trial: u32,
    /// Of this many.
    pub trials: u32,
    /// What all trials after it will take.
    pub behind: Duration,
}

/// One operation in one second of load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationTick {
    /// Its name.
    pub name: String,
    /// Answered ok.
    pub ok: u64,
    /// Timed out.
    pub timed_out: u64,
    /// Median response of both, ns.
    pub p50_ns: u64,
}

/// One second of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The trial.
    pub course: Course,
    /// Left of the whole run, about.
    pub left_of_run: Duration,
    /// `warm-up (flood)`, `baseline`, …
    pub phase: String,
    /// Left of the phase, at most.
    pub left: Duration,
    /// Operations per second that were to start.
    pub offered: f64,
    /// Operations per second answered without error.
    pub delivered: f64,
    /// Failed, timed out and never sent in this second.
    pub failed: u64,
    /// Median response of those answered ok and timed out in this second, ns.
    pub p50_ns: u64,
    /// The 99th percentile of the same, ns.
    pub p99_ns: u64,
    /// Median response per coordinator, of the same, ns.
    pub coordinators: Vec<(String, u64)>,
    /// By the names of operations, of those that began in the last whole second.
    pub operations: Vec<OperationTick>,
    /// The faults in force, in words.
    pub faults: Vec<String>,
    /// Share of the machine's processors in use, 0 to 1.
    pub busy: f64,
}
