//! One load thread: an event loop that owns everything it touches.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    ops::Range,
    sync::{Arc, mpsc},
    time::Duration,
};

use brownout_base::{
    clock::{monotonic_ns, realtime_ns},
    random::{Random, derive},
};

use super::{
    connection::{Connection, Loss, State, Step},
    driven::Driven,
    flow::Flow,
    leader::Leader,
    ledger::{Ledger, Recent},
    operations::{Handle, OperationState, Operations},
    page::{Part, Shape},
    waiting::Roused,
    watching::Watching,
    wheel::Wheel,
};
use crate::{
    Balance, Balancing, ConnectionEvent, DataPath, EngineConfig, LoadError, Pace, ThreadWorkload, Workload,
    account::late_start_ns,
    driver::TIMER,
    ring::Replicas,
    sys::{Epoll, Waker},
};

/// What a thread is told to do between two turns of its loop.
pub(super) type Command = Box<dyn FnOnce(&mut Worker) + Send>;

/// What all threads are given.
pub(super) struct Setup {
    pub(super) config: EngineConfig,
    pub(super) workload: Arc<dyn Workload>,
    /// By index in the workload's list of tables; empty unless operations are balanced by token.
    pub(super) replicas: Vec<Replicas>,
}

/// What a thread returns when it ends.
#[derive(Default)]
pub(super) struct Final {
    pub(super) balance: Balance,
    pub(super) parts: Vec<(u64, Part)>,
}

/// A node as one thread sees it.
pub(super) struct Target {
    /// Indices of its connections.
    pub(super) connections: Range<usize>,
    /// How often one of them was chosen, for round robin.
    pub(super) turn: usize,
    /// The one that was chosen last.
    pub(super) filling: Option<usize>,
    /// Operations waiting for a stream on one of them, possibly including some that have ended.
    pub(super) queue: VecDeque<Handle>,
}

/// Epoll token of the waker, which is no connection's index.
const WAKER: u64 = u64::MAX;
/// Connection events kept until they are fetched.
const MOST_EVENTS: usize = 10_000;
/// Every step of a handshake may take 5 s plus four operation timeouts: a fault that slows operations must not keep a
/// client that would wait for them from connecting.
const FIRST_PATIENCE_NS: u64 = 5_000_000_000;
const PATIENCE_TIMEOUTS: u64 = 4;

fn patience_ns(timeout_ns: u64) -> u64 {
    FIRST_PATIENCE_NS + PATIENCE_TIMEOUTS * timeout_ns
}

/// The most that is reserved of a tick for waking up, which takes tens of µs in a virtual machine.
const WAKING_NS: u64 = 64_000;

/// How long operations are held back so that they still start within a tick.
fn held_back_ns(tick: Duration) -> u64 {
    let tick_ns = tick.as_nanos() as u64;
    tick_ns - (tick_ns / 8).min(WAKING_NS)
}

pub(super) struct Worker {
    pub(super) setup: Arc<Setup>,
    pub(super) index: usize,
    pub(super) timeout_ns: u64,
    /// Set only if another attempt may follow.
    pub(super) attempt_timeout_ns: Option<u64>,
    pub(super) counts_attempts: bool,
    pub(super) statements: Vec<String>,
    pub(super) workload: Box<dyn ThreadWorkload>,

    /// Used instead of our own connections. It must be dropped before the epoll, which it watches.
    pub(super) driven: Option<Driven>,
    pub(super) epoll: Epoll,
    waker: Arc<Waker>,
    inbox: mpsc::Receiver<Command>,
    ready: Option<mpsc::Sender<Result<(), LoadError>>>,

    pub(super) targets: Vec<Target>,
    pub(super) connections: Vec<Connection>,
    /// Those with something to write.
    touched: Vec<usize>,
    /// When a connection next needs attention; 0 if that has to be found out.
    pub(super) attention_ns: u64,
    pub(super) operations: Operations,
    /// Operations waiting for any coordinator to be connected.
    pub(super) unplaced: VecDeque<Handle>,
    /// Operations waiting for their next attempt, by the end of the wait.
    pub(super) rests: BinaryHeap<Reverse<(u64, Handle)>>,
    /// Counts choices of a coordinator.
    pub(super) turn: usize,
    /// Who leads, if that is the coordinator of everything.
    pub(super) leader: Leader,
    /// What is watched.
    pub(super) watching: Option<Watching>,
    pub(super) wheel: Wheel,
    pub(super) ledger: Ledger,
    events: Vec<ConnectionEvent>,

