//! Every experiment of a study can be planned, and takes no longer than its README says.

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
fn long_forms_are_one_sitting_each() {
    let zones = ["etcd-leader-delay", "etcd-follower-delay", "etcd-leader-loss", "etcd-follower-loss"];
    let zones = zones.map(|zone| format!("danger-zones/{zone}"));
    let zones: Vec<&str> = zones.iter().map(String::as_str).collect();
    let forms: [(&str, &[&str]); 10] = [
        ("slow-and-flaky", &["experiments/etcd", "experiments/etcd-closed"]),
        ("slow-and-flaky", &zones),
        ("virtual-network", &["experiments/closed-r1"]),
        ("virtual-network", &["experiments/closed-r3-one"]),
        ("virtual-network", &["experiments/closed-r3-quorum"]),
        ("virtual-network", &["experiments/open-r1"]),
        ("virtual-network", &["experiments/open-r3-one"]),
        ("virtual-network", &["experiments/open-r3-quorum"]),
        ("topologies-and-clocks", &["experiments/closed", "experiments/open"]),
        ("topologies-and-clocks", &["experiments/clocks", "experiments/skew", "experiments/skew-client"]),
    ];
    for (study, files) in forms {
        let takes = takes(study, files);
        assert!(takes <= SITTING, "{study}, {files:?}: {takes:?}");
    }
}
