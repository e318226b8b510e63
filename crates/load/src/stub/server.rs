//! The stub's event loop.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    io,
    net::{SocketAddr, TcpListener},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use super::{
    Behaviour,
    peer::Peer,
    protocol::{Database, Reply, frame_length},
    tables::Cluster,
};
use crate::{
    clock::now_ns,
    sys::{self, Epoll, Timer, Waker},
};

pub(super) enum Command {
    Behave { node: usize, behaviour: Behaviour, done: mpsc::Sender<()> },
    Disconnect { node: usize, done: mpsc::Sender<()> },
    Stop(mpsc::Sender<()>),
}

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Tokens below are listeners, by node; connections come after.
const FIRST_PEER: u64 = 1 << 16;

/// An answer that waits for its time. The order of the fields is that of their going out.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Delayed {
    due_ns: u64,
    order: u64,
    token: u64,
    frame: Vec<u8>,
}

pub(super) struct Server {
    epoll: Epoll,
    timer: Timer,
    waker: Arc<Waker>,
    inbox: mpsc::Receiver<Command>,
    executed: Arc<AtomicU64>,
    listeners: Vec<TcpListener>,
    behaviours: Vec<Behaviour>,
    /// By token.
    peers: BTreeMap<u64, Peer>,
    serial: u64,
    delayed: BinaryHeap<Reverse<Delayed>>,
    order: u64,
    database: Database,
    buffer: Vec<u8>,
}

impl Server {
    pub(super) fn new(
        listeners: Vec<TcpListener>,
        addresses: Vec<SocketAddr>,
        waker: Arc<Waker>,
        inbox: mpsc::Receiver<Command>,
        executed: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let timer = Timer::new()?;
        epoll.add(timer.as_raw_fd(), TIMER, false)?;
        epoll.add(waker.as_raw_fd(), WAKER, false)?;
        for (node, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true)?;
            epoll.add(listener.as_raw_fd(), node as u64, false)?;
        }
        Ok(Server {
            epoll,
            timer,
            waker,
            inbox,
            executed,
            behaviours: vec![Behaviour::default(); listeners.len()],
            listeners,
            peers: BTreeMap::new(),
            serial: FIRST_PEER,
            delayed: BinaryHeap::new(),
            order: 0,
            database: Database::new(Cluster { addresses, keyspaces: BTreeMap::new() }),
            buffer: vec![0; 256 * 1024],
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        sys::precise_timers();
        loop {
            self.epoll.wait(None)?;
            for index in 0..self.epoll.count() {
                let ready = self.epoll.ready(index);
                match ready.token {
                    TIMER => {}
                    WAKER => {
                        if self.obey() {
                            return Ok(());
                        }
                    }
                    node if node < FIRST_PEER => self.accept(node as usize)?,
                    token => self.serve(token, ready.readable),
                }
            }
            self.release();
            let next = self.delayed.peek().map_or(u64::MAX, |Reverse(first)| first.due_ns);
            self.timer.arm(next)?;
        }
    }

    /// Runs the commands that have come. `true` to stop.
    fn obey(&mut self) -> bool {
        self.waker.clear();
        while let Ok(command) = self.inbox.try_recv() {
            let done = match command {
                // Dropping the sender tells as much as sending would.
                Command::Stop(done) => {
                    drop(done);
                    return true;
                }
                Command::Behave { node, behaviour, done } => {
                    self.behaviours[node] = behaviour;
                    self.flush_where(|peer| peer.node == node);
                    done
                }
                Command::Disconnect { node, done } => {
                    self.peers.retain(|_, peer| peer.node != node);
                    done
                }
            };
            // Whoever gave the command may have stopped waiting.
            let _ = done.send(());
        }
        false
    }

    fn accept(&mut self, node: usize) -> io::Result<()> {
        while let Ok((socket, _)) = self.listeners[node].accept() {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            self.epoll.add(socket.as_raw_fd(), self.serial, false)?;
            self.peers.insert(self.serial, Peer::new(node, self.serial, socket));
            self.serial += 1;
        }
        Ok(())
    }

    fn serve(&mut self, token: u64, readable: bool) {
        let Some(peer) = self.peers.get_mut(&token) else { return };
        let mut alive = true;
        if readable {
            alive = peer.fill(&mut self.buffer).unwrap_or(false);
            alive &= self.answer(token);
        }
        if !alive {
            self.peers.remove(&token);
        }
        self.flush_one(token);
    }

    /// Answers the whole frames that have come. `false` to close the connection at once.
    fn answer(&mut self, token: u64) -> bool {
        let Some(peer) = self.peers.get_mut(&token) else { return false };
        let Behaviour { answer, delay, .. } = self.behaviours[peer.node];
        let mut start = 0;
        loop {
            let length = match frame_length(&peer.input[start..]) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(refusal) => {
                    peer.output.extend_from_slice(&refusal);
                    peer.closing = true;
                    break;
                }
            };
            let request = &peer.input[start..start + length];
            let executes = request[4] == crate::wire::opcode::EXECUTE;
            self.executed.fetch_add(u64::from(executes), Ordering::Relaxed);
            match self.database.reply(peer.node, request, answer) {
                Reply::Executed(frame) if !delay.is_zero() => {
                    let due_ns = now_ns() + delay.as_nanos() as u64;
                    self.order += 1;
                    self.delayed.push(Reverse(Delayed { due_ns, order: self.order, token, frame }));
                }
                Reply::Now(frame) | Reply::Executed(frame) => peer.output.extend_from_slice(&frame),
                Reply::Never => {}
                Reply::Close => return false,
            }
            start += length;
        }
        peer.input.drain(..start);
        true
    }

    /// Hands out the delayed answers that are due.
    fn release(&mut self) {
        let now = now_ns();
        let mut touched = Vec::new();
        while self.delayed.peek().is_some_and(|Reverse(first)| first.due_ns <= now)
            && let Some(Reverse(Delayed { token, frame, .. })) = self.delayed.pop()
        {
            if let Some(peer) = self.peers.get_mut(&token) {
                peer.output.extend_from_slice(&frame);
                touched.push(token);
            }
        }
        touched.dedup();
        for token in touched {
            self.flush_one(token);
        }
    }

    fn flush_where(&mut self, wanted: impl Fn(&Peer) -> bool) {
        let tokens: Vec<u64> = self.peers.values().filter(|peer| wanted(peer)).map(|peer| peer.serial).collect();
        for token in tokens {
            self.flush_one(token);
        }
    }

    fn flush_one(&mut self, token: u64) {
        let Some(peer) = self.peers.get_mut(&token) else { return };
        if self.behaviours[peer.node].frozen {
            return;
        }
        let keep = match peer.flush() {
            Ok(done) => {
                let mut keep = !(done && peer.closing);
                if peer.watching == done {
                    peer.watching = !done;
                    keep &= self.epoll.watch_writable(peer.socket.as_raw_fd(), token, !done).is_ok();
                }
                keep
            }
            Err(_) => false,
        };
        if !keep {
            self.peers.remove(&token);
        }
    }
}
