//! The operations of one thread, from their intended start until no answer to them can come any more.

use std::ops::Range;

use crate::Ticket;

/// State of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationState {
    /// Waits for a connection with a free stream.
    Waiting,
    /// A request of it is in flight.
    OnWay,
    /// Waits before its next attempt.
    Resting,
    /// Its outcome is final, but a late answer may still come.
    Ended,
}

/// An operation from its intended start on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) ticket: Ticket,
    /// When it was meant to start.
    pub(super) intended: u64,
    /// When it times out.
    pub(super) deadline: u64,
    /// When the kernel took the last byte of its first request; 0 while it has not.
    pub(super) first_sent: u64,
    /// Index of its name in the workload's list.
    pub(super) name: u16,
    /// The flow it was drawn from, and the number of that flow's pace: its end starts the next operation only while
    /// that pace is in force.
    pub(super) flow: u16,
    pub(super) pace: u32,
    /// Where its last request went, or has to go.
    pub(super) coordinator: u16,
    /// Number of streams on which a request of it still awaits an answer.
    pub(super) outstanding: u16,
    /// How often the current request has been sent before.
    pub(super) attempt: u32,
    /// How many of its requests were answered.
    pub(super) step: u32,
    /// How many of its requests were sent. This number distinguishes the newest from those that were given up.
    pub(super) requests: u32,
    /// The connection and stream of the newest.
    pub(super) place: (u32, u16),
    pub(super) state: OperationState,
    /// From when on it could have been sent: its intended start, or when what it waited for was there.
    pub(super) owed: u64,
    /// It waits for somebody else, or its lateness is known: what comes now is not the instrument's lateness.
    pub(super) queued: bool,
    /// It timed out, and a late answer would be the first.
    pub(super) awaited: bool,
}

impl Operation {
    /// How long the instrument has owed it, if it has done its part by giving it away at `at`. Told once.
    pub(super) fn owed_until(&mut self, at: u64) -> Option<Range<u64>> {
        let told = std::mem::replace(&mut self.queued, true);
        (!told && self.state != OperationState::Ended).then(|| self.owed..at.max(self.owed))
    }

    /// What it waited for, a stream, is there since `at`: the instrument owes it from now on, unless a request of it
    /// was on its way before.
    pub(super) fn owe_from(&mut self, at: u64) {
        if self.requests == 0 {
            self.owed = self.owed.max(at);
            self.queued = false;
        }
    }

    /// Wait and service time if it ends at `at`.
    pub(super) fn sample(&self, at: u64) -> (u64, u64) {
        // While the kernel has not completely taken it, all of its time is wait.
        let sent = if self.first_sent == 0 { at.max(self.intended) } else { self.first_sent };
        (sent - self.intended, at.saturating_sub(sent))
    }
}

/// Refers to an operation; finds nothing once it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Handle {
    index: u32,
    generation: u32,
}

#[cfg(test)]
impl Handle {
    pub(super) fn of(index: u32) -> Self {
        Handle { index, generation: 0 }
    }

    pub(super) fn place(self) -> u32 {
        self.index
    }
}

/// All operations of a thread. Slots are reused; a generation distinguishes successive operations in one slot.
#[derive(Debug, Default)]
pub(super) struct Operations {
    slots: Vec<(u32, Option<Operation>)>,
    free: Vec<u32>,
    /// Those whose outcome is not final yet.
    open: u64,
}

