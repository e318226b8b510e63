//! The command language: what words mean, and what is refused.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

mod answers;
mod command;
mod golden;
mod groups;
mod legacy;
mod ours;
mod rate;
mod refusals;

use std::{io, path::Path, time::Duration};

use brownout_stress::settings::{Settings, SettingsError};

fn files(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("nodes.txt") => Ok("10.0.0.1\n\n10.0.0.2\n".to_owned()),
        Some("empty.txt") => Ok("\n".to_owned()),
        Some("secrets.properties") => {
            Ok("# ours\ncql.username = alice\ncql.password=p=w\njmx.username=j\ntransport.truststore.password:t\n"
                .to_owned())
        }
        Some("odd.properties") => Ok("cql.user=alice\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// One argument, as a shell would give it in quotes.
fn try_parse(line: &str) -> Result<Settings, SettingsError> {
    Settings::parse_with(&line.split(' ').collect::<Vec<_>>(), &files)
}

fn parse(line: &str) -> Settings {
    try_parse(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
