//! The commands that run something in a lab: programs, logs, statements, pings.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    thread,
    time::Duration,
};

use brownout_lab::byhand::{Ask, Client, Failure, LabDirectory, Reply};
use brownout_units::Delay;
use serde::Serialize;

use super::{
    ask::{LabName, ask, find, who, wrong},
    look,
};
use crate::output;

/// What a program in a lab has of the client's surroundings.
const VARIABLES: [&str; 8] = ["PATH", "TERM", "LANG", "LC_ALL", "HOME", "USER", "COLORTERM", "TZ"];
/// Between two looks for more of a log.
const FOLLOW: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub struct LogsArguments {
    /// The node.
    host: String,
    /// Follow the log, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Print only this many of its last lines.
    #[arg(long, value_name = "COUNT")]
    lines: Option<usize>,
    /// Print the output of its process instead of its log.
    #[arg(long)]
    console: bool,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct ExecArguments {
    /// The host.
    host: String,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct NodetoolArguments {
    #[command(flatten)]
    lab: LabName,
    /// The node.
    host: String,
    /// Its arguments: status, info, tpstats, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

#[derive(clap::Args)]
pub struct CqlArguments {
    /// The statement.
    statement: String,
    /// The node to ask. Default: the first that is up.
    #[arg(long)]
    host: Option<String>,
    /// Consistency level: one, quorum, local-quorum, all, …
    #[arg(long, default_value = "one", value_name = "LEVEL")]
    consistency: String,
    /// Print the rows as one JSON object; every value is a string, or null.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct PingArguments {
    /// The sending host.
    from: String,
    /// The answering host.
    to: String,
    /// How many pings.
    #[arg(short, long, default_value_t = 5)]
    count: u32,
    /// The interval between two pings.
    #[arg(short, long, default_value = "200ms", value_name = "TIME")]
    interval: Delay,
    #[command(flatten)]
    lab: LabName,
}

pub fn exec(arguments: ExecArguments) -> Result<u8, Failure> {
    let environment: BTreeMap<String, String> =
        VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let ExecArguments { host, command, lab } = arguments;
    in_lab(&lab, Ask::Exec { host, command, environment, directory })
}

pub fn nodetool(arguments: NodetoolArguments) -> Result<u8, Failure> {
    let NodetoolArguments { host, arguments, lab } = arguments;
    in_lab(&lab, Ask::Nodetool { host, arguments })
}

/// Runs something in the lab with the streams of this process, passes on its signals, and exits as it does.
fn in_lab(lab: &LabName, ask: Ask) -> Result<u8, Failure> {
    let (_, lab) = find(lab)?;
    let passed = Signals::held_back();
    let client = Client::ask(&lab, ask, &who(), true)?;
    let stream = client.stream().try_clone().map_err(|error| failure(format!("cannot watch for signals: {error}")))?;
    thread::spawn(move || {
        while let Some(signal) = passed.next() {
            // The program has ended, if this fails.
            let _ = (&stream).write_all(&[signal]);
        }
    });
    loop {
        match client.reply()? {
            Reply::Done(code) => return Ok(code),
            _ => continue,
        }
    }
}

fn failure(message: String) -> Failure {
    Failure { message, code: output::INVALID }
}

/// The signals of a terminal, taken one by one instead of ending this process.
struct Signals(libc::sigset_t);

impl Signals {
    fn held_back() -> Signals {
        // SAFETY: a zeroed set is a valid place; sigemptyset and sigaddset make it a proper one.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGWINCH] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Signals(set)
        }
    }

    fn next(&self) -> Option<u8> {
        let mut signal = 0;
        // SAFETY: the set was made above; `signal` is a valid place for the answer.
        let waited = unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
        (waited == 0).then(|| u8::try_from(signal).ok()).flatten()
    }
}

pub fn logs(arguments: &LogsArguments) -> Result<u8, Failure> {
    let (_, lab) = find(&arguments.lab)?;
    let asked = Ask::Logs { host: arguments.host.clone(), console: arguments.console };
    let client = Client::ask(&lab, asked, &who(), false)?;
    let Reply::Path(path) = client.reply()? else {
        return Err(failure("the lab sent an unexpected answer".to_owned()));
    };
    let failed = |error: io::Error| failure(format!("cannot read {}: {error}", path.display()));
    let mut file = File::open(&path).map_err(failed)?;
    if let Some(lines) = arguments.lines {
        let from = tail(&mut file, lines).map_err(failed)?;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
    }
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer).map_err(failed)?;
        if read > 0 {
            let mut out = io::stdout().lock();
            match out.write_all(&buffer[..read]).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
                written => written.map_err(|error| failure(format!("cannot write to stdout: {error}")))?,
            }
        } else if !arguments.follow || !goes_on(&lab) {
            return Ok(0);
        } else {
            thread::sleep(FOLLOW);
        }
    }
}

