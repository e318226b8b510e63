//! The kinds of operation that a fault distinguishes, and sets of them.

use std::{fmt, str::FromStr};

use crate::error::DiskError;

/// A kind of operation on a disk.
///
/// What only looks (lookup, getattr, open, readdir, readlink, statfs, access) or closes is of no kind: no fault hits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Reading what is not in the page cache, readahead included.
    Read,
    /// `write` and its variants, `copy_file_range`, and the writing back of pages that were changed through a mapping. No
    /// program waits for the last: the time that a fault delays it is added to the next sync of the file.
    Write,
    /// `fsync`, `fdatasync`, `fsync` of a directory, `msync`, and the sync behind each write to an `O_SYNC` or `O_DSYNC`
    /// file.
    Sync,
    /// All that changes names or attributes: create, mkdir, mknod, symlink, link, unlink, rmdir, rename, truncate,
    /// fallocate, chmod, chown, utimens.
    Metadata,
}

impl Operation {
    /// Every kind, in the order of [`Operation::index`].
    pub const ALL: [Operation; 4] = [Operation::Read, Operation::Write, Operation::Sync, Operation::Metadata];

    /// Its index in [`Operation::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Metadata => "metadata",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = DiskError;

    fn from_str(text: &str) -> Result<Self, DiskError> {
        let found = Operation::ALL.into_iter().find(|operation| operation.name() == text);
        found.ok_or_else(|| DiskError::NoSuchOperation(text.to_owned()))
    }
}

/// A set of [`Operation`]s, written `read, sync`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Operations(u8);

impl Operations {
    /// None of them.
    pub const NONE: Operations = Operations(0);
    /// Every kind.
    pub const ALL: Operations = Operations(0b1111);

    /// This set and `operation`.
    #[must_use]
    pub const fn with(self, operation: Operation) -> Self {
        Operations(self.0 | 1 << operation.index())
    }

    /// Whether `operation` is in it.
    pub const fn contains(self, operation: Operation) -> bool {
        self.0 & 1 << operation.index() != 0
    }

    /// Whether none is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those in it.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        Operation::ALL.into_iter().filter(move |operation| self.contains(*operation))
    }
}

impl From<Operation> for Operations {
    fn from(operation: Operation) -> Self {
        Operations::NONE.with(operation)
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<T: IntoIterator<Item = Operation>>(operations: T) -> Self {
        operations.into_iter().fold(Operations::NONE, Operations::with)
    }
}

impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Operation::name).collect();
        f.pad(if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }.as_str())
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromStr for Operations {
    type Err = DiskError;

    fn from_str(text: &str) -> Result<Self, DiskError> {
        text.split(',').map(|word| word.trim().parse()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_print_and_parse_back() {
        for bits in 1..16 {
            let set = Operations(bits);
            assert_eq!(set.to_string().parse::<Operations>().unwrap(), set);
            assert_eq!(set.iter().collect::<Operations>(), set);
        }
        assert!("fsync".parse::<Operations>().is_err() && "".parse::<Operations>().is_err());
    }
}