    /// Randomizes the delays of retries.
    pub(super) random: Random,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start, in µs: versions must not jump back when a clock is set.
    pub(super) unix_offset_us: u64,

    pub(super) flows: Vec<Flow>,
    /// The paces to come, one for every flow, and when they begin, in order of time.
    pub(super) pending: VecDeque<(u64, Vec<Pace>)>,
    /// End index of each tier of coordinators.
    pub(super) tier_ends: Vec<usize>,
    /// Reused list of users who start in a turn.
    pub(super) restarts: Vec<u64>,
    /// An operation was seen that continues when it is answered, so answers must not stay unread.
    pub(super) sequential: bool,
    /// No operation intended before this will be scheduled any more.
    pub(super) horizon_ns: u64,
    /// See [`EngineConfig::tick`].
    pub(super) coalesce_ns: u64,
    /// What is read in this turn did not arrive before this time.
    pub(super) unread_ns: u64,
    pub(super) roused: Roused,
    /// When what the last wait found could be read at the earliest; none if that wait cannot tell.
    pub(super) roused_ns: Option<u64>,
    /// When operations of an open loop were last started, and how many.
    pub(super) last_start_ns: u64,
    pub(super) last_starts: usize,
    /// When to end at the latest, once told to stop.
    pub(super) stopping: Option<u64>,
    /// When the thread was started.
    pub(super) begun_ns: u64,
    /// Why the thread cannot go on.
    pub(super) fatal: Option<LoadError>,
}

impl Worker {
    pub(super) fn new(
        index: usize,
        setup: &Arc<Setup>,
        waker: Arc<Waker>,
        inbox: mpsc::Receiver<Command>,
        ready: mpsc::Sender<Result<(), LoadError>>,
    ) -> Result<Self, LoadError> {
        let Setup { config, workload, .. } = &**setup;
        let epoll = Epoll::new().map_err(LoadError::system("an epoll"))?;
        epoll.add(&*waker, WAKER, false).map_err(LoadError::system("watching an eventfd"))?;

        let timeout_ns = config.timeout.as_nanos() as u64;
        let patience_ns = patience_ns(timeout_ns);
        let (driven, per_coordinator) = match config.path {
            DataPath::Own | DataPath::Etcd => (None, config.connections),
            DataPath::Driver => (Some(Driven::new(&epoll, config)?), 0),
        };
        let speaks_etcd = config.path == DataPath::Etcd;
        let mut wire = config.wire.clone();
        if speaks_etcd {
            wire.tls = wire.tls.map(|tls| tls.speaking("h2"));
        }
        let wire = Arc::new(wire);
        let (mut targets, mut connections) = (Vec::new(), Vec::new());
        for (number, coordinator) in config.coordinators.iter().enumerate() {
            let first = connections.len();
            for token in first..first + per_coordinator {
                let largest = workload.largest_answer();
                let dead_peer = config.dead_peer;
                let mut connection = Connection::new(
                    number,
                    coordinator.clone(),
                    Arc::clone(&wire),
                    token as u64,
                    largest,
                    patience_ns,
                    dead_peer,
                );
                connection.allow(config.max_pending);
                if speaks_etcd {
                    connection.speak_etcd(largest, config.balancing == Balancing::Leader && token == first);
                }
                connections.push(connection);
            }
            targets.push(Target {
                connections: first..connections.len(),
                turn: 0,
                filling: None,
                queue: VecDeque::new(),
            });
        }
        let counts_attempts = config.retries.tries > 1;
        let attempt_timeout = config.retries.attempt_timeout.filter(|_| counts_attempts);
        // Events have a name of their own, behind those of the operations.
        let names = workload.operations().len();
        let watching = workload.watched().map(|watched| {
            let turn = |turn: usize| {
                targets.iter().enumerate().map(move |(number, target)| (target.connections.start + turn, number))
            };
            let places: Vec<(usize, usize)> = (0..per_coordinator).flat_map(turn).collect();
            Watching::new(watched, &places, names as u16, timeout_ns)
        });
        let shape = Shape {
            coordinators: targets.len(),
            names: names + usize::from(watching.is_some()),
            late_ns: late_start_ns(config.tick),
        };
        Ok(Worker {
            setup: Arc::clone(setup),
            index,
            timeout_ns,
            attempt_timeout_ns: attempt_timeout.map(|timeout| timeout.as_nanos() as u64),
            counts_attempts,
            statements: workload.statements(),
            workload: workload.thread(config.number_of(index), config.threads_of_all()),
            driven,
            epoll,
            waker,
            inbox,
            ready: Some(ready),
            ledger: Ledger::new(config.epoch_ns, config.bucket.as_nanos() as u64, shape),
            targets,
            connections,
            touched: Vec::new(),
            attention_ns: 0,
            operations: Operations::default(),
            unplaced: VecDeque::new(),
            rests: BinaryHeap::new(),
            // Threads start with different coordinators.
            turn: index,
            leader: Leader::new(config.coordinators.len()),
            watching,
            wheel: Wheel::default(),
            events: Vec::new(),
            // A stream that no schedule and no workload uses.
            random: Random::new(derive(config.seed, u64::MAX - index as u64)),
            unix_offset_us: (realtime_ns() / 1_000).saturating_sub(monotonic_ns() / 1_000),
            flows: (0..workload.flows()).map(|_| Flow::new()).collect(),
            pending: VecDeque::new(),
            tier_ends: config.tier_ends(),
            restarts: Vec::new(),
            sequential: false,
            horizon_ns: 0,
            coalesce_ns: held_back_ns(config.tick),
            unread_ns: 0,
            roused: Roused::default(),
            roused_ns: None,
            last_start_ns: 0,
            last_starts: 0,
            stopping: None,
            begun_ns: monotonic_ns(),
            fatal: None,
        })
    }

