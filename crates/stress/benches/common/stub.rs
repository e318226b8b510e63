//! A server that takes writes, for any client of protocol version 4: what the benches put the tools in front of.
//!
//! It answers every EXECUTE with VOID, keeps nothing, and knows the tables that drivers read when they connect. A thread
//! per connection reads what has come, answers all of it, and writes once. It can freeze in a rhythm, and nodes can be
//! slow. It is a process of its own, on one CPU, so that what a client costs is measured apart from what the server costs.

use std::{
    collections::VecDeque,
    io::{BufRead, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

const ERROR: u8 = 0x00;
const READY: u8 = 0x02;
const SUPPORTED: u8 = 0x06;
const RESULT: u8 = 0x08;
const HEADER: usize = 9;

/// From the first write on: `first` after it, and every `period` again, nothing is answered for `length`.
#[derive(Clone, Copy)]
pub struct Freezes {
    pub first: Duration,
    pub length: Duration,
    pub period: Duration,
}

struct Server {
    nodes: u8,
    executed: AtomicU64,
    first: OnceLock<Instant>,
    freezes: Option<Freezes>,
    /// What the last node takes for every write.
    slow: Duration,
    /// The most by which an answer was held back longer than it should, µs: the stub is at the mercy of its machine.
    late_us: AtomicU64,
}

/// Runs the server until standard input ends: prints its port, then answers every line with the writes received, or, if
/// it says `late`, with how late in µs an answer was that was held back.
pub fn serve(nodes: u8, freezes: Option<Freezes>, slow: Duration) {
    super::process::pin(1);
    let server = Arc::new(Server {
        nodes,
        executed: AtomicU64::new(0),
        first: OnceLock::new(),
        freezes,
        slow,
        late_us: AtomicU64::new(0),
    });
    // Drivers expect one port on all nodes.
    let (port, listeners) = (0..50)
        .find_map(|_| {
            let first = TcpListener::bind((node(0), 0)).ok()?;
            let port = first.local_addr().ok()?.port();
            let others: Result<Vec<_>, _> = (1..nodes).map(|number| TcpListener::bind((node(number), port))).collect();
            Some((port, std::iter::once(first).chain(others.ok()?).collect::<Vec<_>>()))
        })
        .expect("no port is free on all of the nodes' addresses");
    for (number, listener) in (0..).zip(listeners) {
        let server = Arc::clone(&server);
        spawn(move || {
            for socket in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                // A connection ends when its client says so; how matters to nobody.
                spawn(move || drop(server.connection(number, socket)));
            }
        });
    }
    println!("{port}");
    for line in std::io::stdin().lock().lines() {
        let late = line.is_ok_and(|line| line == "late");
        println!("{}", if late { &server.late_us } else { &server.executed }.load(Ordering::Relaxed));
    }
}

fn node(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, number + 1)
}

/// Answers that wait for their time, on a connection of a slow node.
type Late = Arc<(Mutex<VecDeque<(Instant, Vec<u8>)>>, Condvar)>;

impl Server {
    fn connection(self: &Arc<Self>, number: u8, mut socket: TcpStream) -> std::io::Result<()> {
        socket.set_nodelay(true)?;
        let late = (number + 1 == self.nodes && !self.slow.is_zero()).then(|| later(&socket, self)).transpose()?;
        let (mut input, mut output) = (vec![0; 256 * 1024], Vec::new());
        let (mut filled, mut keyspace) = (0, String::new());
        loop {
            let read = socket.read(&mut input[filled..])?;
            if read == 0 {
                return Ok(());
            }
            filled += read;
            let (mut start, mut executed) = (0, 0);
            while let Some(length) = whole(&input[start..filled]) {
                let frame = &input[start..start + length];
                if frame[4] == 0x0A && frame[11] == b'w' {
                    executed += 1;
                    answer(&mut output, frame, RESULT, &1u32.to_be_bytes());
                } else {
                    self.control(number, frame, &mut keyspace, &mut output);
                }
                start += length;
            }
            input.copy_within(start..filled, 0);
            filled -= start;
            if executed > 0 {
                self.executed.fetch_add(executed, Ordering::Relaxed);
                self.sit_out(Instant::now());
                if let Some(late) = &late {
                    let due = Instant::now() + self.slow;
                    late.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((due, std::mem::take(&mut output)));
                    late.1.notify_one();
                }
            }
            socket.write_all(&output)?;
            output.clear();
        }
    }

    /// Sleeps to the end of the freeze, if there is one now.
    fn sit_out(&self, now: Instant) {
        let first = *self.first.get_or_init(|| now);
        if let Some(Freezes { first: offset, length, period }) = self.freezes
            && let Some(since) = (now - first).checked_sub(offset)
        {
            let into = Duration::from_nanos((since.as_nanos() % period.as_nanos()) as u64);
            if into < length {
                self.sleep_until(now + (length - into));
            }
        }
    }

