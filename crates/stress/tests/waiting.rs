//! What waits for a database that does not answer is what an operation is made from, not what it writes.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_load::{
    Arrivals, Consistency, Engine, EngineConfig, Pace, WireOptions,
    stub::{Behaviour, Content, Stub, StubOptions},
};
use brownout_stress::{
    profile::Profile,
    run::experiment::{PreparedLoad, ProfileLoad, ProfileLoadOptions},
    settings::{Op, Share},
};
use brownout_units::Rate;

/// Bytes that are allocated, over all threads.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call is handed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a row.
const ROW: usize = 16 * 1024;
/// Operations that wait.
const WAITING: u64 = 5_000;
/// What one of them may take in the client: its account, its times, its seed; twice, since lists grow by doubling.
const MOST_EACH: usize = 1_000;

/// Partitions of so many rows, which are of one size together; the query writes as much as the insert does.
fn profile(rows: u32) -> Profile {
    let text = format!(
        "keyspace: ks\ntable: t\ngenerator: v2\n\
         table_definition: CREATE TABLE ks.t (k bigint, c bigint, v blob, PRIMARY KEY (k, c))\n\
         columnspec:\n\
         - {{name: c, cluster: fixed({rows})}}\n\
         - {{name: v, size: fixed({size})}}\n\
         insert: {{partitions: fixed(1), batchtype: UNLOGGED}}\n\
         queries:\n  put: {{cql: UPDATE ks.t SET v = ? WHERE k = ? AND c = ?, fields: samerow}}\n",
        size = ROW / rows as usize
    );
    let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    Profile::from_text("t.yaml", text, &no_files).unwrap()
}

fn made(stub: &Stub, rows: u32, operation: &str) -> PreparedLoad {
    let load = ProfileLoad::new(ProfileLoadOptions {
        profiles: vec![profile(rows)],
        ops: vec![Op { name: operation.to_owned(), share: Share::Weight(1.0) }],
        apart: false,
        consistency: Consistency::One,
        partitions: 1_000_000,
        keys: None,
    });
    load.unwrap().make(&stub.coordinators(), &WireOptions::default(), 1, &|| false).unwrap()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited 60 s until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Bytes that each operation takes which waits while nobody answers. They are all sent, and answered, once somebody does.
fn held_by_each(rows: u32, operation: &str, pace: Pace) -> usize {
    let stub =
        Stub::local_with(1, StubOptions { content: Content::Canned { rows: 1, size: 8 }, ..StubOptions::default() })
            .unwrap();
    let load = made(&stub, rows, operation).load;
    let config = EngineConfig {
        max_pending: Some(4),
        timeout: Duration::from_secs(600),
        // One bucket holds all of the test: what the account keeps of each second is not what is looked at.
        bucket: Duration::from_secs(600),
        ..EngineConfig::new(stub.coordinators())
    };
    let engine = Engine::launch(config, load).unwrap();
    stub.set(0, Behaviour::frozen());
    let before = HELD.load(Ordering::Relaxed);
    engine.set_pace(pace).unwrap();
    wait_until("all wait", || engine.balance().waiting >= WAITING);
    let (after, waiting) = (HELD.load(Ordering::Relaxed), engine.balance().waiting);
    engine.set_pace(Pace::Idle).unwrap();
    stub.set(0, Behaviour::default());
    wait_until("all are answered", || engine.balance().waiting + engine.balance().in_flight == 0);
    let balance = engine.balance();
    assert_eq!(balance.answered_ok, balance.scheduled, "{balance:?}");
    assert_eq!(stub.executed(), balance.scheduled);
    after.saturating_sub(before) / waiting as usize
}

#[test]
fn what_waits_takes_no_memory_for_its_rows_in_any_loop() {
    let users = WAITING as u32 + 10;
    let rate = Rate::per_second(20_000.0).unwrap();
    for (rows, operation) in [(1, "insert"), (4, "insert"), (1, "put")] {
        for pace in [
            Pace::Open { rate, arrivals: Arrivals::Constant },
            Pace::Limited { threads: users, rate },
            Pace::Closed { threads: users },
        ] {
            let said = format!("{operation} of {rows} rows, {pace:?}");
            let each = held_by_each(rows, operation, pace);
            println!("{said}: {each} bytes");
            assert!(each < MOST_EACH, "{said}: each that waits holds {each} bytes of its {ROW}");
        }
    }
}
