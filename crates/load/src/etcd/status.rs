//! How a call over gRPC ended, and what that means for the account.

use http::{HeaderMap, StatusCode};

use super::Method;
use crate::ErrorClass;

/// Codes of gRPC (`doc/statuscodes.md` of its repository).
pub(crate) mod code {
    pub(crate) const OK: u32 = 0;
    pub(crate) const CANCELLED: u32 = 1;
    pub(crate) const UNKNOWN: u32 = 2;
    pub(crate) const DEADLINE_EXCEEDED: u32 = 4;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const FAILED_PRECONDITION: u32 = 9;
    pub(crate) const ABORTED: u32 = 10;
    pub(crate) const INTERNAL: u32 = 13;
    pub(crate) const UNAVAILABLE: u32 = 14;
    pub(crate) const DATA_LOSS: u32 = 15;
    pub(crate) const UNAUTHENTICATED: u32 = 16;
}

/// Why a call has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u32,
    pub(crate) message: String,
    /// The server has not said so: the connection ends, and the call with it.
    pub(crate) lost: bool,
}

impl Status {
    pub(crate) fn new(code: u32, message: impl Into<String>) -> Self {
        Status { code, message: message.into(), lost: false }
    }

    /// What headers or trailers say; `None`: nothing.
    pub(super) fn told(headers: &HeaderMap) -> Option<Status> {
        let code = headers.get("grpc-status")?.to_str().ok().and_then(|text| text.parse().ok());
        let message = headers.get("grpc-message").map_or_else(String::new, |text| decoded(text.as_bytes()));
        Some(Status::new(code.unwrap_or(code::UNKNOWN), message))
    }

    /// Of an answer that is none of gRPC.
    pub(super) fn http(status: StatusCode) -> Self {
        let words = format!("HTTP status {status}, which etcd does not answer; is this its client port?");
        Status::new(code::INTERNAL, words)
    }

    /// What a server sends when a stream of HTTP/2 ends early (gRPC over HTTP/2, "HTTP2 Transport Mapping").
    pub(super) fn broken(error: &h2::Error) -> Self {
        let code = match error.reason() {
            Some(h2::Reason::REFUSED_STREAM) => code::UNAVAILABLE,
            Some(h2::Reason::ENHANCE_YOUR_CALM) => code::RESOURCE_EXHAUSTED,
            Some(h2::Reason::CANCEL) => code::CANCELLED,
            _ => code::INTERNAL,
        };
        Status { lost: error.is_go_away() || error.is_io(), ..Status::new(code, error.to_string()) }
    }

    /// The server asks nobody to log in (`ErrGRPCAuthNotEnabled`).
    pub(crate) fn wants_no_login(&self) -> bool {
        self.message.contains("authentication is not enabled")
    }

    /// Its class. etcd says some things by code and others by message alone (`api/v3rpc/rpctypes/error.go`).
    pub(crate) fn class(&self, method: Method) -> ErrorClass {
        let says = |words: &str| self.message.contains(words);
        let timed_out = if method.writes() { ErrorClass::WriteTimeout } else { ErrorClass::ReadTimeout };
        match self.code {
            _ if self.lost => ErrorClass::ConnectionLost,
            _ if says("request timed out") => timed_out,
            code::DEADLINE_EXCEEDED => timed_out,
            // Its quota is used up, and stays so until somebody makes room.
            code::RESOURCE_EXHAUSTED if says("space exceeded") => ErrorClass::Invalid,
            code::RESOURCE_EXHAUSTED => ErrorClass::Overloaded,
            code::FAILED_PRECONDITION if says("not leader") || says("not capable") => ErrorClass::Unavailable,
            code::UNAVAILABLE => ErrorClass::Unavailable,
            // The connection is made again, and logs in again.
            code::UNAUTHENTICATED => ErrorClass::ConnectionLost,
            code::CANCELLED | code::UNKNOWN | code::ABORTED => ErrorClass::ServerError,
            code::INTERNAL | code::DATA_LOSS => ErrorClass::ServerError,
            _ => ErrorClass::Invalid,
        }
    }
}

/// `grpc-message` is percent-encoded.
fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        let escaped = (*first == b'%').then(|| others.split_at_checked(2)).flatten();
        let hex = escaped.and_then(|(hex, after)| {
            let hex = std::str::from_utf8(hex).ok()?;
            Some((u8::from_str_radix(hex, 16).ok()?, after))
        });
        match hex {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_decoded_and_broken_escapes_stay_as_they_are() {
        for (text, expected) in [
            ("etcdserver: no leader", "etcdserver: no leader"),
            ("a%20b%C3%A9", "a bé"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
        ] {
            assert_eq!(decoded(text.as_bytes()), expected);
        }
    }

    #[test]
    fn what_etcd_says_has_the_class_that_users_of_the_account_know() {
        let (put, range) = (Method::Put, Method::Range);
        for (code, message, method, class) in [
            (14, "etcdserver: no leader", put, ErrorClass::Unavailable),
            (14, "etcdserver: leader changed", range, ErrorClass::Unavailable),
            (14, "etcdserver: request timed out, possibly due to connection lost", put, ErrorClass::WriteTimeout),
            (14, "etcdserver: request timed out", range, ErrorClass::ReadTimeout),
            (8, "etcdserver: too many requests", put, ErrorClass::Overloaded),
            (8, "etcdserver: mvcc: database space exceeded", put, ErrorClass::Invalid),
            (3, "etcdserver: request is too large", put, ErrorClass::Invalid),
            (9, "etcdserver: not leader", put, ErrorClass::Unavailable),
            (16, "etcdserver: invalid auth token", range, ErrorClass::ConnectionLost),
            (3, "etcdserver: authentication failed, invalid user ID or password", range, ErrorClass::Invalid),
            (12, "unknown method", put, ErrorClass::Invalid),
            (15, "etcdserver: corrupt cluster", range, ErrorClass::ServerError),
        ] {
            assert_eq!(Status::new(code, message).class(method), class, "{code}: {message}");
        }
        let lost = Status { lost: true, ..Status::new(code::INTERNAL, "") };
        assert_eq!(lost.class(put), ErrorClass::ConnectionLost);
    }

    #[test]
    fn a_status_is_read_from_headers_and_a_code_that_is_no_number_is_unknown() {
        let mut headers = HeaderMap::new();
        assert_eq!(Status::told(&headers), None);
        headers.insert("grpc-status", http::HeaderValue::from_static("14"));
        headers.insert("grpc-message", http::HeaderValue::from_static("no%20leader"));
        assert_eq!(Status::told(&headers), Some(Status::new(14, "no leader")));
        headers.insert("grpc-status", http::HeaderValue::from_static("x"));
        assert_eq!(Status::told(&headers).map(|status| status.code), Some(code::UNKNOWN));
    }
}
