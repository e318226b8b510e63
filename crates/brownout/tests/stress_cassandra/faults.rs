//! Runs that are cut short: by the user, and by a node that dies. The last section leaves the node dead.

use super::{
    Section,
    common::{self, cassandra::Cassandra},
    ran::{assert_due, good, start},
};

/// What a row of progress over all operations begins with: the load is under way.
const A_ROW: &str = "\ntotal, ";

pub const SECTIONS: &[Section] = &[
    ("Ctrl-C ends a run with its account", interrupted),
    ("a killed node takes no operation out of the account, and no time from the run", killed),
];

fn interrupted(node: &Cassandra) {
    good(node, &["write", "n=1000", "no-warmup", "-rate", "threads=8"]);
    for rate in ["open=300/s", "threads=4"] {
        let mut run = start(node, &["read", "duration=10m", "no-warmup", "-pop", "seq=1..1000", "-rate", rate]);
        run.wait_for(A_ROW);
        common::kill(run.pid(), libc::SIGINT);
        let ran = run.end();
        assert_eq!(ran.code, Some(130), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("Interrupted after ") && ran.out.ends_with("\nFAILURE\n"), "{}", ran.out);
        assert!(ran.out.contains("\nResults:\n"), "{}", ran.out);
        ran.assert_balances();
        assert!(ran.balance("answered_ok") > 0, "{}", ran.out);
        assert_eq!(ran.json["success"], false);
    }
    // Nothing of a warm-up is counted, so there is no account; it ends all the same.
    let mut run = start(node, &["read", "duration=10m", "-pop", "seq=1..1000", "-rate", "threads=1"]);
    run.wait_for("Warming up READ");
    common::kill(run.pid(), libc::SIGINT);
    let ran = run.end();
    assert_eq!(ran.code, Some(130), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("Warming up READ") && !ran.out.contains("Results:"), "{}", ran.out);
}

fn killed(node: &Cassandra) {
    good(node, &["write", "n=1000", "no-warmup", "-rate", "threads=8"]);
    let words = ["mixed", "no-warmup"];
    let rest =
        ["-pop", "seq=1..1000", "-errors", "ignore", "retries=0", "-mode", "native", "requestTimeout=1000", "-rate"];
    // It comes back within the run, and so do the connections.
    let mut run = start(node, &[&words[..], &["duration=18s"], &rest, &["open=100/s"]].concat());
    run.wait_for(A_ROW);
    node.kill();
    node.start_again();
    let ran = run.end();
    ran.assert_balances();
    assert_due(ran.balance("scheduled"), 1800, "while a node was away");
    assert!(ran.seconds() >= 18.0, "{}", ran.seconds());
    assert!(ran.balance("answered_ok") > 0 && ran.lost() > 0, "{}", ran.out);
    assert_eq!((ran.found("mismatched"), ran.found("missing")), (0, 0), "what was written is there: {}", ran.err);
    assert!(matches!(ran.code, Some(0 | 3)), "{:?}: {}{}", ran.code, ran.out, ran.err);
    good(node, &["read", "n=1000", "no-warmup", "-pop", "seq=1..1000", "-rate", "threads=8"]);

    // It does not.
    let mut run = start(node, &[&words[..], &["duration=5s"], &rest, &["threads=6"]].concat());
    run.wait_for(A_ROW);
    node.kill();
    let ran = run.end();
    ran.assert_balances();
    assert!(ran.seconds() >= 5.0, "{}", ran.seconds());
    assert!(ran.balance("answered_ok") > 0 && ran.lost() > 0, "{}", ran.out);
    assert!(ran.code == Some(0) || ran.was_late(), "{:?}: {}{}", ran.code, ran.out, ran.err);
}
