use super::*;
use crate::wire::{Credentials, Header, answer::answer};

struct Talk {
    out: Outbox,
    handshake: Handshake,
}

impl Talk {
    fn with(options: WireOptions) -> Self {
        let mut out = Outbox::new();
        let handshake = Handshake::begin(Arc::new(options), &mut out);
        Talk { out, handshake }
    }

    /// What was sent since the last answer.
    fn asked(&mut self) -> Vec<u8> {
        self.out.seal();
        let asked = self.out.unwritten().to_vec();
        self.out.wrote(asked.len(), |_| ());
        asked
    }

    fn hears(&mut self, opcode: u8, body: &[u8]) -> Result<Option<Version>, HandshakeError> {
        let header = Header { version: self.handshake.version, flags: 0, stream: 0, opcode, length: body.len() };
        self.handshake.answered(&answer(header, body).unwrap(), &mut self.out).map(|progress| progress.done)
    }
}

const NEW: &[u8] =
    b"\0\x02\0\x0bCOMPRESSION\0\x02\0\x06snappy\0\x03lz4\0\x11PROTOCOL_VERSIONS\0\x03\0\x043/v3\0\x044/v4\0\x045/v5";
const OLD: &[u8] = b"\0\x02\0\x0bCOMPRESSION\0\0\0\x11PROTOCOL_VERSIONS\0\x02\0\x044/v4\0\x095/v5-beta";

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn the_newest_version_that_both_know_is_spoken() {
    let lz4 = || WireOptions { compression: Some(Compression::Lz4), ..WireOptions::default() };
    let snappy = || WireOptions { compression: Some(Compression::Snappy), ..WireOptions::default() };
    for (options, supported, version) in [
        (WireOptions::default(), NEW, Version::V5),
        (WireOptions::default(), OLD, Version::V4),
        (lz4(), NEW, Version::V5),
        (snappy(), NEW, Version::V4),
        (WireOptions { protocol: Protocol::Exactly(Version::V4), ..lz4() }, NEW, Version::V4),
        (WireOptions { protocol: Protocol::Exactly(Version::V5), ..lz4() }, NEW, Version::V5),
    ] {
        let compression = options.compression;
        let mut talk = Talk::with(options);
        assert_eq!(talk.asked()[1..], [0, 0, 0, 5, 0, 0, 0, 0], "OPTIONS");
        assert_eq!(talk.hears(opcode::SUPPORTED, supported), Ok(None));
        let startup = talk.asked();
        assert_eq!((startup[0], startup[4]), (version as u8, 1), "STARTUP");
        assert!(has(&startup, "CQL_VERSION\0\x053.0.0") && has(&startup, "DRIVER_NAME\0\x08Brownout"));
        assert_eq!(has(&startup, "COMPRESSION"), compression.is_some());
        assert_eq!(talk.hears(opcode::READY, &[]), Ok(Some(version)));
        talk.out.control(|out| prepare(out, version, "SELECT 1"));
        let asked = talk.asked();
        let body = [&[0, 0, 0, 8][..], b"SELECT 1", if version == Version::V5 { &[0; 4] } else { &[] }].concat();
        if version == Version::V5 {
            let header = if compression.is_some() { 8 } else { 6 };
            assert_eq!(asked[header..header + 9], [5, 0, 0, 0, 9, 0, 0, 0, 16], "in a segment");
            assert_eq!(asked[header + 9..header + 25], body);
        } else {
            assert_eq!(asked, [&[4, 0, 0, 0, 9, 0, 0, 0, 12][..], &body].concat());
        }
    }
}

#[test]
fn credentials_are_given_to_those_who_ask() {
    let credentials = Credentials { user: "ada".into(), password: "secret".into() };
    assert!(!format!("{credentials:?}").contains("secret"));
    let options = WireOptions { credentials: Some(credentials), ..WireOptions::default() };
    let begin = || {
        let mut talk = Talk::with(options.clone());
        talk.hears(opcode::SUPPORTED, OLD).unwrap();
        assert!(!has(&talk.asked(), "secret"));
        assert_eq!(talk.hears(opcode::AUTHENTICATE, b"\0\x02PA"), Ok(None));
        let response = [&[4, 0, 0, 0, 0x0F, 0, 0, 0, 15, 0, 0, 0, 11][..], b"\0ada\0secret"].concat();
        assert_eq!(talk.asked(), response);
        talk
    };
    assert_eq!(begin().hears(opcode::AUTH_SUCCESS, &[0xFF; 4]), Ok(Some(Version::V4)));
    let refused = begin().hears(opcode::ERROR, b"\0\0\x01\0\0\x02no").unwrap_err().to_string();
    assert!(refused.contains("'ada'") && refused.contains("no") && refused.contains("check"), "{refused}");
    let challenge = begin().hears(opcode::AUTH_CHALLENGE, &[0xFF; 4]).unwrap_err();
    assert_eq!(challenge, HandshakeError::Challenge { authenticator: "PA".into() });
}

#[test]
fn what_cannot_be_agreed_on_says_why() {
    let mut talk = Talk::with(WireOptions::default());
    talk.hears(opcode::SUPPORTED, OLD).unwrap();
    assert_eq!(talk.hears(opcode::AUTHENTICATE, b"\0\x02PA"), Err(HandshakeError::NoCredentials("PA".into())));
    let mut talk = Talk::with(WireOptions { compression: Some(Compression::Lz4), ..WireOptions::default() });
    let error = talk.hears(opcode::SUPPORTED, OLD).unwrap_err();
    assert_eq!(error, HandshakeError::Compression { asked: Compression::Lz4, offered: "none".into() });
    let mut talk = Talk::with(WireOptions { protocol: Protocol::Exactly(Version::V5), ..WireOptions::default() });
    let error = talk.hears(opcode::ERROR, b"\0\0\0\x0a\0\x02no").unwrap_err();
    assert_eq!(error, HandshakeError::Version { asked: 5, message: "no".into() });
    let mut talk = Talk::with(WireOptions::default());
    assert_eq!(talk.hears(opcode::READY, &[]), Err(HandshakeError::Unexpected));
    let impossible = WireOptions {
        protocol: Protocol::Exactly(Version::V5),
        compression: Some(Compression::Snappy),
        ..WireOptions::default()
    };
    assert!(impossible.check().unwrap_err().to_string().contains("lz4"));
    assert!(WireOptions { protocol: Protocol::Auto, ..impossible }.check().is_ok());
}
