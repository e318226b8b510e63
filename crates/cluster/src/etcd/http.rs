//! As much of HTTP/1.1 (RFC 9112) as an etcd server speaks at its clients' port: questions without a body or with JSON, answers
//! whose length is told, or that come in chunks.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::calendar;
use crate::database::Connection;

/// More than this is no answer of etcd's; its metrics take some 100 KiB.
const LONGEST: usize = 16 << 20;
/// A head longer than this is none.
const LONGEST_HEAD: usize = 64 << 10;
/// A server that stands still takes nothing: a full buffer must not hold us up.
const WRITES_WITHIN: Duration = Duration::from_millis(50);

/// Of the answer to a login where the cluster asks nobody for one (`ErrGRPCAuthNotEnabled`).
const WANTS_NO_LOGIN: &str = "authentication is not enabled";

/// Who opens connections to a server.
pub(crate) trait Dial: Send + Sync {
    /// Connects within this time. Writes must not block for long (50 ms).
    fn dial(&self, to: SocketAddr, patience: Duration) -> io::Result<Box<dyn Connection>>;
}

/// By TCP alone.
pub(crate) struct Plain;

impl Dial for Plain {
    fn dial(&self, to: SocketAddr, patience: Duration) -> io::Result<Box<dyn Connection>> {
        let stream = TcpStream::connect_timeout(&to, patience)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITES_WITHIN))?;
        Ok(Box::new(stream))
    }
}

/// How the servers of a cluster are reached.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) dial: Arc<dyn Dial>,
    /// User and password, where the cluster asks for them.
    pub(crate) login: Option<(String, String)>,
}

impl Door {
    /// Without a login.
    pub(crate) fn new(dial: impl Dial + 'static) -> Door {
        Door { dial: Arc::new(dial), login: None }
    }

