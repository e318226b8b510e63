//! Options of a group, and the choice among its alternatives.

use brownout_generate::distribution::{RatioSpec, Spec};
use brownout_yaml::one_of;

use super::{super::SettingsError, Pattern};

/// A sub-option: `key=value`, a flag, a bare value, a distribution, or `name(k=v,…)`.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    /// The beginning of a word: `threads=`, `no-warmup`; nothing for bare values; the bare name for `name(…)`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<String>,
    pub(crate) required: bool,
    /// Its help text.
    pub(crate) help: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Value(Pattern),
    Distribution,
    Ratio,
    Multi { subs: Vec<Sub>, extra: Extra },
}

/// What a `name(…)` accepts besides its known parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Nothing.
    Refused,
    /// Any `key=value`, kept in order.
    Pairs,
    /// The same, where a key may be repeated.
    Sequence,
    /// Anything at all, kept as `(text, "")` where it is not `key=value`.
    Words,
}

/// A value or flag.
pub(crate) fn value(name: &'static str, pattern: Pattern, help: &'static str) -> Sub {
    Sub { name, kind: Kind::Value(pattern), default: None, required: false, help }
}

/// A distribution.
pub(crate) fn distribution(name: &'static str, help: &'static str) -> Sub {
    Sub { name, kind: Kind::Distribution, default: None, required: false, help }
}

/// A distribution over a divisor.
pub(crate) fn ratio(name: &'static str, help: &'static str) -> Sub {
    Sub { name, kind: Kind::Ratio, default: None, required: false, help }
}

/// `name(…)`.
pub(crate) fn multi(name: &'static str, subs: Vec<Sub>, extra: Extra, help: &'static str) -> Sub {
    Sub { name, kind: Kind::Multi { subs, extra }, default: None, required: false, help }
}

impl Sub {
    /// Sets a default.
    pub(crate) fn or(mut self, default: impl Into<String>) -> Sub {
        self.default = Some(default.into());
        self
    }

    /// Makes it mandatory.
    pub(crate) fn required(mut self) -> Sub {
        self.required = true;
        self
    }
}

/// One way to write a group.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    pub(crate) subs: Vec<Sub>,
    /// Whether what was taken suffices, beyond the mandatory options.
    pub(crate) complete: fn(&Taken) -> bool,
}

impl Alternative {
    pub(crate) fn new(subs: Vec<Sub>) -> Self {
        Alternative { subs, complete: |_| true }
    }

    pub(crate) fn complete(mut self, complete: fn(&Taken) -> bool) -> Self {
        self.complete = complete;
        self
    }

    /// The result if nothing was given: all defaults.
    pub(crate) fn untouched(self) -> Taken {
        Taken::new(self.subs)
    }
}

#[derive(Debug, Clone)]
enum Given {
    Text(String),
    Multi(Taken),
}

/// What an alternative, or the inside of a `name(…)`, has accepted.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    subs: Vec<Sub>,
    given: Vec<Option<Given>>,
    pairs: Vec<(String, String)>,
    pub(super) words: usize,
}

impl Taken {
    pub(super) fn new(subs: Vec<Sub>) -> Self {
        Taken { given: vec![None; subs.len()], subs, pairs: Vec::new(), words: 0 }
    }

    /// Offers a word to every option in turn.
    pub(super) fn offer(&mut self, word: &str) -> Result<bool, SettingsError> {
        for (sub, given) in self.subs.iter().zip(&mut self.given) {
            if let Kind::Multi { subs, extra } = &sub.kind {
                let Some(inside) = brackets(sub.name, word) else { continue };
                let mut taken = match given.take() {
                    Some(Given::Multi(taken)) => taken,
                    _ => Taken::new(subs.clone()),
                };
                taken.fill(sub.name, word, inside, *extra)?;
                *given = Some(Given::Multi(taken));
            } else {
                let Some(rest) = after_prefix(sub.name, word) else { continue };
                match sub.kind {
                    Kind::Value(pattern) if given.is_some() => {
                        let _ = pattern;
                        return Err(SettingsError::Twice { option: sub.name.to_owned() });
                    }
                    Kind::Value(pattern) if !pattern.fits(rest) => {
                        return Err(SettingsError::Value {
                            option: sub.name.to_owned(),
                            value: rest.to_owned(),
                            pattern,
                        });
                    }
                    _ => *given = Some(Given::Text(rest.to_owned())),
                }
            }
            self.words += 1;
            return Ok(true);
        }
        Ok(false)
    }

