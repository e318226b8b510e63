//! The words of CQL, as far as definitions of types and tables need them.

use super::TypeError;

/// Words that a bare name cannot be (Cassandra's reserved keywords).
pub(super) const RESERVED: [&str; 54] = [
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "default",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "mbean",
    "mbeans",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "replace",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "where",
];

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare name or keyword, in lower case.
    Word(String),
    /// A name in double quotes, as written.
    Quoted(String),
    /// A text in single quotes (or between `$$`).
    Text(String),
    /// A number, blob or UUID constant, as written.
    Number(String),
    /// Any other character.
    Sign(char),
    /// The end.
    End,
}

impl Token {
    fn found(&self) -> String {
        match self {
            Token::Word(word) | Token::Number(word) => format!("'{word}'"),
            Token::Quoted(name) => format!("\"{name}\""),
            Token::Text(text) => format!("the text '{text}'"),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// A text, cut in words, and how far it is read.
pub(super) struct Words<'a> {
    text: &'a str,
    words: Vec<(usize, Token)>,
    next: usize,
}

impl<'a> Words<'a> {
    /// Cut `text`; comments (`--`, `//`, `/* */`) are left out.
    pub(super) fn new(text: &'a str) -> Result<Self, TypeError> {
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = if first.is_whitespace() {
                first.len_utf8()
            } else if rest.starts_with("--") || rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|end| end + 2).ok_or_else(|| open(text, at, "the comment's end"))?
            } else {
                let (token, length) = word(text, at)?;
                words.push((at, token));
                length
            };
            at += length;
        }
        words.push((text.len(), Token::End));
        Ok(Words { text, words, next: 0 })
    }

    /// The word that comes next.
    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    /// The word `ahead` places after the next.
    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.words.len() - 1;
        &self.words[(self.next + ahead).min(last)].1
    }

    /// Take the next word.
    pub(super) fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.words.len() - 1);
        token
    }

    /// Take the next word if it is this sign.
    pub(super) fn sign(&mut self, sign: char) -> bool {
        let is = *self.peek() == Token::Sign(sign);
        if is {
            self.take();
        }
        is
    }

    /// Take the next word if it is this keyword.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let is = matches!(self.peek(), Token::Word(word) if word == keyword);
        if is {
            self.take();
        }
        is
    }

    /// Take the next words if they are these keywords, all of them.
    pub(super) fn keywords(&mut self, keywords: &[&str]) -> bool {
        let all = keywords
            .iter()
            .enumerate()
            .all(|(place, keyword)| matches!(self.peek_at(place), Token::Word(word) if word == keyword));
        if all {
            for _ in keywords {
                self.take();
            }
        }
        all
    }

    /// The sign must come next.
    pub(super) fn expect_sign(&mut self, sign: char) -> Result<(), TypeError> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    /// The keywords must come next.
    pub(super) fn expect_keywords(&mut self, keywords: &[&str]) -> Result<(), TypeError> {
        if self.keywords(keywords) { Ok(()) } else { Err(self.unexpected(&keywords.join(" ").to_uppercase())) }
    }

    /// A name must come next: bare (in lower case then) or quoted.
    pub(super) fn name(&mut self, what: &str) -> Result<String, TypeError> {
        match self.peek() {
            Token::Word(name) | Token::Quoted(name) => {
                let name = name.clone();
                self.take();
                Ok(name)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Nothing may come next but semicolons.
    pub(super) fn end(&mut self) -> Result<(), TypeError> {
        while self.sign(';') {}
        if *self.peek() == Token::End { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    /// The error for what comes next.
    pub(super) fn unexpected(&self, expected: &str) -> TypeError {
        let (at, token) = &self.words[self.next.min(self.words.len() - 1)];
        TypeError::Syntax { text: self.text.to_owned(), at: *at, found: token.found(), expected: expected.to_owned() }
    }

    /// The whole text.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }
}

fn open(text: &str, at: usize, expected: &str) -> TypeError {
    TypeError::Syntax { text: text.to_owned(), at, found: "the end".to_owned(), expected: expected.to_owned() }
}

/// The word that starts at `at`, and its length in bytes.
fn word(text: &str, at: usize) -> Result<(Token, usize), TypeError> {
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
    let run = |allowed: fn(char) -> bool| rest.find(|c| !allowed(c)).unwrap_or(rest.len());
    match first {
        '"' => quoted(rest, '"').map(|(name, length)| (Token::Quoted(name), length)),
        '\'' => quoted(rest, '\'').map(|(text, length)| (Token::Text(text), length)),
        '$' if rest.starts_with("$$") => {
            rest[2..].find("$$").map(|end| (Token::Text(rest[2..2 + end].to_owned()), end + 4))
        }
        _ if first.is_alphabetic() || first == '_' => {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            Some((Token::Word(rest[..length].to_lowercase()), length))
        }
        _ if first.is_ascii_digit() || (first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) => {
            let length = 1 + rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '.')).unwrap_or(rest.len() - 1);
            Some((Token::Number(rest[..length].to_owned()), length))
        }
        other => Some((Token::Sign(other), other.len_utf8())),
    }
    .ok_or_else(|| open(text, at, "the closing quote"))
}

/// A text between `mark`s, which are doubled inside, and the length of it all.
fn quoted(rest: &str, mark: char) -> Option<(String, usize)> {
    let mut inside = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c != mark {
            inside.push(c);
        } else if characters.next_if(|(_, next)| *next == mark).is_some() {
            inside.push(mark);
        } else {
            return Some((inside, at + 1));
        }
    }
    None
}
