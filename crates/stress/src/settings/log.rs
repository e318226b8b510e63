//! `-log`

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, select, value},
    number::{self, null},
};

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Rows, results, and which operations' times they show.
    Minimal,
    /// Also the account of the run.
    Normal,
    /// Also rows of intervals in which nothing ended.
    Verbose,
}

/// What is written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How much is printed.
    pub level: Level,
    /// Whether the summary is printed.
    pub summary: bool,
    /// Whether the settings are printed.
    pub settings: bool,
    /// Whether errors show their statement.
    pub statements_on_error: bool,
    /// A copy of what is printed.
    pub file: Option<PathBuf>,
    /// HdrHistogram log.
    pub hdr_file: Option<PathBuf>,
    /// Length of an interval.
    pub interval: Duration,
    /// Summary as JSON.
    pub json: Option<PathBuf>,
    /// Series as CSV.
    pub csv: Option<PathBuf>,
    /// Where Prometheus can scrape metrics.
    pub prometheus: Option<SocketAddr>,
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("level=", Pattern::Words("minimal|normal|verbose"), "how much is said").or("normal"),
        value("no-summary", Pattern::Nothing, "no results at the end"),
        value("file=", Pattern::Something, "a copy of what is printed"),
        value("hdrfile=", Pattern::Something, "HdrHistogram log of latencies"),
        value("interval=", Pattern::Interval, "length of an interval: seconds, or with s or ms").or("1s"),
        value("no-settings", Pattern::Nothing, "no block of settings at the start"),
        value("print-statements-on-error", Pattern::Nothing, "errors show their CQL"),
        value("json=", Pattern::Something, "the results as JSON"),
        value("csv=", Pattern::Something, "the results of every interval as CSV"),
        value("prometheus=", Pattern::Something, "[ADDRESS]:PORT where Prometheus may ask; without address: loopback"),
    ])]
}

impl Log {
    pub(super) fn parse(words: Option<&[String]>) -> Result<Self, SettingsError> {
        let (_, taken) = select("-log", words.unwrap_or_default(), alternatives())?;
        let text = taken.text("interval=").to_ascii_lowercase();
        let (digits, unit_ms) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(digits), _) => (digits, 1),
            (None, Some(digits)) => (digits, 1_000),
            (None, None) => (&text[..], 1_000),
        };
        let ms = number::whole::<u32>("-log interval=", digits)?;
        let interval = Duration::from_millis(u64::from(ms) * unit_ms);
        if interval.is_zero() {
            return Err(SettingsError::senseless("Log interval must be greater than zero", "write 1s or more"));
        }
        let path = |name| taken.get(name).map(PathBuf::from);
        Ok(Log {
            level: match taken.text("level=").to_ascii_lowercase().as_str() {
                "minimal" => Level::Minimal,
                "verbose" => Level::Verbose,
                _ => Level::Normal,
            },
            summary: !taken.flag("no-summary"),
            settings: !taken.flag("no-settings"),
            statements_on_error: taken.flag("print-statements-on-error"),
            file: path("file="),
            hdr_file: path("hdrfile="),
            interval,
            json: path("json="),
            csv: path("csv="),
            prometheus: taken.get("prometheus=").map(endpoint).transpose()?,
        })
    }

    pub(super) fn block(&self) -> String {
        let level = match self.level {
            Level::Minimal => "MINIMAL",
            Level::Normal => "NORMAL",
            Level::Verbose => "VERBOSE",
        };
        format!(
            "  No Summary: {}\n  No Settings: {}\n  File: {}\n  Interval Millis: {}\n  Level: {level}\n",
            !self.summary,
            !self.settings,
            null(self.file.as_ref().map(|file| file.display())),
            self.interval.as_millis(),
        )
    }
}

/// `:9500` and `9500` are on loopback; others can only connect if an address is given.
fn endpoint(text: &str) -> Result<SocketAddr, SettingsError> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    match port {
        Ok(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Err(_) => text.parse().map_err(|_| {
            SettingsError::senseless(
                format!("-log prometheus={text} is no endpoint"),
                "write :9500 for loopback, or an address and a port: 0.0.0.0:9500",
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_loopback_and_an_address_is_that_address() {
        for (text, address) in [
            (":9500", "127.0.0.1:9500"),
            ("9500", "127.0.0.1:9500"),
            ("0.0.0.0:9500", "0.0.0.0:9500"),
            ("[::1]:9500", "[::1]:9500"),
        ] {
            assert_eq!(endpoint(text).unwrap(), address.parse().unwrap(), "{text}");
        }
        for bad in ["", ":", "70000", "host:9500", "1.2.3.4"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }
}
