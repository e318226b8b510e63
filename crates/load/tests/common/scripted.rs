//! A server that answers as a test says, and a workload that asks as a test says and keeps a diary.
#![allow(dead_code, reason = "every test program uses a part of it")]

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{
    Answer, Consistency, Coordinator, Drawn, Ended, Ending, ErrorClass, Meaning, Next, Parameters, Received, Request,
    Route, Sending, ServerError, ThreadWorkload, Ticket, Workload,
};

/// What the server does with an EXECUTE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Void,
    Error(u32),
    Silence,
    Close,
    Garbage,
    /// Void, after this time; the connection answers nothing else meanwhile.
    After(Duration),
}

/// Decides about the EXECUTE with this number, counted from 0 over all connections; also told the body.
pub type Script = dyn Fn(u64, &[u8]) -> Reply + Send + Sync;

/// A server with a thread per connection. It lives as long as its test.
pub struct Scripted {
    pub address: SocketAddr,
    pub executed: Arc<AtomicU64>,
    /// Connections accepted.
    pub accepted: Arc<AtomicU64>,
    /// Of every connection, the sockets: for what a test does to them behind the server's back.
    pub sockets: Arc<Mutex<Vec<TcpStream>>>,
    /// Nothing is answered or read while this is set.
    pub deaf: Arc<AtomicBool>,
    /// Errors that the next PREPAREs are answered with, the last one first.
    pub unprepared: Arc<Mutex<Vec<u32>>>,
    /// An EXECUTE is refused by its header; its body is read a moment later.
    pub hasty: Arc<AtomicBool>,
}

impl Scripted {
    pub fn start(script: impl Fn(u64, &[u8]) -> Reply + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Scripted {
            address: listener.local_addr().unwrap(),
            executed: Arc::default(),
            accepted: Arc::default(),
            sockets: Arc::default(),
            deaf: Arc::default(),
            unprepared: Arc::default(),
            hasty: Arc::default(),
        };
        let script: Arc<Script> = Arc::new(script);
        let (executed, accepted) = (Arc::clone(&server.executed), Arc::clone(&server.accepted));
        let (sockets, deaf) = (Arc::clone(&server.sockets), Arc::clone(&server.deaf));
        let (unprepared, hasty) = (Arc::clone(&server.unprepared), Arc::clone(&server.hasty));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                accepted.fetch_add(1, Ordering::SeqCst);
                sockets.lock().unwrap().push(socket.try_clone().unwrap());
                let (script, executed, deaf) = (Arc::clone(&script), Arc::clone(&executed), Arc::clone(&deaf));
                let (unprepared, hasty) = (Arc::clone(&unprepared), Arc::clone(&hasty));
                // Errors are the client's going away.
                std::thread::spawn(move || serve(socket, &*script, &executed, &deaf, &unprepared, &hasty).ok());
            }
        });
        server
    }

    pub fn coordinator(&self, name: &str) -> Coordinator {
        Coordinator { name: name.to_owned(), address: self.address }
    }

    pub fn executed(&self) -> u64 {
        self.executed.load(Ordering::SeqCst)
    }
}

/// The ticket of the operation that an EXECUTE is of: its only value, after an id of one byte, consistency and flags.
pub fn ticket(body: &[u8]) -> u64 {
    u64::from_be_bytes(body[12..20].try_into().unwrap())
}

/// The body of an ERROR.
fn error(code: u32) -> Vec<u8> {
    [&code.to_be_bytes()[..], b"\x00\x06script"].concat()
}

