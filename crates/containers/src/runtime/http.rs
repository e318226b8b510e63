//! As much of HTTP/1.1 (RFC 9112) as the API of Docker and podman takes: one question on a connection of its own, over
//! a Unix socket, answers of a told length, in chunks, or up to the end.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::error::{ContainersError, socket_remedy};

/// How long a runtime may take to say how things stand.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than this is no answer: a thousand containers take some 5 MiB.
const LONGEST: u64 = 64 << 20;

/// An answer.
#[derive(Debug, PartialEq)]
struct Response {
    status: u16,
    body: Vec<u8>,
}

/// What is at `path`.
///
/// # Errors
/// The runtime cannot be asked, refuses, or answers no JSON.
pub(crate) fn get(socket: &Path, path: &str) -> Result<Value, ContainersError> {
    let response = ask(socket, "GET", path, PATIENCE)?;
    judge(socket, "GET", path, &response)
}

/// The same, where nothing may be there (404).
pub(crate) fn find(socket: &Path, path: &str) -> Result<Option<Value>, ContainersError> {
    match ask(socket, "GET", path, PATIENCE)? {
        Response { status: 404, .. } => Ok(None),
        response => judge(socket, "GET", path, &response).map(Some),
    }
}

/// Has the runtime do what is at `path`, within a time. That it is done already (304) is no error.
///
/// # Errors
/// The runtime cannot be asked, refuses, or does not do it in time.
pub(crate) fn post(socket: &Path, path: &str, within: Duration) -> Result<Value, ContainersError> {
    let response = ask(socket, "POST", path, within)?;
    judge(socket, "POST", path, &response)
}

/// The body of an answer that is no refusal; null if it is empty.
fn judge(socket: &Path, method: &str, path: &str, response: &Response) -> Result<Value, ContainersError> {
    let request = || format!("{method} {path}");
    if response.status == 304 || (200..300).contains(&response.status) {
        if response.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        return serde_json::from_slice(&response.body).map_err(|error| ContainersError::Senseless {
            socket: socket.to_owned(),
            request: request(),
            reason: error.to_string(),
        });
    }
    let told: Option<Value> = serde_json::from_slice(&response.body).ok();
    let told = told.as_ref().and_then(|told| told.get("message").or_else(|| told.get("cause"))).and_then(Value::as_str);
    let said = told.map_or_else(|| String::from_utf8_lossy(&response.body).trim().to_owned(), str::to_owned);
    Err(ContainersError::Refused {
        socket: socket.to_owned(),
        request: request(),
        status: u32::from(response.status),
        said,
    })
}

fn ask(socket: &Path, method: &str, path: &str, within: Duration) -> Result<Response, ContainersError> {
    let failed = |source: io::Error| ContainersError::Socket {
        socket: socket.to_owned(),
        remedy: socket_remedy(&source),
        source,
    };
    let answer = exchange(socket, method, path, within).map_err(failed)?;
    parse(&answer).map_err(|reason| ContainersError::Senseless {
        socket: socket.to_owned(),
        request: format!("{method} {path}"),
        reason: reason.to_owned(),
    })
}

/// Asks, and reads all that comes until the other end closes, which it was asked to do.
fn exchange(socket: &Path, method: &str, path: &str, within: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + within;
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let question = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}Connection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(answer),
            Ok(read) => answer.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() as u64 > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer has no end"));
        }
    }
}

/// A whole answer.
fn parse(answer: &[u8]) -> Result<Response, &'static str> {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD);
    let end = end.ok_or("it ends before its head does")?;
    let head = std::str::from_utf8(&answer[..end]).map_err(|_| "its head is no text")?;
    let body = &answer[end + END_OF_HEAD.len()..];
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
    let status = status.and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or("it is not HTTP/1.1")?;
    let header = |wanted: &str| {
        let mut headers = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Response { status, body: chunks(body)? });
    }
    let body = match header("content-length") {
        None => body,
        Some(length) => {
            let length: usize = length.parse().map_err(|_| "its length is no number")?;
            body.get(..length).ok_or("it is shorter than it says")?
        }
    };
    Ok(Response { status, body: body.to_vec() })
}

