//! What is kept of a run: as much as the tables and plots of a study need, and where it comes from.

use std::{fmt::Write, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StudyError;

/// Version of the file.
pub const FORMAT: u32 = 2;

/// A run, reduced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Version of this object.
    pub format: u32,
    /// The experiment's name.
    pub name: String,
    /// The command that made the run.
    pub command: String,
    /// The day on which it began, UTC.
    pub date: String,
    /// The machine and the versions.
    pub environment: Machine,
    /// `valid`, `disturbed`, `invalid`, `interrupted`.
    pub validity: String,
    /// The run's verdict.
    pub sentence: String,
    /// Trials that were planned.
    pub planned: u32,
    /// Trials that were run, those that were repeated too.
    pub run: u32,
    /// Trials whose evidence can be used.
    pub valid: u32,
    /// What varies.
    pub factors: Vec<String>,
    /// Trials without a fault: those that the first cell is compared with.
    pub without: Option<Without>,
    /// Each combination of levels.
    pub cells: Vec<Cell>,
    /// Where the loss of throughput passes 10 % and 50 %, if one severity varies.
    pub zone: Option<Zone>,
}

/// The machine and the versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Of Brownout.
    pub brownout: String,
    /// "Cassandra 5.0.9", "etcd 3.6.16": that of the first cell.
    pub system: String,
    /// Of Java.
    pub java: String,
    /// Of the kernel.
    pub kernel: String,
    /// Model of the processors.
    pub cpu: String,
    /// How many of them.
    pub cores: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// "root" or "user namespace".
    pub privilege: String,
    /// TCP congestion control.
    pub congestion_control: String,
    /// What all randomness was drawn from.
    pub seed: u64,
}

/// Trials without a fault, in the same phases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// How many valid ones.
    pub trials: u32,
    /// Their phases: means over trials of rates and latencies.
    pub phases: Vec<Phase>,
    /// What each of them lost of what it had acknowledged, in the same phase.
    pub lost: Vec<Lost>,
    /// One of them, second by second.
    pub series: Option<Series>,
}

/// A combination of levels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its level of each factor.
    pub levels: Vec<String>,
    /// Virtual users of a closed loop.
    pub threads: Option<u32>,
    /// Operations due per second in an open one.
    pub rate: Option<f64>,
    /// Copies of each row.
    pub replication: u32,
    /// What is written, where the plan knows.
    pub writes: Option<Writes>,
    /// Valid trials.
    pub trials: u32,
    /// What each of them showed in its baseline, in the order in which they were run.
    pub baselines: Vec<Baseline>,
    /// Phases over these together.
    pub phases: Vec<Phase>,
    /// What the faults did, by figure.
    pub effects: Vec<Effect>,
    /// What arithmetic says beforehand.
    pub predicted: Option<Predicted>,
    /// What shows that the faults were there.
    pub proofs: Vec<Proof>,
    /// What each of its trials lost of what it had acknowledged, in its fault phase; empty without such a phase.
    pub lost: Vec<Lost>,
    /// How far hosts and their clocks are apart, by phase, in one of its trials; empty where they do not ask.
    pub clocks: Vec<Clocks>,
    /// How often somebody was elected leader in the fault phase, mean of its trials; none for a database that has none.
    pub elections: Option<f64>,
    /// What follows for it, in one sentence.
    pub sentence: String,
    /// One of its trials, second by second.
    pub series: Option<Series>,
}

/// What a load writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// Rows, each written as often as any other.
    pub rows: u64,
    /// Their share of all operations.
    pub share: f64,
}

/// What one trial showed in its baseline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Its block.
    pub block: u32,
    /// Answered ok or timed out, per second.
    pub throughput: f64,
    /// Mean response time of these, ns.
    pub mean_ns: Option<f64>,
    /// Their 99th percentile.
    pub p99_ns: Option<f64>,
    /// Who used the processors.
    pub processors: Option<Processors>,
}

/// Who used the lab's processors; all but `cores` are shares of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    /// How many there were.
    pub cores: f64,
    /// Busy with anything.
    pub busy: f64,
    /// All nodes together.
    pub nodes: f64,
    /// All of Brownout: the load, the emulator, an overlay, what watches.
    pub instrument: f64,
    /// The load, of that.
    pub load: f64,
    /// The emulator, of that.
    pub emulator: f64,
    /// The overlay's thread and processes, of that; 0 without one.
    pub overlay: f64,
}

/// What one trial lost of what it had acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Acknowledged writes that a later read looked for.
    pub looked_for: u64,
    /// Those of them that it did not find.
    pub lost: u64,
    /// In so many seconds.
    pub seconds: f64,
}

/// How far hosts and their clocks are apart, in one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// `baseline`, `fault`, `recovery`.
    pub phase: String,
    /// Each ordered pair.
    pub pairs: Vec<ClockPair>,
}