    fn sleep_until(&self, due: Instant) {
        sleep(due.saturating_duration_since(Instant::now()));
        self.late_us.fetch_max(due.elapsed().as_micros() as u64, Ordering::Relaxed);
    }

    /// Answers anything but a write.
    fn control(&self, number: u8, frame: &[u8], keyspace: &mut String, out: &mut Vec<u8>) {
        let body = &frame[HEADER..];
        if frame[0] != 4 {
            return refuse(
                out,
                frame,
                0x000A,
                "Invalid or unsupported protocol version (5); supported versions are (4/v4)",
            );
        }
        match frame[4] {
            0x01 | 0x0B => answer(out, frame, READY, &[]),
            0x05 => answer(
                out,
                frame,
                SUPPORTED,
                b"\x00\x02\x00\x0bCQL_VERSION\x00\x01\x00\x053.4.7\x00\x0bCOMPRESSION\x00\x00",
            ),
            0x07 => self.query(number, frame, &text(body), keyspace, out),
            0x09 => prepare(out, frame, &text(body), keyspace),
            // A prepared query of a driver's own: its id is its text.
            0x0A => {
                let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
                let text = String::from_utf8_lossy(&body[3..2 + length]).into_owned();
                self.query(number, frame, &text, keyspace, out);
            }
            _ => refuse(out, frame, 0x000A, "the stub does not understand this request"),
        }
    }

    fn query(&self, number: u8, frame: &[u8], text: &str, keyspace: &mut String, out: &mut Vec<u8>) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is = |word: &str| words.first().is_some_and(|first| first.eq_ignore_ascii_case(word));
        if is("use") {
            *keyspace = words.get(1).map(|name| name.trim_matches(['"', ';']).to_owned()).unwrap_or_default();
            let mut body = 3u32.to_be_bytes().to_vec();
            string(&mut body, keyspace);
            return answer(out, frame, RESULT, &body);
        }
        if !is("select") {
            return answer(out, frame, RESULT, &1u32.to_be_bytes());
        }
        let lower = text.to_ascii_lowercase();
        let (columns, rest) = lower["select".len()..].split_once(" from ").unwrap_or(("", ""));
        let table = rest.split_whitespace().next().unwrap_or_default().trim_end_matches(';').replace('"', "");
        let others = (0..self.nodes).filter(|other| *other != number);
        let rows: Vec<u8> = match table.as_str() {
            "system.local" => vec![number],
            "system.peers" => others.collect(),
            // gocql insists on it; drivers that ask for all of its columns do without. A single node has no peers.
            "system.peers_v2" if self.nodes == 1 && columns.trim() != "*" => vec![],
            // One keyspace, which is there before it is made.
            "system_schema.keyspaces" => vec![number],
            name if name.starts_with("system_schema.") && !name.contains("scylla") => vec![],
            // What version 3 of the Java driver asks of a server of this release.
            name if name.starts_with("system_virtual_schema.") => vec![],
            _ => {
                return refuse(
                    out,
                    frame,
                    0x2200,
                    &format!("unconfigured table {}", table.rsplit('.').next().unwrap_or_default()),
                );
            }
        };
        const ALL: &str = "key,bootstrapped,cluster_name,cql_version,data_center,host_id,partitioner,rack,release_version,\
                           rpc_address,broadcast_address,listen_address,schema_version,tokens";
        const PEER: &str = "peer,data_center,host_id,rack,release_version,rpc_address,schema_version,tokens";
        let columns = match (columns.trim(), table.as_str()) {
            ("*", "system.peers") => PEER,
            ("*", "system_schema.keyspaces") => "keyspace_name,durable_writes,replication",
            ("*", _) => ALL,
            (some, _) => some,
        };
        let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
        let mut body = [2u32.to_be_bytes(), 1u32.to_be_bytes(), (columns.len() as u32).to_be_bytes()].concat();
        let (schema, name) = table.split_once('.').unwrap_or_default();
        string(&mut body, schema);
        string(&mut body, name);
        for column in &columns {
            string(&mut body, column);
            let code: &[u16] = match *column {
                "host_id" | "schema_version" => &[0x0C],
                "rpc_address" | "broadcast_address" | "listen_address" | "peer" => &[0x10],
                "durable_writes" => &[0x04],
                "position" => &[0x09],
                "tokens" => &[0x22, 0x0D],
                "field_names" | "field_types" => &[0x20, 0x0D],
                "replication" => &[0x21, 0x0D, 0x0D],
                _ => &[0x0D],
            };
            code.iter().for_each(|code| body.extend_from_slice(&code.to_be_bytes()));
        }
        body.extend_from_slice(&(rows.len() as u32).to_be_bytes());
        for row in rows {
            columns.iter().for_each(|column| cell(&mut body, &self.cell(row, column)));
        }
        answer(out, frame, RESULT, &body);
    }

    fn cell(&self, number: u8, column: &str) -> Vec<u8> {
        match column {
            "rpc_address" | "broadcast_address" | "listen_address" | "peer" => node(number).octets().to_vec(),
            "host_id" => (0x1000_0000_0000_4000_8000_0000_0000_0001 + u128::from(number)).to_be_bytes().to_vec(),
            "schema_version" => 0x2000_0000_0000_4000_8000_0000_0000_0000u128.to_be_bytes().to_vec(),
            "tokens" => {
                let token = i64::MIN as i128 + ((1i128 << 64) / i128::from(self.nodes)) * i128::from(number) + 1;
                let mut tokens = 1u32.to_be_bytes().to_vec();
                cell(&mut tokens, token.to_string().as_bytes());
                tokens
            }
            "keyspace_name" => b"keyspace1".to_vec(),
            "durable_writes" => vec![1],
            "replication" => {
                let mut map = 2u32.to_be_bytes().to_vec();
                ["class", "org.apache.cassandra.locator.NetworkTopologyStrategy", "datacenter1", "1"]
                    .iter()
                    .for_each(|text| cell(&mut map, text.as_bytes()));
                map
            }
            "data_center" => b"datacenter1".to_vec(),
            "rack" => b"rack1".to_vec(),
            "release_version" => b"5.0.0".to_vec(),
            "cql_version" => b"3.4.7".to_vec(),
            "partitioner" => b"org.apache.cassandra.dht.Murmur3Partitioner".to_vec(),
            "cluster_name" => b"stub".to_vec(),
            "bootstrapped" => b"COMPLETED".to_vec(),
            _ => b"local".to_vec(),
        }
    }
}

