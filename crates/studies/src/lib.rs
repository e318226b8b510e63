//! Published measurements done again: what `studies/` needs beside the experiment files. Which study a directory holds, its
//! `published.json` says.
//!
//! A run is reduced to what tables and plots need ([`reduce`]), kept as JSON beside its study ([`stored`]); the tables of a study's
//! README ([`readme`]) and its plots are made from those files and from what was published ([`published`]) alone, so that a test
//! can say whether they still are what the files say. [`pairs`] counts how often equal trials are called different, [`reuse`]
//! whether trials on a cluster that has served before differ from the first ones, [`overhead`] what trials take beyond their own
//! phases, [`beside`] whether a search finds what a grid does, and [`same`] whether two runs of the same design say the same.

pub mod beside;
mod each;
mod error;
mod number;
pub mod overhead;
pub mod pairs;
mod plots;
pub mod published;
pub mod readme;
mod reduce;
pub mod reuse;
pub mod same;
pub mod stored;
pub mod study;
mod table;
mod tables;
mod words;
mod zone;

pub use error::StudyError;
pub use reduce::reduce;
