//! Placeholder of the program that measures what a call costs.
#![allow(missing_docs)]
fn main() {}
