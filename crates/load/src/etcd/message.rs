//! The messages of etcd's API, with the fields that a load needs.
//!
//! Source: `api/etcdserverpb/rpc.proto` and `api/mvccpb/kv.proto` of etcd 3.6. A `oneof` of messages is the same bytes
//! as optional fields of which one is set. Unknown fields are skipped.

use bytes::Bytes;
use prost::Message;

/// What every answer begins with.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    /// The member that has answered.
    #[prost(uint64, tag = "2")]
    pub(crate) member: u64,
    /// Of the whole store, when the request was applied; a write's own.
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(crate) term: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    /// Of the write that made this value.
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    /// The first key that is not meant any more; empty: only `key` is.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) end: Bytes,
    /// What the asked member has, without asking the leader.
    #[prost(bool, tag = "7")]
    pub(crate) serializable: bool,
    #[prost(bool, tag = "9")]
    pub(crate) count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(int64, tag = "4")]
    pub(crate) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// Also of a deletion and a compaction, of which no more is needed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
    /// Answered only when it is done on disk.
    #[prost(bool, tag = "2")]
    pub(crate) physical: bool,
}

/// A condition of a transaction: the key was last written by the write of this revision (0: never).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    /// 0: equal.
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(int64, optional, tag = "6")]
    pub(crate) mod_revision: Option<i64>,
}

impl Compare {
    /// `Compare.MOD`.
    pub(crate) const MOD_REVISION: i32 = 2;
}

/// One of the two.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeRequest>,
    #[prost(message, optional, tag = "2")]
    pub(crate) put: Option<PutRequest>,
}

/// One of the two.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeResponse>,
    #[prost(message, optional, tag = "2")]
    pub(crate) put: Option<PutResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    /// All conditions held.
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

/// Only what begins a watch.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) end: Bytes,
    /// The first that is told; 0: from now on.
    #[prost(int64, tag = "3")]
    pub(crate) start_revision: i64,
    /// What is longer than a request may be comes in several answers.
    #[prost(bool, tag = "8")]
    pub(crate) fragment: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    /// What was to be told is gone below this revision; else 0.
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(crate) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    /// 0: a put. 1: a deletion.
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    /// The member that leads; 0: this one knows of none.
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) term: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden, made by hand from the schema and the encoding of protocol buffers.
    #[test]
    fn a_transaction_is_the_bytes_that_the_schema_says() {
        let key = Bytes::from_static(b"k");
        let put = PutRequest { key: key.clone(), value: Bytes::from_static(b"v") };
        let range = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let compare = Compare { result: 0, target: Compare::MOD_REVISION, key, mod_revision: Some(0) };
        let txn = TxnRequest {
            compare: vec![compare],
            success: vec![RequestOp { put: Some(put), range: None }],
            failure: vec![RequestOp { range: Some(range), put: None }],
        };
        let expected = [
            &[0x0a, 7, 0x10, 2, 0x1a, 1, b'k', 0x30, 0][..],
            &[0x12, 8, 0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'v'],
            &[0x1a, 5, 0x0a, 3, 0x0a, 1, b'k'],
        ];
        assert_eq!(txn.encode_to_vec(), expected.concat());
    }

    #[test]
    fn what_is_not_needed_of_an_answer_is_skipped() {
        // A header with a cluster, and a key with all its fields, as etcd sends them.
        let header = [&[0x08, 9, 0x10, 7, 0x18, 5, 0x20, 2][..]].concat();
        let kv = [&[0x0a, 1, b'k', 0x10, 3, 0x18, 4, 0x20, 2, 0x2a, 2, b'v', b'w', 0x30, 0][..]].concat();
        let mut bytes = vec![0x0a, header.len() as u8];
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&[0x12, kv.len() as u8]);
        bytes.extend_from_slice(&kv);
        bytes.extend_from_slice(&[0x20, 1]);
        let answer = RangeResponse::decode(&bytes[..]).unwrap();
        assert_eq!(answer.header, Some(Header { member: 7, revision: 5, term: 2 }));
        assert_eq!((answer.count, answer.kvs.len()), (1, 1));
        assert_eq!((answer.kvs[0].mod_revision, &answer.kvs[0].value[..]), (4, &b"vw"[..]));
        assert!(RangeResponse::decode(&bytes[..bytes.len() - 3]).is_err());
    }
}
