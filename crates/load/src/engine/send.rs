//! From an operation that is due to a frame in a connection's output.

use super::{
    Operation, Statement,
    connection::{Connection, Open},
    wheel::Watched,
    worker::Worker,
};
use crate::{
    Balancing, murmur3_token,
    wire::request::{self, Row},
};

impl Worker {
    /// Sends an operation, or has it wait where it will be sent from.
    pub(super) fn place(&mut self, mut operation: Operation, now: u64) {
        let Some(coordinator) = self.choose(&operation) else {
            operation.queued = true;
            self.homeless.push_back(operation);
            return;
        };
        // Nobody overtakes those who wait.
        if self.targets[coordinator].queue.is_empty()
            && let Some(connection) = self.roomy_connection(coordinator)
        {
            self.send(connection, operation, now);
        } else {
            operation.queued = true;
            self.targets[coordinator].queue.push_back(operation);
        }
    }

    /// Sends what waits for a coordinator, as far as there is room.
    pub(super) fn pump(&mut self, coordinator: usize, now: u64) {
        while !self.targets[coordinator].queue.is_empty()
            && let Some(connection) = self.roomy_connection(coordinator)
            && let Some(operation) = self.targets[coordinator].queue.pop_front()
        {
            self.send(connection, operation, now);
        }
    }

    /// Whether it takes operations now, or will once its statements are prepared again.
    pub(super) fn is_connected(&self, coordinator: usize) -> bool {
        self.targets[coordinator].connections.clone().any(|index| self.connections[index].established)
    }

    /// The coordinator whose turn it is among those allowed and connected; `None` if none is connected.
    fn choose(&mut self, operation: &Operation) -> Option<usize> {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        if self.setup.config.balancing == Balancing::TokenAware {
            let replicas = self.setup.replicas.of(murmur3_token(&operation.key.to_be_bytes()));
            for step in 0..replicas.len() {
                let coordinator = replicas[turn.wrapping_add(step) % replicas.len()];
                if self.is_connected(coordinator) {
                    if step > 0 {
                        self.ledger.rerouted(operation.intended);
                    }
                    return Some(coordinator);
                }
            }
        }
        let count = self.targets.len();
        for step in 0..count {
            let coordinator = turn.wrapping_add(step) % count;
            if self.is_connected(coordinator) {
                if step > 0 || self.setup.config.balancing == Balancing::TokenAware {
                    self.ledger.rerouted(operation.intended);
                }
                return Some(coordinator);
            }
        }
        None
    }

    /// The connection whose turn it is among those of a coordinator that have room.
    fn roomy_connection(&mut self, coordinator: usize) -> Option<usize> {
        let target = &mut self.targets[coordinator];
        let count = target.connections.len();
        let turn = target.turn;
        target.turn = turn.wrapping_add(1);
        (0..count)
            .map(|step| target.connections.start + turn.wrapping_add(step) % count)
            .find(|index| self.connections[*index].has_room())
    }

    fn send(&mut self, connection: usize, operation: Operation, now: u64) {
        let Operation { intended, key, statement, .. } = operation;
        let version = match statement {
            Statement::Read => self.keys.acknowledged(key),
            Statement::Write => self.keys.next_version(self.unix_offset_us + now / 1_000),
        };
        let id = self.next_id;
        self.next_id += 1;
        let (consistency, size) = (self.consistency, self.value_size);
        let open = Open { operation, id, sent_ns: 0, version, timed_out: false };
        let target: &mut Connection = &mut self.connections[connection];
        let stream = target.send(open, |out, stream, prepared| match statement {
            Statement::Read => request::read(out, stream, prepared, consistency, key),
            Statement::Write => request::write(out, stream, prepared, consistency, &Row { key, version, size }),
        });
        self.ledger.sent(intended);
        self.wheel
            .watch(intended.saturating_add(self.timeout_ns), Watched { connection: connection as u32, stream, id });
    }
}
