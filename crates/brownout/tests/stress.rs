//! `brownout stress` without a cluster: what is answered at once, what is refused, what would be done.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may")]

mod common;
#[path = "common/stress.rs"]
#[allow(dead_code, reason = "each test program uses a part of this")]
mod load;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_load::stub::Stub;
use common::{both, brownout, repository, text};
use load::Load;
use tempfile::TempDir;

#[test]
fn words_that_mean_nothing_end_with_two_and_say_why() {
    for (words, said) in [
        (&["stress", "wirte", "n=1"][..], "wirte"),
        (&["stress", "write", "n=1", "-rate", "thraeds=5"][..], "Invalid parameter"),
        (&["stress", "user", "profile=/no/such.yaml", "ops(insert=1)", "n=1", "--dry-run"][..], "/no/such.yaml"),
    ] {
        let output = brownout(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", both(&output));
        assert!(text(&output.stderr).contains(said), "{words:?}: {}", both(&output));
    }
}

#[test]
fn help_and_print_are_answered_at_once() {
    for (words, said) in
        [(&["stress", "help"][..], "counter_write"), (&["stress", "print", "dist=uniform(1..100)"][..], "% of samples")]
    {
        let output = brownout(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", both(&output));
        assert!(text(&output.stdout).contains(said), "{words:?}: {}", both(&output));
    }
}

#[test]
fn a_dry_run_needs_no_cluster_and_shows_the_plan() {
    let output = brownout(&["stress", "write", "n=100", "-rate", "open=500/s", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let out = text(&output.stdout);
    for said in ["Stress Settings", "CREATE TABLE IF NOT EXISTS", "UPDATE \"keyspace1\".\"standard1\"", "open loop"] {
        assert!(out.contains(said), "{said}: {}", both(&output));
    }
    let profile = repository().join("crates/stress/profiles/every-type.yaml");
    let profile = format!("profile={}", profile.display());
    let output = brownout(&["stress", "user", &profile, "ops(insert=1,pages=2)", "n=100", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert!(text(&output.stdout).contains("INSERT INTO stress_types.everything"), "{}", both(&output));
}

#[test]
fn a_dry_run_finds_what_is_known_to_be_wrong_without_a_cluster() {
    let profile = repository().join("crates/stress/profiles/every-type.yaml");
    let user = format!("user profile={} ops(insert=1) n=10", profile.display());
    for (words, said) in [
        ("write n=1 -rate trace=/no/such", "/no/such"),
        ("mixed n=1 -rate ops(FOO=5/s)", "FOO"),
        ("write n=1 -mode driver unprepared", "driver"),
        ("write n=1 -transport truststore=/no/such", "/no/such"),
        ("write n=1 --flush --nodetool /no/such", "/no/such"),
        ("write n=1 -errors retries=5000", "tries"),
        ("read n=1 -pop seq=1..10 read-lookback=fixed(50)", "lookback"),
    ] {
        let words: Vec<&str> = ["stress"].into_iter().chain(words.split(' ')).chain(["--dry-run"]).collect();
        let output = brownout(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", both(&output));
        assert!(text(&output.stderr).contains(said), "{words:?}: {}", both(&output));
        assert!(!text(&output.stdout).contains("Plan"), "{words:?}: {}", both(&output));
    }
    for more in ["-pop seq=1..10 read-lookback=fixed(50)", "-rate trace=/no/such"] {
        let words: Vec<&str> = ["stress"].into_iter().chain(user.split(' ')).chain(more.split(' ')).collect();
        let output = brownout(&[&words[..], &["--dry-run"]].concat());
        assert_eq!(output.status.code(), Some(2), "{more}: {}", both(&output));
    }
}

/// A profile of one table, in a file of its own.
fn profile(directory: &TempDir, table: &str, lines: &str) -> String {
    let path = directory.path().join(format!("{table}.yaml"));
    let text = format!(
        "specname: {table}
keyspace: ks
keyspace_definition: \"CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}\"
table: {table}
table_definition: CREATE TABLE {table} (k int, c int, v text, PRIMARY KEY (k, c))
{lines}
"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// What a dry run says that succeeds, without the settings.
fn plan(words: &str) -> String {
    let words: Vec<&str> = ["stress"].into_iter().chain(words.split(' ')).chain(["--dry-run"]).collect();
    let output = brownout(&words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", both(&output));
    let out = text(&output.stdout);
    out.split_once("Plan (nothing is done):").unwrap_or_else(|| panic!("no plan: {out}")).1.to_owned()
}

#[test]
fn a_word_with_two_dashes_is_no_value_of_another() {
    for words in ["write n=10 --record --dry-run", "write n=10 --nodetool --dry-run", "write n=10 --tick --dry-run"] {
        let words: Vec<&str> = ["stress"].into_iter().chain(words.split(' ')).collect();
        let output = brownout(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", both(&output));
        assert!(text(&output.stderr).contains("has no value ('--dry-run' follows it"), "{}", both(&output));
    }
}

#[test]
fn a_plan_has_the_steps_before_the_load_and_what_ends_it() {
    let out =
        plan("write n=400 truncate=once cl=QUORUM -node 127.0.0.1 pin=127.0.0.1 -rate threads=7 --wait-compactions");
    for said in [
        "ask     at QUORUM, conditions at SERIAL",
        "pin     127.0.0.1 coordinates every operation",
        "warm up 100 partitions of each operation by 7 threads",
        "empty   the tables, after the warm-up",
        "wait    until no node compacts anything",
        "until   400 partitions are visited",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    let out = plan("read n=10 -rate search(slo=p99<20ms)");
    assert!(out.contains("until   the 95 % interval") && !out.contains("10 iteration"), "{out}");
    let out = plan("write n=0");
    assert!(out.contains("n=0 asks for no load") && !out.contains("load    WRITE"), "{out}");
}

#[test]
fn a_plan_of_profiles_has_their_levels_and_rates() {
    let directory = tempfile::tempdir().unwrap();
    let lines = "insert: {rate: 500/s, consistencyLevel: ALL, pin: 127.0.0.1}
queries: {sel: {cql: SELECT * FROM t WHERE k = ?, rate: 30/s}}";
    let profile = profile(&directory, "t", lines);
    let out = plan(&format!("user profile={profile} ops(insert=1,sel=0) duration=1s"));
    assert!(out.contains("insert 500/s, constant") && !out.contains("sel:"), "weight 0 leaves it out: {out}");
    assert!(out.contains("ask     insert: at ALL") && out.contains("pin     insert: 127.0.0.1"), "{out}");
    let out = plan(&format!("user profile={profile} ops(insert=1,sel=1) duration=1s -rate arrivals=poisson"));
    assert!(out.contains("insert 500/s, sel 30/s, Poisson arrivals"), "{out}");
}

#[test]
fn sizes_that_cannot_be_verified_for_want_of_nodetool_are_refused_before_a_server_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let lines = "columnspec: [{name: c, cluster: fixed(3)}]\npartition_sizes: {max: 3 rows}";
    let profile = format!("profile={}", profile(&directory, "t", lines));
    for more in [&["--dry-run"][..], &[]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_brownout"));
        command
            .args(["stress", "verify-sizes", &profile, "-port", "native=1"])
            .args(more)
            .env("PATH", directory.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(text(&output.stderr).contains("--nodetool 'ssh {host} nodetool'"), "{}", both(&output));
    }
}

#[test]
fn the_rate_of_applied_conditions_is_told_even_if_all_are() {
    let (stub, directory) = (Stub::local(1).unwrap(), tempfile::tempdir().unwrap());
    let lines = "queries: {claim: {cql: INSERT INTO t (k) VALUES (?) IF NOT EXISTS, fields: samerow}, \
                 sel: {cql: SELECT * FROM t WHERE k = ?}}";
    let profile = profile(&directory, "t", lines);
    let words = format!("user profile={profile} ops(claim=1,sel=0) n=30 -pop seq=1..30 -rate threads=2");
    let done = Load::start(&stub, &words, "").done();
    done.went_on();
    let claim = done.json["operations"].as_array().unwrap().iter().find(|one| one["name"] == "claim").unwrap();
    let figures = ["conditional", "applied", "not_applied"].map(|name| claim[name].as_u64().unwrap());
    assert_eq!(figures, [30, 30, 0], "{done}");
    assert!(done.out.contains("30 of 30 answered (100.0 %)"), "{done}");
}

#[test]
fn several_tables_with_rates_are_loaded_each_with_all_of_the_partitions() {
    let (stub, directory) = (Stub::local(1).unwrap(), tempfile::tempdir().unwrap());
    let [a, b] = ["a", "b"].map(|table| profile(&directory, table, ""));
    let words = format!("user profile={a},{b} ops(a.insert=400/s,b.insert=200/s) n=100 -pop seq=1..50 no-wrap");
    let done = Load::start(&stub, &words, "").done();
    done.went_on();
    let ended: Vec<u64> =
        done.json["operations"].as_array().unwrap().iter().map(|one| one["ended"].as_u64().unwrap()).collect();
    assert_eq!(ended, [50, 50], "{done}");
}

#[test]
fn a_log_of_an_earlier_run_is_not_touched_by_one_that_does_not_begin() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.txt");
    std::fs::write(&path, "an earlier run").unwrap();
    let log = format!("file={}", path.display());
    for words in [
        &["stress", "write", "n=1", "-log", &log, "--dry-run"][..],
        &["stress", "user", "profile=/no/such.yaml", "ops(insert=1)", "n=1", "-log", &log],
        &["stress", "write", "n=1", "-rate", "trace=/no/such", "-log", &log],
    ] {
        brownout(words);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "an earlier run", "{words:?}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_a_failure_that_names_it() {
    // Nobody listens on this port of loopback, and the driver is told so at once.
    let words = ["stress", "write", "n=1", "-node", "127.0.0.1", "-port", "native=1", "-log", "no-settings"];
    let output = brownout(&words);
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(text(&output.stderr).contains("cannot connect to 127.0.0.1:1"), "{}", both(&output));
    assert!(text(&output.stdout).trim_end().ends_with("FAILURE"), "{}", both(&output));
}

#[test]
fn metrics_can_be_asked_for_while_the_load_runs() {
    let stub = Stub::local(1).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let load = Load::start(&stub, "write duration=5s -rate open=200/s", &format!("prometheus=:{}", free.port()));
    let ask = || {
        let mut client = TcpStream::connect(free)?;
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).map(|_| answer)
    };
    let ok = "brownout_stress_operations_total{operation=\"WRITE\",coordinator=\"127.0.0.1\",outcome=\"ok\"} ";
    let mut most = 0;
    let begun = Instant::now();
    while most == 0 && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(50));
        let answer = ask().unwrap_or_default();
        most = answer.lines().find_map(|line| line.strip_prefix(ok)?.parse().ok()).unwrap_or_default();
    }
    let done = load.done();
    done.went_on();
    let all = done.class("ok");
    assert!((1..=all).contains(&most), "{most} of {all} were told while it ran: {done}");
    ask().expect_err("nobody listens any more");
}
