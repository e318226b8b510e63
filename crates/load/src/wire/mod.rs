//! The CQL binary protocol, version 4, as far as load needs it: framing, the handshake, prepared statements.
//!
//! Source: the protocol's own specification, `doc/native_protocol_v4.spec` in Apache Cassandra. Section numbers
//! in this module are that document's. Every integer is big-endian.

pub(crate) mod request;
pub(crate) mod response;

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
    pub(crate) const DEFAULT_TIMESTAMP: u8 = 0x20;
}

/// Flags of rows' metadata (section 4.2.5.2).
pub(crate) mod metadata {
    pub(crate) const GLOBAL_TABLE: u32 = 0x01;
    pub(crate) const MORE_PAGES: u32 = 0x02;
    pub(crate) const NO_METADATA: u32 = 0x04;
}
