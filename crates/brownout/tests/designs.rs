//! The life of a design on a real lab: killed, interrupted, resumed, extended; its trials one after the other on the same cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::OnceLock,
};

use brownout_lab::More;
use brownout_record::{Run, SessionRow, TrialRow, TrialState};
use common::{
    Running, both, brownout, descendants, json, kill, only_run, require_root, text, unjudged::not_judged,
    with_command_line,
};
use serde_json::Value;
use tempfile::TempDir;

/// Three cells without faults in one block; nothing of it is judged but that each trial is valid.
const DESIGN: &str = "\
cluster: { nodes: 1, jit: c1, heap: 224MiB }
load: { replication: 1, consistency: one, population: 1_000, rate: \"${rate}\" }
phases: { warm-up: 16s, baseline: 4s }
vary: { rate: [100/s, 120/s, 140/s] }
trials: 1
attempts: 2
fresh-every: 2
objective: { p95: 1s }
";

const TRIALS: u32 = 3;
/// A machine with other work may disturb all of a trial's. Blocks and numbers are those of the design all the same, and each
/// test but that of the verdict says as much as on a quiet one.
const ATTEMPTS: usize = 2;
const FRESH_EVERY: usize = 2;

/// What happened to the one run that most tests look at.
struct Lived {
    directory: TempDir,
    run: PathBuf,
    /// What the first session said on stdout.
    first: String,
    /// What the second said on stderr, when it was interrupted.
    advice: String,
    /// The third, which came to the end.
    third: Output,
    /// Findings and rows then.
    findings: Value,
    trials: Vec<TrialRow>,
    sessions: Vec<SessionRow>,
    /// `--resume` once more, with nothing missing.
    complete: Output,
    sessions_after: usize,
}

/// Killed in its third trial, which has a fresh stand, interrupted in the same before that stood, ended.
fn lived() -> &'static Lived {
    static LIVED: OnceLock<Lived> = OnceLock::new();
    LIVED.get_or_init(|| {
        require_root();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("design.yaml");
        fs::write(&file, DESIGN).unwrap();
        let out = directory.path().join("runs");
        let mut first = Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        first.wait_for("trial 3/3  warm-up");
        first.signal(libc::SIGKILL);
        first.child.wait().unwrap();
        let first = first.seen;
        let run = only_run(&out);
        let resume = ["--resume", run.to_str().unwrap()];

        let heard = directory.path().join("stderr");
        let mut second = Running::start_telling(&resume, &heard);
        second.wait_for("starting 1 node");
        second.signal(libc::SIGINT);
        let (code, second) = second.finish();
        assert_eq!(code, Some(130), "{second}");

        let third = brownout(&["run", resume[0], resume[1], "--json"]);
        let read = Run::open(&run).unwrap();
        let (trials, sessions) = (read.trials().unwrap(), read.sessions().unwrap());
        drop(read);
        let complete = brownout(&["run", resume[0], resume[1]]);
        let sessions_after = Run::open(&run).unwrap().sessions().unwrap().len();
        Lived {
            first,
            advice: fs::read_to_string(heard).unwrap(),
            findings: json(&third),
            third,
            trials,
            sessions,
            complete,
            sessions_after,
            run,
            directory,
        }
    })
}

/// Numbers in the design of those trials of findings that became this, attempt by attempt.
fn became(findings: &Value, validity: &str) -> Vec<u32> {
    let trials = findings["trials"].as_array().unwrap().iter();
    let number = |trial: &Value| u32::try_from(trial["planned"].as_u64().unwrap()).unwrap();
    trials.filter(|trial| trial["validity"] == validity).map(number).collect()
}

/// Asserts that each of the first `trials` of a design is valid once, or was disturbed as often as it may be tried; returns
/// how the command ends that says so.
fn all_tried(findings: &Value, trials: u32) -> Option<i32> {
    let (valid, disturbed) = (became(findings, "valid"), became(findings, "disturbed"));
    let lost = |planned: &u32| disturbed.iter().filter(|one| *one == planned).count() == ATTEMPTS;
    let mut tried = valid.clone();
    tried.extend((1..=trials).filter(lost));
    tried.sort_unstable();
    assert_eq!(tried, (1..=trials).collect::<Vec<_>>(), "valid: {valid:?}, disturbed: {disturbed:?}");
    if valid.len() < trials as usize {
        not_judged(&format!("the machine disturbed each attempt at some of {trials} trials"));
        return Some(3);
    }
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    Some(0)
}

