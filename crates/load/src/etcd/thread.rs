//! Operations of an etcd's load: what each load thread draws, calls and checks.
//!
//! etcd orders all writes by revisions, so a client knows which of two values of a key is the newer one: it keeps the
//! newest revision of each key that any answer has shown. A serializable read that begins later and returns an older one is
//! stale; any other has failed: what it should have found is missing.

use std::sync::Arc;

use brownout_base::random::{Random, derive};
use bytes::Bytes;

use super::{
    Call, EtcdLoad, Method, Reply,
    message::{
        Compare, KeyValue, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse,
    },
    workload::APART,
};
use crate::{
    Drawn, Ending, ErrorClass, Finding, Meaning, Received, Route, Sending, ServerError, ThreadWorkload, Ticket, value,
    workload::{FILLING, FillProgress, Filling, Keys},
};

/// Digits of a key behind its prefix, hexadecimal, so that the order of keys is that of their numbers.
const DIGITS: usize = 16;

/// The operations, by their indices in [`EtcdLoad::OPERATIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    Range,
    Serializable,
    Txn,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Put, Kind::Range, Kind::Serializable, Kind::Txn];
}

/// An operation that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    key: u64,
    kind: Kind,
    /// Of a write: what it writes; 0: nothing yet, or its condition did not hold.
    version: u64,
    /// The newest revision of the key that was known when it was first sent.
    known: u64,
    /// Number of the filling that it belongs to.
    filling: Option<u64>,
}

/// One thread's part.
pub(super) struct EtcdThread {
    load: EtcdLoad,
    progress: Arc<FillProgress>,
    /// With revisions for versions.
    keys: Keys,
    /// Of the mix, and of each operation alone: how fast one load goes is nothing to the keys of another.
    random: [Random; 5],
    /// By ticket.
    open: Vec<Open>,
    free: Vec<u64>,
    filling: Filling,
}

impl EtcdThread {
    pub(super) fn new(load: EtcdLoad, seed: u64, progress: Arc<FillProgress>, thread: usize, threads: usize) -> Self {
        EtcdThread {
            keys: Keys::new(thread, threads, load.population),
            load,
            progress,
            // Streams 0 .. threads belong to the schedule.
            random: [1, 2, 3, 4, 5].map(|load| Random::new(derive(seed, (load * threads + thread) as u64))),
            open: Vec::new(),
            free: Vec::new(),
            filling: Filling::default(),
        }
    }

    fn insert(&mut self, open: Open) -> Ticket {
        match self.free.pop() {
            Some(place) => {
                self.open[place as usize] = open;
                Ticket(place)
            }
            None => {
                self.open.push(open);
                Ticket(self.open.len() as u64 - 1)
            }
        }
    }

    fn at(&self, ticket: Ticket) -> &Open {
        &self.open[ticket.0 as usize]
    }

