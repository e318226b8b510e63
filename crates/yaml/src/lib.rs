//! YAML that people write: a text as a tree that knows its lines, and complaints that show them.
//!
//! [`Document::new`] reads a file's text; [`Document::complain`] says what is wrong with a value, where it stands, and
//! shows the line. Anchors, aliases and merge keys (`&a`, `*a`, `<<: *a`) are followed; what they stand for keeps the
//! place where it is written. [`nearest`] and [`one_of`] say what a person may have meant.
//!
//! The tree is [`marked_yaml`]'s, which serde can read ([`marked_yaml::spanned_serde`]).

mod builder;
mod document;
mod error;
mod meant;

pub use document::{Document, parse};
pub use error::FileError;
pub use marked_yaml::{Marker, Node, Span};
pub use meant::{nearest, one_of};
