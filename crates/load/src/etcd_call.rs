//! Calls of etcd's API, and their replies, as workloads write and read them.

use bytes::Bytes;
use prost::Message;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Put,
    Range,
    Txn,
    DeleteRange,
    Compact,
    Watch,
    Status,
    Authenticate,
}

impl Method {
    /// All, in the order of their numbers.
    pub(crate) const ALL: [Method; 8] = [
        Method::Put,
        Method::Range,
        Method::Txn,
        Method::DeleteRange,
        Method::Compact,
        Method::Watch,
        Method::Status,
        Method::Authenticate,
    ];

    /// Its path in a request.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Method::Put => "/etcdserverpb.KV/Put",
            Method::Range => "/etcdserverpb.KV/Range",
            Method::Txn => "/etcdserverpb.KV/Txn",
            Method::DeleteRange => "/etcdserverpb.KV/DeleteRange",
            Method::Compact => "/etcdserverpb.KV/Compact",
            Method::Watch => "/etcdserverpb.Watch/Watch",
            Method::Status => "/etcdserverpb.Maintenance/Status",
            Method::Authenticate => "/etcdserverpb.Auth/Authenticate",
        }
    }

    /// Whether it may change the store: then a timeout leaves open whether it has.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Method::Put | Method::Txn | Method::DeleteRange | Method::Compact)
    }

    /// Whether its request goes on after the first message, and its reply is many.
    pub(crate) fn streams(self) -> bool {
        self == Method::Watch
    }
}

/// One call to be written.
#[derive(Debug)]
pub struct Call<'a> {
    method: &'a mut Option<Method>,
    message: &'a mut Vec<u8>,
}

impl<'a> Call<'a> {
    /// The message goes to the end of `message`, and `method` is set.
    pub(crate) fn new(method: &'a mut Option<Method>, message: &'a mut Vec<u8>) -> Self {
        Call { method, message }
    }

    /// Writes it.
    pub(crate) fn write(self, method: Method, message: &impl Message) {
        // A vector has room for everything.
        let _ = message.encode(self.message);
        *self.method = Some(method);
    }
}

/// The reply to a call.
#[derive(Debug, Clone)]
pub struct Reply(Bytes);

impl Reply {
    pub(crate) fn new(message: Bytes) -> Self {
        Reply(message)
    }

    /// Its message; `None` if it is not of that kind.
    pub(crate) fn read<M: Message + Default>(self) -> Option<M> {
        M::decode(self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_numbered_in_their_order_and_have_paths_of_their_own() {
        for (number, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, number);
            assert_eq!(Method::ALL.iter().filter(|other| other.path() == method.path()).count(), 1);
        }
    }
}
