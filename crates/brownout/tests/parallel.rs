//! Several labs at once, on real clusters: each on its own processors, killed and resumed, and alone where a trial is
//! to be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Output,
};

use brownout_record::{Run, TrialRow, TrialState};
use common::{
    Machine, Running, assert_nothing_is_left, both, brownout, descendants, json, network_namespaces, only_run,
    require_root,
};
use serde_json::Value;

/// One node for each lab, so that each can have a single processor. Nothing of what is measured is judged.
const DESIGN: &str = "\
cluster: { nodes: 1, jit: c1 }
load: { replication: 1, consistency: one, population: 1_000, rate: 50/s }
phases: { warm-up: 20s, baseline: 5s, fault: 6s, recovery: 5s }
faults:
  - slow: { host: n1, delay: \"${delay}\" }
without-fault: 0
attempts: 2
objective: { p95: 2s }
";
const TWO_DELAYS: &str = "vary: { delay: [60ms, 100ms] }\ntrials: 3\nparallel: 2\n";
const ALONE_OR_NOT: &str = "vary: { delay: [60ms, 100ms], parallel: [1, 2] }\ntrials: 1\n";

/// A trial for each of two labs, on one member of etcd, which starts in a second. Neither comes to its end.
const ON_ETCD: &str = "\
cluster: { etcd: '3', nodes: 1 }
load: { mix: { put: 1, range: 1 }, population: 500, rate: 50/s }
phases: { warm-up: 16s, baseline: 5s }
trials: 2
attempts: 1
parallel: 2
objective: { p95: 2s }
";

fn file(directory: &tempfile::TempDir, experiment: &str) -> (PathBuf, PathBuf) {
    require_root();
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(processors >= 2, "two labs take two processors, and this machine has {processors}");
    let file = directory.path().join("design.yaml");
    fs::write(&file, experiment).unwrap();
    (file, directory.path().join("runs"))
}

/// The processors that each of the databases below a process, which are this program, may run on, as the kernel lists them;
/// of all of their threads.
fn processors_of_databases(root: u32, program: &str) -> BTreeMap<u32, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for (pid, _) in descendants(root) {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() != program {
            continue;
        }
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let allowed = tasks.filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
        });
        found.insert(pid, allowed.collect());
    }
    found
}

/// The same of two labs that are at work: two lists, one for every thread of each database.
fn processors_of_two(root: u32, program: &str) -> BTreeSet<String> {
    let databases = processors_of_databases(root, program);
    assert_eq!(databases.len(), 2, "{databases:?}");
    assert!(databases.values().all(|threads| threads.len() == 1), "every thread of a database: {databases:?}");
    let lists: BTreeSet<String> = databases.values().flatten().cloned().collect();
    assert_eq!(lists.len(), 2, "{databases:?}");
    lists
}

/// How many processors a list names: "0-3,8" are five.
fn count(list: &str) -> usize {
    let number = |text: &str| text.parse::<usize>().unwrap();
    let range = |part: &str| part.split_once('-').map_or(1, |(first, last)| number(last) - number(first) + 1);
    list.split(',').map(range).sum()
}

/// Pairs of trials that were under way at the same time.
fn at_once(rows: &[TrialRow]) -> Vec<(&TrialRow, &TrialRow)> {
    let mut pairs = Vec::new();
    for (at, one) in rows.iter().enumerate() {
        for other in &rows[at + 1..] {
            let (Some(one_ends), Some(other_ends)) = (one.ends_ns, other.ends_ns) else { continue };
            if one.starts_ns < other_ends && other.starts_ns < one_ends {
                pairs.push((one, other));
            }
        }
    }
    pairs
}

/// Two labs ran these, each on one of these lists of processors, and some at the same time: those share nothing.
fn assert_neighbours_share_nothing(rows: &[TrialRow], lists: &BTreeSet<String>) {
    for row in rows {
        let of_lab: BTreeSet<&str> =
            rows.iter().filter(|other| other.lab == row.lab).map(|other| other.processors.as_str()).collect();
        assert_eq!(of_lab.len(), 1, "{rows:?}");
        assert!(lists.contains(&row.processors), "{row:?} {lists:?}");
    }
    assert_eq!(rows.iter().map(|row| row.lab).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    let pairs = at_once(rows);
    assert!(!pairs.is_empty(), "{rows:?}");
    for (one, other) in pairs {
        let differ = one.lab != other.lab && one.processors != other.processors && one.stand != other.stand;
        assert!(differ, "{one:?} {other:?}");
    }
}

fn has_come_to_an_end(output: &Output) -> Value {
    // On a single processor a trial may well be late; that is said, and nobody asks here.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", both(output));
    json(output)
}

#[test]
fn two_labs_at_once_share_neither_processors_nor_stands_and_an_interrupt_ends_both() {
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = file(&directory, ON_ETCD);
    let (machine, namespaces) = (Machine::now(), network_namespaces());
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    // The first free lab takes the first trial. Each says every second how it stands.
    running.wait_for("lab 1: trial 1/2  warm-up");
    running.wait_for("lab 2: trial 2/2  warm-up");
    let lists = processors_of_two(running.child.id(), "etcd");
    let below = descendants(running.child.id());
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert_nothing_is_left(&below, &machine, &namespaces);

    let run = only_run(&out);
    let rows = Run::open(&run).unwrap().trials().unwrap();
    assert_eq!(rows.iter().map(|row| row.planned).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]), "{rows:?}");
    assert!(rows.len() == 2 && rows.iter().all(|row| row.state == TrialState::Interrupted), "{rows:?}");
    assert_neighbours_share_nothing(&rows, &lists);
    let findings = json(&brownout(&["show", run.to_str().unwrap(), "--json"]));
    assert_eq!(findings["design"]["labs"], 2);
    let labs = findings["labs"].as_array().unwrap();
    assert!(labs.len() == 2 && labs.iter().all(|lab| lab["trials"] == 1), "{labs:?}");
}

