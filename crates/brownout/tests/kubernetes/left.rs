//! What is left when somebody is killed.

use std::{process::Command, thread, time::Duration};

use super::{
    cluster::{Following, etcd, kubectl, nothing_of_ours, ours, permitted, run_as_jane, slow_follower, until},
    common::text,
};

/// What diverts packets in the networks of the pods, in words of `nft`.
fn diverted() -> String {
    // This process sees the processes of all nodes.
    let pids = text(&Command::new("pgrep").args(["--exact", "etcd"]).output().unwrap().stdout);
    let of = |pid: &str| {
        let words = [&format!("--target={pid}"), "--net", "nft", "list", "ruleset"];
        text(&Command::new("nsenter").args(words).output().unwrap().stdout)
    };
    pids.split_whitespace().map(of).collect()
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_command_that_is_killed_leaves_nothing_in_pods_and_destroy_removes_the_rest() {
    etcd();
    permitted();
    let before = diverted();
    let out = tempfile::tempdir().unwrap();
    let file = slow_follower();
    let words = ["run", file.to_str().unwrap(), "--json", "--out", out.path().to_str().unwrap(), "--set=trials=1"];
    let mut run = Following::start(&words);
    run.until_in_fault();
    assert_ne!(diverted(), before, "it is attached");
    let parts = || text(&Command::new("pgrep").args(["--full", "^/bin/brownout part$"]).output().unwrap().stdout);
    assert_eq!(parts().lines().count(), 8, "an agent and its keeper on three nodes, and two that send");
    run.kill();
    // The lease is 10 s.
    thread::sleep(Duration::from_secs(10));
    until("the pods are as they were", || diverted() == before);
    // Loads have dropped what they had made by then: the runs after this one would find it.
    until("all parts have ended", || parts().is_empty());
    let left = ours();
    assert!(
        left.iter().any(|one| one.starts_with("daemonset")) && left.iter().any(|one| one.starts_with("job")),
        "{left:?}"
    );
    let destroyed = run_as_jane(&["destroy", "--ground=kubernetes"]);
    let told = text(&destroyed.stdout);
    assert!(told.contains("removed DaemonSet/agent") && told.contains("removed Job/load-"), "{told}");
    nothing_of_ours();
    let again = run_as_jane(&["destroy", "--ground=kubernetes"]);
    assert_eq!(text(&again.stdout), "there is nothing of ours in this cluster\n");
    assert_eq!(
        kubectl(&["get", "pods", "--namespace=db", "--output=name"]).lines().count(),
        3,
        "its pods are the user's"
    );
}