impl Operations {
    pub(super) fn insert(&mut self, operation: Operation) -> Handle {
        self.open += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(operation);
        Handle { index, generation: slot.0 }
    }

    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&Operation> {
        let (generation, operation) = self.slots.get(handle.index as usize)?;
        operation.as_ref().filter(|_| *generation == handle.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut Operation> {
        let (generation, operation) = self.slots.get_mut(handle.index as usize)?;
        operation.as_mut().filter(|_| *generation == handle.generation)
    }

    /// Its outcome is final from now on.
    pub(super) fn settle(&mut self, handle: Handle) {
        if let Some(operation) = self.get_mut(handle)
            && operation.state != OperationState::Ended
        {
            operation.state = OperationState::Ended;
            self.open -= 1;
        }
    }

    /// Forgets it; it must be settled.
    pub(super) fn remove(&mut self, handle: Handle) {
        if self.get(handle).is_some() {
            let slot = &mut self.slots[handle.index as usize];
            *slot = (slot.0.wrapping_add(1), None);
            self.free.push(handle.index);
        }
    }

    /// How many have no final outcome yet.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Handles of all that are known, ended ones too.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.handles_of(|_| true)
    }

    /// Handles of those that have ended and whose deadline had passed at a time.
    pub(super) fn ended_until(&self, at: u64) -> Vec<Handle> {
        self.handles_of(|operation| operation.state == OperationState::Ended && operation.deadline <= at)
    }

    fn handles_of(&self, wanted: impl Fn(&Operation) -> bool) -> Vec<Handle> {
        let known = self.slots.iter().zip(0..).filter(|((_, operation), _)| operation.as_ref().is_some_and(&wanted));
        known.map(|((generation, _), index)| Handle { index, generation: *generation }).collect()
    }

    /// How many operations wait for their first request to be sent, and how many are open after it was. Counted one by
    /// one, so that the balance sheet is checked independently.
    pub(super) fn count(&self) -> (u64, u64) {
        let open = self.slots.iter().filter_map(|(_, operation)| operation.as_ref());
        open.filter(|operation| operation.state != OperationState::Ended).fold((0, 0), |(waiting, sent), operation| {
            if operation.requests == 0 { (waiting + 1, sent) } else { (waiting, sent + 1) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(ticket: u64) -> Operation {
        Operation {
            ticket: Ticket(ticket),
            intended: 100,
            deadline: 1_000,
            first_sent: 0,
            name: 0,
            flow: 0,
            pace: 0,
            coordinator: 0,
            outstanding: 0,
            attempt: 0,
            step: 0,
            requests: 0,
            place: (0, 0),
            state: OperationState::Waiting,
            owed: 100,
            queued: false,
            awaited: false,
        }
    }

    #[test]
    fn a_handle_does_not_find_the_next_user_of_its_place() {
        let mut operations = Operations::default();
        let first = operations.insert(operation(1));
        operations.settle(first);
        operations.settle(first);
        assert_eq!((operations.open(), operations.get(first).is_some()), (0, true), "it waits for a late answer");
        operations.remove(first);
        let second = operations.insert(operation(2));
        assert!(operations.get(first).is_none());
        assert_eq!(operations.get(second).map(|operation| operation.ticket), Some(Ticket(2)));
        assert_eq!(operations.slots.len(), 1, "the place was used again");
        operations.remove(first);
        assert_eq!(operations.handles(), [second]);
    }

    #[test]
    fn an_operation_is_owed_from_when_it_could_be_sent_until_it_was_given_away_and_that_is_told_once() {
        let mut first = operation(1);
        assert_eq!(first.owed_until(300), Some(100..300));
        assert_eq!(first.owed_until(900), None, "what the kernel takes its time for is not owed");
        let mut waited = Operation { queued: true, ..operation(2) };
        waited.owe_from(700);
        assert_eq!(waited.owed_until(750), Some(700..750), "it had no stream before");
        let mut again = Operation { queued: true, requests: 1, ..operation(3) };
        again.owe_from(700);
        assert_eq!(again.owed_until(750), None, "an attempt of it was on its way before");
        let mut waits = Operation { queued: true, ..operation(4) };
        assert_eq!(waits.owed_until(750), None);
    }

    #[test]
    fn wait_and_service_add_up_to_the_response_whenever_it_was_sent() {
        let mut operation = operation(1);
        assert_eq!(operation.sample(700), (600, 0), "never taken by the kernel: it only waited");
        operation.first_sent = 300;
        assert_eq!(operation.sample(700), (200, 400));
    }
}
