//! What is spoken on a connection to etcd.

use super::{Connection, Loss, Step};
use crate::{
    Call, RequestError,
    etcd::{AUTHENTICATE, Came, Method, STATUS, Session, WATCHES, message::WatchRequest},
    wire::Outbox,
};

/// How often a member is asked who leads.
const ASKED_EVERY_NS: u64 = 250_000_000;

/// gRPC on one connection, and what is asked on it besides operations.
pub(super) struct Etcd {
    /// From when it is connected on.
    session: Option<Session>,
    /// Whether it is asked again and again who leads.
    asks: bool,
    /// When it is next.
    asks_ns: u64,
    /// The longest reply, in bytes.
    longest: usize,
    /// How many calls there may be besides those of operations.
    others: usize,
}

/// Who leads, and a token.
const SINGLE_CALLS: usize = 2;

impl Etcd {
    /// Whether an operation can be called beside `in_flight` others, with less than `most_unsent` bytes waiting.
    pub(super) fn has_room(&self, in_flight: usize, most_unsent: usize) -> bool {
        self.session.as_ref().is_some_and(|session| {
            session.leaving().is_none()
                && session.waiting() < most_unsent
                && in_flight + self.others < session.most_calls()
        })
    }

    /// Why no operation can ever be called beside `more` other calls, if none can.
    fn too_narrow(&self, more: usize) -> Option<Loss> {
        let (most, others) = (self.session.as_ref()?.most_calls(), self.others + more);
        let reason = || {
            format!(
                "the server takes {most} calls at a time (max-concurrent-streams), and the load needs {others} for who \
                 leads and for watches, beside those of operations"
            )
        };
        (most <= others).then(|| Loss::because(reason()))
    }

    pub(super) fn unsent(&self) -> usize {
        self.session.as_ref().map_or(0, Session::unsent)
    }

    pub(super) fn unsent_streams(&self) -> impl Iterator<Item = u16> {
        self.session.iter().flat_map(Session::unsent_streams)
    }

    /// When it is to be asked who leads; `u64::MAX` for never.
    pub(super) fn asks_ns(&self) -> u64 {
        let takes = self.session.as_ref().is_some_and(|session| session.leaving().is_none());
        if takes { self.asks_ns } else { u64::MAX }
    }

    pub(super) fn operation(&mut self, stream: u16, write: impl FnOnce(Call<'_>)) -> Result<(), RequestError> {
        let Some(session) = &mut self.session else { return Err(RequestError::Leaving) };
        match session.operation(stream, |method, message| write(Call::new(method, message))) {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(RequestError::Nothing),
            Err(_) => Err(RequestError::Leaving),
        }
    }

    pub(super) fn send(&mut self, outbox: &mut Outbox) -> Result<(), Loss> {
        self.session.as_mut().map_or(Ok(()), |session| session.send(outbox)).map_err(Loss::because)
    }

    pub(super) fn forget(&mut self, stream: u16) {
        if let Some(session) = &mut self.session {
            session.forget(stream);
        }
    }

    pub(super) fn close(&mut self) {
        self.session = None;
        self.asks_ns = u64::MAX;
        self.others = SINGLE_CALLS;
    }
}

impl Connection {
    /// From now on it speaks etcd's API and not CQL; replies may be up to `longest` bytes long. `asks`: it asks who
    /// leads, again and again.
    pub(in crate::engine) fn speak_etcd(&mut self, longest: usize, asks: bool) {
        self.etcd = Some(Box::new(Etcd { session: None, asks, asks_ns: u64::MAX, longest, others: SINGLE_CALLS }));
    }

    /// Whether that is what it speaks.
    pub(in crate::engine) fn speaks_etcd(&self) -> bool {
        self.etcd.is_some()
    }

    /// It is connected: HTTP/2 begins.
    pub(super) fn begin_http(&mut self) -> Result<(), Loss> {
        self.advance(Step::Http);
        let (address, encrypted) = (self.target.address, self.options.tls.is_some());
        if let Some(etcd) = &mut self.etcd {
            etcd.session = Some(Session::begin(address, encrypted, etcd.longest).map_err(Loss::because)?);
        }
        Ok(())
    }

