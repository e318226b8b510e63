//! The stub's event loop.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use brownout_base::clock::monotonic_ns;

use super::{
    Behaviour, Freeze, StubOptions,
    database::{Act, Database, is_system, refuse_stranger},
    peer::Peer,
};
use crate::{
    ServerTls,
    sys::{self, Epoll, Timer, Waker},
    wire::opcode,
};

pub(super) enum Command {
    Behave { node: usize, behaviour: Behaviour, done: mpsc::Sender<()> },
    Disconnect { node: usize, done: mpsc::Sender<()> },
    Kill { node: usize, done: mpsc::Sender<()> },
    Stop(mpsc::Sender<()>),
}

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Tokens below are listeners, by node; connections come after.
const FIRST_PEER: u64 = 1 << 16;

/// What the nodes have received.
#[derive(Default)]
pub(super) struct Counts {
    /// Prepared statements and batches.
    pub(super) executed: AtomicU64,
    /// Statements that define or empty something, and were not answered.
    pub(super) unanswered: AtomicU64,
}

/// An answer waiting for its time. The order of the fields decides the order of sending.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Delayed {
    due_ns: u64,
    order: u64,
    token: u64,
    frame: Vec<u8>,
}

/// When all nodes freeze.
struct Seasons {
    freeze: Freeze,
    /// When the first period began.
    start_ns: Option<u64>,
    frozen: bool,
}

impl Seasons {
    /// Whether it is frozen at this time, and when that changes.
    fn at(&self, now: u64) -> (bool, u64) {
        let Some(start) = self.start_ns else { return (false, u64::MAX) };
        let every = self.freeze.every.as_nanos() as u64;
        let thawed = every.saturating_sub(self.freeze.lasting.as_nanos() as u64);
        let period = now - (now - start) % every.max(1);
        if now - period < thawed { (false, period + thawed) } else { (true, period + every) }
    }
}

pub(super) struct Server {
    epoll: Epoll,
    timer: Timer,
    waker: Arc<Waker>,
    inbox: mpsc::Receiver<Command>,
    counts: Arc<Counts>,
    /// By node; `None` if it was killed.
    listeners: Vec<Option<TcpListener>>,
    tls: Option<ServerTls>,
    behaviours: Vec<Behaviour>,
    /// By token.
    peers: BTreeMap<u64, Peer>,
    serial: u64,
    delayed: BinaryHeap<Reverse<Delayed>>,
    order: u64,
    seasons: Option<Seasons>,
    database: Database,
}

