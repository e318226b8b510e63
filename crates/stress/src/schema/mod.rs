//! Schemas: created, awaited, read back.
//!
//! [`Control`] is a session for control work, separate from the load's own connections. [`definition`] writes the
//! statements of the predefined tables, [`make`] executes those and a profile's, [`table`] reads what the cluster
//! really has, [`qualify`] adds the keyspace to statements that leave it out, and [`replication`] reads how many
//! replicas a keyspace to be created has.

pub mod definition;
pub mod dml;
mod error;
pub mod make;
mod members;
pub mod qualify;
pub mod replication;
mod session;
pub mod table;
mod variables;

pub use error::SchemaError;
pub use members::Member;
pub use session::{Contact, Control, Refused};
