//! `-graph`

use std::path::PathBuf;

use super::{
    CommandKind, SettingsError,
    grammar::{Alternative, Pattern, select, value},
    number::null,
};

/// The page with the run's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The page; a test is added if it exists.
    pub file: Option<PathBuf>,
    /// Name of what is being tested.
    pub revision: String,
    /// Title of the page; `None`: a title with the date.
    pub title: Option<String>,
    /// Name of the test: the command, in capitals, unless given.
    pub operation: String,
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("file=", Pattern::Anything, "the HTML page to write, or to add to").required(),
        value("revision=", Pattern::Anything, "name of what is being tested").or("unknown"),
        value("title=", Pattern::Anything, "title of the page (default: with the date)"),
        value("op=", Pattern::Anything, "name of the test (default: the command)"),
    ])]
}

impl Graph {
    pub(super) fn parse(words: Option<&[String]>, kind: CommandKind) -> Result<Self, SettingsError> {
        let taken = match (words, alternatives().pop()) {
            (None, Some(alternative)) => alternative.untouched(),
            (words, _) => select("-graph", words.unwrap_or_default(), alternatives())?.1,
        };
        Ok(Graph {
            file: taken.get("file=").map(PathBuf::from),
            revision: taken.text("revision=").to_owned(),
            title: taken.get("title=").map(str::to_owned),
            operation: taken.get("op=").map_or_else(|| kind.shown().to_owned(), str::to_owned),
        })
    }

    pub(super) fn block(&self) -> String {
        format!(
            "  File: {}\n  Revision: {}\n  Title: {}\n  Operation: {}\n",
            null(self.file.as_ref().map(|file| file.display())),
            self.revision,
            null(self.title.as_ref()),
            self.operation
        )
    }
}
