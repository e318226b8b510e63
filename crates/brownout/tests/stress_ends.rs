//! The ends of `brownout stress` that nobody planned: Ctrl-C at any moment, files that cannot be written, a reader that
//! went away.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

/// Of the directory of that name only what this file needs.
mod common {
    pub mod stress;
}

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use brownout_load::stub::{Answer, Behaviour, Stub};
use common::stress::{BROWNOUT, Done, Load, wait_for_operations};

/// Waits until it is so; what takes longer than a minute, hangs.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupted(done: &Done) {
    assert_eq!((done.code, done.last()), (Some(130), "FAILURE"), "{done}");
}

#[test]
fn ctrl_c_while_nobody_answers_the_first_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let load = Load::start_at("127.0.0.1", port, "write n=100 -rate threads=4", "");
    let (mut socket, _) = listener.accept().unwrap();
    // It has asked something.
    socket.read_exact(&mut [0]).unwrap();
    load.interrupt();
    interrupted(&load.done());
    drop(socket);
}

#[test]
fn ctrl_c_while_the_schema_is_made() {
    let stub = Stub::local(1).unwrap();
    stub.set(0, Behaviour { silent_schema: true, ..Behaviour::default() });
    let load = Load::start(&stub, "write n=100 -rate threads=4", "");
    wait_until("the schema is asked for", || stub.unanswered() > 0);
    load.interrupt();
    interrupted(&load.done());
}

#[test]
fn ctrl_c_in_the_warm_up() {
    let stub = Stub::local(1).unwrap();
    stub.set(0, Behaviour::slow(Duration::from_millis(10)));
    let load = Load::start(&stub, "write n=100000 warm-up -rate threads=4", "");
    wait_for_operations(&stub, 20);
    load.interrupt();
    let done = load.done();
    interrupted(&done);
    assert!(done.out.contains("Warming up WRITE"), "{done}");
    assert!(done.err.contains("interrupted in the warm-up: nothing was measured"), "{done}");
    assert_eq!(done.json["success"], false, "{done}");
    assert_eq!(done.sheet("scheduled"), 0, "{done}");
}

#[test]
fn ctrl_c_in_a_run_tells_what_was_done_in_every_loop() {
    for words in [
        "write n=10000000 -rate threads=4",
        "write duration=10m -rate open=500/s",
        "write duration=10m -rate threads=4 fixed=500/s",
        "write -rate open=500/s",
    ] {
        let stub = Stub::local(1).unwrap();
        let load = Load::start(&stub, words, "");
        wait_for_operations(&stub, 100);
        load.interrupt();
        let done = load.done();
        interrupted(&done);
        done.adds_up();
        assert!(done.class("ok") >= 99 && done.out.contains("Interrupted after"), "{words}: {done}");
        assert!(done.out.contains("Results:"), "{words}: {done}");
    }
}

/// Ctrl-C while operations are open that nobody will answer.
fn cuts_off_what_is_open(load: Load) {
    load.interrupt();
    let done = load.done();
    interrupted(&done);
    done.adds_up();
    assert!(done.class("abandoned") > 0, "{done}");
}

#[test]
fn ctrl_c_while_a_server_answers_nothing_ends_what_is_open() {
    let stub = Stub::local(1).unwrap();
    let load = Load::start(&stub, "write duration=10m -rate open=500/s -mode requestTimeout=600000", "");
    wait_for_operations(&stub, 50);
    stub.set(0, Behaviour::frozen());
    wait_for_operations(&stub, stub.executed() + 50);
    cuts_off_what_is_open(load);
}

#[test]
fn ctrl_c_while_the_last_operations_are_waited_for_is_no_good_end() {
    for errors in ["", " -errors ignore"] {
        let stub = Stub::local(1).unwrap();
        let words = format!("write duration=3s -rate open=100/s -mode requestTimeout=30000{errors}");
        let directory = tempfile::tempdir().unwrap();
        let rows = directory.path().join("rows.csv");
        let load = Load::start(&stub, &words, &format!("interval=1000s csv={}", rows.display()));
        wait_for_operations(&stub, 10);
        stub.set(0, Behaviour::answering(Answer::Silence));
        // All are sent, and the only interval ends when nothing is due any more.
        wait_for_operations(&stub, 300);
        wait_until("nothing is due any more", || fs::metadata(&rows).is_ok_and(|rows| rows.len() > 0));
        cuts_off_what_is_open(load);
    }
}

#[test]
fn ctrl_c_between_two_steps_and_in_a_search() {
    let stub = Stub::local(1).unwrap();
    let load = Load::start(&stub, "write n=200 -rate threads>=4 threads<=1000", "");
    wait_for_operations(&stub, 200);
    // It rests for 15 s now.
    std::thread::sleep(Duration::from_millis(500));
    load.interrupt();
    interrupted(&load.done());

    let stub = Stub::local(1).unwrap();
    let load = Load::start(&stub, "write n=1000 -rate search(slo=p99<5s,from=100/s,step=1s)", "");
    wait_for_operations(&stub, 150);
    load.interrupt();
    let done = load.done();
    interrupted(&done);
    done.adds_up();
    assert!(done.out.contains("Interrupted"), "{done}");
}

