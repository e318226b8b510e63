//! Factors: what varies, at which levels, and where in the file.

use brownout_yaml::Node;

/// Something that varies.
#[derive(Debug, Clone)]
pub struct Factor {
    /// Its name in the file.
    pub name: String,
    /// Its levels, in the file's order.
    pub levels: Vec<Level>,
    pub(super) kind: Kind,
}

/// What a factor's values are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They stand where the file has `${name}`.
    Variable,
    /// They are values of the key after which the factor is named.
    Key,
    /// Each is a mapping of keys of the file to their values.
    Bundle,
}

/// One level of a factor.
#[derive(Debug, Clone)]
pub struct Level {
    /// For people: the value, or the name that was given to it.
    pub name: String,
    pub(super) value: Node,
}

/// What may vary; the other keys of a file are of all cells together.
pub(super) const SECTIONS: [&str; 8] =
    ["network", "cluster", "load", "phases", "faults", "objective", "fresh-every", "parallel"];

/// The first step of a dotted key.
pub(super) fn section(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}
