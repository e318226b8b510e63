//! As much of a CQL parser as it takes to find the name in a definition, and what a query selects.

/// The name after `CREATE KEYSPACE` or `CREATE TABLE`, the part after the last dot, without quotes. `None` if the text
/// is no such statement.
pub(super) fn created(cql: &str, what: &[&str]) -> Option<String> {
    let mut words = Words::of(cql);
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
        Word::Text | Word::Sign(_) => None,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A name, a keyword or a number.
    Bare(String),
    /// In double quotes, without them.
    Quoted(String),
    /// A text constant, whatever its content.
    Text,
    Sign(char),
}

impl Word {
    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Word::Bare(text) if text.eq_ignore_ascii_case(keyword))
    }

    /// The name it stands for, as stored in the schema.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Word::Bare(text) if !text.starts_with(|first: char| first.is_ascii_digit()) => Some(text.to_lowercase()),
            Word::Quoted(text) => Some(text.clone()),
            _ => None,
        }
    }
}

pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn of(cql: &'a str) -> Self {
        Words { rest: cql }
    }
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
        for quote in ["'", "$$"] {
            if let Some(text) = self.rest.strip_prefix(quote) {
                self.rest = text.split_once(quote).map_or("", |(_, rest)| rest);
                return Some(Word::Text);
            }
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
