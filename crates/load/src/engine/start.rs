//! Starts operations: those that are due by a schedule, and those of users who are free.

use super::{
    flow::Source,
    operations::{Operation, OperationState},
    worker::Worker,
};
use crate::{Drawn, Pace};

/// Operations started per turn of the loop. After a stall the schedule is caught up in several turns, so that
/// answers are read in between.
const MOST_STARTS: usize = 1024;

impl Worker {
    /// Schedules new paces, one for every flow, for `at_ns` or as soon as possible after it; returns when they begin.
    pub(super) fn change_paces(&mut self, at_ns: u64, paces: Vec<Pace>) -> u64 {
        // What was handed out as settled must stay settled.
        let at_ns = at_ns.max(self.horizon_ns);
        self.pending.retain(|(before, _)| *before < at_ns);
        self.pending.push_back((at_ns, paces));
        at_ns
    }

    /// Starts what is due. `true` if there is more to start at once.
    pub(super) fn start_operations(&mut self, now: u64) -> bool {
        let mut left = MOST_STARTS;
        let more = self.start_due(now, &mut left);
        if left < MOST_STARTS {
            (self.last_start_ns, self.last_starts) = (now, MOST_STARTS - left);
        }
        self.horizon_ns = self.flows.iter().map(|flow| flow.horizon_ns(now)).min().unwrap_or(now);
        more
    }

    fn start_due(&mut self, now: u64, left: &mut usize) -> bool {
        loop {
            let end = self.pending.front().map_or(u64::MAX, |(at, _)| *at);
            let held_back = now < end && now < self.last_start_ns + self.coalesce_ns;
            let mut more = false;
            for flow in 0..self.flows.len() {
                self.restart_users(flow, end, now);
                if !held_back {
                    more |= self.start_scheduled(flow, end, now, left);
                }
            }
            if more {
                return true;
            }
            if end > now {
                return false;
            }
            if let Some((at, paces)) = self.pending.pop_front() {
                self.begin(at, paces);
            }
        }
    }

    fn begin(&mut self, at: u64, paces: Vec<Pace>) {
        for (number, pace) in paces.into_iter().enumerate() {
            if let Some(limiter) = self.flows[number].limiter() {
                self.ledger.withheld(limiter, at);
            }
            if pace != Pace::Idle {
                self.workload.begin(number);
            }
            self.flows[number].begin(at, pace, number, self.index, &self.setup.config);
        }
    }

    /// Starts operations by the clock, up to `left` that are due before `end`. `true` if more are due.
    fn start_scheduled(&mut self, flow: usize, end: u64, now: u64, left: &mut usize) -> bool {
        // The old schedule ends just before the new pace begins.
        let until = now.min(end.saturating_sub(1));
        loop {
            let state = &mut self.flows[flow];
            let due = !state.parked
                && match &mut state.source {
                    Source::Open(schedule) => schedule.next_ns() <= until,
                    Source::Limited { limiter, free, .. } => *free > 0 && limiter.next_ns() <= until,
                    Source::Idle | Source::Closed { .. } => false,
                };
            if !due || *left == 0 {
                return due;
            }
            *left -= 1;
            let Some(drawn) = self.workload.draw(flow) else {
                if self.workload.more_later(flow) {
                    state.parked = true;
                } else {
                    state.retire();
                }
                return false;
            };
            let (intended, from) = match &mut state.source {
                Source::Open(schedule) => match schedule.take_due(until) {
                    Some(intended) => (intended, intended),
                    None => return false,
                },
                Source::Limited { limiter, free, since } => {
                    *free -= 1;
                    // No user was free before that, so no timeout could run.
                    let intended = limiter.take(drawn.partitions);
                    (intended, intended.max(*since))
                }
                Source::Idle | Source::Closed { .. } => return false,
            };
            self.start(flow, drawn, intended, from, now);
        }
    }

    /// Starts the next operation of every free user.
    fn restart_users(&mut self, flow: usize, end: u64, now: u64) {
        let state = &mut self.flows[flow];
        while let Some(at) = state.resting.front().copied().filter(|at| *at <= now) {
            state.resting.pop_front();
            state.restarts.push(at);
        }
        if state.restarts.is_empty() || state.parked {
            return;
        }
        // Starting an operation frees no users, so this ends.
        let mut restarts = std::mem::take(&mut self.restarts);
        std::mem::swap(&mut restarts, &mut self.flows[flow].restarts);
        for intended in restarts.drain(..).filter(|intended| *intended < end) {
            match self.workload.draw(flow) {
                Some(drawn) => self.start(flow, drawn, intended, intended, now),
                None if self.workload.more_later(flow) => {
                    self.flows[flow].parked = true;
                    self.flows[flow].restarts.push(intended);
                }
                None => self.flows[flow].retire(),
            }
        }
        self.restarts = restarts;
    }

    /// Starts an operation whose timeout counts from `from`; if that is not its intended start, it has waited for a
    /// user.
    fn start(&mut self, flow: usize, drawn: Drawn, intended: u64, from: u64, now: u64) {
        self.ledger.scheduled(intended);
        let handle = self.operations.insert(Operation {
            ticket: drawn.ticket,
            intended,
            deadline: from.saturating_add(self.timeout_ns),
            first_sent: 0,
            name: drawn.operation,
            flow: flow as u16,
            pace: self.flows[flow].pace,
            coordinator: 0,
            outstanding: 0,
            attempt: 0,
            step: 0,
            requests: 0,
            place: (0, 0),
            state: OperationState::Waiting,
            owed: from.max(self.flows[flow].unparked_ns),
            queued: false,
            awaited: false,
        });
        self.watch(handle, from.saturating_add(self.timeout_ns), now);
        self.place(handle, now);
    }

    /// An operation has ended for its user, who starts the next one; a late answer does not help the user.
    pub(super) fn succeed(&mut self, flow: u16, pace: u32, well: bool, at: u64) {
        let flow = &mut self.flows[usize::from(flow)];
        if flow.pace == pace {
            // The answer came before it was read, but what was handed out as settled must stay settled.
            let from = at.max(self.horizon_ns);
            if flow.waits_for_users() {
                // The user's next operation does not show what the client has missed of that time.
                self.ledger.idled(at..from);
            }
            flow.succeed(well, from);
        }
    }

    /// Whether users of a closed loop are free to start.
    pub(super) fn has_restarts(&self) -> bool {
        self.flows.iter().any(|flow| !flow.restarts.is_empty() && !flow.parked)
    }
}
