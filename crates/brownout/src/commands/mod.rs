//! One file per command.

pub mod byhand;
pub mod check;
pub mod compare;
pub mod doctor;
pub mod extend;
pub mod inside;
pub mod report;
pub mod run;
pub mod show;
pub mod stress;
