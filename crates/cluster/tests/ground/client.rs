//! As much of a client as tests need: the CQL protocol, version 4, one request at a time.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use brownout_network::Host;

use super::PATIENCE;

/// Consistencies.
pub const ONE: u16 = 1;
pub const QUORUM: u16 = 4;
pub const ALL: u16 = 5;

const ERROR: u8 = 0;
/// How an answer begins that too few nodes took part in a query, or not in time: unavailable, write timeout, read timeout,
/// read failure, write failure.
const MISSED: [&str; 5] = ["\0\0\x10\0", "\0\0\x11\0", "\0\0\x12\0", "\0\0\x13\0", "\0\0\x15\0"];

pub struct Client(TcpStream);

impl Client {
    /// Connects to the node on `host`, from there.
    pub fn connect(host: &Host) -> Client {
        let stream = host.run(|| TcpStream::connect((host.address(), 9042)).unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client(stream);
        assert_eq!(client.ask(1, b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0").0, 2, "ready");
        client
    }

    /// The body of the answer to `text`, with at most one bound value; or the node's words.
    pub fn query(&mut self, text: &str, consistency: u16, value: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend(text.bytes());
        body.extend(consistency.to_be_bytes());
        body.push(value.is_some().into());
        if let Some(value) = value {
            body.extend([0, 1]);
            body.extend((value.len() as u32).to_be_bytes());
            body.extend(value);
        }
        match self.ask(7, &body) {
            (ERROR, words) => Err(String::from_utf8_lossy(&words).into_owned()),
            (_, answer) => Ok(answer),
        }
    }

    /// The answer to `text`, which is asked again as long as nodes are missed: a busy machine lets them be late, or be taken
    /// for down. To be asked twice must make no difference to it.
    pub fn query_again(&mut self, text: &str, consistency: u16) -> Vec<u8> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.query(text, consistency, None) {
                Ok(answer) => return answer,
                Err(words) => {
                    let again = MISSED.iter().any(|code| words.starts_with(code)) && Instant::now() < end;
                    assert!(again, "{text}: {words}");
                    eprintln!("asked again: {text}: {words}");
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn ask(&mut self, opcode: u8, body: &[u8]) -> (u8, Vec<u8>) {
        let mut frame = vec![4, 0, 0, 0, opcode];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame).unwrap();
        let mut header = [0; 9];
        self.0.read_exact(&mut header).unwrap();
        let mut answer = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
        self.0.read_exact(&mut answer).unwrap();
        (header[4], answer)
    }
}
