//! `-port`

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, select, value},
};

/// Ports of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Of the native protocol.
    pub native: u16,
    /// Of Thrift, which is no longer spoken; shown only.
    pub thrift: u16,
    /// Of JMX, which is not used; shown only.
    pub jmx: u16,
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("native=", Pattern::Digits, "port of the native protocol").or("9042"),
        value("thrift=", Pattern::Digits, "accepted; Thrift is gone").or("9160"),
        value("jmx=", Pattern::Digits, "accepted; JMX is not asked").or("7199"),
    ])]
}

impl Port {
    pub(super) fn parse(words: Option<&[String]>, notes: &mut Vec<String>) -> Result<Self, SettingsError> {
        let (_, taken) = select("-port", words.unwrap_or_default(), alternatives())?;
        for gone in ["thrift=", "jmx="] {
            if taken.given(gone).is_some() {
                notes.push(format!("-port {gone} has no effect: only the native protocol is used"));
            }
        }
        Ok(Port {
            native: port("-port native=", taken.text("native="))?,
            thrift: port("-port thrift=", taken.text("thrift="))?,
            jmx: port("-port jmx=", taken.text("jmx="))?,
        })
    }

    pub(super) fn block(&self) -> String {
        format!("  Native Port: {}\n  Thrift Port: {}\n  JMX Port: {}\n", self.native, self.thrift, self.jmx)
    }
}

/// A port from 1 to 65,535.
pub(super) fn port(option: &str, text: &str) -> Result<u16, SettingsError> {
    text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| {
        SettingsError::senseless(format!("{option}{text} is no port"), "write a number from 1 to 65535, such as 9042")
    })
}
