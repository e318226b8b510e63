//! Control work on an etcd: single calls, one after another, by a thread that waits for them.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    AUTHENTICATE, Method, STATUS, Session, What, end_of,
    message::{
        AuthenticateRequest, AuthenticateResponse, CompactionRequest, DeleteRangeRequest, PutResponse, RangeRequest,
        RangeResponse,
    },
    status::Status,
};
use crate::{
    Coordinator, Credentials, LoadError, ThreadStart, WireOptions,
    limit::Limit,
    sys::Epoll,
    transport::Transport,
    wire::{Inbox, Outbox, Sender},
};

/// How long one member is tried before the next one has its turn: etcd itself gives a request up after 5 s and two
/// election times.
const PER_MEMBER: Duration = Duration::from_secs(10);
/// How often the caller is asked whether to go on.
const LOOK_NS: u64 = 100_000_000;
/// A rest after all members were tried.
const REST: Duration = Duration::from_millis(100);
/// The longest reply.
const LONGEST: usize = 1 << 20;
/// "required revision has been compacted": somebody was faster (`OUT_OF_RANGE`).
const COMPACTED: u32 = 11;

/// Deletes all keys of an etcd that begin with `prefix`, and forgets their history (compaction). Any of the
/// `coordinators` does that for all; they are tried in turn.
///
/// # Errors
/// No member can do it within `limit`, or the server refuses it.
pub fn clear_etcd<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    prefix: &str,
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    let limit = limit.into();
    let what = format!("deleting the keys that begin with '{prefix}'");
    let failed =
        |node: &str, reason: String| LoadError::Control { what: what.clone(), coordinator: node.to_owned(), reason };
    let body = || {
        thread_start().map_err(LoadError::ThreadStart)?;
        let deadline = Instant::now() + limit.time;
        loop {
            for node in coordinators {
                let until = deadline.min(Instant::now() + PER_MEMBER);
                let goes_on = || Instant::now() < until && !(limit.interrupted)();
                let state = match clear(node, wire, prefix, &goes_on) {
                    Ok(()) => return Ok(()),
                    Err(Trouble::Refused(reason)) => return Err(failed(&node.name, reason)),
                    Err(Trouble::Passing(reason)) => format!("{} ({}): {reason}", node.name, node.address),
                };
                if (limit.interrupted)() {
                    return Err(LoadError::Interrupted { what: what.clone() });
                }
                if Instant::now() >= deadline {
                    return Err(LoadError::Deadline { what: what.clone(), limit: limit.time, state });
                }
            }
            std::thread::sleep(REST);
        }
    };
    if coordinators.is_empty() {
        return Err(failed("nobody", "there is no member to ask".to_owned()));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("load-control".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(LoadError::system("a thread for control work"))?;
        thread.join().unwrap_or_else(|_| Err(failed("this program", "its thread panicked".to_owned())))
    })
}

/// Why a member did not do it.
enum Trouble {
    /// Another member, or another time, may help.
    Passing(String),
    /// The server will never do it.
    Refused(String),
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Trouble::Passing(reason)
    }
}

/// What the server says about `method`.
fn trouble(method: Method, status: &Status) -> Trouble {
    let reason = format!("the server says: {} (code {})", status.message, status.code);
    match status.class(method) {
        crate::ErrorClass::Invalid => Trouble::Refused(reason),
        _ => Trouble::Passing(reason),
    }
}

fn clear(node: &Coordinator, wire: &WireOptions, prefix: &str, goes_on: &dyn Fn() -> bool) -> Result<(), Trouble> {
    let mut client = Client::connect(node, wire, goes_on)?;
    let key = bytes::Bytes::copy_from_slice(prefix.as_bytes());
    let end = bytes::Bytes::from(end_of(prefix.as_bytes()));
    let all = DeleteRangeRequest { key: key.clone(), end: end.clone() };
    let deleted: PutResponse = client.call(Method::DeleteRange, &all)?;
    let revision = deleted.header.map_or(0, |header| header.revision);
    match client.ask::<PutResponse>(STATUS, Method::Compact, &CompactionRequest { revision, physical: false })? {
        Err(status) if status.code != COMPACTED => return Err(trouble(Method::Compact, &status)),
        Ok(_) | Err(_) => {}
    }
    let all = RangeRequest { key, end, count_only: true, ..RangeRequest::default() };
    let left: RangeResponse = client.call(Method::Range, &all)?;
    match left.count {
        0 => Ok(()),
        left => Err(Trouble::Passing(format!("{left} keys are there again; does something else write them?"))),
    }
}

