//! One file per command.

pub mod agent;
pub mod byhand;
pub mod check;
pub mod compare;
pub mod doctor;
pub mod extend;
pub mod ground;
pub mod inside;
pub mod manifests;
pub mod part;
pub mod report;
pub mod run;
mod selection;
pub mod show;
pub mod stress;
pub mod wrap;
