//! Options that begin with two dashes: ours. They are removed before cassandra-stress's grammar sees the rest.

use std::{path::PathBuf, time::Duration};

use brownout_yaml::nearest;

use super::{SettingsError, number};

/// What only this tool can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// `--flush`: memtables are written to disk before the run.
    pub flush: bool,
    /// `--compact`: tables are compacted before the run.
    pub compact: bool,
    /// `--wait-compactions`: the run begins when no compaction is running.
    pub wait_compactions: bool,
    /// `--dry-run`: settings and plan are printed, no server is contacted.
    pub dry_run: bool,
    /// `--record FILE`: a run file for `brownout show`, `report` and `compare`.
    pub record: Option<PathBuf>,
    /// `--nodetool COMMAND`: how nodetool is called; `{host}` stands for the node.
    pub nodetool: Option<String>,
    /// `--tick TIME`: operations due by the clock are sent together, once per tick; `None`: the engine's default.
    pub tick: Option<Duration>,
    /// `--apache`: rows, steps of threads and table options as in Apache's tool, not as in ScyllaDB's fork.
    pub apache: bool,
}

/// Name, whether a value follows, what it does.
pub(super) const WORDS: [(&str, bool, &str); 8] = [
    ("--flush", false, "write memtables to disk before the run"),
    ("--compact", false, "compact the tables before the run"),
    ("--wait-compactions", false, "begin when no compaction is left"),
    ("--dry-run", false, "print settings and plan, ask no server"),
    ("--record", true, "write a run file, which 'brownout show', 'report' and 'compare' read"),
    ("--nodetool", true, "how nodetool is called, such as 'nodetool -h {host}'"),
    ("--tick", true, "send what is due once in so long (100us): longer costs less CPU"),
    ("--apache", false, "rows and steps as Apache's tool has them, not ScyllaDB's fork"),
];

impl Extras {
    /// Removes them from the arguments. A value may follow its option directly or after an equals sign.
    pub(super) fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<(Self, Vec<&str>), SettingsError> {
        let mut extras = Extras::default();
        let mut rest = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut arguments = arguments.iter().map(AsRef::as_ref).peekable();
        while let Some(argument) = arguments.next() {
            if !argument.starts_with("--") {
                rest.push(argument);
                continue;
            }
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument, None),
            };
            let Some((name, wants_value, _)) = WORDS.iter().find(|(known, ..)| *known == name) else {
                return Err(SettingsError::TwoDashes {
                    word: name.to_owned(),
                    nearest: nearest(name, WORDS.iter().map(|(known, ..)| *known)),
                });
            };
            if seen.contains(name) {
                return Err(SettingsError::Repeated { group: (*name).to_owned() });
            }
            seen.push(name);
            // Anything that begins with a dash is the next option or group: taken as a value it would be lost, and
            // `--record --dry-run` would start a run that nobody asked for.
            let value =
                if *wants_value { value.or_else(|| arguments.next_if(|next| !next.starts_with('-'))) } else { value };
            match (wants_value, value.filter(|value| !value.is_empty())) {
                (true, None) => return Err(valueless(name, arguments.peek().copied())),
                (false, Some(value)) => {
                    return Err(SettingsError::senseless(format!("{name}={value}"), format!("{name} takes no value")));
                }
                _ => {}
            }
            let text = value.unwrap_or_default().to_owned();
            match *name {
                "--flush" => extras.flush = true,
                "--compact" => extras.compact = true,
                "--wait-compactions" => extras.wait_compactions = true,
                "--dry-run" => extras.dry_run = true,
                "--record" => extras.record = Some(PathBuf::from(text)),
                "--nodetool" => extras.nodetool = Some(text),
                "--tick" => extras.tick = Some(tick(&text)?),
                _ => extras.apache = true,
            }
        }
        Ok((extras, rest))
    }
}

/// An option lacks its value; `next` is what follows instead.
fn valueless(name: &str, next: Option<&str>) -> SettingsError {
    let instead = next.map(|next| format!(" ('{next}' follows it, which is none)")).unwrap_or_default();
    SettingsError::senseless(format!("{name} has no value{instead}"), format!("write {name} VALUE or {name}=VALUE"))
}

/// With a longer tick, an open loop would no longer be one.
const LONGEST_TICK: Duration = Duration::from_secs(1);

fn tick(text: &str) -> Result<Duration, SettingsError> {
    let tick = number::time("--tick ", text)?;
    if tick > LONGEST_TICK {
        return Err(SettingsError::senseless(format!("--tick {text}"), "write at most 1s, as in --tick 1ms"));
    }
    Ok(tick)
}
