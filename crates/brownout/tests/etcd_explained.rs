//! What arithmetic says of a slow leader, beside what a real etcd does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{both, brownout, experiment, require_root, undisturbed};
use serde_json::Value;

fn of<'a>(rows: &'a Value, operation: &str) -> Vec<&'a Value> {
    rows.as_array().unwrap().iter().filter(|row| row["operation"] == operation).collect()
}

#[test]
#[ignore = "made-up runs show the same arithmetic, and etcd_faults.rs who leads: make test-long"]
fn puts_and_reads_of_a_slow_leader_take_as_long_as_the_plan_says_whoever_is_asked() {
    require_root();
    let file = experiment("etcd-slow-leader.yaml");
    let Some((_, output, findings)) = undisturbed(|out| {
        let alone = ["--set=trials=1", "--set=without-fault=0"];
        let arguments = ["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
        brownout(&[&arguments[..], &alone].concat())
    }) else {
        return;
    };
    // Puts that take 200 ms miss the objective.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
    let trial = &findings["trials"][0];
    let explained = &trial["explained"];
    let leader = explained["leader"].as_str().unwrap();
    let said = trial["faults"][0]["text"].as_str().unwrap();
    assert!(said.contains(&format!("the leader ({leader})")), "{leader}: {said}");
    for (operation, must) in [("put", 1.0), ("range", 1.0), ("serializable", 1.0 / 3.0)] {
        let touched = of(&explained["touched"], operation);
        assert!((touched[0]["must"].as_f64().unwrap() - must).abs() < 1e-9, "{operation}: {}", touched[0]);
    }
    assert!(explained["inapplicable"].is_null(), "{explained}");
    // 50 ms each way: the client's way and the round of the leader at the leader, two ways to it and that round elsewhere.
    for operation in ["put", "range"] {
        let rows = of(&explained["prediction"]["latencies"], operation);
        let p50 = rows.iter().find(|row| row["quantile"] == 0.5).unwrap();
        let ns = |key: &str| p50[key].as_f64().unwrap();
        assert!(ns("least_ns") - ns("baseline_ns") > 195e6, "{p50}");
        assert!(ns("measured_ns") > 0.97 * ns("least_ns") && ns("measured_ns") < 1.5 * ns("most_ns"), "{p50}");
    }
    // What the members say of it: one leader all the time, and how long it took them to write.
    let phases = trial["database"]["phases"].as_array().unwrap();
    for phase in phases {
        assert_eq!(phase["led"]["by"], serde_json::json!([leader]), "{phase}");
        let members = phase["by_node"].as_array().unwrap();
        let means = |member: &Value| member["means"].as_array().unwrap().clone();
        let writes = |member: &Value| means(member).iter().any(|mean| mean["name"] == "wal-fsync");
        assert!(members.len() == 3 && members.iter().all(writes), "{phase}");
    }
    // Each of three watches is on another member.
    let watches = trial["watches"].as_array().unwrap();
    let watched = watches.iter().filter(|lag| lag["phase"] == "fault" && lag["events"].as_u64().unwrap() > 0);
    assert_eq!(watched.count(), 3, "{watches:?}");
}
