//! Server errors (section 9; in version 5, section 8).

use super::{Garbage, Version, reader::Reader};
use crate::ErrorClass;

/// An error returned by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Its code.
    pub code: u32,
    /// The server's message.
    pub message: &'a str,
    /// Further details.
    pub details: FailureDetails<'a>,
}

/// What an error carries besides its code and message. Consistency levels are given as codes (section 3), because a
/// server may have more of them than this program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureDetails<'a> {
    /// None, or none that can be decoded.
    None,
    /// Too few replicas are known to be alive.
    Unavailable {
        /// The requested level.
        consistency: u16,
        /// Replicas that the level needs.
        required: u32,
        /// Replicas that are alive.
        alive: u32,
    },
    /// Replicas have not acknowledged a write in time.
    WriteTimeout {
        /// The replies until then.
        replies: Replies,
        /// `SIMPLE`, `BATCH`, `UNLOGGED_BATCH`, `COUNTER`, `BATCH_LOG`, `CAS`, `VIEW`, `CDC`.
        write_type: &'a str,
        /// How often a conditional write has met competing ones. Version 5 only.
        contentions: Option<u16>,
    },
    /// Replicas have not answered a read in time.
    ReadTimeout {
        /// The replies until then.
        replies: Replies,
        /// The replica that was asked for the data has answered.
        data_present: bool,
    },
    /// Replicas have failed to read.
    ReadFailure {
        /// The replies until then.
        replies: Replies,
        /// How many have failed.
        failures: u32,
        /// The replica that was asked for the data has answered.
        data_present: bool,
    },
    /// Replicas have failed to write.
    WriteFailure {
        /// The replies until then.
        replies: Replies,
        /// How many have failed.
        failures: u32,
        /// As for [`FailureDetails::WriteTimeout`].
        write_type: &'a str,
    },
    /// A conditional write may have been applied or not.
    CasWriteUnknown {
        /// The replies until then.
        replies: Replies,
    },
    /// A user-defined function has failed.
    FunctionFailure {
        /// Its keyspace.
        keyspace: &'a str,
        /// Its name.
        function: &'a str,
    },
    /// It exists already.
    AlreadyExists {
        /// The keyspace, or that of the table.
        keyspace: &'a str,
        /// The table; empty if it is the keyspace.
        table: &'a str,
    },
    /// The server has forgotten a prepared statement.
    Unprepared {
        /// Its id.
        id: &'a [u8],
    },
}

/// What replicas had answered when the coordinator gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replies {
    /// The requested level.
    pub consistency: u16,
    /// Replicas that have answered.
    pub received: u32,
    /// Replicas that the level needs.
    pub required: u32,
}

impl<'a> Failure<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Garbage> {
        let (code, message) = (reader.int()?, reader.string()?);
        // Code and message are enough to continue with; servers other than Cassandra take liberties with the rest.
        let details = details(reader, code, version).unwrap_or(FailureDetails::None);
        Ok(Failure { code, message, details })
    }

    /// The class of its code.
    pub fn class(&self) -> ErrorClass {
        classify(self.code)
    }
}

fn details<'a>(reader: &mut Reader<'a>, code: u32, version: Version) -> Result<FailureDetails<'a>, Garbage> {
    let replies = |reader: &mut Reader<'a>| {
        Ok(Replies { consistency: reader.short()?, received: reader.int()?, required: reader.int()? })
    };
    // Version 4 gives the number of replicas that failed; version 5 lists them with their reasons.
    let failures = |reader: &mut Reader<'a>| {
        let count = reader.int()?;
        if version >= Version::V5 {
            (0..count).try_for_each(|_| {
                let length = reader.byte()?;
                reader.take(usize::from(length) + 2).map(drop)
            })?;
        }
        Ok(count)
    };
    Ok(match code {
        0x1000 => {
            FailureDetails::Unavailable { consistency: reader.short()?, required: reader.int()?, alive: reader.int()? }
        }
        0x1100 => FailureDetails::WriteTimeout {
            replies: replies(reader)?,
            write_type: reader.string()?,
            contentions: reader.short().ok(),
        },
        0x1200 => FailureDetails::ReadTimeout { replies: replies(reader)?, data_present: reader.byte()? != 0 },
        0x1300 => FailureDetails::ReadFailure {
            replies: replies(reader)?,
            failures: failures(reader)?,
            data_present: reader.byte()? != 0,
        },
        0x1400 => FailureDetails::FunctionFailure { keyspace: reader.string()?, function: reader.string()? },
        0x1500 => FailureDetails::WriteFailure {
            replies: replies(reader)?,
            failures: failures(reader)?,
            write_type: reader.string()?,
        },
        0x1700 => FailureDetails::CasWriteUnknown { replies: replies(reader)? },
        0x2400 => FailureDetails::AlreadyExists { keyspace: reader.string()?, table: reader.string()? },
        0x2500 => FailureDetails::Unprepared { id: reader.short_bytes()? },
        _ => FailureDetails::None,
    })
}

/// The class of an error code.
pub(crate) fn classify(code: u32) -> ErrorClass {
    match code {
        0x1000 => ErrorClass::Unavailable,
        0x1001 => ErrorClass::Overloaded,
        0x1002 => ErrorClass::Bootstrapping,
        // A conditional write of unknown outcome was not acknowledged by enough replicas, like one that timed out.
        0x1100 | 0x1700 => ErrorClass::WriteTimeout,
        0x1200 => ErrorClass::ReadTimeout,
        0x1300 => ErrorClass::ReadFailure,
        0x1500 | 0x1600 => ErrorClass::WriteFailure,
        0x2500 => ErrorClass::Unprepared,
        // Syntax, rights, invalid, configuration, already exists; and credentials, protocol.
        0x2000..=0x24FF | 0x0100 | 0x000A => ErrorClass::Invalid,
        _ => ErrorClass::ServerError,
    }
}
