//! How far the monotonic clocks of two machines are apart, all through a run.
//!
//! One machine [answers](Server), another one [asks](Asker), four times a second: it sends at T1 and receives at T4 by its own
//! monotonic clock, the server receives at T2 and sends at T3 by its own. A packet arrives after it was sent, so that the
//! server's clock is ahead by no more than T2 − T1 at T1, and by no less than T3 − T4 at T4. How far two clocks run apart in
//! between is limited, so each exchange limits the offset at every other moment, too, the less the longer ago: [`Offsets`] is the
//! intersection of all these limits. (The same of sets of servers: K. Marzullo, S. Owicki, *Maintaining the Time in a Distributed
//! System*, 1983; the four timestamps are those of RFC 5905, section 8.)
//!
//! Nothing is assumed of how a delay is spread over the two ways: an asymmetric network widens the bounds, and falsifies nothing.

mod asker;
mod bound;
mod exchange;
mod server;

pub use asker::Asker;
pub use bound::{Offset, Offsets};
pub use exchange::Exchange;
pub use server::Server;
