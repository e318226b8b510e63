//! `-mode`: how to talk to the database.

use std::{fmt, time::Duration};

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, Sub, select, value},
    number::{self, null},
    port::port,
};

/// How to talk to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    /// The data path.
    pub path: DataPath,
    /// Whether statements are prepared.
    pub prepared: bool,
    /// Version of the native protocol.
    pub protocol: Protocol,
    /// Compression of frames.
    pub compression: Compression,
    /// User name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<Secret>,
    /// Most requests in flight per connection; `None`: as many as it has stream ids.
    pub max_pending: Option<u32>,
    /// Connections per host.
    pub connections_per_host: u32,
    /// How long until an operation has timed out.
    pub request_timeout: Duration,
    /// The native port, if given here instead of in `-port native=`.
    pub port: Option<u16>,
    /// What the block of settings shows.
    shown: Shown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    api: &'static str,
    cql: bool,
    provider: Option<String>,
    max_pending: Option<u32>,
    connections: Option<u32>,
    timeout: Option<Duration>,
}

/// The way requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    /// Our own connections.
    Own,
    /// The `scylla` driver, as an application would.
    Driver,
}

/// Version of the native protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The version that works everywhere: 4.
    Default,
    /// The newest version that the servers support, at most 5.
    Newest,
    /// This one.
    Version(u8),
}

/// Compression of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// LZ4.
    Lz4,
    /// Snappy, which version 5 no longer supports.
    Snappy,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From its text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("*suppressed*")
    }
}

const DEFAULT_TIMEOUT_MS: &str = "12000";
const DEFAULT_CONNECTIONS: &str = "8";

fn login() -> Vec<Sub> {
    vec![value("user=", Pattern::Something, "user name"), value("password=", Pattern::Something, "password")]
}

fn connection() -> Vec<Sub> {
    let own = vec![
        value("unprepared", Pattern::Nothing, "send statements as text, each time"),
        value("prepared", Pattern::Nothing, "prepare statements (the default)"),
        value("compression=", Pattern::Words("none|lz4|snappy"), "compression of frames").or("none"),
        value("port=", Pattern::Digits, "the native port, as -port native="),
        value("auth-provider=", Pattern::Something, "class of an authentication; PlainTextAuthProvider is known"),
        value("maxPending=", Pattern::Digits, "open requests per connection"),
        value("connectionsPerHost=", Pattern::Digits, "connections per host").or(DEFAULT_CONNECTIONS),
        value("requestTimeout=", Pattern::Digits, "milliseconds after which an operation has timed out")
            .or(DEFAULT_TIMEOUT_MS),
        value("protocolVersion=", Pattern::Protocol, "version of the native protocol: 4 or 5").or("DEFAULT"),
    ];
    [own, login()].concat()
}

/// In this order; `native` and `cql3` may each be left out, as Apache's tool lets them.
const THRIFT: usize = 0;
const DRIVER4: usize = 2;
const SIMPLE: usize = 3;
const DRIVER: usize = 4;

pub(super) fn alternatives() -> Vec<Alternative> {
    let word = |name, help| value(name, Pattern::Nothing, help);
    let cql3 = || word("cql3", "accepted; there is no other CQL");
    vec![
        Alternative::new(
            [vec![word("thrift", "Thrift, which is gone").required(), word("smart", "Thrift, which is gone")], login()]
                .concat(),
        ),
        Alternative::new([vec![word("native", "the native protocol (the default)"), cql3()], connection()].concat()),
        Alternative::new([vec![word("4x", "the same; accepted").required(), cql3()], connection()].concat()),
        Alternative::new([vec![word("simplenative", "the same; accepted").required(), cql3()], connection()].concat()),
        Alternative::new(
            [
                vec![word("driver", "through the scylla driver, as an application would").required(), cql3()],
                connection(),
            ]
            .concat(),
        ),
    ]
}

