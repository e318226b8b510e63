//! `brownout stress` against a stub that does what it is told.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use brownout_load::stub::Stub;
use serde_json::Value;
use tempfile::TempDir;

pub const BROWNOUT: &str = env!("CARGO_BIN_EXE_brownout");

/// Nothing here takes nearly as long: whatever does, hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Waits until a stub has received so many requests.
pub fn wait_for_operations(stub: &Stub, count: u64) {
    let begun = Instant::now();
    while stub.executed() < count {
        assert!(begun.elapsed() < HANGS, "the load sends nothing: {} of {count} requests have come", stub.executed());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What has ended.
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// Of `-log json=`; null if nothing was written.
    pub json: Value,
}

/// A run that is under way.
pub struct Load {
    child: Child,
    words: String,
    directory: TempDir,
    out: mpsc::Receiver<String>,
    err: mpsc::Receiver<String>,
}

/// Reads to the end, elsewhere: a program whose output nobody reads stands still.
fn drained(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (to, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = to.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    read
}

impl Load {
    /// Starts the words against the first node of a stub, without warm-up and with `-log json=` and what `log` has.
    pub fn start(stub: &Stub, words: &str, log: &str) -> Load {
        let address = stub.addresses()[0];
        Load::start_at(&address.ip().to_string(), address.port(), words, log)
    }

    /// The same against whoever is there. The host may be followed by other words of `-node`.
    pub fn start_at(host: &str, port: u16, words: &str, log: &str) -> Load {
        let directory = tempfile::tempdir().unwrap();
        let json = directory.path().join("results.json");
        let mut command = Command::new(BROWNOUT);
        let (first, others) = words.split_once(' ').unwrap();
        let others = format!(" {others}");
        let (own, groups) = others.split_once(" -").unwrap_or((&others, ""));
        let groups = if groups.is_empty() { String::new() } else { format!("-{groups}") };
        let warms = own.contains("warm-up");
        command.arg("stress").arg(first).args(own.split(' ').filter(|word| !matches!(*word, "" | "warm-up")));
        if !warms {
            command.arg("no-warmup");
        }
        command.args(groups.split(' ').filter(|word| !word.is_empty()));
        command.arg("-node").args(host.split(' ')).args(["-port", &format!("native={port}")]);
        command
            .args(["-log", "no-settings", &format!("json={}", json.display())])
            .args(log.split(' ').filter(|word| !word.is_empty()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Load { child, words: words.to_owned(), directory, out: drained(out), err: drained(err) }
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(libc::SIGINT);
    }

    /// Any signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child is ours and has not been waited for, so that its number is its own.
        unsafe {
            libc::kill(self.child.id() as i32, signal);
        }
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end; a run that has none is ended, and fails the test.
    pub fn done(mut self) -> Done {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if begun.elapsed() > HANGS {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                let (out, err) = (self.out.recv().unwrap(), self.err.recv().unwrap());
                panic!("{} hangs:\n{out}\n---- stderr:\n{err}", self.words);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let json = std::fs::read(self.directory.path().join("results.json")).unwrap_or_default();
        let json = serde_json::from_slice(&json).unwrap_or_default();
        let done = Done { code, out: self.out.recv().unwrap(), err: self.err.recv().unwrap(), json };
        assert!(!done.err.contains("panicked"), "{}: {done}", self.words);
        done
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit {:?}\n{}\n---- stderr:\n{}\n---- balance: {}",
            self.code, self.out, self.err, self.json["balance"]
        )
    }
}

impl Done {
    /// A count of the balance sheet.
    pub fn sheet(&self, name: &str) -> u64 {
        self.json["balance"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {self}"))
    }

    /// Operations that ended in this way, by the balance sheet.
    pub fn class(&self, name: &str) -> u64 {
        match name {
            "ok" => self.sheet("answered_ok"),
            "timed-out" => self.sheet("timed_out"),
            "never-sent" => self.sheet("never_sent"),
            _ => self.json["balance"]["failures"][name].as_u64().unwrap_or(0),
        }
    }

    /// Every operation has ended in exactly one way, and nothing else says otherwise.
    pub fn adds_up(&self) {
        let sheet = &self.json["balance"];
        assert_eq!(sheet["balances"], true, "{self}");
        assert_eq!((self.sheet("waiting"), self.sheet("in_flight")), (0, 0), "{self}");
        assert_eq!(self.sheet("scheduled"), self.sheet("sent") + self.sheet("never_sent"), "{self}");
        let ended = self.sheet("answered_ok") + self.sheet("failed") + self.sheet("timed_out");
        assert_eq!(self.sheet("sent"), ended, "{self}");
        let classes = sheet["failures"].as_object().unwrap().values().filter_map(Value::as_u64);
        assert_eq!(self.sheet("failed"), classes.sum::<u64>(), "{self}");
        // The figures of operations come by another way than the sheet, and have to say the same.
        let (mut ended, mut never_sent) = (0, 0);
        for operation in self.json["operations"].as_array().unwrap() {
            never_sent += operation["never_sent"].as_u64().unwrap();
            for (outcome, figures) in operation["outcomes"].as_object().unwrap() {
                if outcome != "late" {
                    ended += figures["count"].as_u64().unwrap();
                }
            }
        }
        assert_eq!((ended, never_sent), (self.sheet("sent"), self.sheet("never_sent")), "{self}");
    }

    /// It ended as a run does that goes on after failures. In an open loop the client may have been late, on a busy
    /// machine, and then says that it is no evidence.
    pub fn went_on(&self) {
        assert!(matches!(self.code, Some(0 | 3)), "{self}");
        assert_eq!(self.last(), "END", "{self}");
    }

    /// The last line of stdout.
    pub fn last(&self) -> &str {
        self.out.trim_end().lines().last().unwrap_or_default()
    }
}
