//! Schemas: made, waited for, read back.
//!
//! [`Control`] is a session for the rare work, apart from the load's own connections. [`definition`] writes the
//! statements of the predefined tables, [`make`] runs those and a profile's, [`table`] reads what the cluster really
//! has, [`qualify`] names the keyspace in statements that leave it out, and [`replication`] reads how often a keyspace
//! that is to be made keeps its rows.

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