fn serve(
    mut socket: TcpStream,
    script: &Script,
    executed: &AtomicU64,
    deaf: &AtomicBool,
    unprepared: &Mutex<Vec<u32>>,
    hasty: &AtomicBool,
) -> std::io::Result<()> {
    let mut prepared = 0u8;
    loop {
        let mut header = [0; 9];
        socket.read_exact(&mut header)?;
        let mut body = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
        let refused = header[4] == 0x0a && hasty.load(Ordering::SeqCst);
        if refused {
            // INVALID.
            let error = error(0x2200);
            let mut frame = vec![0x84, 0, header[2], header[3], 0x00];
            frame.extend_from_slice(&(error.len() as u32).to_be_bytes());
            frame.extend_from_slice(&error);
            socket.write_all(&frame)?;
            std::thread::sleep(Duration::from_millis(100));
        }
        socket.read_exact(&mut body)?;
        if refused {
            continue;
        }
        while deaf.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut put = |opcode: u8, body: &[u8]| {
            let mut frame = vec![0x84, 0, header[2], header[3], opcode];
            frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
            frame.extend_from_slice(body);
            socket.write_all(&frame)
        };
        match header[4] {
            // STARTUP: READY. OPTIONS: SUPPORTED, nothing.
            0x01 => put(0x02, &[])?,
            0x05 => put(0x06, &[0, 0])?,
            // PREPARE: its number as id, without metadata.
            0x09 => {
                if let Some(code) = unprepared.lock().unwrap().pop() {
                    put(0x00, &error(code))?;
                    continue;
                }
                prepared += 1;
                put(0x08, &[0, 0, 0, 4, 0, 1, prepared, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0])?;
            }
            _ => match script(executed.fetch_add(1, Ordering::SeqCst), &body) {
                Reply::Void => put(0x08, &[0, 0, 0, 1])?,
                Reply::After(time) => {
                    std::thread::sleep(time);
                    put(0x08, &[0, 0, 0, 1])?;
                }
                Reply::Error(code) => put(0x00, &error(code))?,
                Reply::Silence => {}
                Reply::Garbage => socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?,
                Reply::Close => return socket.shutdown(std::net::Shutdown::Both),
            },
        }
    }
}

/// One flow of operations.
#[derive(Clone)]
pub struct Plan {
    pub name: &'static str,
    /// How many there are, over all threads; `None`: no end.
    pub count: Option<u64>,
    /// Of every operation.
    pub partitions: u32,
    /// Requests of every operation; what is between them.
    pub steps: u32,
    pub next: Next,
    pub route: Route,
    /// Writes no request at all.
    pub mute: bool,
    /// Bytes of every request besides what it needs.
    pub padding: usize,
    /// So many of a thread may be open; more there are when one of them is over.
    pub open: usize,
}

impl Plan {
    pub fn new(name: &'static str) -> Plan {
        Plan {
            name,
            count: None,
            partitions: 1,
            steps: 1,
            next: Next::Page,
            route: Route::Any,
            mute: false,
            padding: 0,
            open: usize::MAX,
        }
    }
}

/// What became of the operations.
#[derive(Default)]
pub struct Diary {
    pub drawn: HashMap<&'static str, u64>,
    /// (attempt, step, now) of every request, by operation.
    pub requests: HashMap<u64, Vec<Sending>>,
    pub ended: HashMap<u64, (Ended, u32)>,
    pub released: HashMap<u64, u64>,
    pub refused: Vec<(ErrorClass, String)>,
    pub late: u64,
}

pub struct Asking {
    pub plans: Vec<Plan>,
    pub left: Vec<AtomicU64>,
    pub diary: Arc<Mutex<Diary>>,
    tickets: Arc<AtomicU64>,
}

impl Asking {
    pub fn new(plans: &[Plan]) -> (Arc<Asking>, Arc<Mutex<Diary>>) {
        let diary: Arc<Mutex<Diary>> = Arc::default();
        let left = plans.iter().map(|plan| AtomicU64::new(plan.count.unwrap_or(u64::MAX))).collect();
        let asking =
            Asking { plans: plans.to_vec(), left, diary: Arc::clone(&diary), tickets: Arc::new(AtomicU64::new(0)) };
        (Arc::new(asking), diary)
    }
}

/// Shared by the engine and the test.
pub struct Shared(pub Arc<Asking>);

impl Workload for Shared {
    fn operations(&self) -> Vec<String> {
        self.0.plans.iter().map(|plan| plan.name.to_owned()).collect()
    }

    fn statements(&self) -> Vec<String> {
        vec!["SELECT a".to_owned(), "SELECT b".to_owned()]
    }

    fn flows(&self) -> usize {
        self.0.plans.len()
    }

