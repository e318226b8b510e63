//! What became of containers, and how it is told.

use brownout_units::format_ns;

/// What became of a container; times are of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Its processes are gone, or its network, and nobody here has asked for that.
    Ended {
        /// Its name.
        host: String,
        /// When that was so at the latest.
        at_ns: u64,
        /// How much earlier it may have been, ns.
        error_ns: u64,
    },
    /// It was started again, and what it sends goes through the emulator again.
    Reattached {
        /// Its name.
        host: String,
        /// From when on it does.
        at_ns: u64,
        /// For how long it was down, ns.
        gap_ns: u64,
        /// For how long it ran before that, and what it sent was as nobody had asked for, ns.
        missed_ns: u64,
        /// A fault has ended it, and started it again.
        is_asked: bool,
        /// It has another address than before, as the end of a sentence that names both; none: it has the same.
        moved: Option<String>,
    },
    /// It was started again, and could not be attached; that is tried again every second.
    Lost {
        /// Its name.
        host: String,
        /// When that was tried.
        at_ns: u64,
        /// Why not.
        why: String,
    },
    /// It is attached again, and nobody can measure there.
    Unmeasured {
        /// Its name.
        host: String,
        /// When that was tried.
        at_ns: u64,
        /// Why not.
        why: String,
    },
}

impl Seen {
    /// The kind of its event.
    pub fn kind(&self) -> &'static str {
        match self {
            Seen::Ended { .. } => "node-died",
            Seen::Reattached { .. } => "reattached",
            Seen::Lost { .. } => "not-reattached",
            Seen::Unmeasured { .. } => "warning",
        }
    }

    /// The container.
    pub fn host(&self) -> &str {
        match self {
            Seen::Ended { host, .. }
            | Seen::Reattached { host, .. }
            | Seen::Lost { host, .. }
            | Seen::Unmeasured { host, .. } => host,
        }
    }

    /// When.
    pub fn at_ns(&self) -> u64 {
        match self {
            Seen::Ended { at_ns, .. }
            | Seen::Reattached { at_ns, .. }
            | Seen::Lost { at_ns, .. }
            | Seen::Unmeasured { at_ns, .. } => *at_ns,
        }
    }

    /// How much earlier it may have been, ns.
    pub fn error_ns(&self) -> u64 {
        match self {
            Seen::Ended { error_ns, .. } => *error_ns,
            Seen::Reattached { .. } | Seen::Lost { .. } | Seen::Unmeasured { .. } => 0,
        }
    }
}

/// For people, with what it means.
impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Seen::Ended { host, .. } => {
                write!(
                    f,
                    "{host} has ended (its processes, or its network, are gone), and no fault has ended it; the logs of whoever \
                     runs it say why"
                )
            }
            Seen::Reattached { host, gap_ns, missed_ns, is_asked, moved, .. } => {
                let by = if *is_asked { "by a fault" } else { "by its runtime or by somebody else" };
                write!(
                    f,
                    "{host} was started again {by} after {}; it is in another network, in which no fault was in force for \
                     the first {}; what measures its links goes on there, and probes to and from it that were sent since its \
                     end count neither as arrived nor as lost",
                    format_ns(*gap_ns as f64),
                    format_ns(*missed_ns as f64)
                )?;
                let Some(moved) = moved else { return Ok(()) };
                write!(
                    f,
                    "; it {moved}: faults strike it where it is, and whoever asks it asks where it was; begin a new run with it, \
                     or give it a fixed address (ipv4_address)"
                )
            }
            Seen::Lost { host, why, .. } => {
                let what = "was started again, and no fault of the network strikes it since: it cannot be attached";
                write!(f, "{host} {what}: {why}")
            }
            Seen::Unmeasured { host, why, .. } => {
                let what = "was started again, and its links are measured no more: nobody can send probes there";
                write!(f, "{host} {what}: {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_told_with_its_gap_and_with_what_was_missed() {
        let seen = |is_asked| Seen::Reattached {
            host: "cassandra-2".to_owned(),
            at_ns: 9,
            gap_ns: 1_500_000_000,
            missed_ns: 800_000_000,
            is_asked,
            moved: None,
        };
        let text = seen(false).to_string();
        assert!(
            text.starts_with("cassandra-2 was started again by its runtime or by somebody else after 1.50s"),
            "{text}"
        );
        assert!(text.contains("for the first 800ms") && text.contains("neither as arrived nor as lost"), "{text}");
        assert!(seen(true).to_string().contains("by a fault") && !seen(true).to_string().contains("address"));
        let Seen::Reattached { host, at_ns, gap_ns, missed_ns, is_asked, .. } = seen(false) else { panic!("{text}") };
        let moved = Some("had the address 172.18.0.3 and has 172.18.0.9".to_owned());
        let text = Seen::Reattached { host, at_ns, gap_ns, missed_ns, is_asked, moved }.to_string();
        assert!(text.contains("; it had the address 172.18.0.3 and has 172.18.0.9: faults strike it"), "{text}");
        assert_eq!((seen(true).kind(), seen(true).host(), seen(true).at_ns()), ("reattached", "cassandra-2", 9));
        assert_eq!(seen(true).error_ns(), 0);
    }
}