/// What one host has learned of another's clock; medians over the phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPair {
    /// Who asked.
    pub host: String,
    /// Who was asked.
    pub server: String,
    /// Round trip, ns.
    pub round_trip_ns: f64,
    /// The server's clock − the host's, ns, if both ways take equally long.
    pub offset_ns: f64,
    /// The truth lies within ± this, ns.
    pub bound_ns: f64,
    /// Growth of the offset, ns per s.
    pub drift_ppb: Option<f64>,
}

/// A phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Answered ok, per second.
    pub delivered: f64,
    /// Answered ok within the objective, per second.
    pub good: f64,
    /// Failed, per second.
    pub failed: f64,
    /// Timed out, per second.
    pub timed_out: f64,
    /// Mean response time of those answered ok and those that timed out, ns.
    pub mean_ns: Option<f64>,
    /// The median of the same.
    pub p50_ns: Option<f64>,
    /// Their 95th percentile.
    pub p95_ns: Option<f64>,
    /// Their 99th percentile.
    pub p99_ns: Option<f64>,
    /// It lies among operations that timed out: the true value may be larger.
    pub p99_at_least: bool,
}

impl Phase {
    /// What frees a waiting user and has a response time, per second.
    pub fn throughput(&self) -> f64 {
        self.delivered + self.timed_out
    }
}

/// What the faults did to a figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// `goodput`, `delivered`, `p50`, `p99`.
    pub figure: String,
    /// `worse`, `better`, `no-difference`, `changed`, `inconclusive`, `not-judged`.
    pub outcome: String,
    /// (with − without) ÷ without.
    pub change: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Complete blocks behind it.
    pub blocks: u32,
}

impl Cell {
    /// What its faults did to a figure; none if nobody judged that.
    pub fn effect(&self, figure: &str) -> Option<&Effect> {
        self.effects.iter().find(|effect| effect.figure == figure)
    }
}

/// What arithmetic alone says of a cell, means over its trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// `throughput` or `goodput`.
    pub figure: String,
    /// Share of the operations that meet a delay, at least.
    pub share: f64,
    /// Loss if the database chooses the best replicas for every operation.
    pub least: f64,
    /// If it chooses the worst.
    pub most: f64,
}

/// What shows that a fault was there: over all places that it hits in the cell's trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The fault.
    pub text: String,
    /// `one-way-delay`, `loss`, …
    pub quantity: String,
    /// Trials in which it was proven …
    pub proven: u32,
    /// … of so many that were run.
    pub trials: u32,
    /// What was asked, ns or a share.
    pub asked: f64,
    /// Who looked.
    pub sources: Vec<Source>,
    /// The most that any place that it spares has shown of it.
    pub spared: Option<f64>,
}

/// What one source saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `probes`, `counters`.
    pub name: String,
    /// Mean over places, by their samples.
    pub seen: f64,
    /// Probes or packets behind it.
    pub samples: u64,
}

/// One trial, second by second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its number.
    pub trial: u32,
    /// When the fault phase began and ended, in seconds since the baseline began.
    pub fault: (f64, f64),
    /// When intervals began, in seconds since the baseline began.
    pub seconds: Vec<f64>,
    /// Answered ok, per second.
    pub delivered: Vec<Option<f64>>,
    /// Mean response time, ms.
    pub mean_ms: Vec<Option<f64>>,
    /// 99th percentile, ms.
    pub p99_ms: Vec<Option<f64>>,
    /// When a leader was elected, in seconds since the baseline began.
    pub elections: Vec<f64>,
}

/// A danger zone: where a loss of throughput passes its thresholds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// What varies.
    pub factor: String,
    /// Of 10 % and 50 %.
    pub crossings: Vec<Crossing>,
}

/// Where a loss is passed for the first time, as severities: ns or shares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossing {
    /// The loss.
    pub loss: f64,
    /// The largest severity that surely lies before it.
    pub low: Option<f64>,
    /// The smallest that surely lies behind it.
    pub high: Option<f64>,
    /// Severities behind it at which the loss surely is smaller again.
    pub back: Vec<f64>,
}

impl Stored {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not what this version writes.
    pub fn read(path: &Path) -> Result<Stored, StudyError> {
        let text = fs::read_to_string(path).map_err(|error| StudyError::file(path, error))?;
        let stored: Stored = serde_json::from_str(&text).map_err(|error| StudyError::file(path, error))?;
        if stored.format != FORMAT {
            return Err(StudyError::file(
                path,
                format!("it has format {}, this version reads {FORMAT}", stored.format),
            ));
        }
        Ok(stored)
    }

    /// As JSON: a field to a line, but lists of plain values on one line, so that a second is no line of its own.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let mut out = String::new();
        write(&mut out, &serde_json::to_value(self)?, 0);
        out.push('\n');
        Ok(out)
    }
}

/// Writing to a `String` cannot fail.
fn write(out: &mut String, value: &Value, depth: usize) {
    let indent = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:1$}", "", depth * 2);
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                let _ = write!(out, "{}: ", Value::from(name.as_str()));
                write(out, field, depth + 1);
            }
            indent(out, depth);
            out.push('}');
        }
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                write(out, value, depth + 1);
            }
            indent(out, depth);
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}