    /// What was read becomes what [`Connection::next_reply`] returns.
    ///
    /// # Errors
    /// HTTP/2 is over. What came before is returned all the same.
    pub(in crate::engine) fn hear(&mut self) -> Result<(), Loss> {
        let Some(session) = self.etcd.as_mut().and_then(|etcd| etcd.session.as_mut()) else { return Ok(()) };
        session.receive(self.inbox.take(), &mut self.outbox).map_err(Loss::because)
    }

    /// What has come next.
    pub(in crate::engine) fn next_reply(&mut self) -> Option<Came> {
        self.etcd.as_mut()?.session.as_mut()?.next()
    }

    /// Whether the server has begun HTTP/2, too.
    pub(in crate::engine) fn is_open(&self) -> bool {
        self.etcd.as_ref().and_then(|etcd| etcd.session.as_ref()).is_some_and(Session::is_open)
    }

    /// Why it takes no more requests although it is not closed yet: the server will close it.
    pub(in crate::engine) fn leaving(&self) -> Option<&str> {
        self.etcd.as_ref()?.session.as_ref()?.leaving()
    }

    /// Whether it is to be closed now: the server will, and owes no answer any more.
    pub(in crate::engine) fn is_done(&self) -> Option<Loss> {
        let reason = self.leaving().filter(|_| self.in_flight() == 0)?;
        Some(Loss::because(reason))
    }

    /// Goes on with this step, for which `message` is called.
    pub(in crate::engine) fn ask(&mut self, step: Step, message: &impl prost::Message) -> Result<(), Loss> {
        self.advance(step);
        let (key, method) = match step {
            Step::Token => (AUTHENTICATE, Method::Authenticate),
            _ => (STATUS, Method::Status),
        };
        self.called(key, method, message)
    }

    /// Asks who leads, besides all else.
    pub(in crate::engine) fn ask_status(&mut self, message: &impl prost::Message) -> Result<(), Loss> {
        if let Some(etcd) = &mut self.etcd {
            // Not again before it is answered.
            etcd.asks_ns = u64::MAX;
        }
        self.called(STATUS, Method::Status, message)
    }

    /// Who leads was told at `now`: it is asked again in a while, if that is its business.
    pub(in crate::engine) fn told_status(&mut self, now: u64) {
        if let Some(etcd) = self.etcd.as_mut().filter(|etcd| etcd.asks) {
            etcd.asks_ns = now + ASKED_EVERY_NS;
        }
    }

    /// Whether a ready connection is to ask who leads.
    pub(in crate::engine) fn is_to_ask(&self, now: u64) -> bool {
        self.is_ready() && self.etcd.as_ref().is_some_and(|etcd| etcd.asks_ns() <= now)
    }

    /// Watches from now on.
    pub(in crate::engine) fn watch(&mut self, watcher: usize, message: &WatchRequest) -> Result<(), Loss> {
        if let Some(etcd) = &mut self.etcd {
            etcd.others += 1;
        }
        self.called(WATCHES.start + watcher as u32, Method::Watch, message)
    }

    /// Begins a watch that the server has ended once more, on the same stream.
    pub(in crate::engine) fn watch_again(&mut self, watcher: usize, message: &WatchRequest) -> Result<(), Loss> {
        let session = self.etcd.as_mut().and_then(|etcd| etcd.session.as_mut());
        let said = session.map(|session| session.say(WATCHES.start + watcher as u32, message));
        match said {
            Some(Ok(())) => Ok(()),
            _ => Err(Loss::because("a watch has ended")),
        }
    }

    /// It goes on with so many watches.
    ///
    /// # Errors
    /// They leave no room for operations.
    pub(in crate::engine) fn begin_watches(&mut self, watches: usize) -> Result<(), Loss> {
        self.advance(Step::Watches);
        self.etcd.as_ref().and_then(|etcd| etcd.too_narrow(watches)).map_or(Ok(()), Err)
    }

    /// Calls carry this token.
    pub(in crate::engine) fn carry(&mut self, token: &str) -> Result<(), Loss> {
        let session = self.etcd.as_mut().and_then(|etcd| etcd.session.as_mut());
        session.map_or(Ok(()), |session| session.carry(token)).map_err(Loss::because)
    }

    fn called(&mut self, key: u32, method: Method, message: &impl prost::Message) -> Result<(), Loss> {
        let Some(session) = self.etcd.as_mut().and_then(|etcd| etcd.session.as_mut()) else { return Ok(()) };
        session
            .call(key, method, message)
            .map_err(|_| Loss::because(session.leaving().unwrap_or("the server takes no more requests").to_owned()))
    }
}
