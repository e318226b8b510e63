//! A clock, its object, and programs that see it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_clock::{HostClock, Skew, write_object};
use tempfile::TempDir;

use crate::witness::VARIABLE;

/// Far more than any answer takes, far less than the hour that a wrong one would.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Fixture {
    pub directory: TempDir,
    pub object: PathBuf,
    pub file: PathBuf,
    pub clock: HostClock,
    pub began_ns: i64,
}

impl Fixture {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let object = write_object(directory.path()).unwrap();
        let file = directory.path().join("clock");
        let clock = HostClock::create(&file).unwrap();
        Fixture { directory, object, file, clock, began_ns: machine_ns() }
    }

    /// Makes the clock differ from the machine's by this, whatever it did before.
    pub fn set(&self, skew: Skew) {
        self.clock.reset().unwrap();
        self.clock.shift(skew.offset_ns, skew.drift_ppb).unwrap();
    }

    pub fn command(&self, program: &[&str]) -> Command {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).envs(self.clock.environment(&self.object));
        command
    }

    /// The least and the most that the clock can be off which this program prints in nanoseconds.
    pub fn skew_of(&self, program: &[&str]) -> (i64, i64) {
        seen_by(&mut self.command(program))
    }
}

pub fn machine_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// As [`Fixture::skew_of`]. A program must not complain either.
pub fn seen_by(command: &mut Command) -> (i64, i64) {
    let before = machine_ns();
    let output = command.output().unwrap();
    let after = machine_ns();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown: i64 = text.trim().parse().unwrap_or_else(|_| panic!("{command:?} printed {text:?}"));
    (shown - after, shown - before)
}

/// One way to read a clock, and how far it was off at least and at most.
#[derive(Debug)]
#[allow(dead_code)] // `name` is for messages.
pub struct Reading {
    pub name: String,
    pub is_wall: bool,
    pub low: i64,
    pub high: i64,
}

/// A program with a shifted clock that answers questions. Ended when dropped.
pub struct Witness {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

impl Witness {
    pub fn start(fixture: &Fixture) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "witness_program", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, "1")
            .envs(fixture.clock.environment(&fixture.object))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        // Ends with the child's output.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test harness talks, too.
                if let Some((_, answer)) = line.split_once("witness: ")
                    && sender.send(answer.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        let questions = child.stdin.take().unwrap();
        let mut witness = Witness { child, questions, answers };
        // Up, with the clock's file open, once it answers.
        witness.shown();
        witness
    }

    /// One line of answer, in words.
    pub fn ask(&mut self, question: &str) -> Vec<String> {
        writeln!(self.questions, "{question}").unwrap();
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.unwrap_or_else(|_| panic!("no answer to {question:?}")).split_whitespace().map(str::to_owned).collect()
    }

    /// How far off the wall clock is at least and at most.
    pub fn skew(&mut self) -> (i64, i64) {
        let answer = self.ask("skew");
        (answer[0].parse().unwrap(), answer[1].parse().unwrap())
    }

    /// The wall clock.
    pub fn shown(&mut self) -> i64 {
        self.ask("shown")[0].parse().unwrap()
    }

    pub fn readings(&mut self) -> Vec<Reading> {
        let answer = self.ask("readings");
        answer
            .chunks(4)
            .map(|words| Reading {
                name: words[0].clone(),
                is_wall: words[1] == "wall",
                low: words[2].parse().unwrap(),
                high: words[3].parse().unwrap(),
            })
            .collect()
    }

    /// Each kind of wait, and by how much it ended before its time (negative: after), in nanoseconds.
    pub fn waits(&mut self) -> Vec<(String, i64)> {
        self.ask("waits").chunks(2).map(|words| (words[0].clone(), words[1].parse().unwrap())).collect()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
