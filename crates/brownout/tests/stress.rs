//! `brownout stress` without a cluster: what is answered at once, what is refused, what would be done.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may")]

mod common;

use common::{both, brownout, repository, text};

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

#[test]
fn a_log_of_an_earlier_run_is_not_touched_by_one_that_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.txt");
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
