//! From an operation that is due to a request in a connection's output.

use super::{
    connection::Open,
    operations::{Handle, OperationState},
    wheel::Timeout,
    worker::Worker,
};
use crate::{Balancing, Ended, ErrorClass, Outcome, Received, RequestError, Route, Sending, ServerError};

/// Every operation is checked at least this often. Few live longer, so the size of the wheel does not grow with the
/// timeout.
const LOOK_NS: u64 = 250_000_000;

/// This many requests are put on one connection before the next one has its turn.
const MOST_TOGETHER: usize = 32;

impl Worker {
    /// Sends the operation's next request, or queues it where it will be sent from.
    pub(super) fn place(&mut self, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get(handle) else { return };
        let (ticket, intended) = (operation.ticket, operation.intended);
        if self.driven.is_some() {
            self.place_driven(handle, now);
            return;
        }
        let by_token = self.setup.config.balancing == Balancing::TokenAware;
        let coordinator = match self.workload.route(ticket, by_token) {
            Route::Coordinator(place) if usize::from(place) < self.targets.len() => Some(usize::from(place)),
            route => self.choose(route, intended),
        };
        self.place_on(handle, coordinator, now);
    }

    /// The same for the next page, preferably on the coordinator that returned the previous one.
    pub(super) fn place_again(&mut self, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get(handle) else { return };
        let coordinator = usize::from(operation.coordinator);
        if self.is_connected(coordinator) {
            self.place_on(handle, Some(coordinator), now);
        } else {
            self.place(handle, now);
        }
    }

    fn place_on(&mut self, handle: Handle, coordinator: Option<usize>, now: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        operation.state = OperationState::Waiting;
        let Some(coordinator) = coordinator else {
            operation.queued = true;
            self.unplaced.push_back(handle);
            return;
        };
        operation.coordinator = coordinator as u16;
        // Operations that are already waiting go first.
        if self.targets[coordinator].queue.is_empty()
            && let Some(connection) = self.roomy_connection(coordinator)
        {
            self.send(connection, handle, now);
        } else {
            if let Some(operation) = self.operations.get_mut(handle) {
                operation.queued = true;
            }
            self.targets[coordinator].queue.push_back(handle);
        }
    }

    /// Sends what waits for a coordinator, as far as there is room. If that is because a stream was `freed`, what was
    /// there for it to send could go from that time on.
    pub(super) fn pump(&mut self, coordinator: usize, freed: Option<u64>, now: u64) {
        while let Some(&handle) = self.targets[coordinator].queue.front() {
            // Operations that were given up no longer wait.
            let Some(operation) =
                self.operations.get(handle).filter(|operation| operation.state == OperationState::Waiting)
            else {
                self.targets[coordinator].queue.pop_front();
                continue;
            };
            if operation.deadline <= now {
                self.targets[coordinator].queue.pop_front();
                self.time_out(handle, now);
                continue;
            }
            let Some(connection) = self.roomy_connection(coordinator) else { return };
            self.targets[coordinator].queue.pop_front();
            if let (Some(at), Some(operation)) = (freed, self.operations.get_mut(handle)) {
                operation.owe_from(at);
            }
            self.send(connection, handle, now);
        }
    }

    /// Whether it accepts operations now, or will once its statements are prepared again.
    pub(super) fn is_connected(&self, coordinator: usize) -> bool {
        let takes = |index: usize| self.connections[index].established && self.connections[index].leaving().is_none();
        self.targets[coordinator].connections.clone().any(takes)
    }

    /// The coordinator whose turn it is among those allowed and connected; `None` if none is connected.
    fn choose(&mut self, route: Route, intended: u64) -> Option<usize> {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let by_token = self.setup.config.balancing == Balancing::TokenAware;
        let mut passed = false;
        if self.setup.config.balancing == Balancing::Leader {
            if let Some(leader) = self.leader.coordinator().filter(|leader| self.is_connected(*leader)) {
                return Some(leader);
            }
            passed = true;
        }
        if by_token
            && let Route::Token { table, token } = route
            && let Some(replicas) = self.setup.replicas.get(usize::from(table))
        {
            let replicas = replicas.of(token);
            for step in 0..replicas.len() {
                let coordinator = replicas[turn.wrapping_add(step) % replicas.len()];
                if self.is_connected(coordinator) {
                    if step > 0 {
                        self.ledger.rerouted(intended);
                    }
                    return Some(coordinator);
                }
            }
            // If no replica takes the load at all, any coordinator is as good as another, and nothing is rerouted.
            passed = !replicas.is_empty();
        }
        let mut first = 0;
        for tier in 0..self.tier_ends.len() {
            let end = self.tier_ends[tier];
            let count = end - first;
            for step in 0..count {
                let coordinator = first + turn.wrapping_add(step) % count;
                if self.is_connected(coordinator) {
                    if step > 0 || tier > 0 || passed {
                        self.ledger.rerouted(intended);
                    }
                    return Some(coordinator);
                }
            }
            first = end;
        }
        None
    }