#[test]
fn a_run_that_was_killed_and_interrupted_has_all_trials_once_and_valid_after_it_was_resumed() {
    let lived = lived();
    assert_eq!(lived.third.status.code(), all_tried(&lived.findings, TRIALS), "{}", both(&lived.third));
    let of = |planned: u32, state: TrialState| {
        lived.trials.iter().filter(|row| row.planned == planned && row.state == state).count()
    };
    assert_eq!(of(3, TrialState::Running), 1, "the one that was killed: {:?}", lived.trials);
    assert_eq!(of(3, TrialState::Interrupted), 1, "the one that was interrupted: {:?}", lived.trials);
    // Each cell once.
    let cells: BTreeSet<u32> = lived.trials.iter().map(|row| row.cell).collect();
    assert_eq!(cells, BTreeSet::from([1, 2, 3]), "{:?}", lived.trials);
    assert!(lived.trials.iter().all(|row| row.block == 1), "{:?}", lived.trials);
    // What the file sets of the database is in force.
    let settings = lived.findings["environment"]["system_settings"].as_str().unwrap();
    assert!(settings.contains("-Xmx229376k"), "{settings}");
}

#[test]
fn sessions_and_trials_follow_one_another_on_one_time_line() {
    let lived = lived();
    assert_eq!(lived.sessions.iter().map(|row| row.session).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(lived.sessions.windows(2).all(|pair| pair[0].starts_ns < pair[1].starts_ns), "{:?}", lived.sessions);
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for trial in lived.findings["trials"].as_array().unwrap() {
        spans.push((trial["starts_ns"].as_u64().unwrap(), trial["ends_ns"].as_u64().unwrap()));
    }
    assert!(spans.len() >= 5, "three, one that was killed and one that was interrupted: {spans:?}");
    assert!(spans.iter().all(|(starts, ends)| starts < ends), "{spans:?}");
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
    for row in &lived.trials {
        let session = &lived.sessions[row.session as usize - 1];
        assert!(row.starts_ns >= session.starts_ns, "{row:?} {session:?}");
    }
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_a_complete_one_that_nothing_is_missing() {
    let lived = lived();
    let run = lived.run.canonicalize().unwrap();
    let resume = format!("brownout run --resume {}", run.display());
    assert!(lived.advice.contains(&resume), "{}", lived.advice);
    assert_eq!(lived.complete.status.code(), lived.third.status.code(), "{}", both(&lived.complete));
    assert!(text(&lived.complete.stderr).contains("nothing is missing"), "{}", both(&lived.complete));
    // It is shown, and nothing was begun for that.
    assert!(text(&lived.complete.stdout).contains("report  "), "{}", both(&lived.complete));
    assert_eq!(lived.sessions_after, 3);
}

#[test]
fn another_file_is_refused_with_what_differs_and_a_comment_is_no_difference() {
    let lived = lived();
    let file = lived.directory.path().join("other.yaml");
    fs::write(&file, DESIGN.replace("1_000", "2_000").replace("120/s", "130/s")).unwrap();
    let with = |file: &Path| brownout(&["run", file.to_str().unwrap(), "--resume", lived.run.to_str().unwrap()]);
    let refused = with(&file);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    for part in ["load.population was 1_000 and is 2_000", "vary.rate.1 was 120/s and is 130/s"] {
        assert!(text(&refused.stderr).contains(part), "{}", both(&refused));
    }
    fs::write(&file, format!("# Of Tuesday.\n{}", DESIGN.replace("100/s", "\"100/s\""))).unwrap();
    let same = with(&file);
    assert_eq!(same.status.code(), lived.third.status.code(), "{}", both(&same));
    assert!(text(&same.stderr).contains("nothing is missing"), "{}", both(&same));
}

#[test]
#[ignore = "that its trials are those of the design and more is tested in lab, and that a run goes on, above: make test-long"]
fn an_extended_run_has_a_block_more_and_no_earlier_trial_again() {
    let lived = lived();
    let extended = brownout(&["extend", lived.run.to_str().unwrap(), "--trials", "+1", "--json"]);
    let trials = Run::open(&lived.run).unwrap().trials().unwrap();
    assert_eq!(trials[..lived.trials.len()], lived.trials, "what is there stays as it is");
    let more = &trials[lived.trials.len()..];
    assert!(more.iter().all(|row| row.block == 2 && row.planned > TRIALS && row.session == 4), "{more:?}");
    let findings = json(&extended);
    assert_eq!(extended.status.code(), all_tried(&findings, 2 * TRIALS), "{}", both(&extended));
    let design = &findings["design"];
    assert_eq!((design["blocks"].as_u64(), design["trials"].as_u64()), (Some(2), Some(6)));
}

#[test]
fn a_stand_serves_trials_until_it_is_to_be_fresh_and_each_session_has_stands_of_its_own() {
    let lived = lived();
    let stood: Vec<&TrialRow> = lived.trials.iter().filter(|row| row.stand > 0).collect();
    let mut served = 0;
    for pair in stood.windows(2) {
        served += 1;
        let goes_on = pair[0].session == pair[1].session && served < FRESH_EVERY;
        let expected = pair[0].stand + u32::from(!goes_on);
        if goes_on {
            assert_eq!(pair[1].stand, expected, "{stood:?}");
        } else {
            // One that served nobody has a number, too.
            assert!(pair[1].stand >= expected, "{stood:?}");
            served = 0;
        }
    }
    assert!(stood.windows(2).any(|pair| pair[0].stand == pair[1].stand), "{stood:?}");
    assert!(stood.windows(2).any(|pair| pair[0].session == pair[1].session && pair[0].stand != pair[1].stand));
    // Each session has logged apart.
    for row in &stood {
        assert!(lived.run.join(format!("logs/stand-{}", row.stand)).is_dir(), "{row:?}");
    }
}

#[test]
fn a_trial_finds_nothing_of_the_trial_before() {
    let lived = lived();
    // The nodes themselves have said that they hold no table and work on nothing: else there would be a new stand.
    assert!(lived.first.contains("dropping what the trial before wrote"), "{}", lived.first);
    assert!(!lived.first.contains("was not clean"), "{}", lived.first);
    // The second had another load, and the cluster has met that, too, before anything was measured.
    assert!(lived.first.matches("the flood was answered at").count() >= 2, "{}", lived.first);
    let mut reused = 0;
    for trial in lived.findings["trials"].as_array().unwrap() {
        let row = lived.trials.iter().find(|row| u64::from(row.trial) == trial["trial"].as_u64().unwrap());
        let row = row.unwrap();
        if row.state != TrialState::Done {
            continue;
        }
        reused += u32::from(lived.trials.iter().any(|one| one.stand == row.stand && one.trial < row.trial));
        for phase in trial["phases"].as_array().unwrap() {
            let counts = &phase["counts"];
            for class in ["mismatch", "missing"] {
                assert!(counts["failed_by_class"].get(class).is_none(), "trial {}: {counts}", row.trial);
            }
            assert_eq!(counts["stale"], 0, "trial {}: {counts}", row.trial);
        }
    }
    assert!(reused >= 1, "{:?}", lived.trials);
}

/// What it draws it draws in the design; and a run of one trial is resumed as a run of one trial.
#[test]
fn one_trial_of_a_design_is_run_alone_with_its_own_seed() {
    let lived = lived();
    let file = lived.directory.path().join("design.yaml");
    let out = lived.directory.path().join("alone");
    let mut running = Running::start(&[file.to_str().unwrap(), "--trial", "2", "--out", out.to_str().unwrap()]);
    running.wait_for("starting 1 node");
    running.signal(libc::SIGINT);
    assert_eq!(running.finish().0, Some(130));
    let alone = only_run(&out);
    let rows = Run::open(&alone).unwrap().trials().unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let second = lived.trials.iter().find(|row| row.planned == 2).unwrap();
    assert_eq!((row.planned, row.trial, row.cell, row.block), (2, 1, second.cell, second.block));
    assert_eq!((row.seed, row.arm), (second.seed, second.arm));
    let resumed = brownout_lab::resume(&alone, None, More::default()).unwrap();
    assert_eq!((resumed.only, resumed.missing), (Some(2), 1));
    let refused = brownout(&["extend", alone.to_str().unwrap(), "--trials", "+1"]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(text(&refused.stderr).contains("trial 2 of its design alone"), "{}", both(&refused));
}

#[test]
fn a_run_that_is_being_made_is_not_resumed() {
    let lived = lived();
    let file = lived.directory.path().join("design.yaml");
    let out = lived.directory.path().join("busy");
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    running.wait_for("starting 1 node");
    let refused = brownout(&["run", "--resume", only_run(&out).to_str().unwrap()]);
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(text(&refused.stderr).contains("still being made by another process"), "{}", both(&refused));
    assert_eq!(code, Some(130), "its maker did not notice: {seen}");
}

#[test]
#[ignore = "a node needs a minute to be killed and to be back; what makes a stand unfit is tested without it: make test-long"]
fn after_a_trial_whose_node_was_killed_the_next_one_has_a_stand_of_its_own() {
    let killed = "\
cluster: { etcd: '3', nodes: 3 }
load: { mix: { put: 1, range: 1 }, population: 500, rate: 100/s }
phases: { warm-up: 16s, baseline: 5s, fault: 8s, recovery: 60s }
faults:
  - kill: { host: n1 }
trials: 2
without-fault: 0
attempts: 1
objective: { p95: 1s }
";
    assert_eq!(stands_of_two(killed, &[], |_| ()), [(1, 1), (2, 2)]);
}

/// Runs an experiment until its second trial warms up, and returns the stands of both.
fn stands_of_two(experiment: &str, more: &[&str], until_then: impl FnOnce(&mut Running)) -> Vec<(u32, u32)> {
    require_root();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("two.yaml");
    fs::write(&file, experiment).unwrap();
    let out = directory.path().join("runs");
    let mut arguments = vec![file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    arguments.extend(more);
    let mut running = Running::start(&arguments);
    until_then(&mut running);
    running.wait_for("trial 2/2  warm-up");
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(130), "{seen}");
    let rows = Run::open(&only_run(&out)).unwrap().trials().unwrap();
    assert_eq!(rows[0].state, TrialState::Done, "{rows:?}");
    rows.iter().map(|row| (row.planned, row.stand)).collect()
}

#[test]
#[ignore = "a node that answers nobody is waited for: make test-long"]
fn a_stand_that_cannot_be_cleaned_is_replaced() {
    let two = "\
cluster: { nodes: 1, jit: c1 }
load: { replication: 1, consistency: one, population: 1_000, rate: 100/s }
phases: { warm-up: 16s, baseline: 5s }
trials: 2
attempts: 1
objective: { p95: 1s }
";
    let mut nodes = Vec::new();
    let stands = stands_of_two(two, &[], |running| {
        running.wait_for("dropping what the trial before wrote");
        nodes = with_command_line(&descendants(running.child.id()), "CassandraDaemon");
        assert_eq!(nodes.len(), 1);
        nodes.iter().for_each(|pid| kill(*pid, libc::SIGSTOP));
        running.wait_for("a new cluster is started, as this one was not clean: ");
    });
    assert_eq!(stands, [(1, 1), (2, 2)]);
    assert!(nodes.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "the node that stood still is gone");
}

#[test]
#[ignore = "repeats a trial on another stand: make test-long"]
fn a_stand_whose_trial_was_invalid_serves_no_other() {
    let two = "\
cluster: { etcd: '3', nodes: 3 }
load: { mix: { put: 1, range: 1 }, population: 500, rate: 100/s }
phases: { warm-up: 16s, baseline: 5s, fault: 8s, recovery: 5s }
faults:
  - slow: { host: n2, delay: 100ms }
trials: 2
without-fault: 0
attempts: 1
objective: { p95: 2s }
";
    let stands = stands_of_two(two, &["--sabotage"], |running| running.wait_for("trial 1 is invalid"));
    assert_eq!(stands, [(1, 1), (2, 2)]);
}
