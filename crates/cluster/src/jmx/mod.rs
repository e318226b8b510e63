//! A client of JMX: it asks a JVM for attributes of its MBeans, and has them carry out operations, over RMI.
//!
//! Counters and gauges of a Java database can be had only through JMX, whose clients are Java programs: each call of one
//! costs most of a second of processor time, which a small machine under load does not have to spare, and what is worth
//! knowing has passed by then. What JMX asks for is little, though: four calls, in [`client`], whose arguments and answers are
//! objects in Java's stream, in [`arguments`] and [`object`].

mod arguments;
mod client;
mod object;

use std::io;

use thiserror::Error;

pub(crate) use arguments::Argument;
pub(crate) use client::Client;
pub(crate) use object::Value;

#[derive(Debug, Error)]
pub(crate) enum JmxError {
    #[error("{0}")]
    Io(io::Error),
    /// It answered with this exception. The connection is as good as before.
    #[error("it answers with the exception {0}")]
    Exception(String),
    #[error("its answer is not that of JMX over RMI: {0}")]
    Protocol(&'static str),
}