    /// Opens a connection to the server at `to`, and logs in if need be.
    pub(super) fn open(&self, to: SocketAddr, patience: Duration) -> Result<Client, String> {
        let connection = self.dial.dial(to, patience).map_err(|error| error.to_string())?;
        let mut client = Client { connection, to, input: Vec::new(), patience, token: None };
        if let Some((name, password)) = &self.login {
            let body = serde_json::json!({ "name": name, "password": password });
            match client.ask("/v3/auth/authenticate", &body) {
                Ok(answer) => {
                    let token = answer.get("token").and_then(Value::as_str).ok_or("it gave no token for this user")?;
                    client.token = Some(token.to_owned());
                }
                // It asks nobody to log in; the load takes that for no fault, either.
                Err(why) if why.contains(WANTS_NO_LOGIN) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(client)
    }
}

/// A connection on which one question is asked after the other.
pub(super) struct Client {
    connection: Box<dyn Connection>,
    to: SocketAddr,
    input: Vec<u8>,
    patience: Duration,
    token: Option<String>,
}

impl Client {
    /// Asks the JSON gateway. After an error that is not the server's own answer, the connection is of no use any more.
    pub(super) fn ask(&mut self, path: &str, body: &Value) -> Result<Value, String> {
        let text = body.to_string();
        let token = self.token.as_ref().map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        let question = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            self.to,
            text.len()
        );
        let response = self.exchange(&question)?;
        let answer: Option<Value> = serde_json::from_slice(&response.body).ok();
        if response.status == 200 {
            return answer.ok_or_else(|| format!("its answer to {path} is not JSON"));
        }
        // The gateway's words are those of gRPC's error.
        let said = answer.as_ref().and_then(|answer| answer.get("message").or_else(|| answer.get("error")));
        Err(said.and_then(Value::as_str).map_or_else(|| format!("HTTP status {}", response.status), str::to_owned))
    }

    /// The text at `path`.
    pub(super) fn get(&mut self, path: &str) -> Result<String, String> {
        let response = self.exchange(&get(path, self.to))?;
        match response.status {
            200 => Ok(String::from_utf8_lossy(&response.body).into_owned()),
            other => Err(format!("HTTP status {other} for {path}")),
        }
    }

    fn exchange(&mut self, question: &str) -> Result<Response, String> {
        let end = Instant::now() + self.patience;
        self.connection.write_all(question.as_bytes()).map_err(|error| error.to_string())?;
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(response) = take(&mut self.input).map_err(str::to_owned)? {
                return Ok(response);
            }
            let left = end.saturating_duration_since(Instant::now());
            let late = || format!("no answer within {:.1} s", self.patience.as_secs_f64());
            if left.is_zero() {
                return Err(late());
            }
            self.connection.set_read_timeout(left).map_err(|error| error.to_string())?;
            match self.connection.read(&mut bytes) {
                Ok(0) => return Err("it closed the connection".to_owned()),
                Ok(read) => self.input.extend_from_slice(&bytes[..read]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(late());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// A question without a body.
pub(super) fn get(path: &str, host: SocketAddr) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// When the server answered by its own clock, seconds since 1970.
    pub(super) date: Option<i64>,
    pub(super) body: Vec<u8>,
}

/// Takes the first whole answer out of `input`; none if there is none yet.
pub(super) fn take(input: &mut Vec<u8>) -> Result<Option<Response>, &'static str> {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let Some(end) = find(input, END_OF_HEAD) else {
        return if input.len() > LONGEST_HEAD { Err("it does not answer in HTTP") } else { Ok(None) };
    };
    let head = std::str::from_utf8(&input[..end]).map_err(|_| "it does not answer in HTTP")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(status).ok_or("it does not answer in HTTP")?;
    let (mut date, mut length, mut chunked) = (None, None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match () {
            () if name.eq_ignore_ascii_case("date") => date = calendar::of_header(value),
            () if name.eq_ignore_ascii_case("content-length") => {
                length = Some(value.parse::<usize>().map_err(|_| "the length of its answer is not a number")?);
            }
            () if name.eq_ignore_ascii_case("transfer-encoding") => chunked = value.eq_ignore_ascii_case("chunked"),
            () => {}
        }
    }
    let begins = end + END_OF_HEAD.len();
    let taken = match (chunked, length) {
        (true, _) => chunks(&input[begins..])?,
        (false, Some(length)) if length > LONGEST => return Err("its answer is too long"),
        (false, Some(length)) => input.get(begins..begins + length).map(|body| (body.to_vec(), length)),
        (false, None) if matches!(status, 204 | 304) => Some((Vec::new(), 0)),
        (false, None) => return Err("it does not say how long its answer is"),
    };
    let Some((body, length)) = taken else { return Ok(None) };
    input.drain(..begins + length);
    Ok(Some(Response { status, date, body }))
}

/// `HTTP/1.1 200 OK`
fn status(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// A body that comes in chunks, and the bytes that it takes with their lengths and what follows them; none if it has not all come.
fn chunks(input: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(end) = find(&input[at..], b"\r\n") else { return Ok(None) };
        let line = std::str::from_utf8(&input[at..at + end]).map_err(|_| "the length of a chunk is not a number")?;
        let length = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(length, 16).map_err(|_| "the length of a chunk is not a number")?;
        if length > LONGEST || body.len() > LONGEST {
            return Err("its answer is too long");
        }
        at += end + 2;
        if length == 0 {
            return Ok(trailer(&input[at..]).map(|trailer| (body, at + trailer)));
        }
        let Some(chunk) = input.get(at..at + length + 2) else { return Ok(None) };
        body.extend_from_slice(&chunk[..length]);
        at += length + 2;
    }
}

/// How long the lines after the last chunk are, with the empty one that ends them.
fn trailer(input: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let end = find(&input[at..], b"\r\n")?;
        at += end + 2;
        if end == 0 {
            return Some(at);
        }
    }
}

fn find(input: &[u8], sign: &[u8]) -> Option<usize> {
    input.windows(sign.len()).position(|window| window == sign)
}

/// A server that answers every question by its path, until nobody asks any more.
#[cfg(test)]
pub(super) fn server(answer: fn(&str) -> (u16, &'static str)) -> SocketAddr {
    use std::io::{BufRead, BufReader};
    let serve = move |stream: TcpStream| -> Option<()> {
        let mut input = BufReader::new(stream);
        loop {
            let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
            while line != "\r\n" {
                line.clear();
                if input.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                if let Some(question) = line.strip_suffix(" HTTP/1.1\r\n") {
                    path = question.split_once(' ')?.1.to_owned();
                }
                if let Some(told) = line.strip_prefix("Content-Length: ") {
                    length = told.trim().parse().ok()?;
                }
            }
            input.read_exact(&mut vec![0; length]).ok()?;
            let (status, body) = answer(&path);
            let text = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            input.get_mut().write_all(text.as_bytes()).ok()?;
        }
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "HTTP/1.1 200 OK\r\nDate: Tue, 24 Nov 2026 01:45:16 GMT\r\nContent-Length: 2\r\n\r\n{}";
    const CHUNKED: &str = "HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n2\r\n\r\n\r\n\
                           0\r\nGrpc-Trailer: 1\r\n\r\n";

    #[test]
    fn answers_are_taken_whole_one_after_the_other_however_they_are_cut() {
        let all = format!("{PLAIN}{CHUNKED}{PLAIN}");
        for size in [1, 2, 3, 7, 1_000] {
            let (mut input, mut taken) = (Vec::new(), Vec::new());
            for piece in all.as_bytes().chunks(size) {
                input.extend_from_slice(piece);
                while let Some(response) = take(&mut input).unwrap() {
                    taken.push((response.status, response.body));
                }
            }
            assert!(input.is_empty());
            assert_eq!(taken, [(200, b"{}".to_vec()), (503, b"abcd\r\n".to_vec()), (200, b"{}".to_vec())], "{size}");
        }
        assert_eq!(take(&mut PLAIN.into()).unwrap().unwrap().date, Some(1_795_484_716));
    }

    #[test]
    fn a_login_that_nobody_asks_for_is_no_fault_and_one_that_is_wrong_is() {
        let open = |said: fn(&str) -> (u16, &'static str)| {
            let login = Some(("app".to_owned(), "secret".to_owned()));
            let door = Door { login, ..Door::new(Plain) };
            let mut client = door.open(server(said), Duration::from_secs(10))?;
            client.get("/version")
        };
        let text = open(|path| match path {
            "/version" => (200, "3.6.16"),
            _ => (400, r#"{"error":"x","code":9,"message":"etcdserver: authentication is not enabled"}"#),
        });
        assert_eq!(text.as_deref(), Ok("3.6.16"));
        let wrong = open(|_| (400, r#"{"message":"etcdserver: authentication failed, invalid user ID or password"}"#));
        assert!(wrong.unwrap_err().contains("invalid user ID"));
    }

    #[test]
    fn what_is_no_http_is_refused_and_does_not_grow_without_end() {
        assert!(take(&mut b"\x04\x00\x00\r\n\r\n".to_vec()).is_err());
        assert!(take(&mut b"HTTP/1.1 200 OK\r\n\r\n".to_vec()).is_err());
        assert!(take(&mut b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec()).is_err());
        assert!(take(&mut vec![b'x'; LONGEST_HEAD + 1]).is_err());
        assert_eq!(take(&mut b"HTTP/1.1 200".to_vec()), Ok(None));
    }
}
