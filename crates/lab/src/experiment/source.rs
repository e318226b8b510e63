//! From the text of an experiment file to its structs, with the place of every complaint.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

pub use brownout_yaml::FileError;
pub(crate) use brownout_yaml::one_of;
use brownout_yaml::{Document, Marker, Node, Span};
use marked_yaml::spanned_serde;
use serde::de::DeserializeOwned;

use super::{
    Experiment, FaultEntry,
    attached::Attached,
    tree::{first_step, place_of, scalar},
};

/// The text of an experiment, as a tree that knows its lines.
#[derive(Clone)]
pub struct Source {
    pub(super) document: Document,
    /// `--set` paths: their values have no line.
    pub(super) set: Vec<String>,
    pub(super) attached: Attached,
}

impl Source {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            let message = format!("cannot be read: {error}; ready-made ones are in experiments/");
            FileError::without_place(file, "", message)
        })?;
        Source::from_text(file, text)
    }

    /// Takes the text of `file`.
    pub fn from_text(file: &Path, text: String) -> Result<Self, FileError> {
        let document = Document::new(file, text)?;
        Ok(Source { document, set: Vec::new(), attached: Attached::default() })
    }

    /// The text as given.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// The file's path as given.
    pub fn file(&self) -> &Path {
        self.document.file()
    }

    /// The text of a file that the experiment, or a file that it names, names: see [`Source::beside`].
    ///
    /// # Errors
    /// It cannot be read.
    pub fn attachment(&self, path: &Path) -> io::Result<String> {
        self.attached.read(path)
    }

    /// A path that the experiment names, from where the experiment file is.
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.file().parent().unwrap_or(Path::new("")).join(path)
    }

    /// All files that were read so far because the experiment names them: texts by path.
    pub fn attached(&self) -> BTreeMap<String, String> {
        self.attached.files()
    }

    /// With these files, and no others, to be named: the experiment as it was read elsewhere.
    pub fn with_attached(mut self, files: BTreeMap<String, String>) -> Self {
        self.attached = Attached::sealed(files);
        self
    }

    /// The sections that the file has, in its order.
    pub fn sections(&self) -> Vec<&str> {
        self.document.tree().as_mapping().iter().flat_map(|map| map.iter()).map(|(key, _)| key.as_str()).collect()
    }

    /// Replaces one value, as `--set faults.0.slow.delay=10ms` asks; creates missing keys of mappings.
    pub fn set(&mut self, assignment: &str) -> Result<(), FileError> {
        let (path, value) = assignment
            .split_once('=')
            .map(|(path, value)| (path.trim(), value.trim()))
            .filter(|(path, _)| !path.is_empty())
            .ok_or_else(|| {
                self.complain("", format!("--set '{assignment}' is not KEY=VALUE, such as --set trials=3"))
            })?;
        // A value may itself be YAML: --set 'phases={warm-up: 5s, baseline: 5s}'
        // The reader only takes a mapping at the top.
        let parsed = brownout_yaml::parse(&format!("value: {value}")).ok();
        let parsed = parsed.as_ref().and_then(|tree| tree.as_mapping()?.get_node("value"));
        let value = match parsed {
            Some(tree @ (Node::Mapping(_) | Node::Sequence(_))) => tree.clone(),
            // Quotes belong to YAML, not to the value.
            Some(Node::Scalar(text)) => scalar(Span::new_blank(), text.as_str()),
            _ => scalar(Span::new_blank(), value),
        };
        let place = place_of(self.document.tree_mut(), path);
        *place.map_err(|message| FileError::without_place("--set", path, message))? = value;
        self.set.push(path.to_owned());
        Ok(())
    }

    /// The structs of the file.
    ///
    /// On ground that is not a lab's, with what was found there.
    pub fn experiment(&self) -> Result<Experiment, FileError> {
        self.check_fault_kinds()?;
        let mut experiment: Experiment = self.structs(self.document.tree(), "")?;
        self.put_on_ground(&mut experiment)?;
        Ok(experiment)
    }

    /// The structs of what stands below a key.
    pub(super) fn structs<T: DeserializeOwned>(&self, node: &Node, key: &str) -> Result<T, FileError> {
        spanned_serde::from_node(node).map_err(|error| {
            let path = error.path().filter(|path| *path != ".").unwrap_or_default().replace(['[', ']'], ".");
            let path = format!("{key}.{path}").replace("..", ".").trim_matches('.').to_owned();
            let error = error.into_inner();
            let (message, key) = match &error {
                spanned_serde::Error::UnknownFieldError(field, known, _) => {
                    // The path ends in the unknown key itself in some versions of the reader, in its parent in others.
                    let parent = path.strip_suffix(field.as_str()).unwrap_or(&path).trim_end_matches('.');
                    let key = if parent.is_empty() { field.clone() } else { format!("{parent}.{field}") };
                    (
                        format!("unknown key '{field}'; {}", one_of("the keys here are", known.iter().copied(), field)),
                        key,
                    )
                }
                other => (for_people(&strip_place(&other.to_string())), path),
            };
            let unknown = matches!(error, spanned_serde::Error::UnknownFieldError(..));
            let mut complaint = self.complain_at(&key, message, unknown);
            if complaint.place.is_none() && !self.is_set(&key) {
                complaint = self.document.complain_at(error.start_mark().as_ref(), key, complaint.message);
            }
            complaint
        })
    }

    /// serde would only list all keys; the nearest kind is what a person needs.
    fn check_fault_kinds(&self) -> Result<(), FileError> {
        let faults = self.document.tree().as_mapping().and_then(|map| map.get_sequence("faults"));
        for (index, fault) in faults.iter().flat_map(|list| list.iter()).enumerate() {
            let keys: Vec<&str> =
                fault.as_mapping().iter().flat_map(|map| map.iter()).map(|(key, _)| key.as_str()).collect();
            let mut kinds = keys.iter().filter(|key| !FaultEntry::TIMING.contains(key));
            let (first, second) = (kinds.next(), kinds.next());
            if let Some(unknown) = [first, second].into_iter().flatten().find(|kind| !FaultEntry::KINDS.contains(kind))
            {
                let known = FaultEntry::KINDS.iter().chain(FaultEntry::TIMING).copied();
                let message = format!("unknown fault '{unknown}'; {}", one_of("the faults are", known, unknown));
                return Err(self.complain_at(&format!("faults.{index}.{unknown}"), message, true));
            }
            if first.is_none() || second.is_some() {
                let message =
                    "a fault is one word with its values, such as slow: { host: n2, delay: 100ms }, and beside \
                     it start, length, flap or ramp"
                        .to_owned();
                return Err(self.complain(&format!("faults.{index}"), message));
            }
        }
        Ok(())
    }

    /// The value of a dotted key; none if the file does not have it.
    pub(crate) fn node(&self, key: &str) -> Option<&Node> {
        let mut node = self.document.tree();
        let mut rest = Some(key);
        while let Some(left) = rest {
            let (step, after) = first_step(node, left);
            rest = after;
            node = match node {
                Node::Mapping(map) => map.get_node(step)?,
                Node::Sequence(list) => list.get(step.parse::<usize>().ok()?)?,
                Node::Scalar(_) => return None,
            };
        }
        Some(node)
    }

    /// A complaint about the value of a dotted key.
    pub fn complain(&self, key: &str, message: String) -> FileError {
        self.complain_at(key, message, false)
    }

    /// The same; `at_keys` points at the key instead of at its value.
    fn complain_at(&self, key: &str, message: String, at_keys: bool) -> FileError {
        if self.is_set(key) {
            return FileError::without_place("--set", key, message);
        }
        self.document.complain_at(self.marker(key, at_keys).as_ref(), key, message)
    }

    fn is_set(&self, key: &str) -> bool {
        self.set
            .iter()
            .any(|set| key == set || key.strip_prefix(set.as_str()).is_some_and(|rest| rest.starts_with('.')))
    }

    /// The marker of a dotted key: of its value if it is on the same line, else of the nearest key that exists.
    fn marker(&self, key: &str, at_keys: bool) -> Option<Marker> {
        let mut node = self.document.tree();
        let mut marker = None;
        let mut rest = Some(key).filter(|key| !key.is_empty());
        while let Some(left) = rest {
            let (step, after) = first_step(node, left);
            rest = after;
            let next = match node {
                Node::Mapping(map) => map.iter().find(|(name, _)| name.as_str() == step).map(|(name, value)| {
                    // A block value begins on a later line than its key: point at the key then.
                    let at = if value.as_scalar().is_some() && !at_keys { value.span() } else { name.span() };
                    (value, at.start().copied())
                }),
                Node::Sequence(list) => step
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| list.get(index))
                    .map(|value| (value, value.span().start().copied())),
                Node::Scalar(_) => None,
            };
            let Some((value, at)) = next else { break };
            marker = at.or(marker);
            node = value;
        }
        marker
    }
}

/// The reader's messages may begin or end with a place of their own, which ours already says.
fn strip_place(message: &str) -> String {
    let mut text = message;
    while let Some((head, rest)) = text.split_once(": ") {
        if head.is_empty() || !head.chars().all(|c| c.is_ascii_digit() || c == ':') {
            break;
        }
        text = rest;
    }
    text.to_owned()
}

/// serde names our structs; a person knows only keys.
fn for_people(message: &str) -> String {
    match message.split_once("expected struct ") {
        Some((what, _)) => format!("{what}expected keys with values below it, as in {{ key: value }}"),
        None => message.to_owned(),
    }
}
