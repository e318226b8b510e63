//! gRPC over HTTP/2 on one connection: calls in flight, and what comes of them.
//!
//! `h2` does HTTP/2 and knows nothing of the socket ([`Pipe`]). It is polled from the engine's event loop when bytes
//! have come or calls were made, so it needs no runtime and no timers; it says which streams have news by their wakers.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::{
    RecvStream, SendStream,
    client::{self, Connection, ResponseFuture, SendRequest},
};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version, header};

use super::{
    Method,
    pipe::{Frames, Pipe},
    status::{Status, code},
};
use crate::wire::Outbox;

/// What a server may send on a stream, and on the connection, before it has to wait for us: much more than is on its
/// way, so that windows cost no round trips. These are the sizes that the prototype was measured with.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// `h2` takes many small replies that come at once for an attack, if they are more than this stands for. They are
/// etcd's usual answers, and read at once.
const DATA_FRAME_BUDGET: usize = 1 << 30;
/// Before every message: whether it is compressed (1), its length (4).
const PREFIX: usize = 5;

/// The key of the call that asks who leads.
pub(crate) const STATUS: u32 = 0;
/// The key of the call that exchanges credentials for a token.
pub(crate) const AUTHENTICATE: u32 = 1;
/// The keys of watches, by the number of the watcher.
pub(crate) const WATCHES: std::ops::Range<u32> = 2..OPERATIONS;
/// From here on, keys are streams of operations.
const OPERATIONS: u32 = 128;

/// Something has come for a call.
#[derive(Debug)]
pub(crate) struct Came {
    /// The call's; of an operation's, see [`Came::stream`].
    pub(crate) key: u32,
    pub(crate) method: Method,
    pub(crate) what: What,
}

impl Came {
    /// The stream of the operation whose call this is; `None`: it is no operation's.
    pub(crate) fn stream(&self) -> Option<u16> {
        self.key.checked_sub(OPERATIONS).and_then(|stream| u16::try_from(stream).ok())
    }
}

/// What has come.
#[derive(Debug)]
pub(crate) enum What {
    /// A message of a call that goes on.
    Message(Bytes),
    /// The call is over: its reply, or why there is none.
    Over(Result<Bytes, Status>),
}

/// Which calls have news.
#[derive(Debug, Default)]
struct News(Mutex<Vec<u32>>);