impl Server {
    pub(super) fn new(
        listeners: Vec<TcpListener>,
        addresses: Vec<SocketAddr>,
        options: StubOptions,
        waker: Arc<Waker>,
        inbox: mpsc::Receiver<Command>,
        counts: Arc<Counts>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let timer = Timer::new()?;
        epoll.add(&timer, TIMER, false)?;
        epoll.add(&*waker, WAKER, false)?;
        for (node, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true)?;
            epoll.add(listener, node as u64, false)?;
        }
        Ok(Server {
            epoll,
            timer,
            waker,
            inbox,
            counts,
            behaviours: vec![Behaviour::default(); listeners.len()],
            listeners: listeners.into_iter().map(Some).collect(),
            tls: options.tls.clone(),
            peers: BTreeMap::new(),
            serial: FIRST_PEER,
            delayed: BinaryHeap::new(),
            order: 0,
            seasons: options.freeze.map(|freeze| Seasons { freeze, start_ns: None, frozen: false }),
            database: Database::new(addresses, options)?,
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        sys::precise_timers();
        loop {
            self.epoll.wait(None)?;
            let mut next = self.turn_seasons();
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
            if let Some(seasons) = &self.seasons {
                next = seasons.at(monotonic_ns()).1;
            }
            let due = self.delayed.peek().map_or(u64::MAX, |Reverse(first)| first.due_ns);
            self.timer.arm(next.min(due))?;
        }
    }

    /// Freezes, or releases what was held back. Returns when that changes next.
    fn turn_seasons(&mut self) -> u64 {
        let Some(seasons) = &mut self.seasons else { return u64::MAX };
        let (frozen, next) = seasons.at(monotonic_ns());
        if std::mem::replace(&mut seasons.frozen, frozen) && !frozen {
            self.flush_where(|_| true);
        }
        next
    }

    /// Runs the commands that have come. `true` to stop.
    fn obey(&mut self) -> bool {
        self.waker.clear();
        while let Ok(command) = self.inbox.try_recv() {
            let done = match command {
                // Dropping the sender tells the receiver as much as sending would.
                Command::Stop(done) => {
                    drop(done);
                    return true;
                }
                Command::Behave { node, behaviour, done } => {
                    self.behaviours[node] = behaviour;
                    for peer in self.peers.values().filter(|peer| peer.node == node) {
                        // It fails for none that is open, and what is closed sends nothing.
                        let _ = watch(&self.epoll, peer, behaviour);
                    }
                    self.flush_where(|peer| peer.node == node);
                    done
                }
                Command::Disconnect { node, done } => {
                    self.peers.retain(|_, peer| peer.node != node);
                    done
                }
                Command::Kill { node, done } => {
                    // A closed socket leaves the epoll by itself.
                    self.listeners[node] = None;
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
        while let Some(Ok((socket, _))) = self.listeners[node].as_ref().map(TcpListener::accept) {
            let peer = Peer::new(node, self.serial, socket, self.tls.as_ref())?;
            self.epoll.add(&peer, self.serial, false)?;
            watch(&self.epoll, &peer, self.behaviours[node])?;
            self.peers.insert(self.serial, peer);
            self.serial += 1;
        }
        Ok(())
    }

    fn serve(&mut self, token: u64, readable: bool) {
        let Some(peer) = self.peers.get_mut(&token) else { return };
        let mut alive = true;
        if readable {
            alive = peer.fill().unwrap_or(false);
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
        let behaviour = self.behaviours[peer.node];
        let Behaviour { delay, close_after, .. } = behaviour;
        let Peer { node, inbox, outbox, session, closing, .. } = peer;
        while !*closing {
            let (header, place) = match inbox.next() {
                Ok(Some(found)) => found,
                Ok(None) => return true,
                Err(_) => {
                    let first = inbox.first();
                    outbox.control(|out| refuse_stranger(out, self.database.newest(), first));
                    *closing = true;
                    return true;
                }
            };
            let body = inbox.body(&place);
            let executes = match header.opcode {
                opcode::BATCH => true,
                opcode::EXECUTE => !is_system(body),
                _ => false,
            };
            if executes {
                if close_after.is_some_and(|most| session.executed >= most) {
                    // The answer still has to be sent.
                    *closing = true;
                    return true;
                }
                session.executed += 1;
                self.counts.executed.fetch_add(1, Ordering::Relaxed);
                if let Some(seasons) = &mut self.seasons {
                    seasons.start_ns.get_or_insert_with(monotonic_ns);
                }
            }
            let mut act = Act::Now;
            if executes && !delay.is_zero() {
                let mut frame = Vec::new();
                act = self.database.reply(session, *node, header, body, behaviour, &mut frame);
                let due_ns = monotonic_ns() + delay.as_nanos() as u64;
                self.order += 1;
                self.delayed.push(Reverse(Delayed { due_ns, order: self.order, token, frame }));
            } else {
                outbox.control(|out| act = self.database.reply(session, *node, header, body, behaviour, out));
            }
            match act {
                Act::Now => {}
                Act::Silent => {
                    self.counts.unanswered.fetch_add(1, Ordering::Relaxed);
                }
                Act::Close => return false,
                Act::Frame(framing) => {
                    outbox.frame_as(framing);
                    inbox.frame_as(framing);
                }
                Act::CloseAfter => *closing = true,
            }
        }
        true
    }

    /// Sends the delayed answers that are due.
    fn release(&mut self) {
        let now = monotonic_ns();
        let mut touched = Vec::new();
        while self.delayed.peek().is_some_and(|Reverse(first)| first.due_ns <= now)
            && let Some(Reverse(Delayed { token, frame, .. })) = self.delayed.pop()
        {
            if let Some(peer) = self.peers.get_mut(&token) {
                peer.outbox.control(|out| out.extend_from_slice(&frame));
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
        let held = self.seasons.as_ref().is_some_and(|seasons| seasons.frozen);
        if held || self.behaviours[peer.node].frozen {
            return;
        }
        let keep = match peer.flush() {
            Ok(done) => {
                let mut keep = !(done && peer.closing);
                if peer.watching == done {
                    peer.watching = !done;
                    keep &= watch(&self.epoll, peer, self.behaviours[peer.node]).is_ok();
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

/// Has the epoll tell of what a peer is watched for.
fn watch(epoll: &Epoll, peer: &Peer, behaviour: Behaviour) -> io::Result<()> {
    if behaviour.deaf {
        epoll.ignore_readable(peer, peer.serial, peer.watching)
    } else {
        epoll.watch_writable(peer, peer.serial, peer.watching)
    }
}
