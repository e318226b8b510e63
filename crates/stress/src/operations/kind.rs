//! What every kind of operation implements.

use brownout_load::{Answer, Meaning, Received, Request, Route, Sending};

use super::{complaints::Why, permits::Permits};

/// A kind of operation; shared by all load threads.
pub trait Kind: Send + Sync {
    /// Creates the part of one load thread.
    fn thread(&self, thread: usize, threads: usize) -> Box<dyn KindThread>;

    /// Whether its statement has a condition (LWT), so that answers tell whether it was applied.
    fn is_conditional(&self) -> bool {
        false
    }
}

/// One load thread's part of a [`Kind`]. It keeps its open operations in slots of its own.
pub trait KindThread: Send {
    /// Draws the next operation, as far as needed to know where it goes and how large it is. It may wait for a long
    /// time together with thousands of others, so it keeps what its values are generated from rather than the values.
    /// `None`: there are no more.
    fn draw(&mut self, permits: &Permits) -> Option<Slot>;

    /// Whether a visit that has begun still has operations to be drawn, whatever the permits say.
    fn pending(&self) -> bool {
        false
    }

    /// After [`KindThread::draw`] has returned `None`: whether there will be more once something is released.
    fn more_later(&self) -> bool {
        false
    }

    /// Where its next request goes.
    fn route(&self, slot: u32, by_token: bool) -> Route;

    /// Writes its next request. Its values are generated here, before its service time starts, and are the same at
    /// every attempt.
    fn request(&mut self, slot: u32, sending: &Sending, request: Request<'_>);

    /// Judges an answer. A defect in its content is described only if `told` is there to take the text.
    fn answer(
        &mut self,
        slot: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Meaning;

    /// The partition keys it is about, for people.
    fn key(&self, slot: u32) -> String;

    /// Its statement, for people.
    fn statement(&self) -> &str;

    /// The operation has ended.
    fn end(&mut self, slot: u32, ok: bool) {
        let _ = (slot, ok);
    }

    /// No further calls concern it.
    fn release(&mut self, slot: u32);
}

/// Where an operation that was drawn is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its number among those of its kind.
    pub index: u32,
    /// It advances a limited schedule by this many steps.
    pub partitions: u32,
}
