//! Why TLS cannot be set up, and the files that it is set up from.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path} for TLS: {source}; check the path and who may read it", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// A file does not contain what it should.
    #[error("{path} cannot be used for TLS: {what}; {remedy}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A version that this client does not support.
    #[error("'{0}' is not a version of TLS that this client speaks; write TLSv1.2, TLSv1.3, or TLS for both")]
    Protocol(String),
    /// A cipher suite that this client does not support.
    #[error("'{name}' is not a cipher suite that this client knows; choose among {known}")]
    Cipher {
        /// As requested.
        name: String,
        /// The supported ones.
        known: String,
    },
    /// Options that contradict one another.
    #[error(
        "TLS cannot be set up: {0}; check that versions and cipher suites fit one another, and certificate and key"
    )]
    Contradiction(String),
}

/// The bytes of a file for TLS.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}
