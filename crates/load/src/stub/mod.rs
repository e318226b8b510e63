//! A small CQL server, for benchmarks and for faults that a real server cannot be made to show.
//!
//! One thread serves any number of nodes. It speaks versions 4 and 5 of the protocol, optionally with compression, TLS
//! and passwords ([`StubOptions`]), and knows enough of CQL for [`crate::Engine`], for what drivers ask when they
//! connect, and for tables that clients create: prepared statements on them have names and types. Every node can be
//! told to be slow, to freeze, to return wrong answers, or to close connections ([`Behaviour`]).

mod asked;
mod database;
mod options;
mod peer;
mod reply;
mod schema;
mod server;
mod statement;
mod store;
mod tables;
mod tokens;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, atomic::Ordering, mpsc},
    thread::JoinHandle,
};

use crate::{Coordinator, sys::Waker};
pub use options::{Answer, Behaviour, Content, Freeze, StubOptions};
use server::{Command, Counts, Server};

/// A running server. Dropping it closes everything.
pub struct Stub {
    addresses: Vec<SocketAddr>,
    commands: mpsc::Sender<Command>,
    waker: Arc<Waker>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Stub {
    /// Nodes on 127.0.0.1, 127.0.0.2 and so on, all on one port that is free on each of them (drivers expect all nodes
    /// to use one port).
    ///
    /// # Errors
    /// No such port is found, or a socket, epoll or thread cannot be made.
    pub fn local(nodes: u8) -> io::Result<Stub> {
        Stub::local_with(nodes, StubOptions::default())
    }

    /// The same, with these options.
    ///
    /// # Errors
    /// As [`Stub::local`]; or a table cannot be read.
    pub fn local_with(nodes: u8, options: StubOptions) -> io::Result<Stub> {
        let host = |node: u8| Ipv4Addr::new(127, 0, 0, node + 1);
        let mut refused = io::Error::other("a stub needs at least one node");
        for _ in 0..20 {
            let first = TcpListener::bind((host(0), 0))?;
            let port = first.local_addr()?.port();
            let others: io::Result<Vec<_>> = (1..nodes).map(|node| TcpListener::bind((host(node), port))).collect();
            match others {
                Ok(others) => return Stub::serve(std::iter::once(first).chain(others).collect(), options),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// One node per listener.
    ///
    /// # Errors
    /// An epoll or thread cannot be made, or a table of the options cannot be read.
    pub fn serve(listeners: Vec<TcpListener>, options: StubOptions) -> io::Result<Stub> {
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let waker = Arc::new(Waker::new()?);
        let counts = Arc::<Counts>::default();
        let (commands, inbox) = mpsc::channel();
        let (woken, counted) = (Arc::clone(&waker), Arc::clone(&counts));
        let server = Server::new(listeners, addresses.clone(), options, woken, inbox, counted)?;
        let thread = std::thread::Builder::new().name("cql-stub".into()).spawn(|| server.run())?;
        Ok(Stub { addresses, commands, waker, counts, thread: Some(thread) })
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

    /// Sets the behaviour of a node (numbered from 0); returns once it is in effect.
    pub fn set(&self, node: usize, behaviour: Behaviour) {
        self.tell(|done| Command::Behave { node, behaviour, done });
    }

    /// Closes all connections of a node; it goes on listening.
    pub fn disconnect(&self, node: usize) {
        self.tell(|done| Command::Disconnect { node, done });
    }

    /// Closes a node and all its connections for good: it refuses new connections.
    pub fn kill(&self, node: usize) {
        self.tell(|done| Command::Kill { node, done });
    }

    fn tell(&self, command: impl FnOnce(mpsc::Sender<()>) -> Command) {
        let (done, wait) = mpsc::channel();
        if self.commands.send(command(done)).is_ok() {
            self.waker.wake();
            // An error means that the server has ended, so there is nothing left to change.
            let _ = wait.recv();
        }
    }

    /// How many prepared statements and batches it has received, not counting queries of system tables.
    pub fn executed(&self) -> u64 {
        self.counts.executed.load(Ordering::Relaxed)
    }

    /// How many statements that define or empty anything it has received and not answered
    /// ([`Behaviour::silent_schema`]).
    pub fn unanswered(&self) -> u64 {
        self.counts.unanswered.load(Ordering::Relaxed)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.tell(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // How it ended no longer matters.
            drop(thread.join());
        }
    }
}
