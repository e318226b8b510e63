//! A run of `brownout stress` that has ended, and what it left to read.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

use crate::common::{cassandra::Cassandra, text};

/// Runs so far: each has a file of its own.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// What it printed and wrote.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// `-log json=`; null if it was not written.
    pub json: Value,
}

/// One under way.
pub struct Started {
    child: Child,
    file: std::path::PathBuf,
    /// What it has printed so far, read elsewhere: whose output nobody reads, stands still.
    out: Reading,
    err: Reading,
}

/// What a thread has read.
struct Reading {
    read: Arc<Mutex<String>>,
    thread: JoinHandle<()>,
}

impl Reading {
    fn start(from: impl Read + Send + 'static) -> Reading {
        let read = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&read);
        let thread = thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n') {
                let mut to = to.lock().unwrap();
                to.push_str(&text(&line.unwrap()));
                to.push('\n');
            }
        });
        Reading { read, thread }
    }

    fn so_far(&self) -> String {
        self.read.lock().unwrap().clone()
    }

    fn all(self) -> String {
        self.thread.join().unwrap();
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl Started {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed something that holds this.
    pub fn wait_for(&mut self, sign: &str) {
        while !self.out.so_far().contains(sign) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended before it said '{sign}': {}{}", self.out.so_far(), self.err.so_far());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let status = self.child.wait().unwrap();
        let json = std::fs::read(&self.file).ok().map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap());
        let ran = Ran { code: status.code(), out: self.out.all(), err: self.err.all(), json };
        assert!(ran.code.is_some(), "ended by a signal: {}\n---- stderr:\n{}", ran.out, ran.err);
        ran
    }
}

/// Begins a run. The words have no `-log` of their own.
pub fn start(node: &Cassandra, words: &[&str]) -> Started {
    let file = node.directory().join(format!("run{}.json", RUNS.fetch_add(1, Ordering::Relaxed)));
    let log = format!("json={}", file.display());
    let mut command: Command = node.stress(words);
    command.args(["-log", "no-settings", &log]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = Reading::start(child.stdout.take().unwrap());
    let err = Reading::start(child.stderr.take().unwrap());
    Started { child, file, out, err }
}

/// A run to its end, which is this exit code. On a machine as busy as one that also runs the database, the client of a
/// run that is done may have been late; it says so, and that is its own exit code.
pub fn ends(node: &Cassandra, words: &[&str], code: i32) -> Ran {
    let ran = start(node, words).end();
    let as_asked = ran.code == Some(code) || (code == 0 && ran.was_late());
    assert!(as_asked, "{words:?}: {:?}: {}\n---- stderr:\n{}", ran.code, ran.out, ran.err);
    ran
}

/// A run that ends well: END, and an account that balances without an error.
pub fn good(node: &Cassandra, words: &[&str]) -> Ran {
    let ran = ends(node, words, 0);
    assert!(ran.out.ends_with("\nEND\n"), "{words:?}: {}", ran.out);
    ran.assert_balances();
    for none in ["failed", "timed_out", "never_sent", "late"] {
        assert_eq!(ran.balance(none), 0, "{words:?}: {none}: {}\n{}", ran.out, ran.err);
    }
    ran
}

/// An open loop ran for its time at its rate: every thread's schedule may be cut off by a part of an operation.
pub fn assert_due(count: u64, asked: u64, what: &str) {
    assert!(count.abs_diff(asked) <= 2, "{what}: {count} operations were due, {asked} asked");
}

impl Ran {
    /// Whether it ended as one does that is no evidence.
    pub fn was_late(&self) -> bool {
        self.code == Some(3) && self.err.contains("the client itself was late for more than a fifth of the time")
    }

    /// A number of the balance sheet.
    pub fn balance(&self, name: &str) -> u64 {
        self.json["balance"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", self.json["balance"]))
    }

    /// Operations of which the user got nothing.
    pub fn lost(&self) -> u64 {
        self.balance("failed") + self.balance("timed_out") + self.balance("never_sent")
    }

    /// Every operation ended in exactly one way.
    pub fn assert_balances(&self) {
        let get = |name| self.balance(name);
        assert_eq!(self.json["balance"]["balances"], true, "{}", self.json["balance"]);
        assert_eq!((get("in_flight"), get("waiting")), (0, 0), "{}", self.json["balance"]);
        assert_eq!(get("scheduled"), get("sent") + get("never_sent"), "{}", self.json["balance"]);
        assert_eq!(get("sent"), get("answered_ok") + get("failed") + get("timed_out"), "{}", self.json["balance"]);
        let failures = self.json["balance"]["failures"].as_object().unwrap();
        assert_eq!(failures.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), get("failed"));
        let ended: u64 = self.operations().iter().map(|name| self.of(name, "ended")).sum();
        assert_eq!(ended, get("sent"), "every operation that was sent has ended under its name");
        assert!(self.out.contains("\nAccount of operations     : "), "{}", self.out);
    }

    /// The names of operations.
    pub fn operations(&self) -> Vec<String> {
        let all =
            self.json["operations"].as_array().unwrap_or_else(|| panic!("no operations: {}\n{}", self.out, self.err));
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    /// An operation of the export.
    pub fn operation(&self, name: &str) -> &Value {
        let all = self.json["operations"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {:?}", self.operations()))
    }

    /// A number of an operation.
    pub fn of(&self, operation: &str, field: &str) -> u64 {
        self.operation(operation)[field].as_u64().unwrap_or_else(|| panic!("{field}: {}", self.operation(operation)))
    }

    /// A number of the findings.
    pub fn found(&self, name: &str) -> u64 {
        self.json["findings"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", self.json["findings"]))
    }

    /// The value of a line of `Results:` or of the account.
    pub fn line(&self, name: &str) -> &str {
        let line = self.out.lines().find(|line| line.split(':').next().unwrap().trim_end() == name);
        let line = line.unwrap_or_else(|| panic!("no line '{name}' in {}", self.out));
        line.split_once(':').unwrap().1.trim()
    }

    /// Seconds that it took, from the first intended start to the end.
    pub fn seconds(&self) -> f64 {
        self.json["duration_ns"].as_u64().unwrap() as f64 / 1e9
    }
}
