//! Schemas: made, waited for, read back.
//!
//! [`Control`] is a session for the rare work, apart from the load's own connections. [`definition`] writes the
//! statements of the predefined tables, [`make`] runs those and a profile's, [`table`] reads what the cluster really
//! has, and [`qualify`] names the keyspace in statements that leave it out.

pub mod definition;
pub mod dml;
mod error;
pub mod make;
mod members;
pub mod qualify;
mod session;
pub mod table;
mod variables;

pub use error::SchemaError;
pub use members::Member;
pub use session::{Contact, Control, Refused};
