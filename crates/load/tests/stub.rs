//! The stub as a server of every kind that the wire can speak to: versions, compressions, TLS, passwords, faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use brownout_base::random::Random;
use brownout_load::{
    Answer, BatchKind, Compression, Consistency, Credentials, DataPath, Drawn, Ending, Engine, EngineConfig, Meaning,
    Next, Outcome, Pace, Parameters, Protocol, Received, Request, Route, Sending, ServerError, ThreadWorkload, Ticket,
    Version, WireOptions, Workload,
    stub::{Answer as Reply, Behaviour, Content, Freeze, Stub, StubOptions},
};
use common::*;

const STATEMENTS: [&str; 7] = [
    "INSERT INTO demo.t (a, b, v) VALUES (?, ?, ?)",
    "SELECT * FROM demo.t WHERE a = ?",
    "SELECT count(*) FROM demo.t WHERE a = ?",
    "INSERT INTO demo.t (a, b, v) VALUES (?, ?, ?) IF NOT EXISTS",
    "UPDATE demo.c SET n = n + ? WHERE k = ?",
    "SELECT n FROM demo.c WHERE k = ?",
    "DELETE FROM demo.t WHERE a = ? AND b = ?",
];

fn tables() -> Vec<String> {
    let tables = [
        "CREATE TABLE demo.t (a int, b text, v blob, PRIMARY KEY (a, b))",
        "CREATE TABLE demo.c (k text PRIMARY KEY, n counter)",
    ];
    tables.map(str::to_owned).to_vec()
}

