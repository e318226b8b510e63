//! From a connected socket to a connection that takes requests: OPTIONS, STARTUP, credentials (section 4.1).

use std::sync::Arc;

use thiserror::Error;

use super::{Answer, Compression, Failure, Framing, Outbox, Protocol, Version, WireOptions, opcode, write};

/// Handshake and preparing happen on this stream, operations on the others.
const CONTROL_STREAM: i16 = 0;

const BAD_CREDENTIALS: u32 = 0x0100;
const PROTOCOL_ERROR: u32 = 0x000A;

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum HandshakeError {
    #[error("it asks for credentials ({0}); give a user and a password")]
    NoCredentials(String),
    #[error("it refuses the credentials of user '{user}': {message}; check the user's name and password")]
    WrongCredentials { user: String, message: String },
    #[error(
        "{authenticator} asks for more than a user and a password, which is all that this client can give; \
             use PasswordAuthenticator"
    )]
    Challenge { authenticator: String },
    #[error("it does not compress with {asked} (it offers: {offered}); ask for one that it offers, or for none")]
    Compression { asked: Compression, offered: String },
    #[error("it does not speak version {asked} of the CQL protocol: {message}; use another version, or 'auto'")]
    Version { asked: u8, message: String },
    #[error("the server says: {message} (code {code:#06x})")]
    Refused { code: u32, message: String },
    #[error("the server sent an answer of the wrong kind")]
    Unexpected,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Options,
    Startup,
    Credentials { authenticator: String },
}

/// What an answer has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The server uses this framing from now on.
    pub(crate) framing: Option<Framing>,
    /// The handshake is complete, with this version.
    pub(crate) done: Option<Version>,
}

/// One handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    options: Arc<WireOptions>,
    step: Step,
    version: Version,
}

impl Handshake {
    /// Asks what the server supports.
    pub(crate) fn begin(options: Arc<WireOptions>, out: &mut Outbox) -> Self {
        // Every server answers version 4; with newer ones STARTUP alone decides.
        let version = match options.protocol {
            Protocol::Auto => Version::V4,
            Protocol::Exactly(version) => version,
        };
        out.control(|out| frame(out, version, opcode::OPTIONS, |_| ()));
        Handshake { options, step: Step::Options, version }
    }

    /// Handles an answer: sends the next request, or ends the handshake.
    pub(crate) fn answered(&mut self, answer: &Answer<'_>, out: &mut Outbox) -> Result<Progress, HandshakeError> {
        match (&self.step, answer) {
            (Step::Options, Answer::Supported(supported)) => {
                if let Some(asked) = self.options.compression
                    && !supported.has("COMPRESSION", asked.name())
                {
                    let offered: Vec<_> = supported.values("COMPRESSION").collect();
                    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
                    return Err(HandshakeError::Compression { asked, offered });
                }
                if self.options.protocol == Protocol::Auto
                    && self.options.compression != Some(Compression::Snappy)
                    // Cassandra 3.11 reports "5/v5-beta" for a draft of version 5 that differs from the final one.
                    && supported.has("PROTOCOL_VERSIONS", "5/v5")
                {
                    self.version = Version::V5;
                }
                self.startup(out);
                // In version 4, the answer may already be compressed.
                let framing = (self.version == Version::V4).then(|| self.framing());
                Ok(Progress { framing, done: None })
            }
            (Step::Startup, Answer::Ready) => {
                out.frame_as(self.framing());
                Ok(Progress { framing: Some(self.framing()), done: Some(self.version) })
            }
            (Step::Startup, Answer::Authenticate(authenticator)) => {
                let authenticator = (*authenticator).to_owned();
                let Some(credentials) = &self.options.credentials else {
                    return Err(HandshakeError::NoCredentials(authenticator));
                };
                // SASL PLAIN (RFC 4616): authorization identity (empty: that of the user), user, password.
                let token = format!("\0{}\0{}", credentials.user, credentials.password);
                out.frame_as(self.framing());
                out.control(|out| {
                    frame(out, self.version, opcode::AUTH_RESPONSE, |out| write::bytes(out, token.as_bytes()));
                });
                self.step = Step::Credentials { authenticator };
                Ok(Progress { framing: Some(self.framing()), done: None })
            }
            (Step::Credentials { .. }, Answer::AuthSuccess(_)) => {
                Ok(Progress { framing: None, done: Some(self.version) })
            }
            (Step::Credentials { authenticator }, Answer::AuthChallenge(_)) => {
                Err(HandshakeError::Challenge { authenticator: authenticator.clone() })
            }
            (_, Answer::Error(failure)) => Err(self.refused(failure)),
            _ => Err(HandshakeError::Unexpected),
        }
    }

    fn startup(&mut self, out: &mut Outbox) {
        let compression = self.options.compression.map(|compression| ("COMPRESSION", compression.name()));
        let pairs =
            [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "Brownout"), ("DRIVER_VERSION", env!("CARGO_PKG_VERSION"))];
        let pairs: Vec<_> = pairs.into_iter().chain(compression).collect();
        out.control(|out| {
            frame(out, self.version, opcode::STARTUP, |out| {
                write::short(out, pairs.len() as u16);
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|text| write::string(out, text));
            });
        });
        self.step = Step::Startup;
    }

    /// The framing after the answer to STARTUP.
    fn framing(&self) -> Framing {
        Framing::of(self.version, self.options.compression)
    }

    fn refused(&self, failure: &Failure<'_>) -> HandshakeError {
        let Failure { code, message, .. } = *failure;
        let message = message.to_owned();
        match (&self.step, &self.options.credentials) {
            (Step::Credentials { .. }, Some(credentials)) if code == BAD_CREDENTIALS => {
                HandshakeError::WrongCredentials { user: credentials.user.clone(), message }
            }
            (Step::Options | Step::Startup, _) if code == PROTOCOL_ERROR => {
                HandshakeError::Version { asked: self.version as u8, message }
            }
            _ => HandshakeError::Refused { code, message },
        }
    }
}

/// PREPARE (4.1.5).
pub(crate) fn prepare(out: &mut Vec<u8>, version: Version, statement: &str) {
    frame(out, version, opcode::PREPARE, |out| {
        write::long_string(out, statement);
        if version >= Version::V5 {
            // No flags: the keyspace is named in the statement.
            out.extend_from_slice(&[0; 4]);
        }
    });
}

/// A frame on the control stream.
fn frame(out: &mut Vec<u8>, version: Version, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) {
    write::frame(out, version as u8, CONTROL_STREAM, opcode, body);
}

#[cfg(test)]
mod tests;
