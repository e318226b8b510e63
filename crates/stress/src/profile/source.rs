//! The text of a profile as a tree that knows its lines, and complaints about it.

use std::{fmt, path::Path};

use marked_yaml::{LoadError, Marker, Node, Span, loader::LoaderOptions};

use crate::settings::nearest;

/// What is wrong with a profile, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// The file, as it was named.
    pub file: String,
    /// Line and column, from 1; none for what is not in the file.
    pub place: Option<(usize, usize)>,
    /// The key, dotted: `queries.simple1.fields`; empty for the whole file.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The line itself, to be shown below.
    pub excerpt: Option<String>,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let (Some(excerpt), Some((line, column))) = (&self.excerpt, self.place) {
            let gutter = line.to_string().len();
            write!(f, "\n  {line} | {excerpt}\n  {:gutter$} | {:>column$}", "", "^")?;
        }
        Ok(())
    }
}

impl std::error::Error for ProfileError {}

/// Columns; the reader would run out of stack on what is nested without bound.
const DEEPEST: usize = 400;

/// A text and its tree.
pub(super) struct Source {
    pub(super) file: String,
    text: String,
    tree: Node,
}

impl Source {
    pub(super) fn new(file: &str, text: String) -> Result<Self, ProfileError> {
        let whole = |place, message: String| {
            let excerpt = place_of(&text, place);
            let (place, excerpt) = excerpt.map_or((None, None), |(place, excerpt)| (Some(place), excerpt));
            ProfileError { file: file.to_owned(), place, key: String::new(), message, excerpt }
        };
        if let Some(line) = too_deep(&text) {
            let place = Marker::new(0, 0, line, 1);
            return Err(whole(Some(&place), format!("indented by more than {DEEPEST} columns; a profile needs 10")));
        }
        let options = LoaderOptions::default().error_on_duplicate_keys(true);
        match marked_yaml::parse_yaml_with_options(0, &text, options) {
            Ok(tree) => Ok(Source { file: file.to_owned(), text, tree }),
            Err(error) => {
                let said = error.to_string();
                // The reader's messages begin with "line:column: ", which the place already says.
                let said = match marker(&error) {
                    Some(_) => said.split_once(": ").map_or(said.as_str(), |(_, rest)| rest),
                    None => &said,
                };
                let remedy = match &error {
                    LoadError::UnexpectedAnchor(_) => "; write out what the anchor stands for",
                    _ => "",
                };
                Err(whole(marker(&error), format!("not valid YAML: {}{remedy}", lower_first(said))))
            }
        }
    }

    /// The folder that relative names in the profile are meant from.
    pub(super) fn folder(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }

    /// The whole file.
    pub(super) fn root(&self) -> Result<Map<'_>, ProfileError> {
        Item { source: self, node: &self.tree, key: String::new() }.map()
    }
}

/// A value and where it stands.
#[derive(Clone)]
pub(super) struct Item<'a> {
    source: &'a Source,
    node: &'a Node,
    key: String,
}

/// A mapping whose keys are taken one by one; what is left is unknown.
pub(super) struct Map<'a> {
    item: Item<'a>,
    left: Vec<(&'a str, &'a Span, &'a Node)>,
    known: Vec<&'static str>,
}

impl<'a> Item<'a> {
    /// A complaint about this value.
    pub(super) fn complain(&self, message: impl Into<String>) -> ProfileError {
        self.source.complain(self.node.span(), &self.key, message)
    }

    /// Where it stands.
    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    /// Whether nothing is written there.
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
    /// Takes the value of a key, whose case, dashes and underscores do not matter. What is there, but empty, is not there.
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
            return Err(self.item.source.complain(
                span,
                &dotted(&self.item.key, key),
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

    /// A complaint about the mapping as a whole.
    pub(super) fn complain(&self, message: impl Into<String>) -> ProfileError {
        self.item.complain(message)
    }

    /// A complaint about the first key that nobody took; `intro` begins with the words of cassandra-stress, if it has any.
    pub(super) fn finish(self, intro: &str) -> Result<(), ProfileError> {
        let Some((key, span, _)) = self.left.first() else { return Ok(()) };
        let mut message = format!("{intro}: {key}; the keys here are {}", self.known.join(", "));
        if let Some(nearest) = nearest(key, self.known.iter().copied()) {
            message.push_str(&format!("; did you mean '{nearest}'?"));
        }
        Err(self.item.source.complain(span, &dotted(&self.item.key, key), message))
    }
}

impl Source {
    fn complain(&self, span: &Span, key: &str, message: impl Into<String>) -> ProfileError {
        let found = place_of(&self.text, span.start());
        let (place, excerpt) = found.map_or((None, None), |(place, excerpt)| (Some(place), excerpt));
        ProfileError { file: self.file.clone(), place, key: key.to_owned(), message: message.into(), excerpt }
    }
}

fn dotted(above: &str, key: &str) -> String {
    if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") }
}

fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn place_of(text: &str, marker: Option<&Marker>) -> Option<((usize, usize), Option<String>)> {
    let marker = marker?;
    let line = marker.line().max(1);
    let excerpt = text.lines().nth(line - 1).map(|line| line.trim_end().to_owned());
    Some(((line, marker.column().max(1)), excerpt))
}

fn marker(error: &LoadError) -> Option<&Marker> {
    match error {
        LoadError::TopLevelMustBeMapping(marker)
        | LoadError::TopLevelMustBeSequence(marker)
        | LoadError::UnexpectedAnchor(marker)
        | LoadError::MappingKeyMustBeScalar(marker)
        | LoadError::UnexpectedTag(marker)
        | LoadError::ScanError(marker, _) => Some(marker),
        _ => None,
    }
}

/// The line whose content begins further right than [`DEEPEST`] allows, if there is one. Lists and mappings written in
/// lines nest at most once in a column; the reader itself bounds those in brackets.
fn too_deep(text: &str) -> Option<usize> {
    let indent = |line: &str| line.bytes().take_while(|byte| b" \t-?:".contains(byte)).count();
    text.lines().position(|line| indent(line) > DEEPEST).map(|place| place + 1)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
