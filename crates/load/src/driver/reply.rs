//! From the driver's results to what workloads judge.

use std::ops::ControlFlow;

use scylla::{
    deserialize::row::ColumnIterator,
    errors::{DbError, ExecutionError, RequestAttemptError},
    frame::{
        protocol_features::ProtocolFeatures,
        response::result::{CollectionType, ColumnType as Theirs, NativeType as Native},
    },
    response::{PagingStateResponse, query_result::QueryResult},
};

use crate::{
    ColumnType, ErrorClass, NativeType,
    wire::{
        Header, Version, failure, kind, metadata, opcode,
        write::{bytes, cell, int, string},
    },
};

/// An answer.
pub(crate) struct Reply {
    pub(super) result: QueryResult,
    /// Where the next page begins, if pages were requested.
    pub(super) page: Option<PagingStateResponse>,
    /// The request has said that the columns are known.
    pub(super) skip_metadata: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) class: ErrorClass,
    /// The server's error code; 0 if the error did not come from the server.
    pub(crate) code: u32,
    pub(crate) message: String,
}

impl Failed {
    pub(crate) fn unreadable(reason: &str) -> Self {
        Failed { class: ErrorClass::Unexpected, code: 0, message: format!("rows: {reason}") }
    }
}

impl From<ExecutionError> for Failed {
    fn from(error: ExecutionError) -> Self {
        use RequestAttemptError as Attempt;
        let ours = |class| Failed { class, code: 0, message: error.to_string() };
        match &error {
            ExecutionError::LastAttemptError(attempt) => match attempt {
                // Its error code is negotiated per connection.
                Attempt::DbError(DbError::RateLimitReached { .. }, _) => ours(ErrorClass::Overloaded),
                Attempt::DbError(reason, words) => {
                    let code = reason.code(&ProtocolFeatures::default()) as u32;
                    Failed { class: failure::classify(code), code, message: words.clone() }
                }
                Attempt::BrokenConnectionError(_) => ours(ErrorClass::ConnectionLost),
                Attempt::SerializationError(_)
                | Attempt::CqlRequestSerialization(_)
                | Attempt::UnableToAllocStreamId => ours(ErrorClass::Unwritable),
                Attempt::RepreparedIdChanged { .. } | Attempt::RepreparedIdMissingInBatch => {
                    ours(ErrorClass::Unprepared)
                }
                _ => ours(ErrorClass::Unexpected),
            },
            ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan => ours(ErrorClass::ConnectionLost),
            ExecutionError::BadQuery(_) => ours(ErrorClass::Unwritable),
            _ => ours(ErrorClass::Unexpected),
        }
    }
}

impl Reply {
    /// Appends to `out` the body that [`Reply::header`] belongs to: rows with their cells as received.
    ///
    /// # Errors
    /// Rows that the driver cannot decode.
    pub(crate) fn write(self, out: &mut Vec<u8>) -> Result<(), Failed> {
        if !self.result.is_rows() {
            int(out, kind::VOID);
            return Ok(());
        }
        let rows = self.result.into_rows_result().map_err(|error| Failed::unreadable(&error.to_string()))?;
        let specs = rows.column_specs();
        let state = self.page.map(PagingStateResponse::into_paging_control_flow);
        let state = match &state {
            Some(ControlFlow::Continue(state)) => state.as_bytes_slice(),
            _ => None,
        };
        int(out, kind::ROWS);
        let more = if state.is_some() { metadata::MORE_PAGES } else { 0 };
        int(out, more | if self.skip_metadata { metadata::NO_METADATA } else { 0 });
        int(out, specs.len() as u32);
        if let Some(state) = state {
            bytes(out, state);
        }
        if !self.skip_metadata {
            for column in specs.iter() {
                string(out, column.table_spec().ks_name());
                string(out, column.table_spec().table_name());
                string(out, column.name());
                column_type(column.typ()).append(out);
            }
        }
        int(out, rows.rows_num() as u32);
        for row in rows.rows::<ColumnIterator<'_, '_>>().map_err(|error| Failed::unreadable(&error.to_string()))? {
            for column in row.map_err(|error| Failed::unreadable(&error.to_string()))? {
                let column = column.map_err(|error| Failed::unreadable(&error.to_string()))?;
                cell(out, column.slice.map(|slice| slice.as_slice()));
            }
        }
        Ok(())
    }

    /// The header that belongs to what [`Reply::write`] writes.
    pub(crate) fn header(length: usize) -> Header {
        Header { version: Version::V4, flags: 0, stream: 0, opcode: opcode::RESULT, length }
    }
}

/// A type of the driver as one of ours.
fn column_type(theirs: &Theirs<'_>) -> ColumnType {
    let inner = |of: &Theirs<'_>| Box::new(column_type(of));
    match theirs {
        Theirs::Native(native) => ColumnType::Native(native_type(native)),
        Theirs::Collection { typ: CollectionType::List(of), .. } => ColumnType::List(inner(of)),
        Theirs::Collection { typ: CollectionType::Set(of), .. } => ColumnType::Set(inner(of)),
        Theirs::Collection { typ: CollectionType::Map(keys, values), .. } => {
            ColumnType::Map(inner(keys), inner(values))
        }
        Theirs::Tuple(of) => ColumnType::Tuple(of.iter().map(column_type).collect()),
        Theirs::UserDefinedType { definition, .. } => ColumnType::User {
            keyspace: definition.keyspace.to_string(),
            name: definition.name.to_string(),
            fields: definition.field_types.iter().map(|(name, of)| (name.to_string(), column_type(of))).collect(),
        },
        Theirs::Vector { typ, dimensions } => ColumnType::Custom(format!(
            "org.apache.cassandra.db.marshal.VectorType({} , {dimensions})",
            column_type(typ)
        )),
        _ => ColumnType::Custom(String::new()),
    }
}

fn native_type(native: &Native) -> NativeType {
    match native {
        Native::Ascii => NativeType::Ascii,
        Native::BigInt => NativeType::Bigint,
        Native::Blob => NativeType::Blob,
        Native::Boolean => NativeType::Boolean,
        Native::Counter => NativeType::Counter,
        Native::Date => NativeType::Date,
        Native::Decimal => NativeType::Decimal,
        Native::Double => NativeType::Double,
        Native::Duration => NativeType::Duration,
        Native::Float => NativeType::Float,
        Native::Inet => NativeType::Inet,
        Native::Int => NativeType::Int,
        Native::SmallInt => NativeType::Smallint,
        Native::Text => NativeType::Text,
        Native::Time => NativeType::Time,
        Native::Timestamp => NativeType::Timestamp,
        Native::Timeuuid => NativeType::Timeuuid,
        Native::TinyInt => NativeType::Tinyint,
        Native::Uuid => NativeType::Uuid,
        Native::Varint => NativeType::Varint,
        _ => NativeType::Unknown(0),
    }
}
