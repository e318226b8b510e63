//! The commands that show: status, labs, events, the matrix of delays and clocks.

use std::{thread, time::Duration};

use brownout_lab::byhand::{
    Ask, CheckStatus, Client, ClockRow, Failure, HostStatus, LabEvent, LabRegistry, Matrix, Reply, Status,
};
use brownout_units::{Share, format_ns};
use serde::Serialize;

use super::ask::{LabName, find, who};
use crate::output;

/// Between two looks of `--watch`.
const WATCH: Duration = Duration::from_secs(1);
/// A lab that is asked how it is, for `ls`, answers by then, or is shown as one that does not.
const LS_WITHIN: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub struct StatusArguments {
    #[command(flatten)]
    lab: LabName,
    /// Refresh every second, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    /// Check for some seconds whether each fault in force shows: proven, or not seen.
    #[arg(long)]
    check: bool,
    /// One JSON object with the whole matrix of links (docs/lab-by-hand.md).
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct LsArguments {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct EventsArguments {
    #[command(flatten)]
    lab: LabName,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
    /// Follow new events, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
}

pub fn status(arguments: &StatusArguments) -> Result<u8, Failure> {
    let (_, lab) = find(&arguments.lab)?;
    loop {
        let client = Client::ask(&lab, Ask::Status { check: arguments.check }, &who(), false)?;
        let Reply::Status(status) = client.reply()? else { return Err(unexpected()) };
        let printed = match (arguments.json, arguments.watch) {
            (true, false) => output::print_json(&status),
            // A line each, for those who read on.
            (true, true) => output::print(&(serde_json::to_string(&status).unwrap_or_default() + "\n")),
            (false, watch) => {
                let clear = if watch && output::style().color { "\x1b[H\x1b[2J" } else { "" };
                output::print(&format!("{clear}{}", table(&status)))
            }
        };
        if let Err(code) = printed {
            return Ok(code);
        }
        if !arguments.watch {
            return Ok(0);
        }
        thread::sleep(WATCH);
    }
}

fn unexpected() -> Failure {
    Failure { message: "the lab sent an unexpected answer".to_owned(), code: output::INVALID }
}

/// The table of a lab, for people.
pub fn table(status: &Status) -> String {
    let head = ["HOST", "STATE", "ADDRESS", "NETWORK", "PARTITION", "DISK", "CPU", "CLOCK"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(status.hosts.iter().map(row));
    let mut text = format!("{}: {}\n", status.name, status.system);
    status.network.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text.push_str(&columns(&rows));
    text.extend(status.chaos.iter().map(|chaos| format!("chaos: {chaos}\n")));
    if let Some(checks) = &status.checks {
        let told = checks.iter().map(|one| {
            let CheckStatus { kind, subject, verdict, evidence } = one;
            vec![kind.clone(), subject.replace('>', " → "), verdict.to_uppercase(), evidence.clone()]
        });
        let rows: Vec<Vec<String>> = told.collect();
        text.push_str(&if rows.is_empty() {
            "no command has put anything in force\n".to_owned()
        } else {
            columns(&rows)
        });
    }
    text.extend(status.notes.iter().map(|note| format!("note: {note}\n")));
    text
}

fn row(host: &HostStatus) -> Vec<String> {
    let or = |list: &[String], normal: &str| if list.is_empty() { normal.to_owned() } else { list.join("; ") };
    let groups: Vec<String> = host.partition.iter().map(usize::to_string).collect();
    let node = host.role == "node";
    let normal = |word: &str| if node { word.to_owned() } else { String::new() };
    vec![
        host.name.clone(),
        if node { host.state.clone() } else { "-".to_owned() },
        host.address.clone(),
        or(&host.network, "NORMAL"),
        groups.join(","),
        or(&host.disk, &normal("NORMAL")),
        host.cpu_share.and_then(Share::new).map_or_else(|| normal("FULL"), |share| share.to_string()),
        host.clock.map_or_else(
            || "no answer".to_owned(),
            |clock| {
                let drift = match clock.drift_ppb {
                    0 => String::new(),
                    drift => format!(", {:+}ppm", drift as f64 / 1e3),
                };
                format!("{} ± {}{drift}", signed(clock.offset_ns), format_ns(clock.error_ns as f64))
            },
        ),
    ]
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { '-' } else { '+' }, format_ns(ns.unsigned_abs() as f64))
}

/// Rows of equal length, each column as wide as its widest value, without what is empty below its head.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (value, width) in row.iter().zip(&widths) {
            line.push_str(value);
            line.extend(std::iter::repeat_n(' ', width - value.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A lab that runs, for `ls --json`.
#[derive(Serialize)]
struct Listed {
    name: String,
    /// `STARTING`, `READY`, or `NOT ANSWERING`: it is in trouble, or has too many clients.
    state: &'static str,
    system: Option<String>,
    /// Nodes that are up, and all.
    up: Option<usize>,
    nodes: Option<usize>,
    started_unix_ms: Option<u64>,
}

#[derive(Serialize)]
struct List {
    format: u32,
    labs: Vec<Listed>,
}

pub fn ls(arguments: &LsArguments) -> Result<u8, Failure> {
    let mut labs = Vec::new();
    for lab in LabRegistry::mine()?.labs()? {
        let asked = Client::ask(&lab, Ask::Status { check: false }, &who(), false).and_then(|client| {
            client.patience(LS_WITHIN);
            client.any_reply()
        });
        let (state, status) = match asked {
            Ok(Reply::Status(status)) => ("READY", Some(status)),
            Ok(Reply::Starting) => ("STARTING", None),
            // It may have ended meanwhile.
            _ if !lab.lives() => continue,
            _ => ("NOT ANSWERING", None),
        };
        let nodes = |status: &Status| status.hosts.iter().filter(|host| host.role == "node").count();
        let up = |status: &Status| status.hosts.iter().filter(|host| host.role == "node" && host.state == "UP").count();
        labs.push(Listed {
            name: lab.name.clone(),
            state,
            system: status.as_ref().map(|status| status.system.clone()),
            up: status.as_deref().map(up),
            nodes: status.as_deref().map(nodes),
            started_unix_ms: status.as_ref().map(|status| status.started_unix_ms),
        });
    }
    let printed = if arguments.json {
        output::print_json(&List { format: 1, labs })
    } else if labs.is_empty() {
        output::print("no lab is running\n")
    } else {
        let mut rows = vec![["LAB", "STATE", "NODES UP", "SYSTEM"].map(str::to_owned).to_vec()];
        rows.extend(labs.into_iter().map(|lab| {
            let up = lab.up.zip(lab.nodes).map_or_else(String::new, |(up, nodes)| format!("{up} of {nodes}"));
            vec![lab.name, lab.state.to_owned(), up, lab.system.unwrap_or_default()]
        }));
        output::print(&columns(&rows))
    };
    Ok(output::code(printed, 0))
}

pub fn events(arguments: &EventsArguments) -> Result<u8, Failure> {
    let (_, lab) = find(&arguments.lab)?;
    let client = Client::ask(&lab, Ask::Events { follow: arguments.follow }, &who(), false)?;
    loop {
        let line = match client.reply()? {
            Reply::Event(event) if arguments.json => serde_json::to_string(&event).unwrap_or_default(),
            Reply::Event(event) => event_line(&event),
            Reply::Done(code) => return Ok(code),
            _ => continue,
        };
        if let Err(code) = output::print(&(line + "\n")) {
            return Ok(code);
        }
    }
}

/// `2026-11-20 21:30:55.123456 UTC ± 12µs  slow  n2 …  (brownout slow n2 100ms)`.
fn event_line(event: &LabEvent) -> String {
    let error = format_ns(event.error_ns as f64);
    format!("{} ± {error}  {:<9} {}  ({})", utc(event.unix_ns), event.kind, event.text, event.who)
}

/// A moment, by the calendar (days to dates as in Hinnant's "chrono-compatible low-level date algorithms").
fn utc(unix_ns: u64) -> String {
    let (seconds, ns) = (unix_ns / 1_000_000_000, unix_ns % 1_000_000_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:06} UTC", ns / 1_000)
}

/// The matrix of `brownout clock`.
pub fn clocks(lab: &LabName, json: bool) -> Result<u8, Failure> {
    let (_, lab) = find(lab)?;
    let client = Client::ask(&lab, Ask::Clocks, &who(), false)?;
    let Reply::Clocks(matrix) = client.reply()? else { return Err(unexpected()) };
    let printed = if json { output::print_json(&matrix) } else { output::print(&matrix_text(&matrix)) };
    Ok(output::code(printed, 0))
}

fn matrix_text(matrix: &Matrix) -> String {
    let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format_ns(ns as f64));
    let one_way = |row: &ClockRow| match row.loss {
        Some(loss) if loss > 0.0 && row.one_way_ns.is_some() => {
            format!("{} ({:.0}% lost)", ns(row.one_way_ns), loss * 100.0)
        }
        _ => ns(row.one_way_ns),
    };
    let offset = |row: &ClockRow| match row.offset_ns.zip(row.error_ns) {
        Some((offset, error)) => format!("{} ± {}", signed(offset), format_ns(error as f64)),
        None => "-".to_owned(),
    };
    let mut text = String::new();
    let mut part = |title: &str, value: &dyn Fn(&ClockRow) -> String| {
        text.push_str(&format!("{title}\n"));
        let mut rows =
            vec![std::iter::once("from ╲ to".to_owned()).chain(matrix.hosts.iter().cloned()).collect::<Vec<_>>()];
        for from in &matrix.hosts {
            let cell = |to: &String| {
                let found = matrix.pairs.iter().find(|row| row.from == *from && row.to == *to);
                found.map_or_else(String::new, value)
            };
            rows.push(std::iter::once(from.clone()).chain(matrix.hosts.iter().map(cell)).collect());
        }
        text.push_str(&columns(&rows));
        text.push('\n');
    };
    part("one-way delay (median of probes)", &one_way);
    part("round trip (NTP δ, the shortest of four)", &|row| ns(row.rtt_ns));
    part("clock of the column against that of the row (NTP θ ± δ/2 and resolution)", &offset);
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_by_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00.000000 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00.000000 UTC");
        assert_eq!(utc(1_795_210_255_999_000_000), "2026-11-20 21:30:55.999000 UTC");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_value() {
        let rows = [vec!["A".to_owned(), "B".to_owned()], vec!["± 1".to_owned(), String::new()]];
        assert_eq!(columns(&rows), "A    B\n± 1\n");
    }
}
