//! Findings for people: a summary for the terminal, one HTML file that opens offline, single figures as SVG.
//!
//! All of it is a pure function of a run and its findings.

mod cells;
mod charts;
mod clocks;
mod comparison;
mod consensus;
mod database;
mod detectors;
mod error;
mod escape;
mod explained;
mod export;
pub mod figure;
mod frame;
mod glossary;
mod html;
mod layout;
mod machines;
mod markup;
mod matrix;
mod page;
mod proofs;
mod scale;
mod scope;
mod scores;
mod search;
mod strips;
mod summary;
mod svg;
mod table;
mod tables;
mod text;
mod tiles;
mod under_test;
mod witnesses;

pub use comparison::comparison;
pub use error::ReportError;
pub use export::{drawing, svg};
pub use html::html;
pub use page::Style;
pub use scale::{from_zero, log_range};
pub use summary::{cell, summary};
