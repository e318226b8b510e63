//! Which rows `brownout stress` writes, reads and empties, on a stub that remembers them.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

/// Of the directory of that name only what this file needs.
mod common {
    pub mod stress;
}

use std::{fs, path::PathBuf};

use brownout_load::stub::{Behaviour, Content, Stub, StubOptions};
use common::stress::{Done, Load};
use tempfile::TempDir;

fn run(stub: &Stub, words: &str) -> Done {
    Load::start(stub, words, "").done()
}

/// A profile with these lines beside its table.
fn profile(directory: &TempDir, lines: &str) -> PathBuf {
    let path = directory.path().join("rows.yaml");
    let text = format!(
        "keyspace: ks
keyspace_definition: \"CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}\"
table: t
table_definition: CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))
columnspec: [{{name: c, cluster: fixed(8)}}]
{lines}
"
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn readers_that_look_back_are_not_sent_to_writes_that_failed() {
    let stub = Stub::local(1).unwrap();
    // What is read until something is written.
    run(&stub, "write n=1 generator=v2 -rate threads=1").went_on();
    stub.set(0, Behaviour { close_after: Some(7), ..Behaviour::default() });
    let done = run(
        &stub,
        "mixed n=2000 ratio(write=1,read=1) generator=v2 -rate threads=4 -errors ignore retries=0 \
         -pop seq=1..100000 read-lookback=uniform(1..20)",
    );
    done.adds_up();
    done.went_on();
    let writes = done.json["operations"].as_array().unwrap().iter().find(|one| one["name"] == "WRITE").unwrap();
    assert!(writes["errors"].as_u64().unwrap() > 20, "some writes are lost: {done}");
    assert_eq!((done.class("missing"), done.class("mismatch")), (0, 0), "{done}");
}

#[test]
fn rows_without_a_batch_are_all_written_whatever_the_size_of_a_batch_is() {
    let (stub, directory) = (Stub::local(1).unwrap(), tempfile::tempdir().unwrap());
    for (insert, requests) in
        [("{batchtype: NONE, batch-size: 3}", 40), ("{batch-size: 3}", 15), ("{batchtype: UNLOGGED}", 5)]
    {
        let profile = profile(&directory, &format!("generator: v2\ninsert: {insert}"));
        let before = stub.executed();
        let words = format!("user profile={} ops(insert=1) n=5 truncate=once -rate threads=2", profile.display());
        let done = run(&stub, &words);
        done.went_on();
        assert_eq!(done.json["operations"][0]["rows"], 40, "{insert}: {done}");
        assert_eq!(stub.executed() - before, requests, "{insert}: {done}");
        assert_eq!(done.err.contains("has no effect"), insert.contains("NONE"), "{done}");
        let words = format!("user profile={} ops(validate=1) n=5 -rate threads=2", profile.display());
        let done = run(&stub, &format!("{words} -pop seq=1..5"));
        done.went_on();
        assert_eq!(done.class("ok"), 5, "{insert}: {done}");
    }
}

#[test]
fn a_query_comes_in_pages_of_five_thousand_rows_unless_it_says_otherwise() {
    let content = Content::Canned { rows: 12_000, size: 1 };
    let stub = Stub::local_with(1, StubOptions { content, ..StubOptions::default() }).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (key, requests, pages) in
        [("", 3, Some(3)), (", page_size: 6000", 2, Some(2)), (", page_size: 2147483647", 1, Some(1))]
    {
        let profile = profile(&directory, &format!("queries: {{all: {{cql: SELECT * FROM t WHERE k = ?{key}}}}}"));
        let before = stub.executed();
        let words = format!("user profile={} ops(all=1) n=1 -rate threads=1", profile.display());
        let done = run(&stub, &words);
        done.went_on();
        assert_eq!(stub.executed() - before, requests, "{key}: {done}");
        let all = &done.json["operations"][0];
        assert_eq!((all["ended"].as_u64(), all["rows"].as_u64()), (Some(1), Some(12_000)), "{key}: {done}");
        assert_eq!(all["pages"]["count"].as_u64(), pages, "{key}: {done}");
    }
}

#[test]
fn one_page_is_told_as_such_only_if_pages_were_asked_for() {
    let (stub, directory) = (Stub::local(1).unwrap(), tempfile::tempdir().unwrap());
    for (key, pages) in [("", None), (", page_size: 100", Some(3))] {
        let profile = profile(&directory, &format!("queries: {{all: {{cql: SELECT * FROM t WHERE k = ?{key}}}}}"));
        let words = format!("user profile={} ops(all=1) n=3 -rate threads=1", profile.display());
        let done = run(&stub, &words);
        done.went_on();
        assert_eq!(done.json["operations"][0]["pages"]["count"].as_u64(), pages, "{key}: {done}");
    }
}

#[test]
fn a_predefined_command_empties_all_predefined_tables() {
    let stub = Stub::local(1).unwrap();
    run(&stub, "write n=5 truncate=once -rate threads=1").went_on();
    let done = run(&stub, "write n=5 truncate=once -rate threads=1");
    assert!(done.out.contains("Truncated keyspace1 (standard1). Sleeping"), "there is no counter1: {done}");
    run(&stub, "read n=5 -pop seq=1..5 -rate threads=1").went_on();
    let done = run(&stub, "counter_write n=5 truncate=once -rate threads=1");
    assert!(done.out.contains("Truncated keyspace1 (standard1, counter1). Sleeping"), "{done}");
    let done = run(&stub, "read n=5 -pop seq=1..5 -rate threads=1 -errors ignore");
    assert_eq!(done.class("missing"), 5, "{done}");
}

#[test]
fn a_plan_tells_what_holds_the_rows_of_an_insert() {
    let directory = tempfile::tempdir().unwrap();
    for (lines, told) in [
        ("", "  batch   insert: LOGGED, all rows of a visit in one\n"),
        ("insert: {rate: 5/s}", "  batch   insert: NONE, each row by itself\n"),
        ("insert: {batch-size: 4}", "  batch   insert: LOGGED, at most 4 rows in one\n"),
    ] {
        let profile = profile(&directory, lines);
        let words = format!("user profile={} ops(insert=1) n=5 --dry-run", profile.display());
        let done = Load::start_at("127.0.0.1", 1, &words, "").done();
        assert!(done.code == Some(0) && done.out.contains(told), "{lines}: {done}");
    }
}
