//! A cluster on its way to another version, through `brownout run`: all of one, one node ahead of the others, all of the next. That
//! such clusters serve is tested in crates/cluster; here a fault on each is proven, and the record says which versions it met.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{both, brownout, experiment, require_root, undisturbed};

#[test]
#[ignore = "three clusters, two of them of the version before: make test-long"]
fn a_fault_is_proven_before_during_and_after_an_upgrade_and_each_cell_names_its_versions() {
    require_root();
    let file = experiment("upgrade.yaml");
    let Some((_, output, findings)) = undisturbed(|out| {
        brownout(&[
            "run",
            file.to_str().unwrap(),
            "--json",
            "--out",
            out.to_str().unwrap(),
            "--set=trials=1",
            "--set=without-fault=0",
            "--set=phases={warm-up: 20s, baseline: 8s, fault: 8s, recovery: 5s}",
            "--set=load.population=2_000",
        ])
    }) else {
        return;
    };
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", both(&output));
    let proven = |trial: &&serde_json::Value| trial["validity"] == "valid" && trial["faults"][0]["verdict"] == "proven";
    let trials = findings["trials"].as_array().unwrap();
    assert_eq!(trials.iter().filter(proven).count(), 3, "{trials:?}");
    let named: BTreeMap<String, String> = (findings["cells"].as_array().unwrap().iter())
        .map(|cell| (cell["levels"][0].as_str().unwrap().to_owned(), cell["database"].as_str().unwrap().to_owned()))
        .collect();
    let [(_, after), (_, before), (_, one)] = &named.iter().collect::<Vec<_>>()[..] else { panic!("{named:?}") };
    let [old, new] = ["4.1.", "5.0."].map(|series| format!("Cassandra {series}"));
    assert!(before.starts_with(&old) && !before.contains("5.0."), "{named:?}");
    assert!(after.starts_with(&new) && !after.contains("4.1."), "{named:?}");
    assert!(one.contains("4.1.") && one.contains("5.0.") && one.contains("n3"), "{named:?}");
}
