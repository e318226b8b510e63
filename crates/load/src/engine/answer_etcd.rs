//! From what came on a connection to etcd to what it means: for operations, watches, and who leads.

use bytes::Bytes;

use super::{
    connection::{Loss, State, Step},
    worker::Worker,
};
use crate::{
    Credentials, ErrorClass, Meaning, Next, Received, Reply, ServerError,
    etcd::{
        Came, Method, WATCHES, What,
        message::{AuthenticateRequest, AuthenticateResponse, StatusResponse, WatchResponse},
        status::{Status, code},
    },
};

/// `Event.PUT`.
const PUT: i32 = 0;

impl Worker {
    /// Handles what was read from a connection, which had arrived at `at`.
    pub(super) fn hear(&mut self, index: usize, at: u64) -> Result<(), Loss> {
        let heard = self.connections[index].hear();
        // What came before the end of the connection counts.
        while let Some(came) = self.connections[index].next_reply() {
            self.came(index, came, at)?;
        }
        heard?;
        let connection = &self.connections[index];
        if matches!(connection.state, State::Opening { step: Step::Http, .. }) && connection.is_open() {
            self.log_in(index)?;
        }
        if let Some(loss) = self.connections[index].is_done() {
            return Err(loss);
        }
        if self.connections[index].owes() {
            self.touch(index);
        }
        Ok(())
    }

    fn came(&mut self, index: usize, came: Came, at: u64) -> Result<(), Loss> {
        let stream = came.stream();
        let Came { key, method, what } = came;
        match (stream, method, what) {
            (Some(stream), _, What::Over(result)) => self.replied(index, stream, method, result, at),
            (None, Method::Authenticate, What::Over(result)) => self.logged_in(index, result),
            (None, Method::Status, What::Over(result)) => self.told_status(index, result, at),
            (None, Method::Watch, What::Message(message)) => {
                self.watched(index, key.saturating_sub(WATCHES.start) as usize, message, at)
            }
            (None, Method::Watch, What::Over(result)) => {
                let reason = result.map_or_else(|status| said(&status), |_| "without a word".to_owned());
                Err(Loss::because(format!("a watch has ended: {reason}")))
            }
            // No other call goes on, and no other is made.
            _ => Ok(()),
        }
    }

