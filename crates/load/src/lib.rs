//! Load generation: what is asked of the database, when, over which protocol, and how long it took.
//!
//! `workload` (what) → `schedule` (when) → `wire` (CQL frames) or `etcd` (gRPC) → `account` (latency and balance sheet).
//! The [`Engine`] puts them together: an open loop by default, whose latencies count from the intended starts, and in
//! which nothing is dropped or held back without being counted. It knows nothing of faults, labs or namespaces: it is
//! given addresses, and a hook that every thread it starts calls first.
//!
//! [`control`] does control work (schema, metadata) through the `scylla` driver; [`stub`] is a small CQL server for
//! benchmarks and for faults that a real server cannot be made to show.

#![allow(unexpected_cfgs, reason = "cargo-fuzz sets cfg(fuzzing), which cargo does not know")]

mod account;
mod arrivals;
mod config;
mod consistency;
pub mod control;
mod driver;
mod engine;
mod error;
mod etcd;
mod etcd_call;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod limit;
mod marker;
mod pace;
pub mod query;
mod retries;
mod ring;
mod schedule;
mod session;
pub mod stub;
mod sys;
mod token;
mod transport;
mod value;
mod wire;
mod workload;

pub use account::{
    Attempts, Balance, Bucket, ConnectionEvent, ErrorClass, LATE_START_NS, Live, OperationCounts, Outcome, Series,
    histogram, late_patience_ns,
};
pub use arrivals::Arrivals;
pub use config::{Balancing, Coordinator, DEFAULT_TICK, DataPath, EngineConfig, Part, ThreadStart, stay};
pub use consistency::{Consistency, SerialConsistency, UnknownConsistency};
pub use engine::Engine;
pub use error::LoadError;
pub use etcd::EtcdLoad;
pub use etcd_call::{Call, Reply};
pub use hdrhistogram::Histogram;
pub use pace::{Pace, PaceChange, Progress, Refusal};
pub use retries::{ErrorClasses, Retries, RetryDelay};
pub use ring::{TokenRange, TokenRing};
pub use schedule::RateProfile;
pub use token::murmur3_token;
pub use transport::{Identity, ServerTls, Tls, TlsError, TlsOptions, TrustStore, tls_reason};
pub use wire::{
    Answer, Batch, BatchKind, Cells, Column, ColumnType, Compression, Credentials, Failure, FailureDetails, NativeType,
    Parameters, Prepared, Protocol, Replies, Request, RequestError, Row, RowIter, Rows, SchemaChange, Supported,
    UnknownCompression, UnknownProtocol, Values, Version, WireOptions,
};
pub use workload::{
    Drawn, Ended, Ending, Finding, KeyValue, LARGEST_ANSWER, Meaning, Next, Received, Route, Sending, ServerError,
    Table, ThreadWorkload, Ticket, Timestamps, WatchedRange, Workload,
};