#[test]
fn a_second_ctrl_c_changes_nothing_and_breaks_nothing() {
    let stub = Stub::local(1).unwrap();
    let load = Load::start(&stub, "write duration=10m -rate open=200/s", "");
    wait_for_operations(&stub, 50);
    load.interrupt();
    load.interrupt();
    interrupted(&load.done());
}

#[test]
fn a_path_that_cannot_be_written_is_found_before_anything_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("no-graph.html");
    fs::write(&text, "somebody's letter").unwrap();
    let (directory, text) = (directory.path().display(), text.display());
    for words in [
        format!("-log file={directory}/no/such"),
        format!("-log hdrfile={directory}/no/such"),
        format!("-log csv={directory}/no/such"),
        format!("-log json={directory}/no/such"),
        format!("-log json={directory}"),
        format!("-graph file={directory}/no/such"),
        format!("-graph file={text}"),
        "-graph file=/dev/full".to_owned(),
        format!("--record {directory}/no/such"),
        format!("--record {text}"),
    ] {
        // Nobody listens there: it would be told so if it asked.
        let mut command = Command::new(BROWNOUT);
        command.args(["stress", "write", "n=10", "-rate", "threads=1", "-node", "127.0.0.1", "-port", "native=1"]);
        let output = command.args(words.split(' ')).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(!said.contains("connect") && (said.contains("no/such") || said.contains("/")), "{words}: {said}");
    }
    assert_eq!(fs::read_to_string(text.to_string()).unwrap(), "somebody's letter");
}

#[test]
fn a_full_disk_costs_the_file_and_the_exit_code_but_not_the_load() {
    for option in ["file", "hdrfile", "csv"] {
        let stub = Stub::local(1).unwrap();
        let log = format!("{option}=/dev/full interval=250ms");
        let done = Load::start(&stub, "write n=300 -rate threads=4 fixed=300/s", &log).done();
        assert_eq!((done.code, done.last()), (Some(1), "FAILURE"), "{option}: {done}");
        done.adds_up();
        assert_eq!(done.class("ok"), 300, "{option}: {done}");
        let told = done.err.matches(&format!("-log {option}= could not be written")).count();
        assert_eq!(told, 1, "{option}: {done}");
        assert!(done.err.contains("No space left"), "{option}: {done}");
    }
}

#[test]
fn starts_as_coarse_as_asked_for_are_not_late() {
    let stub = Stub::local(1).unwrap();
    let done = Load::start(&stub, "write duration=2s --tick 50ms -rate open=1000/s", "").done();
    done.adds_up();
    // They do wait, and are measured so.
    let client = &done.json["client"];
    assert!(client["lateness"]["p90_ns"].as_u64().unwrap() > 20_000_000, "{client}");
    // Two ticks are allowed. Where this machine stands still for longer, starts are late, and that is told.
    let (worst, late) = (client["lateness"]["max_ns"].as_u64().unwrap(), client["late_starts"].as_u64().unwrap());
    if worst <= 99_000_000 {
        assert_eq!((done.code, late), (Some(0), 0), "{done}");
    } else if worst >= 101_000_000 {
        assert!(late > 0, "{client}");
    }
    done.went_on();
}

#[test]
fn results_that_find_no_room_cost_the_exit_code_but_not_the_others() {
    let stub = Stub::local(1).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let port = format!("native={}", stub.addresses()[0].port());
    let graph = format!("file={}", directory.path().join("graph.html").display());
    let words = ["stress", "write", "n=50", "no-warmup", "-rate", "threads=2", "-node", "127.0.0.1", "-port", &port];
    let mut command = Command::new(BROWNOUT);
    command.args(words).args(["-log", "json=/dev/full", "-graph", &graph]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), out.lines().last()), (Some(1), Some("FAILURE")), "{out}{err}");
    assert!(err.contains("cannot write /dev/full") && err.contains("No space left"), "{err}");
    assert!(out.contains("Results:") && directory.path().join("graph.html").exists(), "{out}");
}

#[test]
fn a_reader_that_went_away_neither_ends_a_run_nor_hangs_it() {
    let stub = Stub::local(1).unwrap();
    let address = stub.addresses()[0];
    let json = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(BROWNOUT)
        .args(["stress", "write", "n=300", "no-warmup", "-rate", "threads=2", "fixed=300/s", "-node", "127.0.0.1"])
        .args(["-port", &format!("native={}", address.port())])
        .args(["-log", "interval=100ms", &format!("json={}", json.path().display())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The reader is gone from here on.
    // On a busy machine the client may have been late, and then says so.
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)), "{line}");
    assert_eq!(stub.executed(), 300);
}

#[test]
fn the_header_comes_again_as_often_as_asked_and_no_summary_leaves_the_results_out() {
    let stub = Stub::local(1).unwrap();
    let words = "write n=450 -rate threads=2 fixed=150/s -reporting output-frequency=250ms header-frequency=1s";
    let done = Load::start(&stub, words, "no-summary").done();
    done.went_on();
    let headers = done.out.lines().filter(|line| line.starts_with("type ")).count();
    let rows = done.out.lines().filter(|line| line.starts_with("total,")).count();
    assert!((3..=4).contains(&headers) && rows >= 8, "{headers} headers, {rows} rows: {done}");
    assert!(!done.out.contains("Results:"), "{done}");
}
