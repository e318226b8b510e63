//! The text of a profile as values that are taken by key.

use std::{fmt, path::Path};

use brownout_yaml::{Document, Node, Span, nearest};

use super::{ProfileError, fetch::is_web};

/// A text and its tree.
pub(super) struct Source(Document);

impl Source {
    pub(super) fn new(file: &str, text: String) -> Result<Self, ProfileError> {
        Document::new(file, text).map(Source)
    }

    /// The directory to which relative names in the profile refer.
    pub(super) fn directory(&self) -> &Path {
        let file = self.0.file();
        // A slash in the query of a URI does not separate directories.
        let uri = file.to_str().filter(|place| is_web(place));
        let file = uri.and_then(|uri| uri.split(['?', '#']).next()).map_or(file, Path::new);
        file.parent().unwrap_or(Path::new(""))
    }

    /// The whole file.
    pub(super) fn root(&self) -> Result<Map<'_>, ProfileError> {
        Item { source: self, node: self.0.tree(), key: String::new() }.map()
    }
}

/// A value and its place in the file.
#[derive(Clone)]
pub(super) struct Item<'a> {
    source: &'a Source,
    node: &'a Node,
    key: String,
}

/// A mapping whose keys are taken one by one; keys left over are unknown.
pub(super) struct Map<'a> {
    item: Item<'a>,
    left: Vec<(&'a str, &'a Span, &'a Node)>,
    known: Vec<&'static str>,
}

impl<'a> Item<'a> {
    /// An error about this value.
    pub(super) fn complain(&self, message: impl Into<String>) -> ProfileError {
        self.source.0.complain(self.node.span(), &self.key, message)
    }

    /// The source it belongs to.
    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    /// Whether it is empty.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.node, Node::Scalar(scalar) if scalar.may_coerce() && matches!(scalar.as_str(), "" | "~" | "null"))
    }

    /// A text.
    pub(super) fn text(&self) -> Result<&'a str, ProfileError> {
        match self.node {
            Node::Scalar(scalar) => Ok(scalar.as_str()),
            Node::Mapping(_) => Err(self.complain("a single value belongs here, not keys with values below it")),
            Node::Sequence(_) => Err(self.complain("a single value belongs here, not a list")),
        }
    }

    /// A value that has a text form.
    pub(super) fn parsed<T: std::str::FromStr<Err: fmt::Display>>(&self) -> Result<T, ProfileError> {
        self.text()?.trim().parse().map_err(|error: T::Err| self.complain(error.to_string()))
    }

    /// A list; a single value is a list of one.
    pub(super) fn list(&self) -> Vec<Item<'a>> {
        match self.node {
            Node::Sequence(list) => list
                .iter()
                .enumerate()
                .map(|(place, node)| Item { source: self.source, node, key: format!("{}.{place}", self.key) })
                .collect(),
            _ => vec![self.clone()],
        }
    }

    /// Whether it has keys.
    pub(super) fn is_map(&self) -> bool {
        matches!(self.node, Node::Mapping(_))
    }

    /// Its keys and values.
    pub(super) fn map(&self) -> Result<Map<'a>, ProfileError> {
        match self.node {
            Node::Mapping(map) => Ok(Map {
                item: self.clone(),
                left: map.iter().map(|(key, value)| (key.as_str(), key.span(), value)).collect(),
                known: Vec::new(),
            }),
            _ => Err(self.complain("keys with values below it belong here, as in key: value")),
        }
    }
}

impl<'a> Map<'a> {
    /// Takes the value of a key, whose case, dashes and underscores do not matter. A key without a value counts as
    /// absent.
    pub(super) fn take(&mut self, name: &'static str) -> Result<Option<Item<'a>>, ProfileError> {
        self.known.push(name);
        let mut found: Option<Item<'a>> = None;
        let mut twice = None;
        self.left.retain(|(key, span, node)| {
            let is_it = plain(key) == plain(name);
            if is_it {
                if found.is_some() {
                    twice = Some((*key, *span));
                }
                found = Some(Item { source: self.item.source, node, key: dotted(&self.item.key, key) });
            }
            !is_it
        });
        if let Some((key, span)) = twice {
            return Err(self.item.source.0.complain(
                span,
                dotted(&self.item.key, key),
                format!("'{name}' is given twice"),
            ));
        }
        Ok(found.filter(|item| !item.is_nothing()))
    }

    /// Takes the text of a key.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, ProfileError> {
        self.take(name)?.map(|item| item.text()).transpose()
    }

    /// Takes a value that has a text form.
    pub(super) fn parsed<T: std::str::FromStr<Err: fmt::Display>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, ProfileError> {
        self.take(name)?.map(|item| item.parsed()).transpose()
    }

    /// All keys and values, where the keys are names that the user chooses.
    pub(super) fn entries(self) -> Vec<(&'a str, Item<'a>)> {
        let Item { source, key: above, .. } = self.item;
        self.left.into_iter().map(|(key, _, node)| (key, Item { source, node, key: dotted(&above, key) })).collect()
    }

    /// An error about the mapping as a whole.
    pub(super) fn complain(&self, message: impl Into<String>) -> ProfileError {
        self.item.complain(message)
    }

    /// An error about the first key that was not taken; `intro` begins with cassandra-stress's words, if it has this
    /// error.
    pub(super) fn finish(self, intro: &str) -> Result<(), ProfileError> {
        let Some((key, span, _)) = self.left.first() else { return Ok(()) };
        let mut message = format!("{intro}: {key}; the keys here are {}", self.known.join(", "));
        if let Some(nearest) = nearest(key, self.known.iter().copied()) {
            message.push_str(&format!("; did you mean '{nearest}'?"));
        }
        Err(self.item.source.0.complain(span, dotted(&self.item.key, key), message))
    }
}

fn dotted(above: &str, key: &str) -> String {
    if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") }
}

fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}