/// What came in chunks, put together.
fn chunks(mut bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    const CUT: &str = "it ends within a chunk";
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").ok_or(CUT)?;
        let size = std::str::from_utf8(&bytes[..end]).ok().and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or("the size of a chunk is no number")?;
        if size == 0 {
            return Ok(whole);
        }
        let rest = &bytes[end + 2..];
        // The sum may not be one where the size is nonsense.
        let after = size.checked_add(2).ok_or(CUT)?;
        whole.extend_from_slice(rest.get(..size).ok_or(CUT)?);
        bytes = rest.get(after..).ok_or(CUT)?;
    }
}

/// A part of a path, with all but letters, digits and `-_.~` written as `%41`.
pub(crate) fn quoted(part: &str) -> String {
    let mut quoted = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            quoted.push(char::from(byte));
        } else {
            quoted.push_str(&format!("%{byte:02X}"));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let told = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse(told), Ok(Response { status: 200, body: b"{}".to_vec() }));
        let chunked = b"HTTP/1.1 404 No\r\ntransfer-encoding: Chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Ok(Response { status: 404, body: b"{\"a\":1}".to_vec() }));
        let to_the_end = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(parse(to_the_end), Ok(Response { status: 200, body: b"abc".to_vec() }));
        for cut in [&told[..told.len() - 1], &chunked[..chunked.len() - 6], &told[..20], b"SSH-2.0\r\n\r\n"] {
            assert!(parse(cut).is_err(), "{}", String::from_utf8_lossy(cut));
        }
        assert!(chunks(b"ffffffffffffffff\r\nab").is_err());
    }

    #[test]
    fn parts_of_paths_are_quoted() {
        assert_eq!(quoted("shop-db_1.a"), "shop-db_1.a");
        assert_eq!(quoted("{\"label\":[\"a=b/c\"]}"), "%7B%22label%22%3A%5B%22a%3Db%2Fc%22%5D%7D");
    }

    /// Answers once, and returns what it was asked.
    fn server(socket: &Path, answer: &'static str) -> thread::JoinHandle<String> {
        let listener = UnixListener::bind(socket).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = Vec::new();
            while !question.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                question.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(question).unwrap()
        })
    }

    #[test]
    fn a_runtime_is_asked_over_its_socket_and_its_words_are_passed_on() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("a.sock");
        let asked = server(&socket, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[7]");
        assert_eq!(get(&socket, "/x").unwrap(), serde_json::json!([7]));
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /x HTTP/1.1\r\n") && asked.contains("Connection: close\r\n"), "{asked}");

        let socket = directory.path().join("b.sock");
        server(&socket, "HTTP/1.1 409 Conflict\r\n\r\n{\"message\":\"it is paused\"}");
        let error = post(&socket, "/c/stop", PATIENCE).unwrap_err().to_string();
        assert!(error.contains("refuses POST /c/stop: it is paused (status 409)"), "{error}");

        let socket = directory.path().join("c.sock");
        server(&socket, "HTTP/1.1 404 Not Found\r\n\r\n{\"message\":\"No such container\"}");
        assert_eq!(find(&socket, "/x").unwrap(), None);

        let socket = directory.path().join("d.sock");
        server(&socket, "HTTP/1.1 304 Not Modified\r\n\r\n");
        assert_eq!(post(&socket, "/c/start", PATIENCE).unwrap(), Value::Null);

        let error = get(&directory.path().join("e.sock"), "/x").unwrap_err().to_string();
        assert!(error.contains("e.sock") && error.contains("start the runtime"), "{error}");
    }

    #[test]
    fn a_runtime_that_hangs_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("a.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        let begun = Instant::now();
        let error = post(&socket, "/x", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(begun.elapsed() < PATIENCE && error.contains("it hangs"), "{error}");
    }
}
