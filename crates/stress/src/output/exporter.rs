//! `-log prometheus=:9500`: the metrics of the running load for Prometheus.
//!
//! One thread serves one request after another with the text published last. It never holds up the load, and ends with
//! the run. It listens on loopback unless an address is given.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    OutputError, Total,
    metrics::{Now, exposition},
};

/// Time limit for a client to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum length of a request line and its headers.
const LONGEST_REQUEST: usize = 8192;

/// The endpoint. It closes when it is dropped.
pub struct Exporter {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    text: Mutex<String>,
    ended: AtomicBool,
}

impl Exporter {
    /// Listens; port 0 is a free one.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn listen(wanted: SocketAddr) -> Result<Self, OutputError> {
        let failed = |source| OutputError::Listen { address: wanted.to_string(), source };
        let listener = TcpListener::bind(wanted).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared { text: Mutex::new(String::new()), ended: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let serve = move || serve(&listener, &own);
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Exporter { shared, address, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets what is served from now on.
    pub fn publish(&self, total: &Total, now: Now) {
        let text = exposition(total, now);
        *self.shared.text.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = text;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Connect to the thread, which waits for a connection. If the address means "all", use loopback.
        let mut to = self.address;
        if to.ip().is_unspecified() {
            to.set_ip(match to {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        if TcpStream::connect_timeout(&to, PATIENCE).is_ok() {
            // Its panic, if there was one, has been printed.
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

fn serve(listener: &TcpListener, shared: &Shared) {
    loop {
        let client = listener.accept();
        if shared.ended.load(Ordering::Acquire) {
            return;
        }
        match client {
            // Clients that disconnect or send invalid requests are ignored.
            Ok((client, _)) => drop(answer(client, shared)),
            // Out of descriptors, for example: do not spin.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        // The limit is for the whole request, however slowly it trickles in.
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        client.set_read_timeout(Some(left))?;
        let read = client.read(&mut part)?;
        if read == 0 || request.len() > LONGEST_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&part[..read]);
    }
    let text = String::from_utf8_lossy(&request);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            ("200 OK", shared.text.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone())
        }
        ("GET" | "HEAD", "/") => ("200 OK", "A load is running; its metrics are at /metrics\n".to_owned()),
        ("GET" | "HEAD", _) => ("404 Not Found", "Only /metrics is here\n".to_owned()),
        _ => ("405 Method Not Allowed", "Only GET is answered\n".to_owned()),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{}",
        if method == "HEAD" { "" } else { &body }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    const FREE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_newest_metrics_are_served_until_the_end() {
        let exporter = Exporter::listen(FREE).unwrap();
        let address = exporter.address();
        assert!(address.ip().is_loopback());
        let (_, total) = sample::mixed();
        exporter.publish(&total, Now { in_flight: 12, waiting: 0 });
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("brownout_stress_in_flight 12\n"));
        assert!(ask(address, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        drop(exporter);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_port_in_use_is_told() {
        let exporter = Exporter::listen(FREE).unwrap();
        let error = Exporter::listen(exporter.address()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("another program may use the port"), "{error}");
    }
}
