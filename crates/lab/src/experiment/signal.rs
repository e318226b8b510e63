//! Signals, as a person names them.

use serde::Deserialize;

/// A signal that ends a node. SIGQUIT does not: Java prints its threads and goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Signal(i32);

impl Signal {
    const ALL: [(&str, i32); 6] = [
        ("KILL", libc::SIGKILL),
        ("TERM", libc::SIGTERM),
        ("INT", libc::SIGINT),
        ("HUP", libc::SIGHUP),
        ("ABRT", libc::SIGABRT),
        ("SEGV", libc::SIGSEGV),
    ];

    /// SIGTERM.
    pub fn number(self) -> i32 {
        self.0
    }

    /// `TERM`.
    pub fn name(self) -> &'static str {
        Signal::ALL.into_iter().find(|(_, number)| *number == self.0).map_or("KILL", |(name, _)| name)
    }
}

impl Default for Signal {
    fn default() -> Signal {
        Signal(libc::SIGKILL)
    }
}

impl TryFrom<String> for Signal {
    type Error = String;

    fn try_from(text: String) -> Result<Signal, String> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let found = Signal::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, number)| Signal(number)).ok_or_else(|| {
            let known = Signal::ALL.map(|(name, _)| name).join(", ");
            format!("'{text}' is not a signal that ends a node; use one of {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_a_node_survives_is_no_way_to_kill_it() {
        let named = |name: &str| Signal::try_from(name.to_owned());
        for survived in ["QUIT", "SIGQUIT", "STOP", "CONT", "USR1"] {
            assert!(named(survived).is_err_and(|why| !why.contains("QUIT,")), "{survived}");
        }
        assert_eq!(named("sigterm").map(Signal::number), Ok(libc::SIGTERM));
    }
}