    /// The inside of `name(…)`. A comma at its end is ignored, as in cassandra-stress.
    fn fill(&mut self, name: &str, word: &str, inside: &str, extra: Extra) -> Result<(), SettingsError> {
        let wrong = |what: &str, remedy: String| SettingsError::Multi {
            option: name.to_owned(),
            what: what.to_owned(),
            remedy,
        };
        let inside = inside.strip_suffix(',').unwrap_or(inside);
        if inside.is_empty() {
            return Ok(());
        }
        for part in parts(inside) {
            if part.is_empty() {
                return Err(wrong(word, "parts are separated by single commas".to_owned()));
            }
            if self.offer(part)? {
                continue;
            }
            let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            match (pair, extra) {
                (Some((key, value)), Extra::Pairs | Extra::Sequence | Extra::Words) if !value.contains('=') => {
                    if extra != Extra::Sequence && self.pairs.iter().any(|(known, _)| known == key) {
                        return Err(SettingsError::PairTwice { key: key.to_owned() });
                    }
                    self.pairs.push((key.to_owned(), value.to_owned()));
                }
                (_, Extra::Words) => self.pairs.push((part.to_owned(), String::new())),
                _ => {
                    let known = self.subs.iter().map(|sub| sub.name);
                    let remedy = if self.subs.is_empty() {
                        "its parts are written as key=value".to_owned()
                    } else {
                        one_of("it takes", known, part.split_inclusive('=').next().unwrap_or(part))
                    };
                    return Err(wrong(part, remedy));
                }
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<(&Sub, Option<&Given>)> {
        let place = self.subs.iter().position(|sub| sub.name == name)?;
        Some((&self.subs[place], self.given[place].as_ref()))
    }

    /// The user's value.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        match self.find(name)?.1? {
            Given::Text(text) => Some(text),
            Given::Multi(_) => None,
        }
    }

    /// The user's value, or the default.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.given(name).or_else(|| self.find(name)?.0.default.as_deref())
    }

    /// The same for options with a default.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a flag was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// The inside of `name(…)`, if it was given.
    pub(crate) fn multi(&self, name: &str) -> Option<&Taken> {
        match self.find(name)?.1? {
            Given::Multi(taken) => Some(taken),
            Given::Text(_) => None,
        }
    }

    /// The `key=value` pairs that no option accepted.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// A distribution; `place` says where it was given, for messages: `-pop`.
    pub(crate) fn spec(&self, place: &str, name: &str) -> Result<Option<Spec>, SettingsError> {
        let parse = |text: &str| {
            text.parse::<Spec>().map_err(|error| SettingsError::Distribution {
                error,
                option: format!("{place} {name}").trim().to_owned(),
            })
        };
        self.get(name).map(parse).transpose()
    }

    /// A ratio; `place` as for [`Taken::spec`].
    pub(crate) fn ratio(&self, place: &str, name: &str) -> Result<Option<RatioSpec>, SettingsError> {
        let parse = |text: &str| {
            text.parse::<RatioSpec>().map_err(|error| SettingsError::Distribution {
                error,
                option: format!("{place} {name}").trim().to_owned(),
            })
        };
        self.get(name).map(parse).transpose()
    }

    pub(super) fn lacks_nothing(&self) -> bool {
        self.subs.iter().zip(&self.given).all(|(sub, given)| !sub.required || given.is_some())
    }

    /// How cassandra-stress shows options as one line: `name=value; flag:*set*; `.
    pub(crate) fn shown(&self) -> String {
        let mut text = String::new();
        for sub in &self.subs {
            if sub.name.ends_with(['=', '<', '>']) {
                text.push_str(&format!("{}{}; ", sub.name, self.get(sub.name).unwrap_or("null")));
            } else {
                text.push_str(&format!("{}:{}; ", sub.name, if self.flag(sub.name) { "*set*" } else { "*not set*" }));
            }
        }
        text
    }
}

/// The rest after a prefix, regardless of case.
fn after_prefix<'a>(prefix: &str, word: &'a str) -> Option<&'a str> {
    let head = word.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &word[prefix.len()..])
}

/// The inside of `name(…)`.
fn brackets<'a>(name: &str, word: &'a str) -> Option<&'a str> {
    after_prefix(name, word)?.strip_prefix('(')?.strip_suffix(')')
}

/// Splits at commas, except those inside of brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from) = (0usize, 0);
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
