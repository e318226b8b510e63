//! Heartbeats in CQL: OPTIONS, which costs a node next to nothing, or a query that reads its clock.

use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

use brownout_load::Tls;

use super::cql::{self, Input};
use crate::{
    database::{Answer, Clock, Connection, Heartbeat, Question},
    stream::Stream,
};

/// The coordinator's wall clock, in milliseconds since 1970, read while it answers.
pub(super) const CLOCK: &str = "SELECT toUnixTimestamp(currentTimestamp()) FROM system.local";
/// What the clock is rounded down to.
const RESOLUTION_NS: i64 = 1_000_000;

/// Asks one node.
pub(super) struct CqlHeartbeat {
    pub(super) address: SocketAddr,
    pub(super) question: Question,
    /// CQL by which its version tells its clock.
    pub(super) clock: &'static str,
    /// Clients encrypt.
    pub(super) tls: Option<Tls>,
}

impl Heartbeat for CqlHeartbeat {
    fn connect(&mut self, patience: Duration) -> io::Result<Box<dyn Connection>> {
        let mut stream = Stream::connect(self.address, patience, self.tls.as_ref())?;
        // A node that stands still takes nothing: a full buffer must not hold us up.
        stream.socket().set_write_timeout(Some(Duration::from_millis(50)))?;
        stream.write_all(&cql::hello())?;
        Ok(Box::new(stream))
    }

    fn greets(&self) -> bool {
        true
    }

    fn question(&mut self, number: i16) -> Vec<u8> {
        match self.question {
            Question::Alive => cql::options(number),
            Question::Clock => cql::query(number, self.clock),
        }
    }

    fn answer(&mut self, input: &mut Vec<u8>) -> io::Result<Option<Answer>> {
        let answer = cql::take_answer(input).map_err(io::Error::other)?;
        Ok(answer.map(|(number, body)| Answer { number, clock: body.as_deref().and_then(clock_of) }))
    }
}

/// The `bigint` of the only row.
pub(super) fn clock_of(body: &[u8]) -> Option<Clock> {
    let rows = cql::rows(body)?;
    let value = rows.first()?.first()?.as_ref()?;
    let ms = Input(value).long()?;
    Some(Clock { shows_ns: ms.checked_mul(RESOLUTION_NS)?, resolution_ns: RESOLUTION_NS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_only_value_of_the_only_row() {
        let body = b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x05";
        assert_eq!(clock_of(body), Some(Clock { shows_ns: 5_000_000, resolution_ns: 1_000_000 }));
        assert_eq!(clock_of(b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\0"), None);
    }
}
