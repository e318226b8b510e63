//! The tables of a README, between `<!-- table: NAME -->` and `<!-- end -->`.

use crate::StudyError;

const FROM: &str = "<!-- table: ";
const CLOSED: &str = " -->";
const END: &str = "<!-- end -->";

/// The text with each table made anew.
///
/// # Errors
/// A marker has no end, or names a table that `table` does not know (none).
pub fn filled(text: &str, table: impl Fn(&str) -> Option<String>) -> Result<String, StudyError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(FROM) {
        let (before, marked) = rest.split_at(at);
        let wrong = |why: &str| {
            let line = marked.lines().next().unwrap_or_default();
            StudyError::Marker(format!("{line}: {why}"))
        };
        let named = &marked[FROM.len()..];
        let name = named.find(CLOSED).map(|end| &named[..end]).filter(|name| !name.contains('\n'));
        let name = name.ok_or_else(|| wrong("the marker is not closed"))?;
        let old = &named[name.len() + CLOSED.len()..];
        let end = old.find(END).ok_or_else(|| wrong("there is no <!-- end --> after it"))?;
        if old[..end].contains(FROM) {
            return Err(wrong("another table begins before its end"));
        }
        let made = table(name).ok_or_else(|| wrong("there is no such table"))?;
        out.push_str(before);
        out.push_str(&format!("{FROM}{name}{CLOSED}\n{made}{END}"));
        rest = &old[end + END.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The first line in which two texts differ, from 1, with what it is and what it should be.
pub fn first_difference(is: &str, should: &str) -> Option<(usize, String, String)> {
    let (mut is, mut should) = (is.lines(), should.lines());
    for number in 1.. {
        match (is.next(), should.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => return Some((number, one.unwrap_or("").to_owned(), other.unwrap_or("").to_owned())),
        }
    }
    None
}
