//! Who may run experiments.

use super::{
    cluster::{etcd, run_as_jane, slow_follower},
    common::text,
};

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn a_cluster_that_refuses_is_told_with_who_gives_the_right() {
    etcd();
    // Jane may do nothing in a namespace that she was given no rights for.
    let file = slow_follower();
    let words = ["check", file.to_str().unwrap(), "--set=ground.kubernetes.namespace=kube-system"];
    let output = run_as_jane(&words);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("ground.kubernetes") && told.contains("list the pods of namespace kube-system"), "{told}");
    assert!(told.contains("brownout manifests"), "{told}");
}
