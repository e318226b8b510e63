//! How operations end: answered, failed, timed out or never sent; and what may come after the end.

use brownout_base::clock::monotonic_ns;

use super::{
    connection::{Connection, Loss, Open, State, Step},
    driven::Driven,
    ledger::Entry,
    operations::{Handle, Operation, OperationState},
    wheel::TICK_NS,
    worker::Worker,
};
use crate::{Ended, Ending, ErrorClass, Outcome, late_patience_ns};

/// How long after its start an engine treats errors that may pass as temporary.
const PASSES_WITHIN_NS: u64 = 10_000_000_000;

fn entry(operation: &Operation) -> Entry {
    Entry { intended: operation.intended, coordinator: operation.coordinator, name: operation.name }
}

impl Worker {
    /// Counts an attempt, if operations may have several.
    pub(super) fn count_attempt(&mut self, operation: &Operation, outcome: Outcome, service: u64) {
        if self.counts_attempts {
            self.ledger.attempt(operation.intended, operation.name, outcome, service);
        }
    }

    /// A request has failed: retries it, or ends the operation.
    pub(super) fn failed(&mut self, handle: Handle, class: ErrorClass, at: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        let wait_ns = self.setup.config.retries.wait_ns(operation.attempt, class, &mut self.random);
        let due = wait_ns.map(|wait_ns| at.saturating_add(wait_ns)).filter(|due| *due < operation.deadline);
        match due {
            None => self.end(handle, Ended::Failed(class), at),
            Some(due) => self.try_again(handle, due, at),
        }
    }

    fn try_again(&mut self, handle: Handle, due: u64, now: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        operation.attempt += 1;
        operation.queued = true;
        if due > now {
            operation.state = OperationState::Resting;
            self.rests.push(std::cmp::Reverse((due, handle)));
        } else {
            self.place(handle, now);
        }
    }

    /// Sends the next attempts of operations whose retry delay is over.
    pub(super) fn wake_rested(&mut self, now: u64) {
        while let Some(std::cmp::Reverse((due, handle))) = self.rests.peek().copied()
            && due <= now
        {
            self.rests.pop();
            if self.operations.get(handle).is_some_and(|operation| operation.state == OperationState::Resting) {
                self.place(handle, now);
            }
        }
    }

    /// The outcome of an operation that was sent and has not timed out.
    pub(super) fn end(&mut self, handle: Handle, ended: Ended, at: u64) {
        let Some(operation) = self.operations.get(handle).copied() else { return };
        let outcome = match ended {
            Ended::Failed(class) => Outcome::Failed(class),
            _ => Outcome::Ok,
        };
        self.ledger.ended(entry(&operation), outcome, operation.sample(at), false);
        self.settle(handle, ended, at);
    }

    /// The deadline of an operation has passed.
    pub(super) fn time_out(&mut self, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get(handle).copied() else { return };
        if operation.requests == 0 {
            self.ledger.never_sent(operation.intended, operation.name);
            self.settle(handle, Ended::NeverSent, now);
            return;
        }
        if operation.state == OperationState::OnWay {
            let service = self.give_up(handle, operation.place, operation.deadline);
            self.count_attempt(&operation, Outcome::TimedOut, service);
        }
        self.end_timed_out(handle, operation.outstanding > 0, now);
    }

    /// Accounts an operation that has timed out; `awaited` if it may still be answered.
    pub(super) fn end_timed_out(&mut self, handle: Handle, awaited: bool, now: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        operation.awaited = awaited;
        let operation = *operation;
        // If the kernel has not taken a request of the operation yet, all of its time is wait.
        let timeout = operation.deadline - operation.intended;
        let wait = operation.sample(operation.deadline).0.min(timeout);
        self.ledger.ended(entry(&operation), Outcome::TimedOut, (wait, timeout - wait), awaited);
        self.settle(handle, Ended::TimedOut, now);
    }

