//! One request, from its receipt to its answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brownout_base::clock::monotonic_ns;
use rustix::io::Errno;

use super::{Service, handshake};
use crate::{
    delay_queue::DelayedRequest,
    operation::Operation,
    passthrough::Done,
    protocol::{Arguments, Header, Opcode, Reply},
};

impl Service {
    /// Answers a request, or puts it aside.
    pub(super) fn answer(&self, bytes: &[u8], reply: &mut Reply) {
        let received_ns = monotonic_ns();
        let Some((header, arguments)) = Header::parse(bytes) else { return };
        let Some(opcode) = Opcode::from_number(header.opcode) else {
            return self.send(&header, Err(Errno::NOSYS), reply);
        };
        reply.clear();
        match opcode {
            Opcode::Init => {
                let agreed = handshake::agree(arguments, reply);
                self.send(&header, agreed, reply);
            }
            Opcode::Interrupt => self.interrupt(arguments),
            // None of these is answered.
            Opcode::Forget | Opcode::ForgetMany => self.forget(opcode, &header, arguments),
            Opcode::Destroy => self.send(&header, Ok(()), reply),
            _ => match opcode.operation() {
                None => {
                    let result = self.carry_out(opcode, &header, arguments, reply);
                    self.send(&header, result.map(drop), reply);
                }
                Some(operation) => self.answer_or_delay(operation, opcode, &header, (received_ns, bytes), reply),
            },
        }
    }

    /// Answers a request that a fault can hit, or puts it aside.
    fn answer_or_delay(
        &self,
        operation: Operation,
        opcode: Opcode,
        header: &Header,
        (received_ns, bytes): (u64, &[u8]),
        reply: &mut Reply,
    ) {
        let Some((_, arguments)) = Header::parse(bytes) else { return };
        let mut decision = self.shared.decide(operation, opcode.allocates());
        {
            // Before waits change hands: each is counted once, at the operation that a fault has hit.
            let mut counters = self.shared.counters();
            let counters = counters.of_mut(operation);
            counters.received += 1;
            counters.delayed += u64::from(!decision.waits.is_empty());
        }
        if opcode == Opcode::Sync {
            let is_healed = |fault| self.shared.delayed.is_healed(fault);
            decision.waits.extend(self.deferred.take(header.node, received_ns, is_healed));
        } else if !decision.waits.is_empty() && opcode == Opcode::Write && arguments.writes_back() {
            self.deferred.defer(header.node, received_ns, std::mem::take(&mut decision.waits));
        }
        if decision.waits.is_empty() {
            return self.conclude(opcode, header, arguments, (received_ns, decision.error), reply);
        }
        let (unique, caller) = (header.unique, header.thread);
        // It comes back only when the disk has ended; then nobody waits for its answer.
        let _ =
            self.shared.delayed.push(DelayedRequest { unique, caller, received_ns, bytes: bytes.to_vec(), decision });
    }

    /// The wait of this request is over.
    pub(super) fn finish(&self, request: DelayedRequest, reply: &mut Reply) {
        let Some((header, arguments)) = Header::parse(&request.bytes) else { return };
        let Some(opcode) = Opcode::from_number(header.opcode) else { return };
        self.conclude(opcode, &header, arguments, (request.received_ns, request.decision.error), reply);
    }

    /// The caller of this request was killed: what it asked for does not happen, as it would not if it had died before.
    pub(super) fn give_up(&self, request: &DelayedRequest, reply: &mut Reply) {
        let Some((header, _)) = Header::parse(&request.bytes) else { return };
        if let Some(operation) = Opcode::from_number(header.opcode).and_then(Opcode::operation) {
            self.shared.counters().of_mut(operation).interrupted += 1;
        }
        reply.clear();
        self.send(&header, Err(Errno::INTR), reply);
    }

    /// Carries out a request that a fault can hit, or fails it, counts it and answers it.
    fn conclude(
        &self,
        opcode: Opcode,
        header: &Header,
        arguments: Arguments<'_>,
        (received_ns, error): (u64, Option<Errno>),
        reply: &mut Reply,
    ) {
        let added_ns = monotonic_ns().saturating_sub(received_ns).max(1);
        reply.clear();
        let result = match error {
            Some(errno) => Err(errno),
            None => self.carry_out(opcode, header, arguments, reply),
        };
        // Counted before it is answered, so that who has the answer finds it counted.
        if let Some(operation) = opcode.operation() {
            let mut counters = self.shared.counters();
            let counters = counters.of_mut(operation);
            counters.answered += 1;
            counters.failed += u64::from(error.is_some());
            counters.refused += u64::from(error.is_none() && result.is_err());
            counters.bytes += result.map_or(0, |done| done.bytes);
            counters.added_ns.saturating_record(added_ns);
        }
        self.send(header, result.map(drop), reply);
    }

    fn carry_out(
        &self,
        opcode: Opcode,
        header: &Header,
        arguments: Arguments<'_>,
        reply: &mut Reply,
    ) -> Result<Done, Errno> {
        // A request that is never answered hangs its caller; a panic must not do that.
        let attempt = AssertUnwindSafe(|| self.passthrough.carry_out(opcode, header, arguments, reply));
        catch_unwind(attempt).unwrap_or(Err(Errno::IO))
    }

    fn send(&self, header: &Header, result: Result<(), Errno>, reply: &mut Reply) {
        // ENOENT: the caller did not wait; ENODEV: unmounted. Nobody is left to be told.
        let _ = rustix::io::write(&self.device, reply.finish(header.unique, result));
    }

    fn interrupt(&self, mut arguments: Arguments<'_>) {
        if let Ok(unique) = arguments.u64() {
            self.shared.delayed.interrupt(unique);
        }
    }

    fn forget(&self, opcode: Opcode, header: &Header, mut arguments: Arguments<'_>) {
        let mut forget_all = || -> Result<(), Errno> {
            if opcode == Opcode::Forget {
                self.passthrough.forget(header.node, arguments.u64()?);
                return Ok(());
            }
            let count = (arguments.u32()?, arguments.u32()?).0;
            for _ in 0..count {
                let (node, lookups) = (arguments.u64()?, arguments.u64()?);
                self.passthrough.forget(node, lookups);
            }
            Ok(())
        };
        // Cut short: what there was has been forgotten.
        let _ = forget_all();
    }
}