    /// Runs until told to stop.
    pub(super) fn run(mut self) -> Result<Final, LoadError> {
        self.connect_driver()?;
        self.roused = Roused::of_this_thread();
        loop {
            let now = monotonic_ns();
            self.attend(now);
            self.expire(now);
            self.wake_rested(now);
            let more = self.start_operations(now);
            self.flush(now);
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
            if self.is_over(now) {
                return Ok(self.finish(now));
            }
            // A connection lost while sending has freed users.
            let more = more || self.has_restarts();
            let unread_ns = self.wait(if more { now } else { self.next_ns() })?;
            for index in 0..self.epoll.count() {
                let ready = self.epoll.ready(index);
                match ready.token {
                    WAKER => self.obey(),
                    TIMER => {}
                    connection => self.serve(connection as usize, ready),
                }
            }
            self.unread_ns = unread_ns;
            self.serve_driven();
        }
    }

    /// Runs the commands that have come.
    pub(super) fn obey(&mut self) {
        self.waker.clear();
        while let Ok(command) = self.inbox.try_recv() {
            command(self);
        }
    }

    /// Opens connections that are down, and gives up those that have been opening for too long.
    fn attend(&mut self, now: u64) {
        if now < self.attention_ns {
            return;
        }
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            match connection.state {
                State::Down { retry_ns } if retry_ns <= now => {
                    if let Err(loss) = connection.open_socket(&self.epoll, now) {
                        self.lose(index, loss);
                    }
                }
                State::Opening { deadline_ns, step } if deadline_ns <= now => {
                    let patience = Duration::from_nanos(connection.patience_ns);
                    self.lose(index, Loss::because(format!("no answer in {} within {patience:?}", step.name())));
                }
                // This changes when that is next; it is found out below.
                State::Ready if connection.is_to_ask(now) => self.ask_status(index),
                _ => {}
            }
        }
        self.attention_ns = self.connections.iter().map(Connection::attention_ns).min().unwrap_or(u64::MAX);
    }

    /// A connection has something to write, or the kernel takes more of what it has.
    pub(super) fn touch(&mut self, index: usize) {
        if !std::mem::replace(&mut self.connections[index].touched, true) {
            self.touched.push(index);
        }
    }

    /// Sends what was encoded. That makes room, which lets queued operations go.
    fn flush(&mut self, now: u64) {
        while let Some(index) = self.touched.pop() {
            let connection = &mut self.connections[index];
            connection.touched = false;
            if let Err(loss) = connection.flush(&self.epoll, &mut self.operations, &mut self.ledger) {
                self.lose(index, loss);
            }
            self.pump(self.connections[index].coordinator, None, now);
        }
    }

    /// A connection has become ready to take operations: it was `opened`, or its statements were prepared again.
    pub(super) fn is_ready(&mut self, index: usize, opened: bool, now: u64) {
        let coordinator = self.connections[index].coordinator;
        if self.ready.is_none() {
            if opened {
                self.event(coordinator, None);
            }
        } else if self.connections.iter().all(Connection::is_ready) {
            self.say_ready();
        }
        for handle in std::mem::take(&mut self.unplaced) {
            if self.operations.get(handle).is_some_and(|operation| operation.state == OperationState::Waiting) {
                self.place(handle, now);
            }
        }
        self.pump(coordinator, None, now);
    }

    /// Reports that this thread can take operations.
    pub(super) fn say_ready(&mut self) {
        if let Some(ready) = self.ready.take() {
            // If nobody listens any more, the command to stop is under way.
            let _ = ready.send(Ok(()));
        }
    }

    /// Time limit for every step of a handshake.
    pub(super) fn patience_ns(&self) -> u64 {
        patience_ns(self.timeout_ns)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether the first connections are still being made: any failure is then reported to the caller.
    pub(super) fn is_starting(&self) -> bool {
        self.ready.is_some()
    }

    pub(super) fn connect_error(&self, coordinator: usize, step: Step, reason: String) -> LoadError {
        let node = &self.setup.config.coordinators[coordinator];
        LoadError::Connect { coordinator: node.name.clone(), address: node.address, step: step.name(), reason }
    }

    pub(super) fn event(&mut self, coordinator: usize, lost: Option<String>) {
        if self.events.len() < MOST_EVENTS {
            let coordinator = self.setup.config.coordinators[coordinator].name.clone();
            self.events.push(ConnectionEvent { at_ns: monotonic_ns(), coordinator, lost });
        }
    }

    fn is_over(&self, now: u64) -> bool {
        let is_idle = || self.operations.open() == 0 && self.watching.as_ref().is_none_or(Watching::is_idle);
        self.stopping.is_some_and(|deadline| now >= deadline || is_idle())
    }

    /// Ends what is still open, so that the account can be closed.
    fn finish(mut self, now: u64) -> Final {
        self.abandon(now);
        if let Some(watching) = &mut self.watching {
            watching.close(&mut self.ledger);
        }
        let balance = self.balance();
        Final { balance, parts: self.ledger.drain(u64::MAX) }
    }
}