impl News {
    fn list(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waker of one call.
struct Bell {
    key: u32,
    news: Arc<News>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.news.list().push(self.key);
    }
}

/// Where a call has its place, one after another.
struct Seat {
    waker: Waker,
    exchange: Option<Exchange>,
}

/// A call in flight.
struct Exchange {
    method: Method,
    response: Response,
    /// What has come of a message that is not whole.
    buffer: Bytes,
    /// What the head has said of how it ended.
    told: Option<Status>,
    /// To say more.
    sender: SendStream<Bytes>,
}

/// What of a response is to come next.
enum Response {
    Head(ResponseFuture),
    Body(RecvStream),
}

/// An operation's call that has not wholly become output.
struct Staged {
    /// Of HTTP/2.
    id: u32,
    /// Of the operation.
    stream: u16,
    bytes: usize,
}

/// A connection's HTTP/2, from its first byte on.
pub(crate) struct Session {
    pipe: Pipe,
    frames: Frames,
    http: Connection<Pipe, Bytes>,
    requests: SendRequest<Bytes>,
    /// By method.
    uris: Vec<Uri>,
    headers: HeaderMap,
    /// The longest message that is taken.
    longest: usize,
    news: Arc<News>,
    seats: Vec<Seat>,
    came: VecDeque<Came>,
    staged: VecDeque<Staged>,
    staged_bytes: usize,
    /// Why no call can be made any more, though those in flight may still be answered.
    leaving: Option<String>,
    // Reused.
    awake: Vec<u32>,
    output: Vec<u8>,
    message: Vec<u8>,
    room: BytesMut,
}

impl Session {
    /// Begins with a server; what has to be sent first is output. Replies may be up to `longest` bytes long.
    pub(crate) fn begin(address: SocketAddr, encrypted: bool, longest: usize) -> Result<Session, String> {
        let pipe = Pipe::default();
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // None until the server's settings are here: see `Session::is_open`.
            .initial_max_send_streams(0)
            .data_frame_budget(DATA_FRAME_BUDGET)
            .enable_push(false);
        let handshake = pin!(builder.handshake::<_, Bytes>(pipe.clone()));
        let Poll::Ready(begun) = handshake.poll(&mut nobody()) else {
            return Err("the start of HTTP/2 waits, though nothing can make it wait".to_owned());
        };
        let (requests, http) = begun.map_err(|error| error.to_string())?;
        let scheme = if encrypted { "https" } else { "http" };
        let uri = |method: &Method| {
            let uri = Uri::builder().scheme(scheme).authority(address.to_string()).path_and_query(method.path());
            uri.build().map_err(|error| error.to_string())
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        Ok(Session {
            pipe,
            frames: Frames::new(),
            http,
            requests,
            uris: Method::ALL.iter().map(uri).collect::<Result<_, _>>()?,
            headers,
            longest,
            news: Arc::default(),
            seats: Vec::new(),
            came: VecDeque::new(),
            staged: VecDeque::new(),
            staged_bytes: 0,
            leaving: None,
            awake: Vec::new(),
            output: Vec::new(),
            message: Vec::new(),
            room: BytesMut::new(),
        })
    }

    /// From now on, calls carry this token.
    pub(crate) fn carry(&mut self, token: &str) -> Result<(), String> {
        let mut token = HeaderValue::from_str(token).map_err(|error| format!("the server's token: {error}"))?;
        token.set_sensitive(true);
        self.headers.insert("token", token);
        Ok(())
    }

    /// Whether the server's settings are here, and with them how many calls it takes at a time.
    pub(crate) fn is_open(&self) -> bool {
        self.most_calls() > 0
    }

    /// How many calls the server takes at a time.
    pub(crate) fn most_calls(&self) -> usize {
        self.requests.current_max_send_streams()
    }

    /// Why no call can be made any more: the server has said that it will close the connection.
    pub(crate) fn leaving(&self) -> Option<&str> {
        self.leaving.as_deref()
    }

    /// Bytes of operations' calls that have not become output yet: of those made since the last turn, and those for
    /// which the server has no window.
    pub(crate) fn waiting(&self) -> usize {
        self.staged_bytes
    }

    /// How many operations' calls those are.
    pub(crate) fn unsent(&self) -> usize {
        self.staged.len()
    }

    /// Their streams.
    pub(crate) fn unsent_streams(&self) -> impl Iterator<Item = u16> {
        self.staged.iter().map(|staged| staged.stream)
    }

    /// Makes the call of an operation, which `write` writes. `None`: it has written none.
    ///
    /// # Errors
    /// No call can be made any more.
    pub(crate) fn operation(
        &mut self,
        stream: u16,
        write: impl FnOnce(&mut Option<Method>, &mut Vec<u8>),
    ) -> Result<Option<()>, Leaving> {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        let mut method = None;
        write(&mut method, &mut message);
        let made = method.map(|method| self.make(OPERATIONS + u32::from(stream), method, &message));
        let bytes = PREFIX + message.len();
        self.message = message;
        let Some(id) = made.transpose()? else { return Ok(None) };
        self.staged.push_back(Staged { id, stream, bytes });
        self.staged_bytes += bytes;
        Ok(Some(()))
    }

    /// Makes a call that is no operation's.
    ///
    /// # Errors
    /// No call can be made any more.
    pub(crate) fn call(&mut self, key: u32, method: Method, message: &impl prost::Message) -> Result<(), Leaving> {
        self.make(key, method, &message.encode_to_vec()).map(drop)
    }

    /// Says one more message of a call that goes on.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn say(&mut self, key: u32, message: &impl prost::Message) -> Result<(), Leaving> {
        let bytes = self.framed(&message.encode_to_vec());
        let exchange = self.seats.get_mut(key as usize).and_then(|seat| seat.exchange.as_mut());
        exchange.and_then(|exchange| exchange.sender.send_data(bytes, false).ok()).ok_or(Leaving)
    }

    fn framed(&mut self, message: &[u8]) -> Bytes {
        self.room.reserve(PREFIX + message.len());
        self.room.put_u8(0);
        self.room.put_u32(message.len() as u32);
        self.room.put_slice(message);
        self.room.split().freeze()
    }