impl Mode {
    pub(super) fn parse(words: Option<&[String]>, notes: &mut Vec<String>) -> Result<Self, SettingsError> {
        // `-mode cql3` alone would also match part of the third alternative: the second comes first.
        let (place, taken) = select("-mode", words.unwrap_or_default(), alternatives())?;
        match place {
            THRIFT => notes.push("-mode thrift: Thrift is gone; the native protocol is used".to_owned()),
            SIMPLE => notes.push("-mode simplenative: the native protocol is used as without it".to_owned()),
            _ => {}
        }
        if taken.flag("prepared") && taken.flag("unprepared") {
            return Err(SettingsError::senseless("-mode prepared unprepared", "choose one"));
        }
        let provider = taken.get("auth-provider=");
        if let Some(class) = provider.filter(|class| !is_plain_text(class)) {
            return Err(SettingsError::senseless(
                format!("Unknown auth provider class: {class}"),
                "PlainTextAuthProvider is known: user= and password=",
            ));
        }
        let password = taken.get("password=").map(Secret::new);
        let user = taken.get("user=").map(str::to_owned);
        if user.is_none() && password.is_some() {
            notes.push("-mode password= has no effect without user=".to_owned());
        }
        let ms =
            number::whole::<u32>("-mode requestTimeout=", taken.get("requestTimeout=").unwrap_or(DEFAULT_TIMEOUT_MS))?;
        let timeout = Duration::from_millis(u64::from(ms));
        if timeout.is_zero() {
            return Err(SettingsError::senseless("-mode requestTimeout=0", "write at least 1 (millisecond)"));
        }
        let text = taken.get("connectionsPerHost=").unwrap_or(DEFAULT_CONNECTIONS);
        let connections = number::whole::<u32>("-mode connectionsPerHost=", text)?;
        if !(1..=1_000).contains(&connections) {
            return Err(SettingsError::senseless(format!("-mode connectionsPerHost={connections}"), "write 1 to 1000"));
        }
        let max_pending: Option<u32> =
            taken.given("maxPending=").map(|text| number::whole("-mode maxPending=", text)).transpose()?;
        if max_pending == Some(0) {
            return Err(SettingsError::senseless("-mode maxPending=0", "write at least 1"));
        }
        let old = matches!(place, THRIFT | SIMPLE);
        let compression = match taken.text("compression=").to_ascii_lowercase().as_str() {
            "lz4" => Compression::Lz4,
            "snappy" => Compression::Snappy,
            _ => Compression::None,
        };
        let protocol = protocol(taken.get("protocolVersion=").unwrap_or("DEFAULT"))?;
        if protocol == Protocol::Version(5) && compression == Compression::Snappy {
            return Err(SettingsError::senseless(
                "-mode protocolVersion=5 compression=snappy: version 5 does not know Snappy",
                "write compression=lz4",
            ));
        }
        Ok(Mode {
            path: if place == DRIVER { DataPath::Driver } else { DataPath::Own },
            prepared: !taken.flag("unprepared"),
            protocol,
            compression,
            user,
            password,
            max_pending,
            connections_per_host: connections,
            request_timeout: timeout,
            port: taken.given("port=").map(|text| port("-mode port=", text)).transpose()?,
            shown: Shown {
                api: match place {
                    THRIFT if taken.flag("smart") => "THRIFT_SMART",
                    THRIFT => "THRIFT",
                    DRIVER4 => "JAVA_DRIVER4_NATIVE",
                    SIMPLE => "SIMPLE_NATIVE",
                    DRIVER => "SCYLLA_RUST_DRIVER",
                    _ => "JAVA_DRIVER_NATIVE",
                },
                cql: place != THRIFT,
                provider: if old { Some("none".to_owned()) } else { provider.map(str::to_owned) },
                max_pending,
                connections: (!old).then_some(connections),
                timeout: (!old).then_some(timeout),
            },
        })
    }

    pub(super) fn block(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Default => "DEFAULT".to_owned(),
            Protocol::Newest => "NEWEST_SUPPORTED".to_owned(),
            Protocol::Version(version) => version.to_string(),
        };
        let style = match (self.shown.cql, self.prepared) {
            (false, _) => "THRIFT",
            (true, true) => "CQL_PREPARED",
            (true, false) => "CQL",
        };
        let mut text = format!(
            "  API: {}\n  Connection Style: {style}\n  CQL Version: {}\n  Protocol Version: {protocol}\n  Username: {}\n  \
             Password: {}\n  Auth Provide Class: {}\n  Max Pending Per Connection: {}\n  Connections Per Host: {}\n",
            self.shown.api,
            if self.shown.cql { "CQL3" } else { "NOCQL" },
            null(self.user.as_ref()),
            null(self.password.as_ref().map(|_| "*suppressed*")),
            null(self.shown.provider.as_ref()),
            null(self.shown.max_pending),
            null(self.shown.connections),
        );
        if let Some(timeout) = self.shown.timeout {
            text.push_str(&format!("  Request Timeout: {} ms\n", timeout.as_millis()));
        }
        let compression = match self.compression {
            Compression::None => "NONE",
            Compression::Lz4 => "LZ4",
            Compression::Snappy => "SNAPPY",
        };
        text.push_str(&format!("  Compression: {compression}\n"));
        text
    }
}

/// Recognizes any of the names that Java drivers have for it.
fn is_plain_text(class: &str) -> bool {
    matches!(class.rsplit('.').next(), Some("PlainTextAuthProvider" | "ProgrammaticPlainTextAuthProvider"))
}

fn protocol(text: &str) -> Result<Protocol, SettingsError> {
    match text.to_ascii_lowercase().as_str() {
        "default" => Ok(Protocol::Default),
        "newest_supported" => Ok(Protocol::Newest),
        "4" => Ok(Protocol::Version(4)),
        "5" => Ok(Protocol::Version(5)),
        old => Err(SettingsError::senseless(
            format!("-mode protocolVersion={old} is no longer spoken"),
            "write 4 (Cassandra 2.2 and later) or 5 (Cassandra 4.0 and later)",
        )),
    }
}
