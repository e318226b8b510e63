//! Selects one of a group's alternatives.

use super::{
    super::SettingsError,
    option::{Alternative, Taken},
    usage,
};

/// The alternative that accepts all words of a group, with what it has accepted.
pub(crate) fn select(
    group: &str,
    words: &[String],
    alternatives: Vec<Alternative>,
) -> Result<(usize, Taken), SettingsError> {
    let mut tries: Vec<Taken> = alternatives.iter().map(|alternative| Taken::new(alternative.subs.clone())).collect();
    for word in words {
        let mut accepted = false;
        for taken in &mut tries {
            accepted |= taken.offer(word)?;
        }
        if !accepted {
            let known = alternatives.iter().flat_map(|alternative| &alternative.subs).map(|sub| sub.name);
            return Err(SettingsError::word(group, word, known));
        }
    }
    let fits = |(place, taken): &(usize, &Taken)| {
        taken.words == words.len() && taken.lacks_nothing() && (alternatives[*place].complete)(taken)
    };
    match tries.iter().enumerate().find(fits).map(|(place, _)| place) {
        Some(place) => Ok((place, tries.swap_remove(place))),
        None => Err(SettingsError::Unfit { group: group.to_owned(), usage: usage(group, &alternatives) }),
    }
}
