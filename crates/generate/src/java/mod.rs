//! The randomness that cassandra-stress stands on, to the bit: Java's, Cassandra's and commons-math's.
//!
//! Nothing here is a good source of randomness by today's measure; it is what data written by cassandra-stress
//! was made with. Each part is held to vectors that the Java classes printed (`golden/random`).

mod commons;
mod faster;
mod fastmath;
mod fixed;
mod fold;
mod logarithm;
mod murmur;
mod precise;
mod random;

pub use commons::{Exponential, Normal, Uniform, Weibull, Weighted, WeightsError};
pub use faster::FasterRandom;
pub use fastmath::{ln, pow};
pub use fixed::fixed;
pub use fold::{fold_bytes, fold_number, fold_text, fold_uuid};
pub use murmur::{hash3_x64_128, salt, token};

pub use random::Random;
