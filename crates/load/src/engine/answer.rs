//! From received bytes to what they mean for the request they answer.

use super::{
    connection::{Filled, Loss, Open, State, Step},
    operations::{Operation, OperationState},
    worker::Worker,
};
use crate::{
    Answer, Ended, ErrorClass, Failure, Meaning, Next, Outcome, Received, ServerError,
    sys::Ready,
    wire::{Body, Header, answer::answer},
};

/// Server errors that may pass within moments (protocol, section 9): the server has failed, is overloaded, or is
/// starting. Cassandra 5.0 fails so (`Unknown CF`) to prepare for a table that all nodes have just agreed on.
const PASSING: [u32; 3] = [0x0000, 0x1001, 0x1002];

/// Reads per connection before other connections get their turn.
const MOST_READS: usize = 16;

impl Worker {
    /// Does what a ready connection needs.
    pub(super) fn serve(&mut self, index: usize, ready: Ready) {
        let result = self.progress_on(index, ready);
        if let Err(loss) = result {
            self.lose(index, loss);
        }
    }

    fn progress_on(&mut self, index: usize, ready: Ready) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        if ready.writable {
            if let State::Opening { step: Step::Connect, .. } = connection.state {
                connection.connected()?;
                self.attention_ns = 0;
            }
            self.touch(index);
        }
        if !ready.readable {
            return Ok(());
        }
        let roused_ns = self.roused_ns.filter(|_| self.connections[index].has_been_out_of_order());
        let earliest_ns = self.unread_ns.max(roused_ns.unwrap_or(0));
        for _ in 0..MOST_READS {
            let Filled { at, more } = self.connections[index].fill(earliest_ns)?;
            if self.connections[index].speaks_etcd() {
                self.hear(index, at)?;
                if !more {
                    break;
                }
                continue;
            }
            while let Some((header, body)) = self.connections[index].next_frame()? {
                self.frame(index, header, &body, at)?;
            }
            if self.connections[index].owes() {
                self.touch(index);
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn frame(&mut self, index: usize, header: Header, body: &Body, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let stream = match u16::try_from(header.stream) {
            // Negative streams carry events of the server, which we have not registered for.
            Err(_) => return Ok(()),
            Ok(0) => return self.control(index, header, body, at),
            Ok(stream) => stream,
        };
        let open = connection.on(stream)?;
        let answer = answer(header, connection.body(body))?;
        let coordinator = connection.coordinator;
        let Some(operation) = self.operations.get(open.handle).copied() else {
            connection.release(stream);
            self.pump(coordinator, Some(at), at);
            return Ok(());
        };
        let received = Received { at_ns: at, late: open.late, step: operation.step, coordinator: coordinator as u16 };
        let meaning = match answer {
            Answer::Error(failure) => {
                let (class, code, message) = (failure.class(), failure.code, failure.message);
                self.workload.refused(operation.ticket, &ServerError { class, code, message }, &received);
                Meaning::failed(class)
            }
            answer => self.workload.answer(operation.ticket, &answer, &received),
        };
        connection.release(stream);
        if meaning.next == Next::Failed(ErrorClass::Unprepared) && connection.is_ready() {
            self.prepare(index, 0);
        }
        self.answered(&operation, open, &meaning, at);
        self.pump(coordinator, Some(at), at);
        Ok(())
    }

    /// Requests preparation of a statement, or marks the connection ready if there are no more.
    fn prepare(&mut self, index: usize, number: usize) -> bool {
        let Some(text) = self.statements.get(number) else { return false };
        self.connections[index].prepare(number, text);
        self.touch(index);
        self.attention_ns = 0;
        true
    }

    /// Handshake and preparation: each answer triggers the next step.
    fn control(&mut self, index: usize, header: Header, body: &Body, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let State::Opening { step, .. } = connection.state else {
            return Err("an answer to a question that was not asked".into());
        };
        if step == Step::Startup {
            let done = connection.shake_hands(header, body)?;
            self.attention_ns = 0;
            self.touch(index);
            if done {
                self.prepare_or_begin(index, 0, at);
            }
            return Ok(());
        }
        let next = match (step, answer(header, connection.body(body))?) {
            (Step::Prepare(number), Answer::Prepared(prepared)) => {
                let (id, metadata): (Box<[u8]>, Box<[u8]>) = (prepared.id.into(), prepared.result_metadata_id.into());
                connection.keep_prepared(number, &id, &metadata);
                number + 1
            }
            (step, Answer::Error(Failure { code, message, .. })) => {
                let asked = match step {
                    Step::Prepare(number) => self.statements.get(number).map(|text| format!(" about \"{text}\"")),
                    _ => None,
                };
                let asked = asked.unwrap_or_default();
                let reason = format!("the server says{asked}: {message} (code {code:#06x})");
                return Err(Loss { passing: PASSING.contains(&code), ..Loss::because(reason) });
            }
            _ => return Err("an answer of the wrong kind".into()),
        };
        self.prepare_or_begin(index, next, at);
        Ok(())
    }

    fn prepare_or_begin(&mut self, index: usize, number: usize, at: u64) {
        if !self.prepare(index, number) {
            let connection = &mut self.connections[index];
            let opened = !connection.established;
            connection.make_ready();
            self.is_ready(index, opened, at);
        }
    }

    /// Decides what becomes of the operation, in the state it had when the answer to `open` came.
    pub(super) fn answered(&mut self, operation: &Operation, open: Open, meaning: &Meaning, at: u64) {
        let Operation { intended, name, .. } = *operation;
        if let Some(finding) = meaning.finding {
            self.ledger.found(intended, finding);
        }
        // A server may answer what the kernel has not wholly taken: it refuses a request by its header.
        let service = open.service_ns(at);
        if let Some(operation) = self.operations.get_mut(open.handle) {
            operation.outstanding -= 1;
        }
        if open.late {
            if self.counts_attempts {
                self.ledger.attempt(intended, name, Outcome::Late, service);
            }
            self.late(open.handle, at);
            return;
        }
        if at > operation.deadline {
            // The deadline has passed, but the timeout wheel has not reported it yet.
            self.count_attempt(operation, Outcome::TimedOut, open.service_ns(operation.deadline));
            self.end_timed_out(open.handle, true, at);
            self.late(open.handle, at);
            return;
        }
        let end = match meaning.next {
            Next::Failed(class) => Outcome::Failed(class),
            Next::Done | Next::Page | Next::Request => Outcome::Ok,
        };
        self.count_attempt(operation, end, service);
        match meaning.next {
            Next::Failed(class) => self.failed(open.handle, class, at),
            Next::Done => {
                self.ledger.answered(intended, name, meaning, service);
                self.end(open.handle, Ended::Ok, at);
            }
            Next::Page | Next::Request => {
                self.ledger.answered(intended, name, meaning, service);
                self.sequential = true;
                if let Some(operation) = self.operations.get_mut(open.handle) {
                    operation.step += 1;
                    operation.attempt = 0;
                    operation.state = OperationState::Waiting;
                    operation.queued = true;
                }
                if meaning.next == Next::Page {
                    self.place_again(open.handle, at);
                } else {
                    self.place(open.handle, at);
                }
            }
        }
    }
}
