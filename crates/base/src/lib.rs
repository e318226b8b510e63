//! What all of the house needs to mean the same by: the [`clock`] that everything is stamped on, the [`Change`] that
//! says when something came into force and how exactly that is known, and [`random`] numbers that follow from a seed.

mod change;
pub mod clock;
pub mod random;

pub use change::Change;
