//! An etcd in memory, for what a real one cannot be made to show at will: silence, refusals, lies, a change of leaders.
//!
//! All its members have one store, so all reads are linearizable. It speaks HTTP/2 by `h2`, on a thread of its own.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    thread::JoinHandle,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h2::{RecvStream, SendStream, server::SendResponse};
use prost::Message;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};

use super::message::{
    AuthenticateRequest, AuthenticateResponse, DeleteRangeRequest, Event, Header, KeyValue, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RequestOp, ResponseOp, StatusResponse, TxnRequest, TxnResponse, WatchRequest,
    WatchResponse,
};
use crate::Coordinator;

/// How a member behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Behaviour {
    Right,
    /// Operations are not answered until it behaves otherwise.
    Silent,
    /// It refuses operations with this code and message.
    Refusing(u32, &'static str),
    /// Reads of keys find nothing.
    Forgetful,
    /// No watcher is told of anything until it behaves otherwise.
    Secretive,
}

/// What the members have in common.
struct Store {
    revision: i64,
    keys: BTreeMap<Bytes, KeyValue>,
    /// Everything that was written, for watches that begin in the past.
    history: Vec<KeyValue>,
    watchers: Vec<mpsc::UnboundedSender<KeyValue>>,
    behaviours: Vec<Behaviour>,
    /// Number of the member that leads.
    leader: usize,
    term: u64,
    /// The password that everybody has to know.
    password: Option<String>,
    /// How many calls a new connection may have at a time.
    most_calls: Option<u32>,
    asked: Vec<u64>,
}

/// A running etcd; dropping it ends it.
pub(super) struct Stub {
    store: Arc<Mutex<Store>>,
    addresses: Vec<SocketAddr>,
    /// How the connections that there are have to end.
    closing: watch::Sender<Closing>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    /// Politely, with GOAWAY.
    Gracefully,
    AtOnce,
    /// And all else.
    End,
}

const TOKEN: &str = "secret.1";

impl Stub {
    pub(super) fn start(members: usize) -> Stub {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = Arc::new(Mutex::new(Store {
            revision: 1,
            keys: BTreeMap::new(),
            history: Vec::new(),
            watchers: Vec::new(),
            behaviours: vec![Behaviour::Right; members],
            leader: 0,
            term: 2,
            password: None,
            most_calls: None,
            asked: vec![0; members],
        }));
        let (closing, closed) = watch::channel(Closing::No);
        let listen_on = |_| runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let listeners: Vec<TcpListener> = (0..members).map(listen_on).collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        let shared = Arc::clone(&store);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                for (member, listener) in listeners.into_iter().enumerate() {
                    tokio::spawn(listen(member, listener, Arc::clone(&shared), closed.clone()));
                }
                let mut closed = closed;
                let _ = closed.wait_for(|closing| *closing == Closing::End).await;
            });
        });
        Stub { store, addresses, closing, thread: Some(thread) }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    pub(super) fn coordinators(&self) -> Vec<Coordinator> {
        let node = |(number, address): (usize, &SocketAddr)| {
            let name = format!("n{}", number + 1);
            Coordinator { name, address: *address }
        };
        self.addresses.iter().enumerate().map(node).collect()
    }

    pub(super) fn behave(&self, member: usize, behaviour: Behaviour) {
        self.store().behaviours[member] = behaviour;
    }

    pub(super) fn lead(&self, member: usize) {
        let mut store = self.store();
        store.leader = member;
        store.term += 1;
    }

    pub(super) fn require(&self, password: &str) {
        self.store().password = Some(password.to_owned());
    }

    /// New connections may have so many calls at a time.
    pub(super) fn narrow(&self, most_calls: u32) {
        self.store().most_calls = Some(most_calls);
    }

    /// How many operations a member was asked for.
    pub(super) fn asked(&self, member: usize) -> u64 {
        self.store().asked[member]
    }

    pub(super) fn keys(&self) -> usize {
        self.store().keys.len()
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) {
        self.store().put(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }

    /// Closes all connections, as a server does that ends: it takes no more requests, but answers those it has.
    pub(super) fn go_away(&self) {
        self.closing.send_modify(|closing| *closing = Closing::Gracefully);
    }

    /// Cuts all connections.
    pub(super) fn cut(&self) {
        self.closing.send_modify(|closing| *closing = Closing::AtOnce);
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = self.closing.send(Closing::End);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(ended.is_none_or(|ended| ended.is_ok()), "the stub has panicked");
        }
    }
}