    /// Makes a call, and returns its number in HTTP/2.
    fn make(&mut self, key: u32, method: Method, message: &[u8]) -> Result<u32, Leaving> {
        let bytes = self.framed(message);
        let mut request = Request::new(());
        *request.method_mut() = http::Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = self.uris[method as usize].clone();
        *request.headers_mut() = self.headers.clone();
        let sent = self.requests.send_request(request, false);
        let sent = sent.and_then(|(head, mut sender)| {
            sender.send_data(bytes, !method.streams())?;
            Ok((head, sender))
        });
        let (head, sender) = sent.map_err(|error| {
            self.leaving.get_or_insert_with(|| error.to_string());
            Leaving
        })?;
        let id = head.stream_id().as_u32();
        while self.seats.len() <= key as usize {
            let bell = Bell { key: self.seats.len() as u32, news: Arc::clone(&self.news) };
            self.seats.push(Seat { waker: Waker::from(Arc::new(bell)), exchange: None });
        }
        self.seats[key as usize].exchange =
            Some(Exchange { method, response: Response::Head(head), buffer: Bytes::new(), told: None, sender });
        // It is asked for news in the next turn, and then says by itself when there are more.
        self.news.list().push(key);
        Ok(id)
    }

    /// Nobody waits for the call of an operation any more, and its stream may have another one.
    pub(crate) fn forget(&mut self, stream: u16) {
        if let Some(seat) = self.seats.get_mut((OPERATIONS + u32::from(stream)) as usize) {
            seat.exchange = None;
        }
        if let Some(at) = self.staged.iter().position(|staged| staged.stream == stream)
            && let Some(staged) = self.staged.remove(at)
        {
            self.staged_bytes -= staged.bytes;
        }
    }

    /// Turns calls into output.
    ///
    /// # Errors
    /// The connection is over, and why.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) -> Result<(), String> {
        let driven = self.drive();
        self.collect(outbox);
        driven
    }

    /// Turns received bytes into what [`Session::next`] returns; that may also make output.
    ///
    /// # Errors
    /// The connection is over, and why. What had come before is returned all the same.
    pub(crate) fn receive(&mut self, bytes: &[u8], outbox: &mut Outbox) -> Result<(), String> {
        self.pipe.feed(bytes);
        let mut driven = self.drive();
        // What was taken may be told to the server, which may wait for it.
        while self.attend() && driven.is_ok() {
            driven = self.drive();
        }
        self.collect(outbox);
        driven
    }

    /// What has come next.
    pub(crate) fn next(&mut self) -> Option<Came> {
        self.came.pop_front()
    }

    fn drive(&mut self) -> Result<(), String> {
        match Pin::new(&mut self.http).poll(&mut nobody()) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => return Err("the server ended HTTP/2".to_owned()),
            Poll::Ready(Err(error)) => return Err(format!("HTTP/2: {error}")),
        }
        // This also lets the next request be made where the last one had to wait.
        if let Poll::Ready(Err(error)) = self.requests.poll_ready(&mut nobody()) {
            self.leaving.get_or_insert_with(|| format!("the server takes no more requests: {error}"));
        }
        Ok(())
    }

    /// Looks at the calls that have news. `false`: none has.
    fn attend(&mut self) -> bool {
        std::mem::swap(&mut self.awake, &mut *self.news.list());
        let any = !self.awake.is_empty();
        for key in self.awake.drain(..) {
            let Some(seat) = self.seats.get_mut(key as usize) else { continue };
            let Some(exchange) = &mut seat.exchange else { continue };
            let method = exchange.method;
            let came = &mut self.came;
            let said = |message| came.push_back(Came { key, method, what: What::Message(message) });
            if let Some(result) = exchange.advance(&mut Context::from_waker(&seat.waker), self.longest, said) {
                self.came.push_back(Came { key, method, what: What::Over(result) });
                seat.exchange = None;
            }
        }
        any
    }

    fn collect(&mut self, outbox: &mut Outbox) {
        let mut output = std::mem::take(&mut self.output);
        self.pipe.take_output(&mut output);
        let mut rest = &output[..];
        while !rest.is_empty() {
            let (length, ended) = self.frames.next_end(rest);
            let (part, others) = rest.split_at(length);
            outbox.control(|out| out.extend_from_slice(part));
            if let Some(id) = ended
                && let Some(at) = self.staged.iter().position(|staged| staged.id == id)
                && let Some(staged) = self.staged.remove(at)
            {
                self.staged_bytes -= staged.bytes;
                outbox.ends(staged.stream);
            }
            rest = others;
        }
        output.clear();
        self.output = output;
    }
}

