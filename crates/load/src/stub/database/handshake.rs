//! From OPTIONS to READY: what the server can do, compression, passwords.

use super::{Act, BAD_CREDENTIALS, Database, PROTOCOL_ERROR, Question, Refusal, refusal};
use crate::wire::{
    Compression, Framing, Version, opcode,
    reader::Reader,
    write::{cell, short, string},
};

impl Database {
    pub(super) fn supported(&self, out: &mut Vec<u8>) {
        let versions: &[&str] = match self.options.newest {
            Version::V4 => &["4/v4"],
            Version::V5 => &["4/v4", "5/v5"],
        };
        let options =
            [("CQL_VERSION", &["3.4.7"][..]), ("COMPRESSION", &["snappy", "lz4"]), ("PROTOCOL_VERSIONS", versions)];
        short(out, options.len() as u16);
        for (name, values) in options {
            string(out, name);
            short(out, values.len() as u16);
            values.iter().for_each(|value| string(out, value));
        }
    }

    pub(super) fn startup(&self, question: &mut Question<'_>, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        let mut compression = None;
        for _ in 0..reader.short()? {
            let (name, value) = (reader.string()?, reader.string()?);
            if name.eq_ignore_ascii_case("COMPRESSION") && !value.is_empty() {
                let known = value.parse().ok();
                let known = known.filter(|known| *known == Compression::Lz4 || question.version == Version::V4);
                let unknown = || refusal(PROTOCOL_ERROR, format!("Unknown compression algorithm: {value}"));
                compression = Some(known.ok_or_else(unknown)?);
            }
        }
        question.session.compression = compression;
        question.act = Act::Frame(Framing::of(question.version, compression));
        if self.options.credentials.is_some() {
            question.opcode = opcode::AUTHENTICATE;
            string(question.out, "org.apache.cassandra.auth.PasswordAuthenticator");
        } else {
            question.opcode = opcode::READY;
            question.session.open = true;
        }
        Ok(())
    }

    pub(super) fn check_password(&self, question: &mut Question<'_>, token: &[u8]) -> Result<(), Refusal> {
        let mut parts = token.split(|byte| *byte == 0).skip(1);
        let given = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let right = self
            .options
            .credentials
            .as_ref()
            .is_some_and(|credentials| given == (credentials.user.as_bytes(), credentials.password.as_bytes()));
        if !right {
            let user = String::from_utf8_lossy(given.0);
            let message = format!("Provided username {user} and/or password are incorrect");
            return Err(refusal(BAD_CREDENTIALS, message));
        }
        question.session.open = true;
        question.opcode = opcode::AUTH_SUCCESS;
        cell(question.out, None);
        Ok(())
    }
}