/// What the engine's owner asks for.
impl Worker {
    pub(super) fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    pub(super) fn drain(&mut self, horizon_ns: u64) -> Vec<(u64, Part)> {
        self.ledger.drain(horizon_ns)
    }

    pub(super) fn recent(&mut self) -> Recent {
        self.ledger.recent()
    }

    pub(super) fn balance(&self) -> Balance {
        let (waiting, in_flight) = self.operations.count();
        let now = monotonic_ns();
        let withheld = self.flows.iter().map(|flow| flow.withheld(now)).sum();
        self.ledger.balance(waiting, in_flight, withheld)
    }

    /// Whether nothing more will start until another pace is set, and nothing is open.
    pub(super) fn is_exhausted(&self) -> bool {
        let to_come = self.pending.iter().flat_map(|(_, paces)| paces).any(|pace| *pace != Pace::Idle);
        !to_come && self.operations.open() == 0 && self.flows.iter().all(Flow::is_idle)
    }

    pub(super) fn connection_events(&mut self) -> Vec<ConnectionEvent> {
        std::mem::take(&mut self.events)
    }

    /// Schedules nothing more and ends when nothing is open, or at `deadline_ns`.
    pub(super) fn stop(&mut self, deadline_ns: u64) {
        let now = monotonic_ns();
        // What is due by now is scheduled, however far behind this thread is.
        self.pending.retain(|(at, _)| *at < now);
        self.pending.push_back((now, vec![Pace::Idle; self.flows.len()]));
        while self.start_operations(now) {}
        self.stopping = Some(deadline_ns);
    }
}
