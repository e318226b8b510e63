//! The operations of a profile.

mod token_range;

pub use token_range::{Ranges, TokenRange};
