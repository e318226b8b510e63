//! Operations on the driver's data path: the same account, another transport.

use brownout_base::clock::monotonic_ns;

use super::{
    connection::Open,
    driven::Driven,
    ledger::Ledger,
    operations::{Handle, Operation, OperationState, Operations},
    worker::Worker,
};
use crate::{
    LoadError, Meaning, Received, Route, Sending, ServerError,
    driver::{Completion, Failed, Reply},
    wire::answer::answer,
};

impl Worker {
    /// Connects the driver, and reports that the thread is ready.
    ///
    /// # Errors
    /// Those of [`Driver::connect`].
    pub(super) fn connect_driver(&mut self) -> Result<(), LoadError> {
        let Some(mut driven) = self.driven.take() else { return Ok(()) };
        let (setup, statements) = (std::sync::Arc::clone(&self.setup), std::mem::take(&mut self.statements));
        let patience = std::time::Duration::from_nanos(self.patience_ns());
        let goes_on = || {
            self.obey();
            !self.is_stopping()
        };
        let connected = driven.driver.connect(&setup.config, &statements, patience, goes_on)?;
        self.driven = Some(driven);
        if connected {
            self.say_ready();
        }
        Ok(())
    }

    /// Hands the operation's next request to the driver, or has it wait.
    pub(super) fn place_driven(&mut self, handle: Handle, now: u64) {
        let Some(driven) = &self.driven else { return };
        // Operations that are already waiting go first.
        let at_once = self.unplaced.is_empty() && driven.has_room();
        let Some(operation) = self.operations.get_mut(handle) else { return };
        operation.state = OperationState::Waiting;
        if at_once {
            self.send_driven(handle, now);
        } else {
            operation.queued = true;
            self.unplaced.push_back(handle);
        }
    }

    /// Submits what is queued, as far as there is room.
    pub(super) fn pump_driven(&mut self, now: u64) {
        while self.driven.as_ref().is_some_and(Driven::has_room)
            && let Some(handle) = self.unplaced.pop_front()
        {
            // Operations that were given up no longer wait.
            let Some(operation) =
                self.operations.get(handle).filter(|operation| operation.state == OperationState::Waiting)
            else {
                continue;
            };
            if operation.deadline <= now { self.time_out(handle, now) } else { self.send_driven(handle, now) }
        }
    }

    fn send_driven(&mut self, handle: Handle, now: u64) {
        let (Some(operation), Some(driven)) = (self.operations.get_mut(handle), &mut self.driven) else { return };
        let pin = match self.workload.route(operation.ticket, false) {
            Route::Coordinator(place) if usize::from(place) < self.targets.len() => Some(place),
            _ => None,
        };
        if operation.requests == 0 {
            self.ledger.sent(operation.intended);
        }
        operation.requests += 1;
        operation.outstanding += 1;
        operation.state = OperationState::OnWay;
        operation.coordinator = pin.unwrap_or(operation.coordinator);
        let unix_us = self.unix_offset_us + now / 1_000;
        let sending = Sending { now_ns: now, unix_us, attempt: operation.attempt, step: operation.step };
        let (ticket, number, slot) = (operation.ticket, operation.requests, driven.slot());
        let chosen = driven.slots[slot as usize].chosen.clone();
        let (workload, driver) = (&mut self.workload, &mut driven.driver);
        if let Err(error) = driver.submit(slot, chosen, pin, |request| workload.request(ticket, &sending, request)) {
            driven.free.push(slot);
            operation.outstanding -= 1;
            operation.requests -= 1;
            let coordinator = usize::from(operation.coordinator);
            self.unwritable(handle, coordinator, &error.to_string(), now);
            return;
        }
        let sent_ns = monotonic_ns();
        driven.slots[slot as usize].open = Some(Open { handle, sent_ns, late: false });
        operation.place = (slot, 0);
        self.ledger.request(operation.intended, operation.name);
        note_sent(operation, sent_ns, &mut self.ledger);
        self.watch_attempt(handle, number, now);
    }

    /// Handles the requests that the driver has completed.
    pub(super) fn serve_driven(&mut self) {
        let Some(driven) = &mut self.driven else { return };
        let mut done = std::mem::take(&mut driven.done);
        driven.driver.take(&mut done);
        for completion in done.drain(..) {
            self.completed(completion);
        }
        if let Some(driven) = &mut self.driven {
            driven.done = done;
        }
        self.pump_driven(monotonic_ns());
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { slot, at_ns, reply } = completion;
        let Some(driven) = &mut self.driven else { return };
        let Some(found) = driven.slots.get_mut(slot as usize) else { return };
        let Some(open) = found.open.take() else { return };
        let chosen = found.chosen.get();
        driven.free.push(slot);
        let Some(operation) = learn(&mut self.operations, open.handle, chosen) else { return };
        let coordinator = chosen.unwrap_or(operation.coordinator);
        let received = Received { at_ns, late: open.late, step: operation.step, coordinator };
        let mut body = std::mem::take(&mut driven.body);
        body.clear();
        let meaning = match reply.and_then(|reply| reply.write(&mut body)) {
            Ok(()) => match answer(Reply::header(body.len()), &body) {
                Ok(answer) => self.workload.answer(operation.ticket, &answer, &received),
                Err(garbage) => self.refusal(&operation, &Failed::unreadable(garbage), &received),
            },
            Err(failed) => self.refusal(&operation, &failed, &received),
        };
        if let Some(driven) = &mut self.driven {
            driven.body = body;
        }
        self.answered(&operation, open, &meaning, at_ns);
    }

    fn refusal(&mut self, operation: &Operation, failed: &Failed, received: &Received) -> Meaning {
        let Failed { class, code, message } = failed;
        self.workload.refused(operation.ticket, &ServerError { class: *class, code: *code, message }, received);
        Meaning::failed(*class)
    }
}

/// The operation, with its coordinator as far as it is known now.
fn learn(operations: &mut Operations, handle: Handle, chosen: Option<u16>) -> Option<Operation> {
    let operation = operations.get_mut(handle)?;
    operation.coordinator = chosen.unwrap_or(operation.coordinator);
    Some(*operation)
}

/// The operation's request has been submitted to the driver. Of several requests, the first one counts.
fn note_sent(operation: &mut Operation, sent_ns: u64, ledger: &mut Ledger) {
    if operation.first_sent == 0 {
        operation.first_sent = sent_ns.max(operation.intended);
        if let Some(owed) = operation.owed_until(operation.first_sent) {
            ledger.lateness(operation.intended, owed);
        }
    }
}
