//! Commands and their names.

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Reads of `standard1`.
    Read,
    /// Writes to `standard1`.
    Write,
    /// A mix of the predefined operations.
    Mixed,
    /// Increments of `counter1`.
    CounterWrite,
    /// Reads of `counter1`.
    CounterRead,
    /// Operations from profiles.
    User,
    /// No load: reads the sizes of partitions from the servers and compares them with the profile's.
    VerifySizes,
}

use CommandKind as K;

/// All with their names; the first is the one shown.
const COMMANDS: [(CommandKind, &[&str]); 7] = [
    (K::Read, &["read"]),
    (K::Write, &["write", "insert"]),
    (K::Mixed, &["mixed"]),
    (K::CounterWrite, &["counter_write", "counterwrite", "counter_add", "counteradd"]),
    (K::CounterRead, &["counter_read", "counterread", "counter_get", "counterget"]),
    (K::User, &["user"]),
    (K::VerifySizes, &["verify-sizes", "verify_sizes", "verifysizes"]),
];

/// Commands that only print something, without a run.
const ANSWERED: [&str; 5] = ["help", "-?", "print", "legacy", "version"];

impl CommandKind {
    /// From any of its names, in lower case.
    pub fn from_name(name: &str) -> Option<CommandKind> {
        COMMANDS.iter().find(|(_, names)| names.contains(&name)).map(|(kind, _)| *kind)
    }

    /// Its first name.
    pub fn name(self) -> &'static str {
        COMMANDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, names)| names[0])
    }

    /// As shown in rows and messages: `COUNTER_WRITE`.
    pub fn shown(self) -> &'static str {
        match self {
            K::Read => "READ",
            K::Write => "WRITE",
            K::Mixed => "MIXED",
            K::CounterWrite => "COUNTER_WRITE",
            K::CounterRead => "COUNTER_READ",
            K::User => "USER",
            K::VerifySizes => "VERIFY_SIZES",
        }
    }

    /// Every name of a command, including those that only print something.
    pub(in crate::settings) fn names() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().flat_map(|(_, names)| names.iter().copied()).chain(ANSWERED)
    }
}
