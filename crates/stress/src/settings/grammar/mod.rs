//! The grammar of cassandra-stress's command line (its `StressSettings` and `GroupedOptions`).
//!
//! 1. [`words`]: all arguments become one text, blanks around `,=()` are removed, and the rest is split at blanks, so
//!    that `ratio( read = 1, write = 2 )` is one word, quoted or not.
//! 2. [`groups`]: the first word is the command, a word that begins with `-` opens a group, what follows is its content.
//! 3. [`select`]: a group has one or more alternatives; every word is offered to each; the first alternative that
//!    accepts all words and lacks nothing is chosen.

mod option;
mod pattern;
mod select;
mod usage;

pub(crate) use option::{Alternative, Extra, Sub, Taken, distribution, multi, ratio, value};
pub(crate) use pattern::Pattern;
pub(crate) use pattern::range;
pub(crate) use select::select;
pub(crate) use usage::{DISTRIBUTIONS, usage};

use super::SettingsError;

/// A command or option group: its name in lower case, and the words that follow it.
pub(crate) type Group = (String, Vec<String>);

/// Splits arguments into words.
pub(crate) fn words<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    let joined = arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    let mut squeezed = String::with_capacity(joined.len());
    // Java's \s, which matches only ASCII blanks.
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    let mut rest = joined.as_str();
    while let Some(first) = rest.chars().next() {
        if blank(first) {
            let after = rest.trim_start_matches(blank);
            // Blanks before one of these are dropped; blanks after an opening one went with it.
            if !after.starts_with([',', '=', '(', ')']) {
                squeezed.push_str(&rest[..rest.len() - after.len()]);
            }
            rest = after;
        } else {
            squeezed.push(first);
            rest = &rest[first.len_utf8()..];
            if matches!(first, ',' | '=' | '(') {
                rest = rest.trim_start_matches(blank);
            }
        }
    }
    squeezed.split(blank).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Splits words into groups, in order.
pub(crate) fn groups(words: Vec<String>) -> Result<Vec<Group>, SettingsError> {
    let mut groups: Vec<Group> = Vec::new();
    for word in words {
        match groups.last_mut() {
            Some((_, content)) if !word.starts_with('-') => content.push(word),
            _ => {
                let name = word.to_lowercase();
                if groups.iter().any(|(known, _)| *known == name) {
                    return Err(SettingsError::Repeated { group: name });
                }
                groups.push((name, Vec::new()));
            }
        }
    }
    Ok(groups)
}

/// Removes a group from the list.
pub(crate) fn take(groups: &mut Vec<Group>, name: &str) -> Option<Vec<String>> {
    let place = groups.iter().position(|(known, _)| known == name)?;
    Some(groups.remove(place).1)
}