    /// HTTP/2 is open.
    fn log_in(&mut self, index: usize) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        match &self.setup.config.wire.credentials {
            Some(Credentials { user, password }) => {
                let request = AuthenticateRequest { name: user.clone(), password: password.clone() };
                connection.ask(Step::Token, &request)?;
            }
            None => connection.ask(Step::Status, &())?,
        }
        self.has_asked(index);
        Ok(())
    }

    /// A call was made that is no operation's: it is sent, and when it is given up has to be found out.
    fn has_asked(&mut self, index: usize) {
        self.attention_ns = 0;
        self.touch(index);
    }

    fn logged_in(&mut self, index: usize, result: Result<Bytes, Status>) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        match result {
            Ok(reply) => {
                let reply: AuthenticateResponse = Reply::new(reply).read().ok_or("a token that makes no sense")?;
                connection.carry(&reply.token)?;
            }
            Err(status) if status.wants_no_login() => {}
            Err(status) => return Err(Loss::because(said(&status))),
        }
        connection.ask(Step::Status, &())?;
        self.has_asked(index);
        Ok(())
    }

    /// Asks who leads, besides all else.
    pub(super) fn ask_status(&mut self, index: usize) {
        match self.connections[index].ask_status(&()) {
            Ok(()) => self.has_asked(index),
            Err(loss) => self.lose(index, loss),
        }
    }

    fn told_status(&mut self, index: usize, result: Result<Bytes, Status>, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let opens = matches!(connection.state, State::Opening { step: Step::Status, .. });
        self.attention_ns = 0;
        match result {
            Ok(reply) => {
                let status: StatusResponse = Reply::new(reply).read().ok_or("a status that makes no sense")?;
                self.leader.told(connection.coordinator, &status);
            }
            Err(status) if opens => {
                // A member that is about to start says so.
                let passing = status.code == code::UNAVAILABLE;
                return Err(Loss { passing, ..Loss::because(said(&status)) });
            }
            // It is asked again.
            Err(_) => {}
        }
        connection.told_status(at);
        if opens { self.begin_watches(index, at) } else { Ok(()) }
    }

    fn begin_watches(&mut self, index: usize, at: u64) -> Result<(), Loss> {
        let connection = &mut self.connections[index];
        let watchers = self.watching.as_ref().map(|watching| watching.on(index)).unwrap_or_default();
        connection.begin_watches(watchers.len())?;
        if let Some(watching) = &self.watching {
            for watcher in watchers {
                connection.watch(watcher, &watching.request(watcher))?;
            }
        }
        self.has_asked(index);
        self.begin_if_watching(index, at);
        Ok(())
    }

    /// Operations begin once all watches of the connection have begun.
    fn begin_if_watching(&mut self, index: usize, at: u64) {
        let connection = &mut self.connections[index];
        let opens = matches!(connection.state, State::Opening { step: Step::Watches, .. });
        if opens && self.watching.as_ref().is_none_or(|watching| watching.have_begun(index)) {
            connection.make_ready();
            self.attention_ns = 0;
            self.is_ready(index, true, at);
        }
    }

    /// A watcher has an answer.
    fn watched(&mut self, index: usize, watcher: usize, message: Bytes, at: u64) -> Result<(), Loss> {
        let response: WatchResponse = Reply::new(message).read().ok_or("a watch's answer that makes no sense")?;
        let Some(watching) = &mut self.watching else { return Ok(()) };
        if response.canceled {
            if response.compact_revision == 0 {
                return Err(Loss::because(format!("a watch has ended: {}", response.cancel_reason)));
            }
            // What it was to be told is gone; it goes on with what is left.
            watching.knows(watcher, response.compact_revision);
            let request = watching.request(watcher);
            self.connections[index].watch_again(watcher, &request)?;
            self.has_asked(index);
            return Ok(());
        }
        if response.created {
            watching.begun(watcher, response.header.as_ref().map_or(0, |header| header.revision));
        }
        for event in &response.events {
            let Some(kv) = &event.kv else { continue };
            watching.knows(watcher, kv.mod_revision + 1);
            if event.kind == PUT
                && let Some(version) = self.workload.event(&kv.key, &kv.value)
            {
                watching.told(watcher, version, at, &mut self.ledger);
            }
        }
        if response.created {
            self.begin_if_watching(index, at);
        }
        Ok(())
    }

    /// The call of an operation is over.
    fn replied(
        &mut self,
        index: usize,
        stream: u16,
        method: Method,
        result: Result<Bytes, Status>,
        at: u64,
    ) -> Result<(), Loss> {
        // A token lives as long as its member keeps it in mind. Who logs in again has lost what was in flight, this call too.
        if result.as_ref().is_err_and(|status| status.code == code::UNAUTHENTICATED) {
            return Err(Loss::because("the server does not know the login any more"));
        }
        let connection = &mut self.connections[index];
        let open = connection.on(stream)?;
        let coordinator = connection.coordinator;
        let found = self.operations.get(open.handle).copied();
        let (operation, result) = match (found, result) {
            (Some(_), Err(status)) if status.lost => {
                connection.release(stream);
                self.end_lost(vec![open], ErrorClass::ConnectionLost, at);
                return Ok(());
            }
            (Some(operation), result) => (operation, result),
            (None, _) => {
                connection.release(stream);
                self.pump(coordinator, Some(at), at);
                return Ok(());
            }
        };
        let received = Received { at_ns: at, late: open.late, step: operation.step, coordinator: coordinator as u16 };
        let meaning = match result {
            Ok(reply) => self.workload.reply(operation.ticket, Reply::new(reply), &received),
            Err(status) => {
                let (class, code, message) = (status.class(method), status.code, &status.message[..]);
                self.workload.refused(operation.ticket, &ServerError { class, code, message }, &received);
                Meaning::failed(class)
            }
        };
        if meaning.next == Next::Done
            && let Some(watching) = &mut self.watching
            && let Some(version) = self.workload.version(operation.ticket)
        {
            watching.acknowledged(version);
        }
        connection.release(stream);
        self.answered(&operation, open, &meaning, at);
        self.pump(coordinator, Some(at), at);
        Ok(())
    }
}

fn said(status: &Status) -> String {
    format!("the server says: {} (code {})", status.message, status.code)
}