    /// A late answer has come, for which the operation no longer waited.
    pub(super) fn late(&mut self, handle: Handle, at: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        let awaited = std::mem::take(&mut operation.awaited);
        let operation = *operation;
        if awaited {
            // The deadline was checked before this answer was read. If it arrived at the last moment, it counts as late
            // all the same, and its time is set to the deadline at least.
            self.ledger.late(entry(&operation), operation.sample(at.max(operation.deadline)));
        }
        self.forget_if_over(handle, at);
    }

    /// A request for which nobody waits any more will never be answered.
    fn never_answered(&mut self, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        operation.outstanding -= 1;
        if operation.outstanding == 0 && std::mem::take(&mut operation.awaited) {
            let intended = operation.intended;
            self.ledger.never_answered(intended);
        }
        self.forget_if_over(handle, now);
    }

    /// Stops waiting for late answers that are overdue.
    pub(super) fn stop_waiting(&mut self, now: u64) {
        let patience_ns = late_patience_ns(self.timeout_ns);
        for handle in self.operations.ended_until(now.saturating_sub(patience_ns)) {
            let Some(operation) = self.operations.get_mut(handle) else { continue };
            // Its streams stay taken; an answer that comes on one all the same finds nobody.
            operation.outstanding = 0;
            if std::mem::take(&mut operation.awaited) {
                let intended = operation.intended;
                self.ledger.never_answered(intended);
            }
            // Or what starts only when this one is over would wait for ever.
            self.forget_if_over(handle, now);
        }
    }

    /// The outcome is final: the workload is told, and the user starts the next operation.
    fn settle(&mut self, handle: Handle, ended: Ended, now: u64) {
        let Some(operation) = self.operations.get(handle).copied() else { return };
        self.operations.settle(handle);
        self.workload.end(operation.ticket, &Ending { result: ended, requests: operation.requests });
        self.succeed(operation.flow, operation.pace, ended == Ended::Ok, now);
        self.forget_if_over(handle, now);
    }

    fn forget_if_over(&mut self, handle: Handle, at: u64) {
        if let Some(operation) = self.operations.get(handle)
            && operation.state == OperationState::Ended
            && operation.outstanding == 0
            && !operation.awaited
        {
            let (ticket, flow) = (operation.ticket, operation.flow);
            self.operations.remove(handle);
            self.workload.release(ticket);
            self.flows[usize::from(flow)].unpark(at);
        }
    }

