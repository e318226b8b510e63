//! How connections speak: protocol, compression, encryption, credentials.

use std::{fmt, str::FromStr};

use super::{Compression, Version};
use crate::{LoadError, Tls};

/// Which version of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The newest that client and server both know. With Snappy, version 4.
    #[default]
    Auto,
    /// This one.
    Exactly(Version),
}

/// `auto`, `4`, `v4`, `5` or `v5`.
impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Ok(Protocol::Auto),
            "4" | "v4" => Ok(Protocol::Exactly(Version::V4)),
            "5" | "v5" => Ok(Protocol::Exactly(Version::V5)),
            _ => Err(UnknownProtocol(text.to_owned())),
        }
    }
}

/// A text that names no version of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a version of the CQL protocol that this program speaks; write 4, 5, or auto")]
pub struct UnknownProtocol(pub String);

/// User and password, for servers that ask (PasswordAuthenticator).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the role.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// Without the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Options of connections. By default: the newest protocol, no compression, no encryption, no credentials.
#[derive(Debug, Clone, Default)]
pub struct WireOptions {
    /// The version.
    pub protocol: Protocol,
    /// Both directions; version 5 knows LZ4 only. A server that does not offer it is an error.
    pub compression: Option<Compression>,
    /// Encryption.
    pub tls: Option<Tls>,
    /// Sent only to servers that ask for them.
    pub credentials: Option<Credentials>,
}

impl WireOptions {
    /// # Errors
    /// Options that no server can satisfy together.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if self.compression == Some(Compression::Snappy) && self.protocol == Protocol::Exactly(Version::V5) {
            return Err(LoadError::Config {
                what: "version 5 of the CQL protocol has no Snappy compression".to_owned(),
                remedy: "use lz4, or version 4 of the protocol",
            });
        }
        Ok(())
    }
}