/// A connection on which one call is made at a time.
struct Client<'a> {
    transport: Transport,
    epoll: Epoll,
    connected: bool,
    session: Session,
    outbox: Outbox,
    inbox: Inbox,
    goes_on: &'a dyn Fn() -> bool,
}

impl<'a> Client<'a> {
    /// Connects, as the user of the credentials, if there are any.
    fn connect(node: &Coordinator, wire: &WireOptions, goes_on: &'a dyn Fn() -> bool) -> Result<Self, Trouble> {
        let told = |error: io::Error| Trouble::Passing(error.to_string());
        let tls = wire.tls.as_ref().map(|tls| tls.speaking("h2"));
        let transport = Transport::connect(node.address, tls.as_ref(), &node.name).map_err(told)?;
        let epoll = Epoll::new().map_err(told)?;
        epoll.add(&transport, 0, true).map_err(told)?;
        let mut client = Client {
            transport,
            epoll,
            connected: false,
            session: Session::begin(node.address, tls.is_some(), LONGEST)?,
            outbox: Outbox::new(),
            inbox: Inbox::new(Sender::Server, LONGEST),
            goes_on,
        };
        while !client.session.is_open() {
            client.turn()?;
        }
        if let Some(Credentials { user, password }) = &wire.credentials {
            let request = AuthenticateRequest { name: user.clone(), password: password.clone() };
            match client.ask::<AuthenticateResponse>(AUTHENTICATE, Method::Authenticate, &request)? {
                Ok(reply) => client.session.carry(&reply.token)?,
                Err(status) if status.wants_no_login() => {}
                Err(status) => return Err(trouble(Method::Authenticate, &status)),
            }
        }
        Ok(client)
    }

    fn call<M: prost::Message + Default>(
        &mut self,
        method: Method,
        message: &impl prost::Message,
    ) -> Result<M, Trouble> {
        self.ask(STATUS, method, message)?.map_err(|status| trouble(method, &status))
    }

    /// Makes a call and waits for its reply.
    fn ask<M: prost::Message + Default>(
        &mut self,
        key: u32,
        method: Method,
        message: &impl prost::Message,
    ) -> Result<Result<M, Status>, String> {
        let left = || "the server takes no more calls".to_owned();
        self.session.call(key, method, message).map_err(|_| left())?;
        loop {
            let turned = self.turn();
            // What came before the end of the connection counts.
            while let Some(came) = self.session.next() {
                match came.what {
                    What::Message(_) => {}
                    What::Over(Err(status)) => return Ok(Err(status)),
                    What::Over(Ok(reply)) => {
                        let senseless = |error: prost::DecodeError| format!("a reply that makes no sense: {error}");
                        return M::decode(reply).map(Ok).map_err(senseless);
                    }
                }
            }
            turned?;
        }
    }

    /// Writes what there is, waits for a while, and reads what has come.
    fn turn(&mut self) -> Result<(), String> {
        let told = |error: io::Error| error.to_string();
        if !(self.goes_on)() {
            return Err("no answer in time".to_owned());
        }
        self.session.send(&mut self.outbox)?;
        while self.connected && (!self.outbox.is_empty() || self.transport.wants_write()) {
            match self.transport.write(self.outbox.unwritten()) {
                Ok(0) if !self.outbox.is_empty() => return Err("the socket takes no more bytes".to_owned()),
                Ok(count) => self.outbox.wrote(count, |_| ()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(told(error)),
            }
        }
        let waits = (self.transport.is_open() && !self.outbox.is_empty()) || self.transport.wants_write();
        self.epoll.watch_writable(&self.transport, 0, !self.connected || waits).map_err(told)?;
        self.epoll.wait(Some(LOOK_NS)).map_err(told)?;
        for index in 0..self.epoll.count() {
            let ready = self.epoll.ready(index);
            if ready.writable && !self.connected {
                self.transport.connected().map_err(told)?;
                self.connected = true;
            }
            if !ready.readable || !self.connected {
                continue;
            }
            match self.transport.receive(self.inbox.room()) {
                Ok((0, _)) => return Err("the server closed the connection".to_owned()),
                Ok((count, _)) => {
                    self.inbox.filled(count);
                    self.session.receive(self.inbox.take(), &mut self.outbox)?;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(())
    }
}
