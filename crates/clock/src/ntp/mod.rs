//! The Network Time Protocol, as far as it takes to ask and to answer what time it is (RFC 5905, modes 3 and 4).
//!
//! An exchange has four timestamps: the client sends at T1 and receives at T4, by its own clock; the server
//! receives at T2 and sends at T3, by its own. From these follow the round trip δ = (T4 − T1) − (T3 − T2) and the
//! server's offset θ = ((T2 − T1) + (T3 − T4)) / 2 (section 8). The offset is exact if both ways took equally
//! long; whatever they took, the truth lies within θ ± δ/2.

mod client;
pub(crate) mod datagram;
mod error;
mod packet;
mod responder;
mod timestamp;

pub use client::{Sample, best_of, exchange};
pub use error::NtpError;
pub use packet::{Mode, PACKET_LENGTH, Packet};
pub use responder::Responder;
pub use timestamp::{Short, Timestamp};

/// The port of NTP servers.
pub const PORT: u16 = 123;