    fn thread(&self, _: usize, _: usize) -> Box<dyn ThreadWorkload> {
        Box::new(Part { asking: Arc::clone(&self.0), flow_of: HashMap::new(), open: vec![0; self.0.plans.len()] })
    }
}

struct Part {
    asking: Arc<Asking>,
    flow_of: HashMap<u64, usize>,
    /// Operations that are not over, by flow.
    open: Vec<usize>,
}

impl Part {
    fn plan(&self, ticket: Ticket) -> &Plan {
        &self.asking.plans[self.flow_of[&ticket.0]]
    }
}

impl ThreadWorkload for Part {
    fn draw(&mut self, flow: usize) -> Option<Drawn> {
        let plan = &self.asking.plans[flow];
        if self.open[flow] >= plan.open {
            return None;
        }
        let less = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        self.asking.left[flow].fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).ok()?;
        let ticket = self.asking.tickets.fetch_add(1, Ordering::SeqCst);
        self.flow_of.insert(ticket, flow);
        self.open[flow] += 1;
        *self.asking.diary.lock().unwrap().drawn.entry(plan.name).or_default() += 1;
        Some(Drawn { ticket: Ticket(ticket), operation: flow as u16, partitions: plan.partitions })
    }

    fn more_later(&self, flow: usize) -> bool {
        self.open[flow] >= self.asking.plans[flow].open
    }

    fn route(&self, ticket: Ticket, _: bool) -> Route {
        self.plan(ticket).route
    }

    fn request(&mut self, ticket: Ticket, sending: &Sending, request: Request<'_>) {
        let Plan { mute, padding, .. } = *self.plan(ticket);
        if mute {
            return;
        }
        self.asking.diary.lock().unwrap().requests.entry(ticket.0).or_default().push(*sending);
        let mut values = request.execute(1, &Parameters::new(Consistency::One));
        values.value(&ticket.0.to_be_bytes());
        if padding > 0 {
            values.value(&vec![0; padding]);
        }
    }

    fn answer(&mut self, ticket: Ticket, _: &Answer<'_>, received: &Received) -> Meaning {
        let mut diary = self.asking.diary.lock().unwrap();
        diary.late += u64::from(received.late);
        assert!(!diary.released.contains_key(&ticket.0), "an answer after the release");
        drop(diary);
        assert!(received.at_ns <= monotonic_ns());
        let plan = self.plan(ticket);
        let done = Meaning { page: plan.next == Next::Page && plan.steps > 1, ..Meaning::done(plan.partitions, 10) };
        if received.step + 1 < plan.steps { Meaning { next: plan.next, partitions: 0, ..done } } else { done }
    }

    fn refused(&mut self, _: Ticket, error: &ServerError<'_>, _: &Received) {
        self.asking.diary.lock().unwrap().refused.push((error.class, error.message.to_owned()));
    }

    fn end(&mut self, ticket: Ticket, ending: &Ending) {
        let mut diary = self.asking.diary.lock().unwrap();
        assert!(!diary.released.contains_key(&ticket.0), "an end after the release");
        assert!(diary.ended.insert(ticket.0, (ending.result, ending.requests)).is_none(), "a second end");
    }

    fn release(&mut self, ticket: Ticket) {
        self.open[self.flow_of[&ticket.0]] -= 1;
        self.asking.diary.lock().unwrap().released.entry(ticket.0).and_modify(|count| *count += 1).or_insert(1);
    }
}

impl Diary {
    /// After the engine has stopped: every operation that was drawn has ended once; and if no late answer is awaited
    /// any more, it was released once.
    pub fn check(&self) {
        let drawn: u64 = self.drawn.values().sum();
        assert_eq!(self.ended.len() as u64, drawn, "every operation ends once");
        assert_eq!(self.released.len() as u64, drawn, "every operation is released");
        assert!(self.released.values().all(|count| *count == 1), "and once only");
        for (ticket, (ended, requests)) in &self.ended {
            let sent = self.requests.get(ticket).map_or(0, Vec::len);
            assert_eq!(sent, *requests as usize, "{ended:?}");
        }
    }

    pub fn ended(&self, how: Ended) -> u64 {
        self.ended.values().filter(|(ended, _)| *ended == how).count() as u64
    }
}
