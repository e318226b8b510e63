//! A file's text and its tree.

use std::path::{Path, PathBuf};

use marked_yaml::{Marker, Node, Span};

use crate::{
    FileError,
    builder::{Wrong, build},
};

/// A text and its tree.
#[derive(Debug, Clone)]
pub struct Document {
    file: PathBuf,
    text: String,
    tree: Node,
}

impl Document {
    /// Reads the text of `file`. The outermost value is a mapping; an empty text is one without keys.
    ///
    /// # Errors
    /// The text is no YAML, holds more than one document, a key twice in one mapping, a key that is no text or a tag of
    /// a type that is not YAML's own; its values are nested more than 100 deep; aliases stand for more than 4 MiB.
    pub fn new(file: impl Into<PathBuf>, text: String) -> Result<Self, FileError> {
        let file = file.into();
        match build(&text) {
            Ok(tree) => Ok(Document { file, text, tree }),
            Err(Wrong { mark, message }) => {
                let (place, excerpt) = place_of(&text, Some(&mark));
                let message = format!("not valid YAML: {message}");
                Err(FileError { file, place, key: String::new(), message, excerpt })
            }
        }
    }

    /// The file, as it was named.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The text as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The outermost mapping.
    pub fn tree(&self) -> &Node {
        &self.tree
    }

    /// The same, to be changed. What is changed has no place unless it is given one.
    pub fn tree_mut(&mut self) -> &mut Node {
        &mut self.tree
    }

    /// A complaint about the value of a dotted key, which stands where `span` begins.
    pub fn complain(&self, span: &Span, key: impl Into<String>, message: impl Into<String>) -> FileError {
        self.complain_at(span.start(), key, message)
    }

    /// A complaint about a place; none where there is no marker.
    pub fn complain_at(
        &self,
        marker: Option<&Marker>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> FileError {
        let (place, excerpt) = place_of(&self.text, marker);
        FileError { file: self.file.clone(), place, key: key.into(), message: message.into(), excerpt }
    }
}

/// Reads a text that is no file's, such as a value on a command line: `a: 1`. See [`Document::new`].
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Node, String> {
    build(text).map_err(|wrong| wrong.message)
}

fn place_of(text: &str, marker: Option<&Marker>) -> (Option<(usize, usize)>, Option<String>) {
    let Some(marker) = marker else { return (None, None) };
    let line = marker.line().max(1);
    let excerpt = text.lines().nth(line - 1).map(|line| line.trim_end().to_owned());
    (Some((line, marker.column().max(1))), excerpt)
}