fn goes_on(lab: &LabDirectory) -> bool {
    lab.lives()
}

/// Where the last `lines` lines of a file begin.
fn tail(file: &mut File, lines: usize) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let end = file.seek(SeekFrom::End(0))?;
    let (mut at, mut found) = (end, 0);
    while at > 0 {
        let from = at.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(at - from).unwrap_or(0)];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut block)?;
        for (index, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = from + index as u64 + 1;
            // The end of the last line begins no other.
            if after == end {
                continue;
            }
            found += 1;
            if found == lines {
                return Ok(after);
            }
        }
        at = from;
    }
    Ok(if lines == 0 { end } else { 0 })
}

/// For `cql --json`.
#[derive(Serialize)]
struct Table {
    format: u32,
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    warnings: Vec<String>,
}

pub fn cql(arguments: &CqlArguments) -> Result<u8, Failure> {
    let (_, lab) = find(&arguments.lab)?;
    let asked = Ask::Cql {
        host: arguments.host.clone(),
        statement: arguments.statement.clone(),
        consistency: arguments.consistency.clone(),
    };
    let client = Client::ask(&lab, asked, &who(), false)?;
    let Reply::Table { columns, rows, warnings } = client.reply()? else {
        return Err(failure("the lab sent an unexpected answer".to_owned()));
    };
    if arguments.json {
        return Ok(output::code(output::print_json(&Table { format: 1, columns, rows, warnings }), 0));
    }
    warnings.iter().for_each(|warning| eprintln!("brownout: the server warns: {warning}"));
    if columns.is_empty() {
        return Ok(output::code(output::print("done\n"), 0));
    }
    let count = rows.len();
    let mut all = vec![columns];
    all.extend(
        rows.into_iter().map(|row| row.into_iter().map(|value| value.unwrap_or_else(|| "null".to_owned())).collect()),
    );
    let text = format!("{}({count} row{})\n", look::columns(&all), if count == 1 { "" } else { "s" });
    Ok(output::code(output::print(&text), 0))
}

pub fn ping(arguments: &PingArguments) -> Result<u8, Failure> {
    if arguments.count == 0 || arguments.interval < Delay::from_ms(1) {
        return wrong("ping takes a count of at least 1 and an interval of at least 1ms");
    }
    let (from, to) = (arguments.from.clone(), arguments.to.clone());
    ask(&arguments.lab, Ask::Ping { from, to, count: arguments.count, every_ns: arguments.interval.ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_begin_where_the_line_before_them_ends() {
        let file = |text: &str| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("log");
            std::fs::write(&path, text).unwrap();
            File::open(path).unwrap()
        };
        for (text, lines, from) in
            [("a\nb\nc\n", 1, 4), ("a\nb\nc", 1, 4), ("a\nb\nc\n", 2, 2), ("a\n", 5, 0), ("", 1, 0), ("a\n", 0, 2)]
        {
            assert_eq!(tail(&mut file(text), lines).unwrap(), from, "{text:?} {lines}");
        }
        let long = "x".repeat(70_000) + "\n" + &"y".repeat(70_000) + "\n";
        assert_eq!(tail(&mut file(&long), 1).unwrap(), 70_001);
    }
}
