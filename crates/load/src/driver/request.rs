//! From a request as workloads write it to a request of the driver.

use std::{num::NonZeroU32, sync::Arc};

use scylla::{
    client::session::Session,
    errors::ExecutionError,
    response::{PagingState, PagingStateResponse, query_result::QueryResult},
    serialize::{
        SerializationError,
        row::{RowSerializationContext, SerializeRow},
        writers::RowWriter,
    },
    statement::{
        Consistency, SerialConsistency,
        batch::{Batch, BatchStatement, BatchType},
        prepared::PreparedStatement,
        unprepared::Statement,
    },
};

use super::reply::{Failed, Reply};
use crate::wire::{HEADER, opcode, query, reader::Reader};

/// The id of a statement in requests composed for the driver: its number.
pub(super) fn id(number: usize) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

/// Values in wire format: a length of four bytes each, then the content.
#[derive(Debug, Default)]
pub(super) struct Serialized {
    count: u16,
    bytes: Vec<u8>,
}

impl SerializeRow for Serialized {
    fn serialize(&self, _: &RowSerializationContext<'_>, writer: &mut RowWriter<'_>) -> Result<(), SerializationError> {
        let mut reader = Reader(&self.bytes);
        while let Ok(length) = reader.int() {
            let cell = writer.make_cell_writer();
            match length as i32 {
                -1 => drop(cell.set_null()),
                length if length < 0 => drop(cell.set_unset()),
                length => {
                    let content = reader.take(length as usize).unwrap_or_default();
                    cell.set_value(content).map_err(SerializationError::new)?;
                }
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What is to be asked.
enum What {
    Execute(Box<PreparedStatement>, Serialized),
    /// A text without values.
    Query(Box<Statement>),
    Batch(Box<Batch>, Vec<Serialized>),
}

/// A request for the driver.
pub(super) struct Asked {
    what: What,
    /// It requests one page, from here on.
    page: Option<PagingState>,
    skip_metadata: bool,
}

/// Query parameters except the values (section 4.1.4).
struct Tail {
    consistency: Consistency,
    serial: Option<SerialConsistency>,
    page_size: Option<NonZeroU32>,
    paging_state: Option<Vec<u8>>,
    timestamp: Option<i64>,
    skip_metadata: bool,
}

const BROKEN: &str = "a request that cannot be read back; this is a defect of the load";
const VALUES: &str = "the scylla driver prepares every text that has values; prepare the statement";

impl Asked {
    /// Parses a frame of version 4 that [`crate::Request`] has written, whose statements have the ids of [`id`].
    ///
    /// # Errors
    /// Why the driver cannot carry it.
    pub(super) fn read(frame: &[u8], prepared: &[PreparedStatement]) -> Result<Asked, &'static str> {
        let mut reader = Reader(frame.get(HEADER..).ok_or(BROKEN)?);
        let reader = &mut reader;
        match frame[4] {
            opcode::EXECUTE => {
                let mut statement = statement(reader, prepared)?.clone();
                let (values, tail) = parameters(reader)?;
                statement.set_consistency(tail.consistency);
                statement.set_serial_consistency(tail.serial);
                statement.set_timestamp(tail.timestamp);
                statement.set_use_cached_result_metadata(tail.skip_metadata);
                if let Some(size) = tail.page_size {
                    statement.set_page_size(i32::try_from(size.get()).unwrap_or(i32::MAX));
                }
                let (skip_metadata, page) = (tail.skip_metadata, tail.page());
                Ok(Asked { what: What::Execute(Box::new(statement), values), page, skip_metadata })
            }
            opcode::QUERY => {
                let mut statement = Statement::new(reader.long_string().map_err(|_| BROKEN)?);
                let (values, tail) = parameters(reader)?;
                if !values.is_empty() {
                    return Err(VALUES);
                }
                statement.set_consistency(tail.consistency);
                statement.set_serial_consistency(tail.serial);
                statement.set_timestamp(tail.timestamp);
                if let Some(size) = tail.page_size {
                    statement.set_page_size(i32::try_from(size.get()).unwrap_or(i32::MAX));
                }
                Ok(Asked { what: What::Query(Box::new(statement)), page: tail.page(), skip_metadata: false })
            }
            opcode::BATCH => batch(reader, prepared),
            _ => Err(BROKEN),
        }
    }

    /// Executes the request once.
    pub(super) async fn run(self, session: &Session) -> Result<Reply, Failed> {
        let result = match (self.what, self.page) {
            (What::Execute(statement, values), None) => whole(session.execute_unpaged(&statement, values).await),
            (What::Execute(statement, values), Some(page)) => {
                paged(session.execute_single_page(&statement, values, page).await)
            }
            (What::Query(statement), None) => whole(session.query_unpaged(*statement, ()).await),
            (What::Query(statement), Some(page)) => paged(session.query_single_page(*statement, (), page).await),
            (What::Batch(batch, values), _) => whole(session.batch(&batch, values).await),
        };
        result.map(|(result, page)| Reply { result, page, skip_metadata: self.skip_metadata })
    }
}

/// A result, and where the next page begins if pages were requested.
type Given = Result<(QueryResult, Option<PagingStateResponse>), Failed>;

fn whole(result: Result<QueryResult, ExecutionError>) -> Given {
    Ok((result.map_err(Failed::from)?, None))
}

fn paged(result: Result<(QueryResult, PagingStateResponse), ExecutionError>) -> Given {
    let (result, page) = result.map_err(Failed::from)?;
    Ok((result, Some(page)))
}

fn statement<'p>(
    reader: &mut Reader<'_>,
    prepared: &'p [PreparedStatement],
) -> Result<&'p PreparedStatement, &'static str> {
    let id = reader.short_bytes().map_err(|_| BROKEN)?;
    let number = u32::from_be_bytes(id.try_into().map_err(|_| BROKEN)?);
    prepared.get(number as usize).ok_or(BROKEN)
}

fn values(reader: &mut Reader<'_>) -> Result<Serialized, &'static str> {
    let count = reader.short().map_err(|_| BROKEN)?;
    let bytes = reader.span(|reader| (0..count).try_for_each(|_| reader.bytes().map(drop))).map_err(|_| BROKEN)?;
    Ok(Serialized { count, bytes: bytes.to_vec() })
}

fn consistency(code: u16) -> Result<Consistency, &'static str> {
    Consistency::try_from(code).map_err(|_| "the scylla driver does not know this level of consistency")
}

fn parameters(reader: &mut Reader<'_>) -> Result<(Serialized, Tail), &'static str> {
    let level = consistency(reader.short().map_err(|_| BROKEN)?)?;
    let flags = reader.byte().map_err(|_| BROKEN)?;
    let given = if flags & query::VALUES != 0 { values(reader)? } else { Serialized::default() };
    Ok((given, Tail::read(reader, level, flags)?))
}

fn batch(reader: &mut Reader<'_>, prepared: &[PreparedStatement]) -> Result<Asked, &'static str> {
    let kind = match reader.byte().map_err(|_| BROKEN)? {
        0 => BatchType::Logged,
        1 => BatchType::Unlogged,
        2 => BatchType::Counter,
        _ => return Err(BROKEN),
    };
    let mut batch = Batch::new(kind);
    let mut all = Vec::new();
    for _ in 0..reader.short().map_err(|_| BROKEN)? {
        let statement: BatchStatement = match reader.byte().map_err(|_| BROKEN)? {
            0 => Statement::new(reader.long_string().map_err(|_| BROKEN)?).into(),
            _ => statement(reader, prepared)?.clone().into(),
        };
        let values = values(reader)?;
        if matches!(statement, BatchStatement::Query(_)) && !values.is_empty() {
            return Err(VALUES);
        }
        batch.append_statement(statement);
        all.push(values);
    }
    let level = consistency(reader.short().map_err(|_| BROKEN)?)?;
    let flags = reader.byte().map_err(|_| BROKEN)?;
    let tail = Tail::read(reader, level, flags)?;
    batch.set_consistency(tail.consistency);
    batch.set_serial_consistency(tail.serial);
    batch.set_timestamp(tail.timestamp);
    Ok(Asked { what: What::Batch(Box::new(batch), all), page: None, skip_metadata: false })
}

impl Tail {
    fn read(reader: &mut Reader<'_>, consistency: Consistency, flags: u8) -> Result<Tail, &'static str> {
        let has = |flag| flags & flag != 0;
        let broken = |_| BROKEN;
        let page_size = if has(query::PAGE_SIZE) { NonZeroU32::new(reader.int().map_err(broken)?) } else { None };
        let state = if has(query::PAGING_STATE) { reader.bytes().map_err(broken)? } else { None };
        let serial = match has(query::SERIAL_CONSISTENCY).then(|| reader.short()).transpose().map_err(broken)? {
            None => None,
            Some(0x0009) => Some(SerialConsistency::LocalSerial),
            Some(_) => Some(SerialConsistency::Serial),
        };
        let timestamp = match has(query::DEFAULT_TIMESTAMP) {
            true => Some((reader.int().map_err(broken)?, reader.int().map_err(broken)?)),
            false => None,
        };
        Ok(Tail {
            consistency,
            serial,
            page_size,
            paging_state: state.map(<[u8]>::to_vec),
            timestamp: timestamp.map(|(high, low)| i64::from(high) << 32 | i64::from(low)),
            skip_metadata: has(query::SKIP_METADATA),
        })
    }

    /// Where the requested page begins.
    fn page(self) -> Option<PagingState> {
        self.page_size?;
        let state = self.paging_state.map(|state| PagingState::new_from_raw_bytes(Arc::<[u8]>::from(state)));
        Some(state.unwrap_or_else(PagingState::start))
    }
}
