//! Somebody who scrapes the endpoint of `-log prometheus=` as long as there is one.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::Duration,
};

pub struct Scraper {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Scraper {
    /// Scrapes a port that nobody listens on yet.
    pub fn start() -> Scraper {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = spawn(move || {
            let mut texts: Vec<String> = Vec::new();
            while !seen.load(Ordering::SeqCst) {
                if let Some(text) = scraped(address)
                    && texts.last() != Some(&text)
                {
                    texts.push(text);
                }
                sleep(Duration::from_millis(20));
            }
            texts
        });
        Scraper { address, over, thread }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All texts, each once.
    pub fn end(self) -> Vec<String> {
        self.over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

/// None where nobody listens, or listens no more.
fn scraped(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: stress\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).filter(|body| !body.is_empty())
}