/// The server takes no more calls on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaving;

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Exchange {
    /// Takes what has come of it: messages of a call that goes on, and how it ended, if it has.
    fn advance(
        &mut self,
        context: &mut Context<'_>,
        longest: usize,
        mut said: impl FnMut(Bytes),
    ) -> Option<Result<Bytes, Status>> {
        let Exchange { method, response, buffer, told, .. } = self;
        loop {
            match response {
                Response::Head(head) => {
                    let come = match Pin::new(head).poll(context) {
                        Poll::Pending => return None,
                        Poll::Ready(Ok(come)) => come,
                        Poll::Ready(Err(error)) => return Some(Err(Status::broken(&error))),
                    };
                    let (head, body) = come.into_parts();
                    if head.status != StatusCode::OK {
                        return Some(Err(Status::http(head.status)));
                    }
                    *told = Status::told(&head.headers);
                    *response = Response::Body(body);
                }
                Response::Body(body) => match body.poll_data(context) {
                    Poll::Pending => return None,
                    Poll::Ready(Some(Err(error))) => return Some(Err(Status::broken(&error))),
                    Poll::Ready(Some(Ok(chunk))) => {
                        // What was just received can always be released.
                        let _ = body.flow_control().release_capacity(chunk.len());
                        join(buffer, chunk);
                        while method.streams() {
                            match message(buffer, longest) {
                                Ok(Some(message)) => said(message),
                                Ok(None) => break,
                                Err(status) => return Some(Err(status)),
                            }
                        }
                    }
                    Poll::Ready(None) => {
                        let trailers = match body.poll_trailers(context) {
                            Poll::Pending => return None,
                            Poll::Ready(Ok(trailers)) => trailers,
                            Poll::Ready(Err(error)) => return Some(Err(Status::broken(&error))),
                        };
                        let status = trailers.as_ref().and_then(Status::told).or_else(|| told.take());
                        return Some(match status {
                            Some(Status { code: code::OK, .. }) => {
                                let nothing = || Status::new(code::INTERNAL, "a reply without a message");
                                message(buffer, longest).and_then(|message| message.ok_or_else(nothing))
                            }
                            Some(status) => Err(status),
                            None => Err(Status::new(code::INTERNAL, "a reply without a status")),
                        });
                    }
                },
            }
        }
    }
}

/// Nearly always there is nothing to join: a reply comes in one piece.
fn join(buffer: &mut Bytes, chunk: Bytes) {
    if buffer.is_empty() {
        *buffer = chunk;
        return;
    }
    let mut joined = BytesMut::with_capacity(buffer.len() + chunk.len());
    joined.put_slice(buffer);
    joined.put_slice(&chunk);
    *buffer = joined.freeze();
}

/// Takes the next whole message out of what has come.
fn message(buffer: &mut Bytes, longest: usize) -> Result<Option<Bytes>, Status> {
    let Some((&[compressed, a, b, c, d], rest)) = buffer.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 {
        return Err(Status::new(code::INTERNAL, "a compressed reply, though no compression was asked for"));
    }
    if length > longest {
        let words = format!("a reply of {length} bytes, more than the {longest} it may have");
        return Err(Status::new(code::INTERNAL, words));
    }
    if rest.len() < length {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    Ok(Some(buffer.split_to(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
        bytes.extend_from_slice(message);
        bytes
    }

    #[test]
    fn messages_are_whole_however_they_were_cut() {
        let all = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for cut in 1..=all.len() {
            let (mut buffer, mut found) = (Bytes::new(), Vec::new());
            for chunk in all.chunks(cut) {
                join(&mut buffer, Bytes::copy_from_slice(chunk));
                while let Some(message) = message(&mut buffer, 5).unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, [&b"one"[..], b"", b"three"], "cut into pieces of {cut}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn a_reply_that_is_compressed_or_too_long_is_refused_before_it_is_here() {
        assert!(message(&mut Bytes::from_static(&[1, 0, 0, 0, 9]), 100).is_err());
        assert!(message(&mut Bytes::from_static(&[0, 0, 0, 0, 101]), 100).is_err());
        assert_eq!(message(&mut Bytes::from_static(&[0, 0, 0, 0, 100]), 100), Ok(None));
    }
}
