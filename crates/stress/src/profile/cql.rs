//! As much of CQL as it takes to find the name in a definition.

/// The name after `CREATE KEYSPACE` or `CREATE TABLE`, the part after the last dot, without quotes. `None` if the text
/// is no such statement.
pub(super) fn created(cql: &str, what: &[&str]) -> Option<String> {
    let mut words = Words { rest: cql };
    let is = |word: Option<Word>, name: &str| matches!(word, Some(Word::Bare(text)) if text.eq_ignore_ascii_case(name));
    if !is(words.next(), "create") {
        return None;
    }
    let Some(Word::Bare(kind)) = words.next() else { return None };
    if !what.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return None;
    }
    let mut name = words.next()?;
    if is(Some(name.clone()), "if") {
        // NOT, EXISTS
        words.next()?;
        words.next()?;
        name = words.next()?;
    }
    if words.next() == Some(Word::Sign('.')) {
        name = words.next()?;
    }
    match name {
        Word::Bare(text) => Some(text.to_lowercase()),
        Word::Quoted(text) => Some(text),
        Word::Sign(_) => None,
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Word {
    Bare(String),
    Quoted(String),
    Sign(char),
}

struct Words<'a> {
    rest: &'a str,
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("--") || self.rest.starts_with("//") {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                break;
            }
        }
        let first = self.rest.chars().next()?;
        if first == '"' {
            let (text, rest) = self.rest[1..].split_once('"')?;
            self.rest = rest;
            return Some(Word::Quoted(text.to_owned()));
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        if end == 0 {
            self.rest = &self.rest[first.len_utf8()..];
            return Some(Word::Sign(first));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Word::Bare(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_behind_comments_quotes_and_keyspaces() {
        for (cql, name) in [
            ("CREATE TABLE t (", Some("t")),
            ("create table if not exists Ks.T(", Some("t")),
            ("-- a table\n/* of ours */ CREATE COLUMNFAMILY \"Ks\".\"T\" (", Some("T")),
            ("CREATE TABLE", None),
            ("SELECT * FROM t", None),
            ("CREATE KEYSPACE k", None),
            ("CREATE TABLE \"t", None),
        ] {
            assert_eq!(created(cql, &["table", "columnfamily"]).as_deref(), name, "{cql}");
        }
    }
}