async fn listen(member: usize, listener: TcpListener, store: Arc<Mutex<Store>>, closed: watch::Receiver<Closing>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        tokio::spawn(connection(member, socket, Arc::clone(&store), closed.clone()));
    }
}

async fn connection(member: usize, socket: TcpStream, store: Arc<Mutex<Store>>, mut closed: watch::Receiver<Closing>) {
    closed.mark_unchanged();
    let mut builder = h2::server::Builder::new();
    builder.data_frame_budget(1 << 30);
    let most_calls = store.lock().unwrap().most_calls;
    if let Some(most) = most_calls {
        builder.max_concurrent_streams(most);
    }
    let Ok(mut http) = builder.handshake::<_, Bytes>(socket).await else { return };
    loop {
        tokio::select! {
            request = http.accept() => match request {
                Some(Ok((request, respond))) => {
                    tokio::spawn(answer(member, request, respond, Arc::clone(&store)));
                }
                Some(Err(_)) | None => return,
            },
            changed = closed.changed() => {
                let closing = *closed.borrow_and_update();
                match (changed, closing) {
                    (Ok(()), Closing::Gracefully) => http.graceful_shutdown(),
                    (Ok(()), Closing::No) => {}
                    _ => return,
                }
            }
        }
    }
}

async fn answer(
    member: usize,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    store: Arc<Mutex<Store>>,
) -> Option<()> {
    let path = request.uri().path().to_owned();
    let token = request.headers().get("token").is_some_and(|token| token == TOKEN);
    assert_eq!(request.headers().get("content-type").unwrap(), "application/grpc");
    let mut body = request.into_body();
    let mut bytes = BytesMut::new();
    let streams = path.ends_with("/Watch");
    while let Some(chunk) = body.data().await {
        let chunk = chunk.ok()?;
        let _ = body.flow_control().release_capacity(chunk.len());
        bytes.extend_from_slice(&chunk);
        if streams {
            break;
        }
    }
    let message = bytes.split_off(5).freeze();
    assert_eq!(bytes[1..5], (message.len() as u32).to_be_bytes(), "one whole message");
    let is_operation = path.starts_with("/etcdserverpb.KV/");
    if is_operation {
        store.lock().unwrap().asked[member] += 1;
    }
    loop {
        let behaviour = store.lock().unwrap().behaviours[member].clone();
        match behaviour {
            Behaviour::Silent if is_operation => tokio::time::sleep(Duration::from_millis(2)).await,
            Behaviour::Refusing(code, words) if is_operation => return refuse(respond, code, words),
            _ => break,
        }
    }
    if is_operation && !token && store.lock().unwrap().password.is_some() {
        return refuse(respond, 16, "etcdserver: invalid auth token");
    }
    let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    if streams {
        let stream = respond.send_response(head, false).ok()?;
        return watch_keys(member, stream, message, store).await;
    }
    let reply = match reply(&store, member, &path, message) {
        Ok(reply) => reply,
        Err((code, words)) => return refuse(respond, code, words),
    };
    let mut stream = respond.send_response(head, false).ok()?;
    stream.send_data(framed(&reply), false).ok()?;
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    stream.send_trailers(trailers).ok()
}

fn refuse(mut respond: SendResponse<Bytes>, code: u32, words: &str) -> Option<()> {
    let head = http::Response::builder().header("content-type", "application/grpc");
    let head = head.header("grpc-status", code.to_string()).header("grpc-message", words.replace(' ', "%20"));
    respond.send_response(head.body(()).unwrap(), true).ok().map(drop)
}

fn framed(message: &[u8]) -> Bytes {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat().into()
}

