//! What a person may have meant by a name that is none.

/// The name that resembles `meant` most, if one does; case does not matter.
pub fn nearest<'a>(meant: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let meant = meant.to_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &meant), name))
        .min()
        .filter(|(distance, name)| *distance <= (name.chars().count().max(meant.chars().count()) / 2).max(1))
        .map(|(_, name)| name.to_owned())
}

/// `the hosts are a, b, c; did you mean 'b'?`
pub fn one_of<'a>(intro: &str, known: impl Iterator<Item = &'a str>, meant: &str) -> String {
    let known: Vec<&str> = known.collect();
    let mut text = format!("{intro} {}", known.join(", "));
    if let Some(name) = nearest(meant, known.into_iter()) {
        text.push_str(&format!("; did you mean '{name}'?"));
    }
    text
}