    /// The next operation of the mix.
    fn kind(&mut self) -> Kind {
        let weights = self.load.weights();
        let mut left = self.random[0].below(weights.iter().map(|weight| u64::from(*weight)).sum());
        for (kind, weight) in Kind::ALL.into_iter().zip(weights) {
            let weight = u64::from(weight);
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        // The rest is always less than the sum.
        Kind::Put
    }

    fn size(&self) -> usize {
        self.load.value_size as usize
    }

    /// What a read of this key may be, if the store has `found` for it. The newest revision known is that one, if it is
    /// newer.
    fn judge(&mut self, open: &Open, found: Option<&KeyValue>) -> Meaning {
        let Some(found) = found else {
            let nothing = |finding| Meaning { finding: Some(finding), ..Meaning::done(1, 0) };
            return match open.known {
                0 => nothing(Finding::Empty),
                // The asked member may be behind.
                _ if open.kind == Kind::Serializable => nothing(Finding::Stale),
                _ => Meaning::missing(),
            };
        };
        if value::verify(&found.value, open.key, self.size()).is_none() {
            return Meaning::mismatch();
        }
        let revision = found.mod_revision.max(0) as u64;
        self.keys.acknowledge(open.key, revision, false);
        match (revision < open.known, open.kind) {
            (false, _) => Meaning::done(1, 1),
            // The asked member may be behind.
            (true, Kind::Serializable) => Meaning { finding: Some(Finding::Stale), ..Meaning::done(1, 1) },
            // What a majority has decided is gone.
            (true, _) => Meaning::missing(),
        }
    }

    /// The key was written by the write of this revision.
    fn written(&mut self, key: u64, revision: i64) -> Meaning {
        self.keys.acknowledge(key, revision.max(0) as u64, false);
        Meaning::done(1, 1)
    }

    /// The condition of a transaction did not hold, and what the key had instead is here.
    fn exchanged(&mut self, ticket: Ticket, open: &Open, response: &TxnResponse) -> Meaning {
        let read = response.responses.first().and_then(|response| response.range.as_ref());
        let Some(read) = read else { return Meaning::failed(ErrorClass::Unexpected) };
        let found = read.kvs.first();
        // An attempt before this one was applied after all.
        let own = found.filter(|found| value::verify(&found.value, open.key, self.size()) == Some(open.version));
        if let Some(own) = own {
            return self.written(open.key, own.mod_revision);
        }
        self.open[ticket.0 as usize].version = 0;
        Meaning { not_applied: true, ..self.judge(open, found) }
    }
}

/// The name of a key in the store.
fn name(prefix: &str, key: u64) -> Bytes {
    Bytes::from(format!("{prefix}{key:0DIGITS$x}"))
}

/// The number of a key.
fn number(prefix: &str, name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(prefix.as_bytes()).filter(|digits| digits.len() == DIGITS)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl ThreadWorkload for EtcdThread {
    fn begin(&mut self, flow: usize) {
        if flow == FILLING {
            self.filling = Filling::begin(&self.progress);
        }
    }

    fn draw(&mut self, flow: usize) -> Option<Drawn> {
        let open = if flow == FILLING {
            let key = self.filling.next(&self.keys)?;
            Open { key, kind: Kind::Put, version: 0, known: 0, filling: Some(self.filling.number()) }
        } else {
            let (kind, random) = match flow.checked_sub(APART) {
                Some(alone) => (*Kind::ALL.get(alone)?, alone + 1),
                None => (self.kind(), 0),
            };
            let key = self.keys.draw(&mut self.random[random]);
            Open { key, kind, version: 0, known: 0, filling: None }
        };
        let operation = open.kind as u16;
        let ticket = self.insert(open);
        Some(Drawn { ticket, operation, partitions: 1 })
    }

    fn route(&self, _: Ticket, _: bool) -> Route {
        Route::Any
    }

    fn call(&mut self, ticket: Ticket, sending: &Sending, call: Call<'_>) {
        let open = &mut self.open[ticket.0 as usize];
        let known = self.keys.acknowledged(open.key);
        if sending.attempt == 0 {
            open.known = known;
        }
        let key = name(&self.load.prefix, open.key);
        let range = |serializable| RangeRequest { key: key.clone(), serializable, ..RangeRequest::default() };
        if let Kind::Range | Kind::Serializable = open.kind {
            call.write(Method::Range, &range(open.kind == Kind::Serializable));
            return;
        }
        // A retry writes the same version.
        if open.version == 0 {
            open.version = self.keys.next_version(sending.unix_us);
        }
        let size = self.load.value_size as usize;
        let mut content = Vec::with_capacity(size);
        value::append(&mut content, open.key, open.version, size);
        let put = PutRequest { key: key.clone(), value: Bytes::from(content) };
        if open.kind == Kind::Put {
            call.write(Method::Put, &put);
            return;
        }
        let mod_revision = Some(i64::try_from(known).unwrap_or(i64::MAX));
        let compare = Compare { result: 0, target: Compare::MOD_REVISION, key: key.clone(), mod_revision };
        let txn = TxnRequest {
            compare: vec![compare],
            success: vec![RequestOp { range: None, put: Some(put) }],
            failure: vec![RequestOp { range: Some(range(false)), put: None }],
        };
        call.write(Method::Txn, &txn);
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, _: &Received) -> Meaning {
        let open = *self.at(ticket);
        let unexpected = Meaning::failed(ErrorClass::Unexpected);
        match open.kind {
            Kind::Put => match reply.read::<PutResponse>().and_then(|response| response.header) {
                Some(header) => self.written(open.key, header.revision),
                None => unexpected,
            },
            Kind::Range | Kind::Serializable => match reply.read::<RangeResponse>() {
                Some(response) => self.judge(&open, response.kvs.first()),
                None => unexpected,
            },
            Kind::Txn => match reply.read::<TxnResponse>() {
                Some(TxnResponse { header: Some(header), succeeded: true, .. }) => {
                    self.written(open.key, header.revision)
                }
                Some(response) if !response.succeeded => self.exchanged(ticket, &open, &response),
                _ => unexpected,
            },
        }
    }

    fn refused(&mut self, ticket: Ticket, error: &ServerError<'_>, received: &Received) {
        if let Some(number) = self.at(ticket).filling {
            self.filling.refused(number, error, received, &self.progress);
        }
    }

    fn version(&self, ticket: Ticket) -> Option<u64> {
        Some(self.at(ticket).version).filter(|version| *version > 0)
    }

    fn event(&self, name: &[u8], content: &[u8]) -> Option<u64> {
        value::verify(content, number(&self.load.prefix, name)?, self.size())
    }

    fn end(&mut self, ticket: Ticket, ending: &Ending) {
        let Open { key, filling, .. } = *self.at(ticket);
        if let Some(number) = filling {
            self.filling.ended(number, key, ending, &self.progress);
        }
    }

    fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket.0);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::{
        super::message::{Header, ResponseOp},
        *,
    };
    use crate::{Next, workload::MIX};

    const SENDING: Sending = Sending { now_ns: 0, unix_us: 1_000, attempt: 0, step: 0 };
    const RECEIVED: Received = Received { at_ns: 0, late: false, step: 0, coordinator: 0 };

    fn thread(weights: [u32; 4]) -> EtcdThread {
        let [put, range, serializable, txn] = weights;
        let load =
            EtcdLoad { prefix: "p/".into(), put, range, serializable, txn, population: 1, value_size: 20, watchers: 0 };
        EtcdThread::new(load, 7, Arc::default(), 0, 1)
    }

    /// Draws an operation of `flow`, and returns what it calls.
    fn send(thread: &mut EtcdThread, flow: usize) -> (Ticket, Method, Vec<u8>) {
        let drawn = thread.draw(flow).unwrap();
        let (method, message) = again(thread, drawn.ticket, 0);
        (drawn.ticket, method, message)
    }

    fn again(thread: &mut EtcdThread, ticket: Ticket, attempt: u32) -> (Method, Vec<u8>) {
        let (mut method, mut message) = (None, Vec::new());
        thread.call(ticket, &Sending { attempt, ..SENDING }, Call::new(&mut method, &mut message));
        (method.unwrap(), message)
    }

    fn header(revision: i64) -> Option<Header> {
        Some(Header { member: 1, revision, term: 2 })
    }

    fn reply(thread: &mut EtcdThread, ticket: Ticket, message: &impl Message) -> Meaning {
        thread.reply(ticket, Reply::new(Bytes::from(message.encode_to_vec())), &RECEIVED)
    }

    /// The store has the key with this version, written by that revision.
    fn found(version: u64, mod_revision: i64) -> RangeResponse {
        let mut content = Vec::new();
        value::append(&mut content, 0, version, 20);
        let kv = KeyValue { key: name("p/", 0), mod_revision, value: Bytes::from(content) };
        RangeResponse { header: header(9), kvs: vec![kv], count: 1 }
    }

    const PUTS: usize = APART;
    const RANGES: usize = APART + 1;
    const SERIALIZABLE: usize = APART + 2;
    const TXNS: usize = APART + 3;

    #[test]
    fn the_mix_follows_the_weights_and_a_flow_of_its_own_has_one_operation() {
        let mut thread = thread([1, 2, 0, 1]);
        let mut drawn = [0; 4];
        (0..4_000).for_each(|_| drawn[usize::from(thread.draw(MIX).unwrap().operation)] += 1);
        assert_eq!(drawn[2], 0);
        assert!((900..1_100).contains(&drawn[0]) && (1_850..2_150).contains(&drawn[1]), "{drawn:?}");
        assert_eq!(thread.draw(SERIALIZABLE).unwrap().operation, 2);
        assert!(thread.draw(TXNS + 1).is_none());
    }

    #[test]
    fn what_is_put_is_a_value_of_its_key_and_a_watcher_knows_it_again() {
        let mut thread = thread([1; 4]);
        let (ticket, method, message) = send(&mut thread, PUTS);
        let put = PutRequest::decode(&message[..]).unwrap();
        assert_eq!((method, &put.key[..]), (Method::Put, &b"p/0000000000000000"[..]));
        let version = thread.version(ticket);
        assert_eq!((version, value::verify(&put.value, 0, 20)), (Some(1_000), version));
        assert_eq!(thread.event(&put.key, &put.value), version);
        assert_eq!(thread.event(b"q/0000000000000000", &put.value), None, "somebody else's");
        assert_eq!(thread.event(&put.key, &put.value[1..]), None, "nobody wrote that");
        assert_eq!(again(&mut thread, ticket, 1).1, message, "another attempt writes the same");
        assert_eq!(reply(&mut thread, ticket, &PutResponse { header: header(5) }), Meaning::done(1, 1));
        assert_eq!(thread.keys.acknowledged(0), 5);
    }

    #[test]
    fn a_serializable_read_is_stale_if_an_answer_before_it_has_shown_a_newer_revision() {
        let mut thread = thread([1; 4]);
        let (early, method, message) = send(&mut thread, RANGES);
        assert_eq!((method, RangeRequest::decode(&message[..]).unwrap().serializable), (Method::Range, false));
        let (ticket, ..) = send(&mut thread, RANGES);
        assert_eq!(reply(&mut thread, ticket, &found(3, 8)), Meaning::done(1, 1));
        assert_eq!(reply(&mut thread, early, &found(2, 7)).finding, None, "it was sent before");
        let (late, _, message) = send(&mut thread, SERIALIZABLE);
        assert!(RangeRequest::decode(&message[..]).unwrap().serializable);
        let meaning = reply(&mut thread, late, &found(2, 7));
        assert_eq!((meaning.next, meaning.finding), (Next::Done, Some(Finding::Stale)));
    }

    #[test]
    fn a_linearizable_read_of_less_than_an_answer_has_shown_is_a_failure() {
        let mut thread = thread([1; 4]);
        let (ticket, ..) = send(&mut thread, RANGES);
        reply(&mut thread, ticket, &found(3, 8));
        let (late, ..) = send(&mut thread, RANGES);
        assert_eq!(reply(&mut thread, late, &found(2, 7)), Meaning::missing());
        let (late, ..) = send(&mut thread, TXNS);
        let instead = ResponseOp { range: Some(found(2, 7)), put: None };
        let response = TxnResponse { header: header(9), succeeded: false, responses: vec![instead] };
        let meaning = reply(&mut thread, late, &response);
        let missing = Meaning::missing();
        assert_eq!((meaning.next, meaning.finding), (missing.next, missing.finding));
    }

    #[test]
    fn an_empty_or_wrong_answer_is_what_it_can_be() {
        let mut thread = thread([1; 4]);
        let nothing = RangeResponse { header: header(9), kvs: Vec::new(), count: 0 };
        let (ticket, ..) = send(&mut thread, RANGES);
        assert_eq!(reply(&mut thread, ticket, &nothing).finding, Some(Finding::Empty));
        let (ticket, ..) = send(&mut thread, PUTS);
        reply(&mut thread, ticket, &PutResponse { header: header(5) });
        let (ticket, ..) = send(&mut thread, RANGES);
        assert_eq!(reply(&mut thread, ticket, &nothing), Meaning::missing());
        let (ticket, ..) = send(&mut thread, SERIALIZABLE);
        assert_eq!(reply(&mut thread, ticket, &nothing).finding, Some(Finding::Stale), "the member may be behind");
        let (ticket, ..) = send(&mut thread, RANGES);
        let mut wrong = found(3, 8);
        wrong.kvs[0].value = Bytes::from_static(b"somebody else's bytes");
        assert_eq!(reply(&mut thread, ticket, &wrong), Meaning::mismatch());
        let (ticket, ..) = send(&mut thread, RANGES);
        let garbage = thread.reply(ticket, Reply::new(Bytes::from_static(&[0xff])), &RECEIVED);
        assert_eq!(garbage, Meaning::failed(ErrorClass::Unexpected));
    }

    #[test]
    fn a_transaction_compares_what_is_known_and_learns_from_what_it_finds_instead() {
        let mut thread = thread([1; 4]);
        let (ticket, method, message) = send(&mut thread, TXNS);
        let txn = TxnRequest::decode(&message[..]).unwrap();
        assert_eq!((method, txn.compare[0].mod_revision), (Method::Txn, Some(0)), "never written, as far as is known");
        let instead = |range| TxnResponse {
            header: header(9),
            succeeded: false,
            responses: vec![ResponseOp { range: Some(range), put: None }],
        };
        let meaning = reply(&mut thread, ticket, &instead(found(77, 6)));
        assert_eq!((meaning.next, meaning.not_applied), (Next::Done, true));
        assert_eq!(thread.version(ticket), None, "it has written nothing");

        let (ticket, _, message) = send(&mut thread, TXNS);
        assert_eq!(TxnRequest::decode(&message[..]).unwrap().compare[0].mod_revision, Some(6));
        let done = TxnResponse { header: header(10), succeeded: true, responses: Vec::new() };
        assert_eq!(reply(&mut thread, ticket, &done), Meaning::done(1, 1));
        assert_eq!(thread.keys.acknowledged(0), 10);
    }

    #[test]
    fn a_transaction_whose_first_attempt_was_applied_after_all_has_written() {
        let mut thread = thread([1; 4]);
        let (ticket, ..) = send(&mut thread, TXNS);
        let own = thread.version(ticket).unwrap();
        again(&mut thread, ticket, 1);
        let response = TxnResponse {
            header: header(9),
            succeeded: false,
            responses: vec![ResponseOp { range: Some(found(own, 4)), put: None }],
        };
        assert_eq!(reply(&mut thread, ticket, &response), Meaning::done(1, 1));
        assert_eq!((thread.version(ticket), thread.keys.acknowledged(0)), (Some(own), 4));
    }
}
