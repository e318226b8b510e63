//! Distributions: what may be written, and what is drawn from them.
//!
//! A [`Spec`] is the text of a distribution, read; [`Spec::build`] makes a [`Distribution`] of it, which draws. The
//! first seven kinds are cassandra-stress's, to the bit; `zipf`, `szipf`, `latest` and `hotspot` are those of YCSB, whose
//! names papers use.
//!
//! cassandra-stress leaves the seeds of some distributions to the clock (those that choose partitions, visits, rows and
//! batches). Here each is built with a seed of its own, which a run derives from its seed, so that a run can be repeated.

mod draw;
mod error;
mod hotspot;
mod latest;
mod mixed;
mod quantized;
mod ratio;
mod spec;
mod table;
mod text;
mod zipf;

pub use draw::Distribution;
pub use error::SpecError;
pub use hotspot::Hotspot;
pub use latest::{Latest, Newest};
pub use ratio::{Ratio, RatioSpec};
pub use spec::Spec;
pub use table::print_table;
pub use zipf::Zipf;

/// The exponent of `zipf`, `szipf` and `latest` where none is given: YCSB's.
pub const DEFAULT_EXPONENT: f64 = 0.99;
