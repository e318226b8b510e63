//! Every experiment of a study can be planned, and takes as long as the study's script says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use brownout_lab::{Design, experiment::Source, planner};

const MINUTE: Duration = Duration::from_secs(60);
/// A brief form is for those who wait for it.
const BRIEF: Duration = Duration::from_secs(8 * 60);
/// A long form is one sitting.
const SITTING: Duration = Duration::from_secs(150 * 60);
/// What a script says of a form's length, and what is planned, differ by this share at most.
const ABOUT: f64 = 0.1;

fn studies() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies")).to_owned()
}

/// How long these experiments take together, as `brownout check` says it.
fn takes(study: &str, files: &[&str]) -> Duration {
    files.iter().map(|file| expected(&studies().join(study).join(format!("{file}.yaml")))).sum()
}

fn expected(file: &Path) -> Duration {
    // Whether OpenVPN is installed is nothing to a plan's length.
    let text = fs::read_to_string(file).unwrap().replace("overlay: openvpn", "overlay: wireguard+vxlan");
    let source = Source::from_text(file, text).unwrap_or_else(|error| panic!("{error}"));
    let design = Design::new(&source).unwrap_or_else(|error| panic!("{error}"));
    planner::expected_duration(&design, None)
}

/// All experiment files below a directory.
fn experiments(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            experiments(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_of_every_study_can_be_planned() {
    let mut all = Vec::new();
    experiments(&studies(), &mut all);
    assert!(all.len() > 35, "{all:?}");
    for file in all {
        assert!(expected(&file) > MINUTE, "{}", file.display());
    }
}

#[test]
fn brief_forms_take_eight_minutes_at_most() {
    let forms: [(&str, &[&str]); 4] = [
        ("slow-and-flaky", &["quick/slow", "quick/flaky", "quick/tolerance"]),
        ("slow-and-flaky", &["quick/etcd"]),
        ("virtual-network", &["quick/closed-r3-quorum", "quick/open-r3-quorum"]),
        ("topologies-and-clocks", &["quick/closed", "quick/clocks", "quick/skew"]),
    ];
    for (study, files) in forms {
        let takes = takes(study, files);
        assert!(takes <= BRIEF, "{study}, {files:?}: {takes:?}");
    }
}

#[test]
fn long_forms_are_one_sitting_each_and_as_long_as_is_said() {
    let cassandra = ["delay-reads", "delay-mixed", "delay-writes", "loss-reads", "loss-mixed", "loss-writes"];
    let etcd = ["etcd-leader-delay", "etcd-follower-delay", "etcd-leader-loss", "etcd-follower-loss"];
    let below = |zones: &[&str]| zones.iter().map(|zone| format!("danger-zones/{zone}")).collect::<Vec<_>>();
    let forms = [
        ("slow-and-flaky", "long", in_experiments(&["slow", "few-users", "flaky", "tolerance"])),
        ("slow-and-flaky", "zones", below(&cassandra)),
        ("slow-and-flaky", "etcd", in_experiments(&["etcd", "etcd-closed"])),
        ("slow-and-flaky", "etcd-zones", below(&etcd)),
        ("virtual-network", "others", in_experiments(&["closed-r1"])),
        ("virtual-network", "others", in_experiments(&["closed-r3-one"])),
        ("virtual-network", "others", in_experiments(&["closed-r3-quorum"])),
        ("virtual-network", "others", in_experiments(&["open-r1"])),
        ("virtual-network", "others", in_experiments(&["open-r3-one"])),
        ("virtual-network", "others", in_experiments(&["open-r3-quorum"])),
        ("topologies-and-clocks", "latencies", in_experiments(&["closed", "open"])),
        ("topologies-and-clocks", "clocks", in_experiments(&["clocks", "skew", "skew-client"])),
    ];
    for (study, form, files) in forms {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let takes = takes(study, &files);
        assert!(takes <= SITTING, "{study}, {files:?}: {takes:?}");
        let said = said_minutes(study, form);
        let minutes = takes.as_secs_f64() / 60.0;
        assert!((minutes / said - 1.0).abs() <= ABOUT, "{study}, {form}: said {said}, planned {minutes:.0}");
    }
}

fn in_experiments(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("experiments/{name}")).collect()
}

/// What the script of a study says of a form's length: "… about 100 minutes".
fn said_minutes(study: &str, form: &str) -> f64 {
    let script = fs::read_to_string(studies().join(study).join("run")).unwrap();
    let line = script.lines().find(|line| line.split_whitespace().nth(1) == Some(form));
    let line = line.unwrap_or_else(|| panic!("{study}/run does not tell of {form}"));
    let said = line.split_once("about ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    said.unwrap_or_else(|| panic!("{study}/run says of {form} no number of minutes: {line}"))
}
