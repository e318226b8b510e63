//! Finds the TLS error among the errors that the driver wraps around it.

use std::{error::Error, io, sync::Arc};

use scylla::errors::{ConnectionError, ConnectionPoolError};

use super::tls::explain;

/// How the TLS library's message for a server's alert begins. The alert comes after the handshake, where the driver
/// keeps only the message.
const ALERT: &str = "received fatal alert";

/// The TLS error of a connection, if that is why it failed: the reason and what to do.
pub fn tls_reason(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(tls) = tls_error(error) {
            return Some(explain(tls));
        }
        if let Some(ConnectionPoolError::Broken { last_connection_error: inner }) = error.downcast_ref() {
            return tls_reason(inner);
        }
        let words = error.to_string();
        if error.source().is_none()
            && let Some(at) = words.find(ALERT)
        {
            return Some(format!("TLS: {}{}", &words[at..], super::tls::ALERT_REMEDY));
        }
        cause = error.source();
    }
    None
}

fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let io: Option<&io::Error> = match error.downcast_ref() {
        Some(ConnectionError::IoError(io)) => Some(io),
        _ => error.downcast_ref().or_else(|| error.downcast_ref::<Arc<io::Error>>().map(Arc::as_ref)),
    };
    let wrapped = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref());
    wrapped.or_else(|| error.downcast_ref())
}
