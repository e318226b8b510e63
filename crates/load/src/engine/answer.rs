//! From bytes to the end of an operation: answered, failed, timed out, or lost.

use super::{
    Statement,
    connection::{Connection, Filled, Loss, Open, State, Step},
    ledger::{Finding, Sample},
    worker::Worker,
};
use crate::{
    ErrorClass, Outcome,
    clock::now_ns,
    sys::Ready,
    value,
    wire::response::{Header, Response, classify, decode},
};

/// Reads per connection before others get their turn.
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
            }
            connection.dirty = true;
        }
        if !ready.readable {
            return Ok(());
        }
        for _ in 0..MOST_READS {
            let Filled { at, more } = self.connections[index].fill(self.unread_ns)?;
            while let Some((header, body)) = self.connections[index].next_frame()? {
                self.frame(index, header, body, at)?;
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn frame(&mut self, index: usize, header: Header, body: std::ops::Range<usize>, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let stream = match u16::try_from(header.stream) {
            // Negative streams carry the server's events; none was asked for.
            Err(_) => return Ok(()),
            Ok(0) => return self.control(index, header, body, at),
            Ok(stream) => stream,
        };
        let open = connection.on(stream)?;
        let response = decode(header, connection.body(body))?;
        let (outcome, finding) = judge(&open, &response, self.value_size);
        let refusal = match response {
            Response::Error { code, message }
                if outcome == Outcome::Failed(ErrorClass::Invalid)
                    && Worker::populates(&self.source, self.pace, &open.operation) =>
            {
                Some(format!("{message} (code {code:#06x})"))
            }
            _ => None,
        };
        connection.release(stream);
        let coordinator = connection.coordinator;
        if outcome == Outcome::Failed(ErrorClass::Unprepared) && connection.is_ready() {
            connection.prepare(Statement::Read, &self.statements[0]);
        }
        self.answered(coordinator, open, outcome, finding, at);
        if let Some(reason) = refusal {
            self.refuse(coordinator, reason);
        }
        self.pump(coordinator, at);
        Ok(())
    }

    /// Handshake and preparing: each answer asks for the next step.
    fn control(&mut self, index: usize, header: Header, body: std::ops::Range<usize>, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let response = decode(header, connection.body(body))?;
        let State::Opening { step, .. } = connection.state else {
            return Err("an answer to a question that was not asked".into());
        };
        match (step, response) {
            (Step::Startup, Response::Ready) => connection.prepare(Statement::Read, &self.statements[0]),
            (Step::Startup, Response::Authenticate(authenticator)) => {
                return Err(Loss::because(format!(
                    "it asks for credentials ({authenticator}), which this load cannot give yet; \
                     use AllowAllAuthenticator"
                )));
            }
            (Step::Prepare(statement), Response::Prepared(id)) => {
                let id = id.into();
                connection.prepared[statement as usize] = id;
                match statement {
                    Statement::Read => connection.prepare(Statement::Write, &self.statements[1]),
                    Statement::Write => {
                        let opened = !connection.established;
                        connection.make_ready();
                        self.is_ready(index, opened, at);
                    }
                }
            }
            (_, Response::Error { code, message }) => {
                return Err(Loss::because(format!("the server says: {message} (code {code:#06x})")));
            }
            _ => return Err("an answer of the wrong kind".into()),
        }
        Ok(())
    }

    fn answered(&mut self, coordinator: usize, open: Open, outcome: Outcome, finding: Option<Finding>, at: u64) {
        let Open { operation, version, timed_out, .. } = open;
        let intended = operation.intended;
        let acknowledged = operation.statement == Statement::Write && outcome == Outcome::Ok;
        if acknowledged {
            self.keys.acknowledge(operation.key, version);
        }
        if let Some(finding) = finding {
            self.ledger.found(intended, finding);
        }
        // Looked for before it was read, an answer in the last moment counts as late, and then not as too early.
        let at = if timed_out { at.max(intended + self.timeout_ns) } else { at };
        let sample = sample(&open, at);
        if timed_out {
            self.ledger.late(intended, coordinator, operation.statement, sample);
        } else if sample.0 + sample.1 > self.timeout_ns {
            // The wheel has not come round yet, but the user has gone.
            self.timed_out(coordinator, open, at);
            self.ledger.late(intended, coordinator, operation.statement, sample);
        } else {
            self.ledger.ended(intended, coordinator, operation.statement, outcome, sample);
            self.succeed(operation, acknowledged, at);
        }
    }

    fn timed_out(&mut self, coordinator: usize, open: Open, now: u64) {
        let Open { operation, sent_ns, .. } = open;
        // An operation that the kernel has not taken yet has only waited.
        let wait = if sent_ns == 0 { u64::MAX } else { sent_ns - operation.intended };
        let wait = wait.min(self.timeout_ns);
        let sample = (wait, self.timeout_ns - wait);
        self.ledger.ended(operation.intended, coordinator, operation.statement, Outcome::TimedOut, sample);
        self.succeed(operation, false, now);
    }

    /// Ends the operations whose timeout has passed: those on their way, and those that still wait.
    pub(super) fn expire(&mut self, now: u64) {
        while let Some(list) = self.wheel.take_due(now) {
            for watched in &list {
                let connection = &mut self.connections[watched.connection as usize];
                if let Some(open) = connection.time_out(watched.stream, watched.id) {
                    let coordinator = connection.coordinator;
                    self.timed_out(coordinator, open, now);
                }
            }
            self.wheel.recycle(list);
        }
        for index in 0..=self.targets.len() {
            loop {
                // Queues are in order of intended start, but for what a lost connection left behind.
                let queue = self.targets.get_mut(index).map_or(&mut self.homeless, |target| &mut target.queue);
                let timeout_ns = self.timeout_ns;
                let Some(&operation) = queue.front().filter(|first| first.intended + timeout_ns <= now) else { break };
                queue.pop_front();
                self.ledger.never_sent(operation.intended);
                self.succeed(operation, false, now);
            }
        }
    }

    /// Closes a connection and ends what was on its way; what waited for its coordinator goes elsewhere.
    pub(super) fn lose(&mut self, index: usize, loss: Loss) {
        let now = now_ns();
        let connection = &mut self.connections[index];
        let coordinator = connection.coordinator;
        let (state, established) = (connection.state, connection.established);
        self.end_all(index, ErrorClass::ConnectionLost, now);
        if self.is_starting() {
            let step = if let State::Opening { step, .. } = state { step } else { Step::Connect };
            self.fatal = Some(self.connect_error(coordinator, step, loss.reason));
            return;
        }
        if established {
            self.ledger.connection_lost(loss.garbage);
            self.event(coordinator, Some(loss.reason));
        }
        if !self.is_connected(coordinator) {
            for operation in std::mem::take(&mut self.targets[coordinator].queue) {
                self.place(operation, now);
            }
        }
    }

    /// Closes a connection; every operation on its way fails with `class`.
    fn end_all(&mut self, index: usize, class: ErrorClass, now: u64) {
        let connection: &mut Connection = &mut self.connections[index];
        let coordinator = connection.coordinator;
        for open in connection.close(now) {
            let operation = open.operation;
            if open.timed_out {
                self.ledger.never_answered(operation.intended);
            } else {
                let outcome = Outcome::Failed(class);
                let sample = sample(&open, now);
                self.ledger.ended(operation.intended, coordinator, operation.statement, outcome, sample);
                self.succeed(operation, false, now);
            }
        }
    }

    /// Ends all that is open, at the end of a run.
    pub(super) fn abandon(&mut self, now: u64) {
        let queues = self.targets.iter_mut().map(|target| std::mem::take(&mut target.queue));
        let waiting: Vec<_> = queues.chain([std::mem::take(&mut self.homeless)]).flatten().collect();
        for operation in waiting {
            self.ledger.never_sent(operation.intended);
        }
        for index in 0..self.connections.len() {
            self.end_all(index, ErrorClass::Abandoned, now);
        }
    }
}

/// Wait and service time of an operation that ended at `at`.
fn sample(open: &Open, at: u64) -> Sample {
    let intended = open.operation.intended;
    // What the kernel has not wholly taken has only waited so far.
    let sent_ns = if open.sent_ns == 0 { at.max(intended) } else { open.sent_ns };
    (sent_ns - intended, at.saturating_sub(sent_ns))
}

/// What an answer means for the operation that asked.
fn judge(open: &Open, response: &Response<'_>, value_size: usize) -> (Outcome, Option<Finding>) {
    let mismatch = (Outcome::Failed(ErrorClass::Mismatch), Some(Finding::Mismatch));
    match (open.operation.statement, response) {
        (Statement::Write, Response::Void) => (Outcome::Ok, None),
        (Statement::Read, Response::Value(Some(Some(content)))) => {
            match value::verify(content, open.operation.key, value_size) {
                None => mismatch,
                Some(version) if version < open.version => (Outcome::Ok, Some(Finding::Stale)),
                Some(_) => (Outcome::Ok, None),
            }
        }
        // The row is there, its value is null: nobody wrote that.
        (Statement::Read, Response::Value(Some(None))) => mismatch,
        (Statement::Read, Response::Value(None)) if open.version > 0 => {
            (Outcome::Failed(ErrorClass::Missing), Some(Finding::Missing))
        }
        (Statement::Read, Response::Value(None)) => (Outcome::Ok, Some(Finding::Empty)),
        (_, Response::Error { code, .. }) => (Outcome::Failed(classify(*code)), None),
        _ => (Outcome::Failed(ErrorClass::Unexpected), None),
    }
}
