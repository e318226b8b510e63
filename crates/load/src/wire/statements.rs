//! The prepared statements of a connection.

use super::{Version, write::short_bytes};

/// The ids that a server has given to the statements of a workload, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    version: Version,
    list: Vec<Prepared>,
}

#[derive(Debug, Clone, Default)]
struct Prepared {
    /// The beginning of EXECUTE: `[short bytes]` id, and in version 5 `[short bytes]` id of the result's metadata.
    head: Box<[u8]>,
    /// Length of the statement's id with its length prefix, at the beginning of the head: what BATCH needs.
    id: usize,
}

impl Statements {
    /// No statements yet, on a connection of this version.
    pub(crate) fn new(version: Version) -> Self {
        Statements { version, list: Vec::new() }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Stores the ids of statement `number`, replacing earlier ones. No decoder returns ids longer than `[short bytes]`
    /// can be.
    pub(crate) fn keep(&mut self, number: usize, id: &[u8], result_metadata_id: &[u8]) {
        if self.list.len() <= number {
            self.list.resize_with(number + 1, Prepared::default);
        }
        let mut head = Vec::with_capacity(4 + id.len() + result_metadata_id.len());
        short_bytes(&mut head, id);
        let id = head.len();
        if self.version == Version::V5 {
            short_bytes(&mut head, result_metadata_id);
        }
        self.list[number] = Prepared { head: head.into(), id };
    }

    /// The beginning of EXECUTE of statement `number`; `None` if it is not prepared.
    pub(super) fn execute_head(&self, number: usize) -> Option<&[u8]> {
        self.list.get(number).map(|prepared| &*prepared.head).filter(|head| !head.is_empty())
    }

    /// The id of statement `number` as `[short bytes]`; `None` if it is not prepared.
    pub(super) fn id(&self, number: usize) -> Option<&[u8]> {
        let prepared = self.list.get(number).filter(|prepared| prepared.id > 0)?;
        prepared.head.get(..prepared.id)
    }
}
