//! What is wrong with the text of a distribution.

/// Why a text is no distribution. Each begins with cassandra-stress's own words, which scripts may match, and goes on
/// with what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not of the form `NAME(…)`.
    #[error("Illegal distribution specification: {0}: expected NAME(arguments), such as uniform(1..10) or ~exp(1..1M)")]
    Form(String),
    /// Nobody knows this name.
    #[error("Illegal distribution type: {name}: {}", .nearest.as_ref().map_or_else(|| format!("one of {NAMES}"), |n| format!("did you mean {n}?")))]
    Name {
        /// What was written.
        name: String,
        /// The known name that it resembles most.
        nearest: Option<&'static str>,
    },
    /// The arguments of a known distribution are not what it takes.
    #[error("Invalid parameter list for {kind}: [{arguments}]: {remedy}")]
    Arguments {
        /// The distribution, as cassandra-stress calls it in this message (which is not always its name).
        kind: &'static str,
        /// The arguments as written, separated by ", ".
        arguments: String,
        /// What is wrong, and what it takes.
        remedy: String,
    },
    /// Not of the form `NAME(…)/DIVISOR`.
    #[error(
        "Invalid ratio definition: {0}: expected a distribution and a whole divisor above 0, such as fixed(1)/10 or uniform(1..5)/100"
    )]
    Ratio(String),
}

/// All names, for messages.
pub(super) const NAMES: &str = "fixed, uniform, gaussian, exp, extreme, qextreme, seq, zipf, szipf, latest, hotspot";