    /// The connection whose turn it is among those of a coordinator with room. What is sent in one turn of the loop
    /// goes out together in one write on one connection, up to a limit.
    fn roomy_connection(&mut self, coordinator: usize) -> Option<usize> {
        let target = &mut self.targets[coordinator];
        if let Some(index) = target.filling
            && let Some(connection) = self.connections.get(index)
            && connection.touched
            && connection.unsent() < MOST_TOGETHER
            && connection.has_room()
        {
            return Some(index);
        }
        let count = target.connections.len();
        let turn = target.turn;
        target.turn = turn.wrapping_add(1);
        target.filling = (0..count)
            .map(|step| target.connections.start + turn.wrapping_add(step) % count)
            .find(|index| self.connections[*index].has_room());
        target.filling
    }

    fn send(&mut self, index: usize, handle: Handle, now: u64) {
        let Some(operation) = self.operations.get_mut(handle) else { return };
        if operation.requests == 0 {
            self.ledger.sent(operation.intended);
        }
        operation.requests += 1;
        operation.outstanding += 1;
        operation.state = OperationState::OnWay;
        let (ticket, number) = (operation.ticket, operation.requests);
        let unix_us = self.unix_offset_us + now / 1_000;
        let sending = Sending { now_ns: now, unix_us, attempt: operation.attempt, step: operation.step };
        let open = Open { handle, sent_ns: 0, late: false };
        let (workload, target) = (&mut self.workload, &mut self.connections[index]);
        let sent = if target.speaks_etcd() {
            target.call(open, |call| workload.call(ticket, &sending, call))
        } else {
            target.send(open, |request| workload.request(ticket, &sending, request))
        };
        let stream = match sent {
            Ok(stream) => stream,
            Err(RequestError::Leaving) => {
                operation.outstanding -= 1;
                let operation = *operation;
                // It is closed once nothing is awaited on it any more.
                self.touch(index);
                self.count_attempt(&operation, Outcome::Failed(ErrorClass::ConnectionLost), 0);
                self.failed(handle, ErrorClass::ConnectionLost, now);
                return;
            }
            Err(error) => {
                operation.outstanding -= 1;
                operation.requests -= 1;
                let coordinator = target.coordinator;
                self.unwritable(handle, coordinator, &error.to_string(), now);
                return;
            }
        };
        operation.place = (index as u32, stream);
        self.ledger.request(operation.intended, operation.name);
        if let Some(watching) = &mut self.watching
            && let Some(version) = self.workload.version(ticket)
        {
            watching.sent(version, operation.intended, operation.deadline, now, &mut self.ledger);
        }
        self.touch(index);
        self.watch_attempt(handle, number, now);
    }

    /// Schedules the timeout of a request, if it has one of its own.
    pub(super) fn watch_attempt(&mut self, handle: Handle, number: u32, now: u64) {
        if let Some(timeout_ns) = self.attempt_timeout_ns {
            self.wheel.watch(now.saturating_add(timeout_ns), Timeout { handle, request: number });
        }
    }

    /// A request could not be written, and another attempt would fail, too.
    pub(super) fn unwritable(&mut self, handle: Handle, coordinator: usize, message: &str, now: u64) {
        let Some(operation) = self.operations.get(handle).copied() else { return };
        let class = ErrorClass::Unwritable;
        let received = Received { at_ns: now, late: false, step: operation.step, coordinator: coordinator as u16 };
        self.workload.refused(operation.ticket, &ServerError { class, code: 0, message }, &received);
        self.count_attempt(&operation, Outcome::Failed(class), 0);
        self.end(handle, Ended::Failed(class), now);
    }

    /// Schedules a check of the operation at its deadline or before.
    pub(super) fn watch(&mut self, handle: Handle, deadline: u64, now: u64) {
        self.wheel.watch(deadline.min(now.saturating_add(LOOK_NS)), Timeout { handle, request: 0 });
    }
}