fn reply(store: &Mutex<Store>, member: usize, path: &str, message: Bytes) -> Result<Vec<u8>, (u32, &'static str)> {
    let mut store = store.lock().unwrap();
    let forgets = store.behaviours[member] == Behaviour::Forgetful;
    Ok(match path {
        "/etcdserverpb.KV/Put" => {
            let PutRequest { key, value } = PutRequest::decode(message).unwrap();
            store.put(key, value);
            PutResponse { header: store.header(member) }.encode_to_vec()
        }
        "/etcdserverpb.KV/Range" => {
            let request = RangeRequest::decode(message).unwrap();
            let mut response = store.range(member, &request);
            if forgets {
                response.kvs.clear();
            }
            response.encode_to_vec()
        }
        "/etcdserverpb.KV/Txn" => store.txn(member, TxnRequest::decode(message).unwrap()).encode_to_vec(),
        "/etcdserverpb.KV/DeleteRange" => {
            let DeleteRangeRequest { key, end } = DeleteRangeRequest::decode(message).unwrap();
            store.keys.retain(|other, _| *other < key || *other >= end);
            store.revision += 1;
            PutResponse { header: store.header(member) }.encode_to_vec()
        }
        "/etcdserverpb.KV/Compact" => PutResponse { header: store.header(member) }.encode_to_vec(),
        "/etcdserverpb.Maintenance/Status" => {
            let (leader, term) = (100 + store.leader as u64, store.term);
            StatusResponse { header: store.header(member), leader, term }.encode_to_vec()
        }
        "/etcdserverpb.Auth/Authenticate" => {
            let AuthenticateRequest { password, .. } = AuthenticateRequest::decode(message).unwrap();
            match &store.password {
                None => return Err((9, "etcdserver: authentication is not enabled")),
                Some(right) if *right == password => AuthenticateResponse { token: TOKEN.to_owned() }.encode_to_vec(),
                Some(_) => return Err((3, "etcdserver: authentication failed, invalid user ID or password")),
            }
        }
        _ => return Err((12, "unknown method")),
    })
}

/// Tells a watcher of everything from where it begins.
async fn watch_keys(
    member: usize,
    mut stream: SendStream<Bytes>,
    message: Bytes,
    store: Arc<Mutex<Store>>,
) -> Option<()> {
    let create = WatchRequest::decode(message).unwrap().create.unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    let (header, past) = {
        let mut store = store.lock().unwrap();
        let from = if create.start_revision == 0 { i64::MAX } else { create.start_revision };
        let past: Vec<KeyValue> = store.history.iter().filter(|kv| kv.mod_revision >= from).cloned().collect();
        store.watchers.push(sender);
        (store.header(member), past)
    };
    let created = WatchResponse { header, created: true, ..WatchResponse::default() };
    stream.send_data(framed(&created.encode_to_vec()), false).ok()?;
    let mut past = past.into_iter();
    loop {
        let kv = match past.next() {
            Some(kv) => kv,
            None => told.recv().await?,
        };
        while store.lock().unwrap().behaviours[member] == Behaviour::Secretive {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let header = store.lock().unwrap().header(member);
        let events = vec![Event { kind: 0, kv: Some(kv) }];
        let response = WatchResponse { header, events, ..WatchResponse::default() };
        stream.send_data(framed(&response.encode_to_vec()), false).ok()?;
    }
}

impl Store {
    fn header(&self, member: usize) -> Option<Header> {
        Some(Header { member: 100 + member as u64, revision: self.revision, term: self.term })
    }

    fn put(&mut self, key: Bytes, value: Bytes) {
        self.revision += 1;
        let kv = KeyValue { key: key.clone(), mod_revision: self.revision, value };
        self.keys.insert(key, kv.clone());
        self.history.push(kv.clone());
        self.watchers.retain(|watcher| watcher.send(kv.clone()).is_ok());
    }

    fn range(&self, member: usize, request: &RangeRequest) -> RangeResponse {
        let single = request.end.is_empty();
        let meant = |key: &Bytes| if single { *key == request.key } else { *key >= request.key && *key < request.end };
        let kvs: Vec<KeyValue> = self.keys.values().filter(|kv| meant(&kv.key)).cloned().collect();
        let count = kvs.len() as i64;
        RangeResponse { header: self.header(member), kvs: if request.count_only { Vec::new() } else { kvs }, count }
    }

    fn txn(&mut self, member: usize, request: TxnRequest) -> TxnResponse {
        let succeeded = request.compare.iter().all(|compare| {
            let found = self.keys.get(&compare.key).map_or(0, |kv| kv.mod_revision);
            Some(found) == compare.mod_revision
        });
        let operations = if succeeded { request.success } else { request.failure };
        let mut responses = Vec::new();
        for RequestOp { range, put } in operations {
            let range = range.map(|range| self.range(member, &range));
            let put = put.map(|put| {
                self.put(put.key, put.value);
                PutResponse { header: self.header(member) }
            });
            responses.push(ResponseOp { range, put });
        }
        TxnResponse { header: self.header(member), succeeded, responses }
    }
}
