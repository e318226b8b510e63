//! A process that is killed takes its overlays along, at whatever moment: interfaces, namespaces, children. In a program of
//! its own, which starts itself again to be killed.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use brownout_network::{
    Network, NetworkSpec,
    overlay::{Overlay, openvpn_program},
};

/// Which overlay the other process is to build.
const WANTED: &str = "BROWNOUT_TEST_OVERLAY";
/// What it says when it has.
const STANDS: &str = "it stands";

/// The network namespaces that any process is in.
fn namespaces() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| fs::read_link(process.path().join("ns/net")).ok()).collect()
}

/// A process and all that descend from it.
fn family(pid: u32) -> BTreeSet<u32> {
    let mut known = BTreeSet::from([pid]);
    loop {
        let before = known.len();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            // After the name, which is in parentheses: state, parent.
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
            if parent.is_some_and(|parent| known.contains(&parent)) {
                known.insert(pid);
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// No test by itself: what the other process does.
#[test]
#[ignore = "is started by the test below, to be killed"]
fn builds_an_overlay_and_waits() {
    let Ok(wanted) = std::env::var(WANTED) else { return };
    let network = Network::start(NetworkSpec { overlay: Overlay::of(&wanted), ..common::spec(3) }).unwrap();
    println!("{STANDS}");
    std::thread::sleep(common::PATIENCE);
    drop(network);
}

#[test]
fn a_killed_process_leaves_nothing_of_its_overlay_at_any_moment() {
    let overlays = Overlay::ALL.into_iter().filter(|one| *one != Overlay::Openvpn || openvpn_program().is_some());
    for overlay in overlays {
        // When it stands, and while it is built.
        for moment in [None, Some(Duration::from_millis(30)), Some(Duration::from_millis(150))] {
            let before = namespaces();
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "builds_an_overlay_and_waits", "--ignored", "--nocapture"])
                .env(WANTED, overlay.word())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            match moment {
                Some(moment) => std::thread::sleep(moment),
                None => {
                    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
                    assert!(lines.map_while(Result::ok).any(|line| line.contains(STANDS)), "{overlay} was not built");
                    let more = family(child.id()).len() - 1;
                    assert_eq!(more, if overlay == Overlay::Openvpn { 3 } else { 0 }, "{overlay}");
                }
            }
            let processes = family(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            let end = Instant::now() + common::PATIENCE;
            let is_there = |pid: &&u32| fs::exists(format!("/proc/{pid}/ns")).unwrap_or(false) && !is_zombie(**pid);
            loop {
                let left: Vec<&u32> = processes.iter().filter(is_there).collect();
                let new: Vec<PathBuf> = namespaces().difference(&before).cloned().collect();
                if left.is_empty() && new.is_empty() {
                    break;
                }
                assert!(Instant::now() < end, "{overlay}, killed {moment:?}: processes {left:?}, namespaces {new:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// One that has ended, and that nobody has asked for.
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}
