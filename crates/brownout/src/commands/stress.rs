use std::{ffi::OsString, path::Path};

use crate::output;

/// All words belong to the load generator's own language (`brownout stress help`).
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Arguments {
    /// A command and its options, as cassandra-stress takes them: write n=100000 -rate open=2000/s -node 10.0.0.1.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> u8 {
    let mut words = Vec::new();
    for word in &arguments.words {
        match word.to_str() {
            Some(word) => words.push(word.to_owned()),
            None => {
                output::fail(format!("{} is not UTF-8; name files by other paths", word.to_string_lossy()));
                return output::WRONG;
            }
        }
    }
    let interrupts = brownout_lab::catch_interrupts();
    brownout_stress::run::main(&words, &|| interrupts.any())
}

/// The name of the program that this one can stand in for.
const OTHER_NAME: &str = "cassandra-stress";

/// Called by its name (a link to this program), it is `brownout stress`.
pub fn by_other_name(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|program| Path::new(program).file_name()).unwrap_or_default();
    if name == OTHER_NAME {
        words.insert(1, "stress".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_the_other_name_is_this_command() {
        let words = |text: &str| by_other_name(text.split(' ').map(OsString::from).collect());
        assert_eq!(words("/usr/bin/cassandra-stress write n=1")[..3], ["/usr/bin/cassandra-stress", "stress", "write"]);
        assert_eq!(words("brownout stress write").len(), 3);
    }
}
