//! The command language of cassandra-stress, and what this tool adds to it: from words to typed settings.
//!
//! [`Invocation::parse`] parses a whole command line; [`Settings`] is one that runs something. Each file holds one
//! option group: its options, their defaults, the typed form, and its part of the block of settings
//! ([`Settings::block`]).

mod block;
mod col;
mod command;
mod error;
mod errors;
mod extras;
mod grammar;
mod graph;
mod help;
mod insert;
mod invocation;
mod legacy;
mod level;
mod log;
mod misc;
mod mode;
mod node;
mod number;
mod open;
mod pop;
mod port;
mod rate;
mod schema;
mod search;
mod tokenrange;
mod transport;
mod unused;

use std::{io, path::Path};

use brownout_yaml::nearest;
pub use col::Columns;
pub use command::{Command, CommandKind, Generator, Length, Op, Share, Truncate, Uncertainty};
pub use error::SettingsError;
pub use errors::Errors;
pub use extras::Extras;
pub use graph::Graph;
pub use insert::{Batch, Insert};
pub use invocation::Invocation;
pub use level::{consistency_name, serial_name};
pub use log::{Level, Log};
pub use misc::{Credentials, Reporting};
pub use mode::{Compression, DataPath, Mode, Protocol, Secret};
pub use node::{LoadBalance, Node};
pub use open::Shape;
pub use pop::{Contents, PopOptions, Seeds};
pub use port::Port;
pub use rate::{Limit, LimitKind, Open, Rate};
pub use schema::{Options, Schema};
pub use search::{Objective, Search};
pub use tokenrange::TokenRange;
pub use transport::{StoreType, TlsVersion, Transport};

use grammar::take;
use unused::Written;

/// How files that options name are read; tests provide their own.
pub type Files<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// A command line that runs something.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What to do, and for how long.
    pub command: Command,
    /// `-rate`: what makes operations start.
    pub rate: Rate,
    /// Whether `-rate` was not given.
    pub rate_is_default: bool,
    /// `-pop`: which partitions.
    pub population: PopOptions,
    /// `-insert`: how rows are written.
    pub insert: Insert,
    /// `-col`: columns of the predefined tables.
    pub columns: Columns,
    /// `-errors`: what happens when operations fail.
    pub errors: Errors,
    /// `-log`: what is written, and where.
    pub log: Log,
    /// `-mode`: how to talk to the database. User and password may come from `-credentials-file`.
    pub mode: Mode,
    /// `-node`: which nodes.
    pub node: Node,
    /// `-schema`: keyspace and tables of predefined commands.
    pub schema: Schema,
    /// `-transport`: TLS.
    pub transport: Transport,
    /// `-port`: ports of the nodes. `-mode port=` is included in [`Port::native`].
    pub port: Port,
    /// `-graph`: the page with figures.
    pub graph: Graph,
    /// `-tokenrange`: how token ranges are read.
    pub token_range: TokenRange,
    /// `-reporting`: as in Apache's tool.
    pub reporting: Reporting,
    /// `--flush` and the like.
    pub extras: Extras,
    /// `-sendto`, which has no effect.
    pub send_to: Option<String>,
    /// Notes for stderr on what was accepted but has no effect.
    pub notes: Vec<String>,
    /// The command line as it was understood, without the words of [`Extras`].
    pub words: Vec<String>,
}

impl Settings {
    /// Parses a command line that runs something. Reads the files that `-node file=` and `-credentials-file` name, but
    /// not profiles (see [`crate::profile`]).
    ///
    /// # Errors
    /// As [`SettingsError`] says; a command that only prints something (`help`, `print`, `version`) is an error, too.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Self, SettingsError> {
        Settings::parse_with(arguments, &|path| std::fs::read_to_string(path))
    }

    /// The same, with another way of reading files.
    ///
    /// # Errors
    /// Those of [`Settings::parse`].
    pub fn parse_with<S: AsRef<str>>(arguments: &[S], files: Files<'_>) -> Result<Self, SettingsError> {
        match Invocation::parse_with(arguments, files)? {
            Invocation::Run(settings) => Ok(*settings),
            Invocation::Answer(_) => Err(SettingsError::NoCommand { found: None, nearest: None }),
        }
    }

    /// From groups, the first of which is the command.
    fn from_groups(
        mut groups: Vec<grammar::Group>,
        extras: Extras,
        files: Files<'_>,
        mut notes: Vec<String>,
    ) -> Result<Self, SettingsError> {
        let written = Written::of(&groups);
        let words = groups.iter().flat_map(|(name, words)| std::iter::once(name).chain(words)).cloned().collect();
        // In cassandra-stress the command need not be the first group, but nothing else can be first.
        let found = groups.first().map(|(name, _)| name.clone());
        let Some(kind) = found.as_deref().and_then(CommandKind::from_name) else {
            let nearest = found.as_deref().and_then(|found| nearest(found, CommandKind::names()));
            return Err(SettingsError::NoCommand { found: found.filter(|name| !name.is_empty()), nearest });
        };
        let (_, content) = groups.remove(0);
        let command = Command::parse(kind, &content, &mut notes)?;
        let send_to = misc::without_effect(&mut groups, &mut notes)?;
        let mut group = |name: &str| take(&mut groups, name);
        let mut port = Port::parse(group("-port").as_deref(), &mut notes)?;
        let rate_words = group("-rate");
        let rate_is_default = rate_words.is_none();
        let rate = Rate::parse(rate_words.as_deref(), &command, &mut notes)?;
        written.judge(&command, &rate, &extras, &mut notes)?;
        let population = PopOptions::parse(group("-pop").as_deref(), &command)?;
        let token_range = TokenRange::parse(group("-tokenrange").as_deref())?;
        let insert = Insert::parse(group("-insert").as_deref())?;
        let columns = Columns::parse(group("-col").as_deref(), &mut notes)?;
        let errors = Errors::parse(group("-errors").as_deref(), rate.is_open())?;
        let mut log = Log::parse(group("-log").as_deref())?;
        let mut mode = Mode::parse(group("-mode").as_deref(), &mut notes)?;
        let node = Node::parse(group("-node").as_deref(), files, &mut notes)?;
        let schema = Schema::parse(group("-schema").as_deref(), kind)?;
        let credentials = Credentials::parse(group("-credentials-file").as_deref(), files, &mut notes)?;
        let transport = Transport::parse(group("-transport").as_deref(), &credentials, &mut notes)?;
        let graph = Graph::parse(group("-graph").as_deref(), kind)?;
        let reporting = Reporting::parse(group("-reporting").as_deref())?;
        if let Some((first, _)) = groups.first() {
            let nearest = nearest(first, help::GROUPS.iter().map(|(name, _)| *name));
            let lines: Vec<String> =
                groups.iter().map(|(name, words)| [std::slice::from_ref(name), words].concat().join(" ")).collect();
            return Err(SettingsError::Ignored { groups: lines.join("\n"), nearest });
        }
        if let Some(native) = mode.port {
            port.native = native;
        }
        if let Some(interval) = reporting.output {
            log.interval = interval;
        }
        mode.user = mode.user.or(credentials.user);
        mode.password = mode.password.or(credentials.password);
        Ok(Settings {
            command,
            rate,
            rate_is_default,
            population,
            insert,
            columns,
            errors,
            log,
            mode,
            node,
            schema,
            transport,
            port,
            graph,
            token_range,
            reporting,
            extras,
            send_to,
            notes,
            words,
        })
    }
}
