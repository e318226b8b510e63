//! `check` and `doctor` say what would be, for people and for programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use common::{both, brownout, experiment, json, text};
use serde_json::json as value;

#[test]
fn the_plan_names_phases_faults_and_the_pairs_they_hit_and_spare() {
    let output = brownout(&["check", experiment("slow-replica.yaml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let plan = text(&output.stdout);
    for part in [
        "warm-up",
        "baseline",
        "recovery",
        "everything n2 sends is delayed by 100ms (direction: out)",
        "every RTT to and from n2 grows by 100ms",
        "hits n2 → n1, n2 → n3, n2 → load",
        "n1 → n2",
        "trials      4: 2 blocks, in each a trial with the faults and 1 without",
    ] {
        assert!(plan.contains(part), "'{part}' is not in:\n{plan}");
    }
}

#[test]
fn the_plan_is_one_json_object_on_request() {
    let output = brownout(&["check", experiment("slow-replica.yaml").to_str().unwrap(), "--json"]);
    let plan = json(&output);
    assert_eq!((&plan["design"]["trials"], &plan["design"]["blocks"]), (&value!(4), &value!(2)));
    let expectations = plan["cells"][0]["faults"][0]["expectations"].as_array().unwrap();
    assert_eq!(expectations.iter().filter(|one| one["hit"] == true).count(), 3);
    assert_eq!(expectations.iter().filter(|one| one["hit"] == false).count(), 9);
    // Any of three replicas coordinates; two of them are enough without n2, but a read may ask it.
    let touched = plan["cells"][0]["faults"][0]["touched"].as_array().unwrap();
    let of = |name: &str| touched.iter().find(|one| one["operation"] == name).unwrap();
    let near = |value: &serde_json::Value, share: f64| (value.as_f64().unwrap() - share).abs() < 1e-9;
    assert!(near(&of("read")["must"], 1.0 / 3.0) && near(&of("read")["may"], 1.0), "{touched:?}");
    assert!(near(&of("write")["must"], 1.0 / 3.0) && near(&of("write")["may"], 1.0 / 3.0), "{touched:?}");
    assert!(plan["expected_duration_ns"].as_u64().unwrap() < 240_000_000_000);
}

#[test]
fn a_search_says_what_it_looks_for_and_how_many_trials_it_takes_at_most() {
    let file = experiment("danger-zone.yaml");
    let file = file.to_str().unwrap();
    let output = brownout(&["check", file]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let plan = text(&output.stdout);
    for part in [
        "searches    faults.0.slow.delay from 1ms to 1s, where the loss of goodput passes 10% and 50%",
        "trials      at most 27: 6 without a fault among one at each of 13 severities",
        "at most, once its database is in the cache",
        "cell 2      faults.0.slow.delay 1s",
    ] {
        assert!(plan.contains(part), "'{part}' is not in:\n{plan}");
    }
    let plan = json(&brownout(&["check", file, "--json"]));
    assert_eq!((&plan["design"]["search"]["kind"], &plan["design"]["trials"]), (&value!("danger-zone"), &value!(27)));
    for refused in [&["run", file, "--trial", "3"][..], &["check", file, "--pilot", "runs/none"]] {
        let output = brownout(refused);
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains("search"), "{}", both(&output));
    }
}

#[test]
fn it_is_said_how_many_labs_work_at_once_and_too_many_are_refused_before_anything_runs() {
    let file = experiment("slow-replica.yaml");
    let file = file.to_str().unwrap();
    let one = brownout(&["check", file]);
    assert!(text(&one.stdout).contains("labs        one at a time (parallel: 1)"), "{}", both(&one));
    let auto = json(&brownout(&["check", file, "--json", "--set=parallel=auto"]));
    let labs = &auto["labs"];
    assert_eq!(labs["at_once"].as_u64().unwrap() as usize, labs["processors"].as_array().unwrap().len(), "{labs}");
    assert!(labs["reason"].as_str().unwrap().starts_with("parallel: auto; "), "{labs}");
    // Three nodes want five processors in each.
    let processors = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(labs["at_once"].as_u64().unwrap() <= (processors / 5).max(1), "{labs}");
    let runs = tempfile::tempdir().unwrap();
    let runs = format!("--out={}", runs.path().join("runs").display());
    for refused in [&["check", file, "--set=parallel=256"][..], &["run", file, "--set=parallel=256", &runs]] {
        let output = brownout(refused);
        assert_eq!(output.status.code(), Some(4), "{}", both(&output));
        let said = text(&output.stderr);
        assert!(said.contains("parallel: 256: a lab of 3 nodes needs"), "{said}");
        assert!(said.contains("auto"), "{said}");
    }
    assert!(!std::path::Path::new(runs.trim_start_matches("--out=")).exists(), "nothing was begun");
}

#[test]
fn chaos_is_drawn_from_the_seed_and_can_be_read_before_it_happens() {
    let file = experiment("chaos.yaml");
    let drawn = |seed: &str| {
        let seed = format!("--set=seed={seed}");
        json(&brownout(&["check", file.to_str().unwrap(), "--json", &seed]))["cells"][0]["faults"].clone()
    };
    assert_eq!(drawn("7"), drawn("7"));
    assert_ne!(drawn("7"), drawn("8"));
    assert!(drawn("7").as_array().unwrap().len() >= 3);
}

#[test]
fn a_fault_says_what_it_does_to_round_trips_in_each_direction() {
    let file = experiment("slow-replica.yaml");
    for (direction, grows) in [("out", "100ms"), ("in", "100ms"), ("both", "200ms")] {
        let set = format!("--set=faults.0.slow.direction={direction}");
        let plan = text(&brownout(&["check", file.to_str().unwrap(), &set]).stdout);
        assert!(plan.contains(&format!("every RTT to and from n2 grows by {grows}")), "{plan}");
        assert!(plan.contains(&format!("(direction: {direction})")), "{plan}");
    }
}

#[test]
fn every_ready_made_experiment_has_a_valid_plan() {
    let mut checked = 0;
    for entry in std::fs::read_dir(common::repository().join("experiments")).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            // Profiles, which experiments name.
            continue;
        }
        let output = brownout(&["check", entry.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", entry.path().display(), both(&output));
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn the_doctor_finds_this_machine_able_and_says_so_in_json_too() {
    common::require_root();
    let output = brownout(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let report = json(&output);
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in
        ["privilege", "TUN device", "timer", "lab", "Java", "Maven", "Cassandra", "memory", "clock source", "disk"]
    {
        assert!(names.contains(&name), "no '{name}' in {names:?}");
    }
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["state"] == "good", check["remedy"].is_null(), "{check}");
    }
    assert!(text(&brownout(&["doctor"]).stdout).contains("This machine can run labs"));
}

#[test]
fn loads_of_their_own_are_told_by_operation_in_every_cell_of_a_plan() {
    let file = experiment("read-and-write-loads.yaml");
    let plan = text(&brownout(&["check", file.to_str().unwrap()]).stdout);
    for part in [
        "pace open",
        "open loop, 400/s, constant arrivals; read 300/s, write 100/s over",
        "pace closed",
        "closed loop, 4 threads; read 3 threads, write 1 thread over",
        "of reads must wait for it",
    ] {
        assert!(plan.contains(part), "'{part}' is not in: {plan}");
    }
    let told = json(&brownout(&["check", file.to_str().unwrap(), "--json"]));
    let loads: Vec<_> = told["cells"].as_array().unwrap().iter().map(|cell| &cell["plan"]["load"]).collect();
    assert_eq!((&loads[0]["rate"], &loads[0]["threads"]), (&400.0.into(), &serde_json::Value::Null));
    assert_eq!((&loads[1]["rate"], &loads[1]["threads"]), (&serde_json::Value::Null, &4.into()));
    assert_eq!(loads[0]["parts"][1]["operation"], "write");
    // Only a run tells how often users come round: of all operations together the plan says nothing.
    assert!(!told["cells"][1]["faults"][0]["touched"].as_array().unwrap().iter().any(|one| one["operation"].is_null()));
}

#[test]
fn a_baseline_that_detectors_cannot_learn_from_is_warned_of() {
    let file = experiment("slow-replica.yaml");
    for (baseline, warned) in [("9s", true), ("10s", false)] {
        let set = format!("phases.baseline={baseline}");
        let said = both(&brownout(&["check", file.to_str().unwrap(), "--set", &set]));
        assert_eq!(said.contains("too short for detectors to learn from"), warned, "{baseline}: {said}");
    }
    // Without a fault there is nothing to notice.
    let said = both(&brownout(&["check", file.to_str().unwrap(), "--set=phases.baseline=9s", "--set=faults=[]"]));
    assert!(!said.contains("too short for detectors"), "{said}");
}
