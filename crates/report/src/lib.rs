//! Findings for people: a summary for the terminal, one HTML file that opens offline, single figures as SVG.
//!
//! All of it is a pure function of a run and its findings.

mod error;
mod html;
mod summary;
mod table;
mod text;

pub use error::ReportError;
pub use html::html;
pub use summary::{Style, summary};
