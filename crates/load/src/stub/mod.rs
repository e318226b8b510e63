//! A small CQL server, for benchmarks and for faults that a real server cannot be told to make.
//!
//! One thread serves any number of nodes that share one table in memory: `(key bigint, value blob)`, newest
//! timestamp wins. It speaks enough CQL v4 for [`crate::Engine`] and for drivers built on the `scylla` crate, and
//! every node can be told to be slow, to freeze, to lie, or to break off ([`Behaviour`]).

mod peer;
mod protocol;
mod server;
mod tables;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::{Coordinator, sys::Waker};
use server::{Command, Server};

/// What a node answers to prepared reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// The truth.
    #[default]
    Right,
    /// An error with this code (section 9 of the protocol specification).
    Error(u32),
    /// Nothing, ever.
    Silence,
    /// Bytes that are no CQL.
    Garbage,
    /// The end of the connection.
    Close,
    /// Rows with one byte of the value changed.
    Flipped,
    /// Rows as they were before the last write.
    Stale,
    /// No row, whatever was written.
    NoRow,
    /// A write is acknowledged where a row is expected, and the reverse.
    WrongKind,
}

/// How a node behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Behaviour {
    /// What it answers.
    pub answer: Answer,
    /// How long it takes for every prepared read and write, however many there are.
    pub delay: Duration,
    /// It holds all its answers back until this is taken away.
    pub frozen: bool,
}

impl Behaviour {
    /// Frozen, otherwise right.
    pub fn frozen() -> Self {
        Behaviour { frozen: true, ..Behaviour::default() }
    }

    /// Slow, otherwise right.
    pub fn slow(delay: Duration) -> Self {
        Behaviour { delay, ..Behaviour::default() }
    }

    /// Answers at once, but in this way.
    pub fn answering(answer: Answer) -> Self {
        Behaviour { answer, ..Behaviour::default() }
    }
}

/// A running server. Dropping it closes everything.
pub struct Stub {
    addresses: Vec<SocketAddr>,
    commands: mpsc::Sender<Command>,
    waker: Arc<Waker>,
    executed: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Stub {
    /// Nodes on 127.0.0.1, 127.0.0.2 and so on, all on one port that is free on each of them (drivers expect the
    /// port of one node on all).
    ///
    /// # Errors
    /// No such port is found, or a socket, epoll or thread cannot be made.
    pub fn local(nodes: u8) -> io::Result<Stub> {
        let host = |node: u8| Ipv4Addr::new(127, 0, 0, node + 1);
        let mut refused = io::Error::other("a stub needs at least one node");
        for _ in 0..20 {
            let first = TcpListener::bind((host(0), 0))?;
            let port = first.local_addr()?.port();
            let others: io::Result<Vec<_>> = (1..nodes).map(|node| TcpListener::bind((host(node), port))).collect();
            match others {
                Ok(others) => return Stub::serve(std::iter::once(first).chain(others).collect()),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// One node per listener.
    ///
    /// # Errors
    /// An epoll or thread cannot be made.
    pub fn serve(listeners: Vec<TcpListener>) -> io::Result<Stub> {
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let waker = Arc::new(Waker::new()?);
        let executed = Arc::new(AtomicU64::new(0));
        let (commands, inbox) = mpsc::channel();
        let server = Server::new(listeners, addresses.clone(), Arc::clone(&waker), inbox, Arc::clone(&executed))?;
        let thread = std::thread::Builder::new().name("cql-stub".into()).spawn(|| server.run())?;
        Ok(Stub { addresses, commands, waker, executed, thread: Some(thread) })
    }

    /// Where the nodes listen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The nodes as coordinators `n1`, `n2`, …
    pub fn coordinators(&self) -> Vec<Coordinator> {
        let name =
            |(index, address): (usize, &SocketAddr)| Coordinator { name: format!("n{}", index + 1), address: *address };
        self.addresses.iter().enumerate().map(name).collect()
    }

    /// Has a node (numbered from 0) behave so from now on; returns when it does.
    pub fn set(&self, node: usize, behaviour: Behaviour) {
        self.tell(|done| Command::Behave { node, behaviour, done });
    }

    /// Closes all connections of a node; it goes on listening.
    pub fn disconnect(&self, node: usize) {
        self.tell(|done| Command::Disconnect { node, done });
    }

    fn tell(&self, command: impl FnOnce(mpsc::Sender<()>) -> Command) {
        let (done, wait) = mpsc::channel();
        if self.commands.send(command(done)).is_ok() {
            self.waker.wake();
            // An error means that the server has ended; there is nobody left to behave.
            let _ = wait.recv();
        }
    }

    /// How many prepared reads and writes it has received.
    pub fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.tell(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // How it ended interests nobody any more.
            drop(thread.join());
        }
    }
}