#[test]
#[ignore = "two labs on one processor each: minutes, and no measurement: make test-long"]
fn two_labs_at_once_share_no_processor_and_what_was_killed_beside_each_other_is_made_up_for() {
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = file(&directory, &format!("{DESIGN}{TWO_DELAYS}"));
    let mut first = Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    // Both are at work: which of them tells first is chance.
    first.wait_for("lab 1: trial");
    first.wait_for("lab 2: trial");
    first.wait_for_any(&["  baseline  ", "  fault  "]);
    let lists = processors_of_two(first.child.id(), "java");
    let below = descendants(first.child.id());
    first.signal(libc::SIGKILL);
    first.child.wait().unwrap();
    for _ in 0..200 {
        if common::alive(&below).is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(common::alive(&below), Vec::<u32>::new(), "nothing is left behind");

    let run = only_run(&out);
    let resumed = brownout(&["run", "--resume", run.to_str().unwrap(), "--json"]);
    let findings = has_come_to_an_end(&resumed);
    let rows = Run::open(&run).unwrap().trials().unwrap();
    let unfinished: Vec<&TrialRow> = rows.iter().filter(|row| row.state == TrialState::Running).collect();
    assert_eq!(unfinished.len(), 2, "both that were killed: {rows:?}");
    let ended: BTreeSet<u32> =
        rows.iter().filter(|row| row.state != TrialState::Running).map(|row| row.planned).collect();
    assert_eq!(ended, (1..=6).collect(), "{rows:?}");
    assert_eq!(
        rows.iter().map(|row| row.trial).collect::<BTreeSet<_>>().len(),
        rows.len(),
        "each has a number of its own"
    );

    assert_neighbours_share_nothing(&rows, &lists);
    assert_eq!(findings["design"]["labs"], 2);
    assert_eq!(findings["labs"].as_array().unwrap().len(), 2, "{}", findings["labs"]);

    // The work of each lab is its own: nobody else's, and not the other's.
    for trial in findings["trials"].as_array().unwrap() {
        for cpu in trial["instrument"]["cpu"].as_array().unwrap() {
            let own = count(trial["processors"].as_str().unwrap());
            assert!((cpu["cores"].as_f64().unwrap() - own as f64).abs() < 0.05, "{own}: {cpu}");
            assert!(cpu["busy"].as_f64().unwrap() < 1.1, "{cpu}");
            assert!(cpu["nodes"].as_object().unwrap().len() == 1, "{cpu}");
        }
    }
}

#[test]
#[ignore = "the question that docs/limitations.md answers how to ask, as short as it can be: make test-long"]
fn a_trial_that_is_to_be_alone_has_no_neighbour_and_one_that_is_not_has() {
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = file(&directory, &format!("{DESIGN}{ALONE_OR_NOT}"));
    let ran = brownout(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"]);
    let findings = has_come_to_an_end(&ran);
    let run = Run::open(&only_run(&out)).unwrap();
    let (rows, cells) = (run.trials().unwrap(), run.cells().unwrap());
    let is_alone = |row: &TrialRow| cells.iter().any(|cell| cell.cell == row.cell && cell.levels[1] == "1");
    let pairs = at_once(&rows);
    assert!(!pairs.is_empty(), "{rows:?}");
    for (one, other) in pairs {
        assert!(!is_alone(one) && !is_alone(other), "{one:?} {other:?}");
        assert_ne!(one.processors, other.processors);
    }
    // Alone, too, a lab has the processors that it has beside another.
    assert!(rows.iter().all(|row| !row.processors.is_empty()), "{rows:?}");
    assert_eq!(rows.iter().map(|row| &row.processors).collect::<BTreeSet<_>>().len(), 2, "{rows:?}");
    assert_eq!(findings["design"]["factors"][1]["name"], "parallel");
}
