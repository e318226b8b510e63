//! Diverting packets by nf_tables.

mod diverted;
mod diverter;
mod queueing;
mod rules;
mod table;
mod words;

pub(crate) use self::{
    diverted::{Addresses, Diverted},
    diverter::Diverter,
    queueing::Queueing,
};
