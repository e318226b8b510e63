use std::{fmt, str::FromStr};

use thiserror::Error;

/// How many replicas must answer before an operation counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Of a write: any node; a hint for the replicas is enough.
    Any,
    /// One replica.
    One,
    /// One replica of the coordinator's data centre.
    LocalOne,
    /// Two replicas.
    Two,
    /// Three replicas.
    Three,
    /// A majority of all replicas.
    Quorum,
    /// A majority of the replicas in the coordinator's data centre.
    LocalQuorum,
    /// A majority in every data centre.
    EachQuorum,
    /// Every replica.
    All,
    /// Of a read: what conditional writes have agreed on, from a majority of all replicas.
    Serial,
    /// The same within the coordinator's data centre.
    LocalSerial,
}

const NAMES: [(Consistency, &str); 11] = [
    (Consistency::Any, "any"),
    (Consistency::One, "one"),
    (Consistency::LocalOne, "local-one"),
    (Consistency::Two, "two"),
    (Consistency::Three, "three"),
    (Consistency::Quorum, "quorum"),
    (Consistency::LocalQuorum, "local-quorum"),
    (Consistency::EachQuorum, "each-quorum"),
    (Consistency::All, "all"),
    (Consistency::Serial, "serial"),
    (Consistency::LocalSerial, "local-serial"),
];

impl Consistency {
    /// Every level with its name.
    pub fn all() -> impl Iterator<Item = (Consistency, &'static str)> {
        NAMES.into_iter()
    }

    /// The code of `[consistency]` in section 3 of the protocol specification (native_protocol_v4.spec).
    pub const fn code(self) -> u16 {
        match self {
            Consistency::Any => 0x0000,
            Consistency::One => 0x0001,
            Consistency::Two => 0x0002,
            Consistency::Three => 0x0003,
            Consistency::Quorum => 0x0004,
            Consistency::All => 0x0005,
            Consistency::LocalQuorum => 0x0006,
            Consistency::EachQuorum => 0x0007,
            Consistency::Serial => 0x0008,
            Consistency::LocalSerial => 0x0009,
            Consistency::LocalOne => 0x000A,
        }
    }

    /// How many of `replication` replicas (in one data centre) must answer.
    pub const fn required(self, replication: u32) -> u32 {
        match self {
            Consistency::Any | Consistency::One | Consistency::LocalOne => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::Quorum
            | Consistency::LocalQuorum
            | Consistency::EachQuorum
            | Consistency::Serial
            | Consistency::LocalSerial => replication / 2 + 1,
            Consistency::All => replication,
        }
    }
}

/// The consistency level of the agreement phase (Paxos) of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SerialConsistency {
    /// A majority of all replicas.
    Serial,
    /// A majority of the replicas in the coordinator's data centre.
    LocalSerial,
}

impl SerialConsistency {
    /// Its code in `[consistency]`; see [`Consistency::code`].
    pub const fn code(self) -> u16 {
        match self {
            SerialConsistency::Serial => Consistency::Serial.code(),
            SerialConsistency::LocalSerial => Consistency::LocalSerial.code(),
        }
    }
}

/// A text that names no consistency level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is not a consistency level; write one of any, one, local-one, two, three, quorum, local-quorum, each-quorum, all, \
     serial, local-serial"
)]
pub struct UnknownConsistency(pub String);

impl FromStr for Consistency {
    type Err = UnknownConsistency;

    /// Case and the separator (`local-quorum`, `LOCAL_QUORUM`) do not matter.
    fn from_str(text: &str) -> Result<Self, UnknownConsistency> {
        let name = text.trim().to_ascii_lowercase().replace('_', "-");
        let found = NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(level, _)| *level).ok_or_else(|| UnknownConsistency(text.to_owned()))
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(level, _)| level == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_parse_in_both_spellings_and_print_back() {
        for (level, name) in Consistency::all() {
            assert_eq!(name.parse(), Ok(level));
            assert_eq!(name.to_uppercase().replace('-', "_").parse(), Ok(level));
            assert_eq!(level.to_string(), name);
        }
        assert!("qourum".parse::<Consistency>().is_err());
    }

    #[test]
    fn a_quorum_is_a_majority() {
        for (replication, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            assert_eq!(Consistency::Quorum.required(replication), quorum);
        }
    }
}
