//! An etcd server's heartbeat: its version, which it tells without asking anybody, with its clock's second in the header.

use std::{collections::VecDeque, io, net::SocketAddr, time::Duration};

use super::http::{self, Door};
use crate::database::{Answer, Clock, Connection, Heartbeat};

/// What the header `Date` is cut down to.
const RESOLUTION_NS: i64 = 1_000_000_000;

/// Asks one server. HTTP answers in the order of the questions.
pub(crate) struct Beating {
    door: Door,
    to: SocketAddr,
    /// The numbers of the questions that are open on this connection.
    open: VecDeque<i16>,
}

impl Beating {
    pub(crate) fn new(door: Door, to: SocketAddr) -> Beating {
        Beating { door, to, open: VecDeque::new() }
    }
}

impl Heartbeat for Beating {
    fn connect(&mut self, patience: Duration) -> io::Result<Box<dyn Connection>> {
        self.open.clear();
        self.door.dial.dial(self.to, patience)
    }

    fn greets(&self) -> bool {
        false
    }

    fn question(&mut self, number: i16) -> Vec<u8> {
        self.open.push_back(number);
        http::get("/version", self.to).into_bytes()
    }

    fn answer(&mut self, input: &mut Vec<u8>) -> io::Result<Option<Answer>> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let Some(response) = http::take(input).map_err(wrong)? else { return Ok(None) };
        if response.status != 200 {
            return Err(wrong("it does not report its version"));
        }
        let number = self.open.pop_front().ok_or_else(|| wrong("an answer to no question"))?;
        let shows_ns = response.date.and_then(|seconds| seconds.checked_mul(RESOLUTION_NS));
        Ok(Some(Answer { number, clock: shows_ns.map(|shows_ns| Clock { shows_ns, resolution_ns: RESOLUTION_NS }) }))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::http::Plain, *};

    #[test]
    fn answers_belong_to_the_questions_in_their_order_and_tell_the_clock() {
        let mut beating = Beating::new(Door::new(Plain), "10.77.0.1:2379".parse().unwrap());
        assert_eq!(beating.question(7), b"GET /version HTTP/1.1\r\nHost: 10.77.0.1:2379\r\n\r\n");
        beating.question(8);
        let answer = "HTTP/1.1 200 OK\r\nDate: Tue, 24 Nov 2026 01:45:16 GMT\r\nContent-Length: 2\r\n\r\n{}";
        let mut input = answer.repeat(2).into_bytes();
        for number in [7, 8] {
            let shown = beating.answer(&mut input).unwrap().unwrap();
            let clock = Clock { shows_ns: 1_795_484_716_000_000_000, resolution_ns: 1_000_000_000 };
            assert_eq!(shown, Answer { number, clock: Some(clock) });
        }
        assert_eq!(beating.answer(&mut input).unwrap(), None);
        input.extend_from_slice(answer.as_bytes());
        assert!(beating.answer(&mut input).is_err(), "nobody asked");
        let refused = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        assert!(beating.answer(&mut refused.into()).is_err());
    }
}