/// One request of a conversation, given the paging state if it is that of a next page.
type Question = fn(Request<'_>, Option<&[u8]>);

/// Asks one question after the other, and writes down the answers.
struct Conversation {
    questions: &'static [Question],
    heard: Arc<Mutex<Vec<String>>>,
}

impl Workload for Conversation {
    fn operations(&self) -> Vec<String> {
        vec!["question".to_owned()]
    }

    fn statements(&self) -> Vec<String> {
        STATEMENTS.map(str::to_owned).to_vec()
    }

    fn thread(&self, _: usize, _: usize) -> Box<dyn ThreadWorkload> {
        Box::new(Speaker { questions: self.questions, heard: Arc::clone(&self.heard), next: 0, page: None })
    }
}

struct Speaker {
    questions: &'static [Question],
    heard: Arc<Mutex<Vec<String>>>,
    next: usize,
    page: Option<Vec<u8>>,
}

impl ThreadWorkload for Speaker {
    fn draw(&mut self, _: usize) -> Option<Drawn> {
        let ticket = Ticket(self.next as u64);
        self.next += 1;
        (self.next <= self.questions.len()).then_some(Drawn { ticket, operation: 0, partitions: 1 })
    }

    fn route(&self, _: Ticket, _: bool) -> Route {
        Route::Any
    }

    fn request(&mut self, ticket: Ticket, _: &Sending, request: Request<'_>) {
        self.questions[ticket.0 as usize](request, self.page.as_deref());
    }

    fn answer(&mut self, _: Ticket, answer: &Answer<'_>, _: &Received) -> Meaning {
        self.heard.lock().unwrap().push(told(answer));
        self.page = match answer {
            Answer::Rows(rows) => rows.paging_state().map(<[u8]>::to_vec),
            _ => None,
        };
        if self.page.is_some() {
            Meaning { next: Next::Page, page: true, ..Meaning::done(1, 1) }
        } else {
            Meaning::done(1, 1)
        }
    }

    fn refused(&mut self, _: Ticket, error: &ServerError<'_>, _: &Received) {
        self.heard.lock().unwrap().push(format!("{:#06x}", error.code));
    }

    fn end(&mut self, _: Ticket, _: &Ending) {}

    fn release(&mut self, _: Ticket) {}
}

/// An answer in words; of long cells, their length.
fn told(answer: &Answer<'_>) -> String {
    match answer {
        Answer::Void => "void".to_owned(),
        Answer::Rows(rows) => {
            let cell = |cell: Option<&[u8]>| match cell {
                None => "null".to_owned(),
                Some(cell) if cell.len() > 20 => format!("{} bytes", cell.len()),
                Some(cell) => format!("{cell:02x?}"),
            };
            let rows = rows.iter().map(|row| row.cells().map(cell).collect::<Vec<_>>().join(" "));
            rows.collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    }
}

const ONE: [u8; 4] = [0, 0, 0, 1];
const TWO: [u8; 4] = [0, 0, 0, 2];

fn asked() -> Parameters<'static> {
    Parameters { skip_metadata: true, timestamp_us: Some(5), ..Parameters::new(Consistency::One) }
}

const TALK: &[Question] = &[
    |request, _| {
        // It does not fit into one segment, and does not compress to less than one either.
        let mut random = Random::new(1);
        request.execute(0, &asked()).value(&ONE).value(b"x").value_with(|out| {
            out.extend((0..200_000).map(|_| random.word() as u8));
        });
    },
    |request, _| {
        request.execute(0, &asked()).value(&ONE).value(b"y").null();
    },
    |request, page| {
        request.execute(1, &Parameters { page_size: Some(1), paging_state: page, ..asked() }).value(&ONE);
    },
    |request, _| {
        let mut batch = request.batch(BatchKind::Unlogged, &asked());
        batch.add(0).value(&TWO).value(b"p").value(&[7; 10]);
        batch.add(0).value(&TWO).value(b"q").unset();
    },
    |request, _| {
        request.execute(2, &asked()).value(&TWO);
    },
    |request, _| {
        request.execute(3, &Parameters { timestamp_us: None, ..asked() }).value(&ONE).value(b"x").null();
    },
    |request, _| {
        request.execute(3, &Parameters { timestamp_us: None, ..asked() }).value(&ONE).value(b"z").null();
    },
    |request, _| {
        request.execute(4, &asked()).value(&5i64.to_be_bytes()).value(b"k");
    },
    |request, _| {
        request.execute(4, &asked()).value(&(-2i64).to_be_bytes()).value(b"k");
    },
    |request, _| {
        request.execute(5, &asked()).value(b"k");
    },
    |request, _| {
        request.execute(6, &asked()).value(&TWO).value(b"p");
    },
    |request, _| {
        request.query("SELECT b, v FROM demo.t WHERE a = ?", &Parameters::new(Consistency::One)).value(&TWO);
    },
    |request, _| {
        drop(request.query("SELECT nothing FROM demo.t", &Parameters::new(Consistency::One)));
    },
];

const HEARD: [&str; 14] = [
    "void",
    "void",
    "[00, 00, 00, 01] [78] 200000 bytes",
    "[00, 00, 00, 01] [79] null",
    "void",
    "[00, 00, 00, 00, 00, 00, 00, 02]",
    "[00]",
    "[01]",
    "void",
    "void",
    "[00, 00, 00, 00, 00, 00, 00, 03]",
    "void",
    "[71] null",
    "0x2200",
];

/// What a stub of these options answers to a client of those.
fn hear(stub: StubOptions, behaviour: Behaviour, wire: WireOptions) -> Vec<String> {
    hear_on(DataPath::Own, stub, behaviour, wire)
}

fn hear_on(path: DataPath, stub: StubOptions, behaviour: Behaviour, wire: WireOptions) -> Vec<String> {
    let stub = Stub::local_with(1, StubOptions { tables: tables(), ..stub }).unwrap();
    stub.set(0, behaviour);
    let heard = Arc::default();
    let talk = Conversation { questions: TALK, heard: Arc::clone(&heard) };
    let config = EngineConfig { wire, path, ..patient(&stub) };
    let engine = Engine::launch(config, Arc::new(talk)).unwrap();
    engine.set_paces(vec![Pace::Closed { threads: 1 }]).unwrap();
    wait_until("all questions are answered", || engine.exhausted());
    stop(engine, &mut Book::default());
    heard.lock().unwrap().clone()
}

#[test]
fn all_that_the_wire_can_speak_says_the_same() {
    let (_directory, server, client) = certificates();
    let credentials = Credentials { user: "ada".into(), password: "lovelace".into() };
    for protocol in [Protocol::Exactly(Version::V4), Protocol::Exactly(Version::V5), Protocol::Auto] {
        for compression in [None, Some(Compression::Lz4), Some(Compression::Snappy)] {
            if (protocol, compression) == (Protocol::Exactly(Version::V5), Some(Compression::Snappy)) {
                continue;
            }
            for (encrypted, secret) in [(false, false), (true, false), (false, true), (true, true)] {
                let stub = StubOptions {
                    tls: encrypted.then(|| server.clone()),
                    credentials: secret.then(|| credentials.clone()),
                    ..StubOptions::default()
                };
                let wire = WireOptions {
                    protocol,
                    compression,
                    tls: encrypted.then(|| client.clone()),
                    credentials: secret.then(|| credentials.clone()),
                };
                let what = format!("{protocol:?}, {compression:?}, TLS {encrypted}, password {secret}");
                assert_eq!(hear(stub, Behaviour::default(), wire), HEARD, "{what}");
            }
        }
    }
}

#[test]
fn the_driver_says_and_hears_the_same_but_for_texts_with_values_which_it_would_prepare() {
    let mut expected = HEARD;
    expected[12] = "0x0000";
    for compression in [None, Some(Compression::Lz4), Some(Compression::Snappy)] {
        let wire = WireOptions { compression, ..WireOptions::default() };
        let heard = hear_on(DataPath::Driver, StubOptions::default(), Behaviour::default(), wire);
        assert_eq!(heard, expected, "{compression:?}");
    }
    let behaviour = Behaviour::answering(Reply::NotApplied);
    expected[7] = "[00]";
    let heard = hear_on(DataPath::Driver, StubOptions::default(), behaviour, WireOptions::default());
    assert_eq!(heard, expected);
}

#[test]
fn an_old_server_is_spoken_to_in_its_version() {
    let stub = StubOptions { newest: Version::V4, ..StubOptions::default() };
    assert_eq!(hear(stub, Behaviour::default(), WireOptions::default()), HEARD);
}

#[test]
fn what_a_server_refuses_is_said_at_the_start() {
    let credentials = |password: &str| Some(Credentials { user: "ada".into(), password: password.into() });
    let (_directory, server, client) = certificates();
    let (_other_directory, _, stranger) = certificates();
    let plain = StubOptions::default;
    let v5 = Protocol::Exactly(Version::V5);
    let secret = || StubOptions { credentials: credentials("lovelace"), ..plain() };
    let sealed = || StubOptions { tls: Some(server.clone()), ..plain() };
    for (stub, wire, words) in [
        (secret(), WireOptions::default(), "give a user and a password"),
        (secret(), WireOptions { credentials: credentials("wrong"), ..WireOptions::default() }, "'ada'"),
        (
            StubOptions { newest: Version::V4, ..plain() },
            WireOptions { protocol: v5, ..WireOptions::default() },
            "does not speak version 5",
        ),
        (sealed(), WireOptions { tls: Some(stranger), ..WireOptions::default() }, "add who has signed it"),
        (plain(), WireOptions { tls: Some(client), ..WireOptions::default() }, "does this port speak TLS?"),
    ] {
        let stub = Stub::local_with(1, stub).unwrap();
        let error = Engine::start(EngineConfig { wire, ..patient(&stub) }, workload()).err().unwrap().to_string();
        assert!(error.contains(words) && error.contains("n1"), "{error}");
    }
}

#[test]
fn conditional_writes_can_be_told_not_to_be_applied() {
    let behaviour = Behaviour::answering(Reply::NotApplied);
    let mut expected = HEARD;
    expected[7] = "[00]";
    assert_eq!(hear(StubOptions::default(), behaviour, WireOptions::default()), expected);
}

#[test]
fn canned_rows_come_in_pages_and_forget_what_is_written() {
    let stub = StubOptions { content: Content::Canned { rows: 2, size: 30 }, ..StubOptions::default() };
    let heard = hear(stub, Behaviour::default(), WireOptions::default());
    assert_eq!(heard[2..4], ["[00, 00, 00, 00] 30 bytes 30 bytes"; 2]);
    assert_eq!(heard[6..8], ["[01]"; 2], "every conditional write is applied");
    assert_eq!(heard[12], "30 bytes 30 bytes; 30 bytes 30 bytes");
}

#[test]
fn errors_of_every_kind_reach_the_workload_with_their_code() {
    for code in [0x0000, 0x1000, 0x1001, 0x1002, 0x1003, 0x1100, 0x1200, 0x1300, 0x1500, 0x1700, 0x2200, 0x2400] {
        for protocol in [Version::V4, Version::V5].map(Protocol::Exactly) {
            let behaviour = Behaviour::answering(Reply::Error(code));
            let wire = WireOptions { protocol, ..WireOptions::default() };
            let heard = hear(StubOptions::default(), behaviour, wire);
            let expected = format!("{code:#06x}");
            assert!(heard[..11].iter().all(|told| *told == expected), "{heard:?}");
        }
    }
}

#[test]
fn a_node_can_close_its_connections_after_so_many_requests() {
    let stub = Stub::local(1).unwrap();
    let engine = Engine::start(patient(&stub), workload()).unwrap();
    populate(&engine);
    stub.disconnect(0);
    wait_until("it is connected again", || engine.health().is_ok() && stub.executed() >= 1_000);
    stub.set(0, Behaviour { close_after: Some(10), ..Behaviour::default() });
    engine.set_pace(Pace::Closed { threads: 1 }).unwrap();
    let before = stub.executed();
    wait_until("five connections were used up", || stub.executed() - before >= 50);
    engine.set_pace(Pace::Idle).unwrap();
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    let lost = book.count(|_, _, outcome| outcome == Outcome::Failed(brownout_load::ErrorClass::ConnectionLost));
    assert!(lost >= 4, "{balance:#?}");
    // Of the operations in the loop, every eleventh on a connection is lost, and no other.
    assert!(balance.answered_ok >= 1_000 + 10 * (lost - 1), "{balance:#?}");
}

#[test]
fn all_nodes_freeze_for_a_part_of_every_period() {
    let freeze = Freeze { every: ms(500), lasting: ms(200) };
    let stub = Stub::local_with(1, StubOptions { freeze: Some(freeze), ..StubOptions::default() }).unwrap();
    let engine = Engine::start(patient(&stub), workload()).unwrap();
    engine.set_pace(open(1_000.0)).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    engine.set_pace(Pace::Idle).unwrap();
    let mut book = Book::default();
    let balance = stop(engine, &mut book);
    assert_eq!(balance.answered_ok, balance.scheduled);
    let response = book.response(|_, _| true);
    // Two fifths of the operations begin in a freeze. In four periods, and with whatever this machine adds to the
    // response of all others, at least a quarter waits for more than 50 ms.
    assert!(response.value_at_quantile(0.75) > 50 * MS, "{}", response.value_at_quantile(0.75));
    assert!(response.max() > 150 * MS, "{}", response.max());
}
