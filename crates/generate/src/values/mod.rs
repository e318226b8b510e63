//! Values of columns.

pub mod mix;
