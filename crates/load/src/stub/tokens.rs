//! Splits CQL into words, as far as the stub needs them.

/// A word of CQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword, a name or a number; in lower case unless it was quoted.
    Word(String),
    /// A text in single quotes.
    Text(String),
    /// `?` or `:name`.
    Marker,
    /// Anything else.
    Symbol(char),
}

/// Splits a statement into words. What cannot be parsed becomes symbols.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            _ if first.is_whitespace() => {}
            '?' => tokens.push(Token::Marker),
            ':' if rest.peek().is_some_and(|c| is_name(*c)) => {
                while rest.next_if(|c| is_name(*c)).is_some() {}
                tokens.push(Token::Marker);
            }
            '\'' | '"' => {
                let mut word = String::new();
                while let Some(c) = rest.next() {
                    // A quote inside the text is doubled.
                    if c == first && rest.next_if_eq(&first).is_none() {
                        break;
                    }
                    word.push(c);
                }
                tokens.push(if first == '"' { Token::Word(word) } else { Token::Text(word) });
            }
            _ if is_name(first) => {
                let mut word = String::from(first);
                while let Some(c) = rest.next_if(|c| is_name(*c)) {
                    word.push(c);
                }
                tokens.push(Token::Word(word.to_ascii_lowercase()));
            }
            _ => tokens.push(Token::Symbol(first)),
        }
    }
    tokens
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads words from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [Token]);

impl<'a> Cursor<'a> {
    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.0.first()
    }

    pub(super) fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.next();
                Some(word)
            }
            _ => None,
        }
    }

    /// Skips these words if they come next.
    pub(super) fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.0.len() >= words.len()
            && self.0.iter().zip(words).all(|(token, word)| matches!(token, Token::Word(found) if found == word));
        if found {
            self.0 = &self.0[words.len()..];
        }
        found
    }

    /// Skips this symbol if it comes next.
    pub(super) fn symbol(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        if found {
            self.next();
        }
        found
    }

    /// `keyspace.name`, or a name alone.
    pub(super) fn name(&mut self) -> Option<(Option<&'a str>, &'a str)> {
        let first = self.word()?;
        if self.symbol('.') { Some((Some(first), self.word()?)) } else { Some((None, first)) }
    }
}
