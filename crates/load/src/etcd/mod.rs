//! etcd: what is asked of it, and its gRPC API on the engine's own connections.
//!
//! `workload` (what) → `etcd_call` → `session` (gRPC over HTTP/2, with the crate `h2`) → `pipe` (bytes of a connection).
//! Schedule, retries, timeouts, late answers and account are the engine's, as for CQL: a workload writes its request
//! with [`Call`] in place of [`crate::Request`], and judges a [`Reply`] in place of a [`crate::Answer`].
//!
//! Sources: `api/etcdserverpb/rpc.proto` of etcd; gRPC over HTTP/2 (`doc/PROTOCOL-HTTP2.md` of gRPC); RFC 9113.

mod client;
pub(crate) mod message;
mod pipe;
mod session;
pub(crate) mod status;
mod thread;
mod work;
mod workload;

pub use client::clear_etcd;
pub(crate) use session::{AUTHENTICATE, Came, STATUS, Session, WATCHES, What};
pub(crate) use work::EtcdWork;
pub use workload::EtcdLoad;

pub(crate) use crate::etcd_call::{Call, Method, Reply};

/// The first key behind all that begin with `prefix`, as `range_end` of a request; `\0` (all keys) if there is none.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

#[cfg(test)]
mod stub;
#[cfg(test)]
mod tests;