    /// Ends the operations and attempts whose time is up.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some(list) = self.wheel.take_due(now) {
            for timeout in &list {
                let Some(operation) = self.operations.get(timeout.handle).copied() else { continue };
                match (operation.state, timeout.request) {
                    (OperationState::Ended, _) => {}
                    (_, 0) if operation.deadline <= now => {
                        self.ledger.idled(operation.deadline + TICK_NS..now);
                        self.time_out(timeout.handle, now);
                    }
                    (_, 0) => self.watch(timeout.handle, operation.deadline, now),
                    (OperationState::OnWay, number) if number == operation.requests => {
                        self.give_up_attempt(timeout.handle, now);
                    }
                    _ => {}
                }
            }
            self.wheel.recycle(list);
        }
        if let Some(watching) = &mut self.watching {
            watching.expire(now, &mut self.ledger);
        }
        // Given-up operations leave the queues, which would otherwise grow while nothing is taken from them.
        for queue in self.targets.iter_mut().map(|target| &mut target.queue).chain([&mut self.unplaced]) {
            while let Some(first) = queue.front()
                && self.operations.get(*first).is_none_or(|operation| operation.state != OperationState::Waiting)
            {
                queue.pop_front();
            }
        }
    }

    /// An attempt has timed out; the operation is retried if it may be.
    fn give_up_attempt(&mut self, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get(handle).copied() else { return };
        if operation.attempt + 1 >= self.setup.config.retries.tries {
            // The last attempt lasts as long as the operation.
            return;
        }
        // This thread may be late itself: then the answer may be here already.
        let service = self.give_up(handle, operation.place, now).min(self.attempt_timeout_ns.unwrap_or(u64::MAX));
        self.count_attempt(&operation, Outcome::TimedOut, service);
        self.try_again(handle, now, now);
    }

    /// The operation no longer waits for the request on this connection and stream; its answer is still measured.
    /// Returns how long the server has had it at `at`, ns.
    fn give_up(&mut self, handle: Handle, place: (u32, u16), at: u64) -> u64 {
        let Some(driven) = &mut self.driven else {
            return self.connections[place.0 as usize].give_up(place.1).map_or(0, |open| open.service_ns(at));
        };
        let (open, coordinator) = driven.give_up(place.0);
        if let (Some(operation), Some(coordinator)) = (self.operations.get_mut(handle), coordinator) {
            operation.coordinator = coordinator;
        }
        open.map_or(0, |open| open.service_ns(at))
    }

    /// Closes a connection and ends what was in flight; operations queued for its coordinator go elsewhere.
    pub(super) fn lose(&mut self, index: usize, loss: Loss) {
        let now = monotonic_ns();
        let connection = &mut self.connections[index];
        let coordinator = connection.coordinator;
        let (state, established) = (connection.state, connection.established);
        self.end_all(index, ErrorClass::ConnectionLost, now);
        if self.is_starting() {
            // The connection will be tried again.
            if loss.passing && now < self.begun_ns + PASSES_WITHIN_NS {
                return;
            }
            let step = if let State::Opening { step, .. } = state { step } else { Step::Connect };
            self.fatal = Some(self.connect_error(coordinator, step, loss.reason));
            return;
        }
        if established {
            self.ledger.connection_lost(loss.garbage);
            self.event(coordinator, Some(loss.reason));
        }
        if !self.is_connected(coordinator) {
            for handle in std::mem::take(&mut self.targets[coordinator].queue) {
                if self.operations.get(handle).is_some_and(|operation| operation.state == OperationState::Waiting) {
                    self.place(handle, now);
                }
            }
        }
    }

    /// Closes a connection; every request in flight fails with `class`.
    fn end_all(&mut self, index: usize, class: ErrorClass, now: u64) {
        let connection: &mut Connection = &mut self.connections[index];
        self.attention_ns = 0;
        let lost = connection.close(now);
        if let Some(watching) = &mut self.watching {
            watching.lost(index);
        }
        self.end_lost(lost, class, now);
    }

    /// These requests will never be answered.
    pub(super) fn end_lost(&mut self, lost: Vec<Open>, class: ErrorClass, now: u64) {
        for open in lost {
            if open.late {
                self.never_answered(open.handle, now);
                continue;
            }
            let Some(operation) = self.operations.get_mut(open.handle) else { continue };
            operation.outstanding -= 1;
            let operation = *operation;
            if class != ErrorClass::Abandoned && operation.deadline <= now {
                // The timeout wheel would have reported it within its next tick.
                self.count_attempt(&operation, Outcome::TimedOut, open.service_ns(operation.deadline));
                self.end_timed_out(open.handle, operation.outstanding > 0, now);
                continue;
            }
            self.count_attempt(&operation, Outcome::Failed(class), open.service_ns(now));
            self.failed(open.handle, class, now);
        }
    }

    /// Ends all open operations at the end of a run.
    pub(super) fn abandon(&mut self, now: u64) {
        for index in 0..self.connections.len() {
            self.end_all(index, ErrorClass::Abandoned, now);
        }
        let lost = self.driven.as_mut().map(Driven::close).unwrap_or_default();
        self.end_lost(lost, ErrorClass::Abandoned, now);
        for handle in self.operations.handles() {
            let Some(operation) = self.operations.get(handle).copied() else { continue };
            if operation.state != OperationState::Ended && operation.requests == 0 {
                self.ledger.never_sent(operation.intended, operation.name);
                self.settle(handle, Ended::NeverSent, now);
            } else if operation.state != OperationState::Ended {
                self.end(handle, Ended::Failed(ErrorClass::Abandoned), now);
            }
        }
    }
}