/// A thread that writes answers when they are due.
fn later(socket: &TcpStream, server: &Arc<Server>) -> std::io::Result<Late> {
    let late = Late::default();
    let (mut socket, queue, server) = (socket.try_clone()?, Arc::clone(&late), Arc::clone(server));
    spawn(move || {
        loop {
            let mut waiting = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (due, frames) = loop {
                match waiting.pop_front() {
                    Some(first) => break first,
                    None => waiting = queue.1.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(waiting);
            server.sleep_until(due);
            if socket.write_all(&frames).is_err() {
                return;
            }
        }
    });
    Ok(late)
}

/// The length of the first frame, once all of it is there.
fn whole(bytes: &[u8]) -> Option<usize> {
    let length = HEADER + u32::from_be_bytes(bytes.get(5..HEADER)?.try_into().ok()?) as usize;
    (bytes.len() >= length).then_some(length)
}

fn answer(out: &mut Vec<u8>, request: &[u8], opcode: u8, body: &[u8]) {
    out.extend_from_slice(&[0x84, 0, request[2], request[3], opcode]);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}

fn refuse(out: &mut Vec<u8>, request: &[u8], code: u32, message: &str) {
    let mut body = code.to_be_bytes().to_vec();
    string(&mut body, message);
    answer(out, request, ERROR, &body);
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn cell(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A `[long string]`.
fn text(body: &[u8]) -> String {
    let length = u32::from_be_bytes([body[0], body[1], body[2], body[3]]) as usize;
    String::from_utf8_lossy(&body[4..4 + length]).into_owned()
}

/// `pk` and `ck` are bigint, everything else that is bound is a blob; `key` and `pk` are partition keys.
fn prepare(out: &mut Vec<u8>, request: &[u8], text: &str, keyspace: &str) {
    let mut body = 4u32.to_be_bytes().to_vec();
    if text.trim_start()[..6].eq_ignore_ascii_case("select") {
        string(&mut body, &format!("t{text}"));
        body.extend_from_slice(&[0; 12]);
    } else {
        string(&mut body, "write write writ");
        let words: Vec<String> = text
            .split(|c: char| c.is_whitespace() || "(),=;".contains(c))
            .filter(|word| !word.is_empty())
            .map(|word| word.replace('"', ""))
            .collect();
        let table = usize::from(!words[0].eq_ignore_ascii_case("update")) + 1;
        let names: Vec<&String> = match words.iter().position(|word| word.eq_ignore_ascii_case("values")) {
            Some(values) => words[table + 1..values].iter().collect(),
            None => words.windows(2).filter(|pair| pair[1] == "?").map(|pair| &pair[0]).collect(),
        };
        let keys: Vec<usize> = (0..names.len())
            .filter(|place| ["key", "pk"].contains(&names[*place].to_ascii_lowercase().as_str()))
            .collect();
        for number in [1, names.len(), keys.len()] {
            body.extend_from_slice(&(number as u32).to_be_bytes());
        }
        keys.iter().for_each(|place| body.extend_from_slice(&(*place as u16).to_be_bytes()));
        let (schema, table) = words[table].split_once('.').unwrap_or((keyspace, &words[table]));
        string(&mut body, schema);
        string(&mut body, table);
        for name in names {
            string(&mut body, name);
            let code: u16 = if name == "pk" || name == "ck" { 0x02 } else { 0x03 };
            body.extend_from_slice(&code.to_be_bytes());
        }
    }
    // No columns in the answer, and none described.
    body.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0]);
    answer(out, request, RESULT, &body);
}
