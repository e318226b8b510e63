//! Rows of partitions: what a writer writes at each visit, what a reader can ask for, what it must find.
//!
//! A [`PartitionLayout`] lists a table's columns and how each is made. A [`PartitionGenerator`] turns seeds of partitions
//! into visits and rows. In the compat flavour it walks as cassandra-stress does, row by row the same. In v2 the rows of a
//! partition are a tree in which every sibling has children of its own, and any row can be made without the others, so
//! that a partition of any size takes no memory. A [`Visit`] is what a visit's rows follow from: it can be kept in their
//! place. A [`Binding`] picks from rows what a query binds.

mod bind;
mod cells;
mod compat;
mod distinct;
mod error;
mod generator;
mod java_value;
mod layout;
mod level;
mod roll;
mod settings;
mod visit;

pub use bind::{Binding, Fields};
pub use cells::{Cell, Cells};
pub use error::RowError;
pub use generator::{PartitionGenerator, Range};
pub use layout::{Column, PartitionLayout};
pub use settings::{Order, RowSettings};
pub use visit::Visit;

#[cfg(test)]
mod tests;
