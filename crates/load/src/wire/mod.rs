//! The CQL binary protocol, versions 4 and 5: framing, the handshake, requests, answers.
//!
//! Source: the protocol's own specification, `doc/native_protocol_v4.spec` and `doc/native_protocol_v5.spec` in Apache
//! Cassandra. Section numbers in this module are those of version 4 unless stated otherwise. Every integer is
//! big-endian, except in the framing of version 5.

pub(crate) mod answer;
mod column;
mod compose;
mod compression;
mod crc;
pub(crate) mod failure;
mod frame;
mod garbage;
mod handshake;
mod inbox;
mod options;
mod outbox;
pub(crate) mod reader;
mod rows;
mod segment;
mod statements;
pub(crate) mod write;

pub use answer::{Answer, Prepared, SchemaChange, Supported};
pub use column::{Column, ColumnType, NativeType};
pub(crate) use compose::compose;
pub use compose::{Batch, BatchKind, Parameters, Request, RequestError, Values};
pub use compression::{Compression, UnknownCompression};
pub use failure::{Failure, FailureDetails, Replies};
pub(crate) use frame::{Framing, Header, Sender};
pub(crate) use garbage::Garbage;
pub(crate) use handshake::{Handshake, HandshakeError, Progress, prepare};
pub(crate) use inbox::{Body, Inbox};
pub use options::{Credentials, Protocol, UnknownProtocol, WireOptions};
pub(crate) use outbox::Outbox;
pub use rows::{Cells, Row, RowIter, Rows};
#[cfg(any(test, fuzzing))]
pub(crate) use segment::Segments;
pub(crate) use statements::Statements;

/// Version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Cassandra 2.2 and newer, ScyllaDB.
    V4 = 4,
    /// Cassandra 4.0 and newer.
    V5 = 5,
}

/// The longest body of a frame: 256 MiB (2.5).
pub(crate) const LONGEST_BODY: usize = 256 << 20;

/// Length of a frame's header: version, flags, stream (2), opcode, body length (4). Section 1.
pub(crate) const HEADER: usize = 9;

/// The highest stream id a client may use: ids are signed 16-bit and negative ones belong to the server (2.3).
pub(crate) const LAST_STREAM: u16 = i16::MAX as u16;

/// Opcodes (section 2.4).
pub(crate) mod opcode {
    pub(crate) const ERROR: u8 = 0x00;
    pub(crate) const STARTUP: u8 = 0x01;
    pub(crate) const READY: u8 = 0x02;
    pub(crate) const AUTHENTICATE: u8 = 0x03;
    pub(crate) const OPTIONS: u8 = 0x05;
    pub(crate) const SUPPORTED: u8 = 0x06;
    pub(crate) const QUERY: u8 = 0x07;
    pub(crate) const RESULT: u8 = 0x08;
    pub(crate) const PREPARE: u8 = 0x09;
    pub(crate) const EXECUTE: u8 = 0x0A;
    pub(crate) const REGISTER: u8 = 0x0B;
    pub(crate) const EVENT: u8 = 0x0C;
    pub(crate) const BATCH: u8 = 0x0D;
    pub(crate) const AUTH_CHALLENGE: u8 = 0x0E;
    pub(crate) const AUTH_RESPONSE: u8 = 0x0F;
    pub(crate) const AUTH_SUCCESS: u8 = 0x10;
}

/// Kinds of RESULT (section 4.2.5).
pub(crate) mod kind {
    pub(crate) const VOID: u32 = 1;
    pub(crate) const ROWS: u32 = 2;
    pub(crate) const SET_KEYSPACE: u32 = 3;
    pub(crate) const PREPARED: u32 = 4;
    pub(crate) const SCHEMA_CHANGE: u32 = 5;
}

/// Flags of a frame's header (section 2.2).
pub(crate) mod flag {
    pub(crate) const COMPRESSION: u8 = 0x01;
    pub(crate) const TRACING: u8 = 0x02;
    pub(crate) const CUSTOM_PAYLOAD: u8 = 0x04;
    pub(crate) const WARNING: u8 = 0x08;
}

/// Flags of query parameters (section 4.1.4).
pub(crate) mod query {
    pub(crate) const VALUES: u8 = 0x01;
    pub(crate) const SKIP_METADATA: u8 = 0x02;
    pub(crate) const PAGE_SIZE: u8 = 0x04;
    pub(crate) const PAGING_STATE: u8 = 0x08;
    pub(crate) const SERIAL_CONSISTENCY: u8 = 0x10;
    pub(crate) const DEFAULT_TIMESTAMP: u8 = 0x20;
}

/// Flags of rows' metadata (section 4.2.5.2).
pub(crate) mod metadata {
    pub(crate) const GLOBAL_TABLE: u32 = 0x01;
    pub(crate) const MORE_PAGES: u32 = 0x02;
    pub(crate) const NO_METADATA: u32 = 0x04;
    /// Version 5: the id of the new metadata follows.
    pub(crate) const CHANGED: u32 = 0x08;
}
