//! What a kind of operation has to know.

use brownout_load::{Answer, Received, Request, Route, Sending, Verdict};

use super::{complaints::Why, permits::Permits};

/// A kind of operation; shared by all load threads.
pub trait Kind: Send + Sync {
    /// The part of one load thread.
    fn thread(&self, thread: usize, threads: usize) -> Box<dyn KindThread>;

    /// Whether its statement has a condition (LWT), so that answers tell whether it was applied.
    fn is_conditional(&self) -> bool {
        false
    }
}

/// One load thread's part of a [`Kind`]. It keeps its open operations in slots of its own.
pub trait KindThread: Send {
    /// Draws the next operation, as far as it has to be known where it goes and how much it is. It may wait for long and
    /// with thousands of others, so it keeps what its values are made from, and not the values. `None`: there is no more.
    fn draw(&mut self, permits: &Permits) -> Option<Slot>;

    /// Whether operations of a visit that has begun are still to be drawn, whatever the permits say.
    fn pending(&self) -> bool {
        false
    }

    /// After [`KindThread::draw`] has said that there is no more: whether there will be, once something is released.
    fn more_later(&self) -> bool {
        false
    }

    /// Where its next request goes.
    fn route(&self, slot: u32, by_token: bool) -> Route;

    /// Writes its next request. Its values are made here, before the clock of its service starts, and are the same at
    /// every try.
    fn request(&mut self, slot: u32, sending: &Sending, request: Request<'_>);

    /// Judges an answer. What is wrong with its content is put in words only if `told` is there to take them.
    fn answer(
        &mut self,
        slot: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Verdict;

    /// The partition keys it is about, for people.
    fn key(&self, slot: u32) -> String;

    /// Its statement, for people.
    fn statement(&self) -> &str;

    /// It has ended.
    fn end(&mut self, slot: u32, ok: bool) {
        let _ = (slot, ok);
    }

    /// Nothing of it comes any more.
    fn release(&mut self, slot: u32);
}

/// Where an operation that was drawn is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its number among those of its kind.
    pub index: u32,
    /// By so many steps it advances a limited schedule.
    pub partitions: u32,
}
