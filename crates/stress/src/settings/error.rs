//! What is wrong with a command line.

use std::path::PathBuf;

use brownout_generate::distribution::SpecError;
use brownout_yaml::nearest;
use thiserror::Error;

use super::grammar::Pattern;

/// Why a command line is refused. Where cassandra-stress has the same error, the message begins with its words, which
/// scripts may look for, and continues with what would be right.
///
/// cassandra-stress exits with 1 in these cases; `brownout` exits with 2, as for all wrong arguments. Scripts only
/// check for 0.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The first word is not a command.
    #[error(
        "No command specified: {}; the first word is one of read, write, mixed, counter_write, counter_read, user, \
         verify-sizes, help, print, version, legacy{}",
        .found.as_ref().map_or_else(|| "there are no words".to_owned(), |word| format!("'{word}' is none")),
        did_you_mean(.nearest.as_deref()),
    )]
    NoCommand {
        /// What was found there.
        found: Option<String>,
        /// The most similar command.
        nearest: Option<String>,
    },
    /// A group that occurs twice.
    #[error("{group} is defined multiple times. Each option/command can be specified at most once.")]
    Repeated {
        /// The group or command.
        group: String,
    },
    /// A word that is not an option of its group.
    #[error("Invalid parameter {word}: {group} takes no such word{}; see 'help {group}'", did_you_mean(.nearest.as_deref()))]
    Word {
        /// The group or command.
        group: String,
        /// The word.
        word: String,
        /// The most similar option.
        nearest: Option<String>,
    },
    /// An unknown word with two dashes.
    #[error("Invalid parameter {word}: no word with two dashes is called so{}; 'brownout stress help' lists them", did_you_mean(.nearest.as_deref()))]
    TwoDashes {
        /// The word.
        word: String,
        /// The most similar one.
        nearest: Option<String>,
    },
    /// A value of the wrong form.
    #[error("Invalid value {value}; must match pattern {}: {}{}", .pattern.text(), owner(.option), .pattern.remedy())]
    #[allow(private_interfaces, reason = "for its texts only")]
    Value {
        /// The option: `threads=`.
        option: String,
        /// What was written.
        value: String,
        /// What it should look like.
        pattern: Pattern,
    },
    /// An option given twice in its group.
    #[error("Suboption {option} has been specified more than once")]
    Twice {
        /// The option: `n=`.
        option: String,
    },
    /// A key given twice in brackets.
    #[error("{key} set twice")]
    PairTwice {
        /// The key.
        key: String,
    },
    /// Brackets that contain something invalid.
    #[error("Invalid {option} specification: {what}; {remedy}")]
    Multi {
        /// What stands before the brackets.
        option: String,
        /// What is wrong.
        what: String,
        /// What would be right.
        remedy: String,
    },
    /// All words are known, but they cannot be combined, or one is missing.
    #[error("Invalid {group} options provided, see output for valid options")]
    Unfit {
        /// The group or command, as messages name it.
        group: String,
        /// What would be right; [`SettingsError::usage`] gives it.
        usage: String,
    },
    /// Unknown groups.
    #[error("Error processing command line arguments. The following were ignored:\n{groups}{}", did_you_mean(.nearest.as_deref()))]
    Ignored {
        /// The groups with their words, one group per line.
        groups: String,
        /// The group most similar to the first.
        nearest: Option<String>,
    },
    /// An invalid distribution or ratio.
    #[error("{error} (in {option})")]
    Distribution {
        /// What is wrong.
        error: SpecError,
        /// Where.
        option: String,
    },
    /// Values that are valid individually but make no sense together or at this size.
    #[error("{what}: {remedy}")]
    Senseless {
        /// What is wrong; begins with the words of cassandra-stress if it has this error.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A file that an option names cannot be used.
    #[error("{option}{}: {reason}", .file.display())]
    File {
        /// The option: `-node file=`.
        option: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
}

impl SettingsError {
    /// The usage of the group, to be printed above the message.
    pub fn usage(&self) -> Option<&str> {
        match self {
            SettingsError::Unfit { usage, .. } => Some(usage),
            _ => None,
        }
    }

    pub(crate) fn word<'a>(group: &str, word: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let key = word.split_inclusive('=').next().unwrap_or(word);
        let nearest = nearest(key, known.filter(|name| !name.is_empty()));
        SettingsError::Word { group: group.to_owned(), word: word.to_owned(), nearest }
    }

    pub(crate) fn senseless(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        SettingsError::Senseless { what: what.into(), remedy: remedy.into() }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

fn owner(option: &str) -> String {
    if option.is_empty() { String::new() } else { format!("{}: ", option.trim_end_matches('=')) }
}
