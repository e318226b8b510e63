//! Runs are put beside each other by their files; what is asked for wrongly is told.

#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "a test may")]

mod common;
#[path = "common/stress.rs"]
mod stress;

use std::{path::Path, time::Duration};

use brownout_load::stub::{Behaviour, Stub};
use common::{Processors, STOLEN, becomes_quiet, both, brownout, text, unjudged::not_judged};
use serde_json::Value;
use stress::Load;

/// Loads a server that takes so long, and records it until the instrument was punctual, five times at most.
///
/// On a machine with other work a recording may be late. That is no defect if it is told, and told alone. Intervals are
/// short, so that one that the machine was late in makes few of them late. None if all were, and the machine is busy.
fn recorded(directory: &Path, name: &str, takes: Duration) -> Option<String> {
    let stub = Stub::local(1).unwrap();
    stub.set(0, Behaviour::slow(takes));
    let before = Processors::now();
    for attempt in 1..=5 {
        let path = directory.join(format!("{name}-{attempt}.db")).display().to_string();
        let words = format!("write duration=4s --record {path} -rate open=100/s");
        let done = Load::start(&stub, &words, "interval=100ms").done();
        assert_eq!(done.out.lines().last(), Some("END"), "{done}");
        let shown = brownout(&["show", &path, "--json"]);
        let findings: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let verdict = &findings["verdict"];
        if verdict["validity"] == "valid" {
            return Some(path);
        }
        let late = |reason: &Value| reason.as_str().unwrap().contains("the instrument was late in ");
        let reasons = verdict["reasons"].as_array().unwrap();
        let only_late = !reasons.is_empty() && reasons.iter().all(late);
        assert!(only_late, "{verdict}\n{}", text(&shown.stderr));
        assert_eq!(shown.status.code(), Some(3), "{verdict}");
        eprintln!("Recording {attempt} of 5 at most: {}", verdict["sentence"]);
    }
    let stolen = before.stolen();
    assert!(stolen > STOLEN || !becomes_quiet(), "five recordings were late, and the machine is quiet");
    not_judged("the machine made five recordings late");
    None
}

#[test]
fn recorded_loads_of_a_slower_server_are_worse() {
    let directory = tempfile::tempdir().unwrap();
    let of = |side: &str, takes| -> Option<[String; 2]> {
        let one = |run: u32| recorded(directory.path(), &format!("{side}{run}"), takes);
        Some([one(1)?, one(2)?])
    };
    let Some(quick) = of("a", Duration::from_millis(20)) else { return };
    let Some(slow) = of("b", Duration::from_millis(200)) else { return };
    let printed = brownout(&["compare", &quick[0], &quick[1], "--with", &slow[0], &slow[1]]);
    assert_eq!(printed.status.code(), Some(0), "{}", both(&printed));
    assert!(text(&printed.stdout).contains("B is worse in "), "{}", both(&printed));
    let json = brownout(&["compare", &quick[0], &quick[1], "--with", &slow[0], &slow[1], "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let p50 = figures.iter().find(|figure| figure["figure"] == "p50").unwrap();
    assert_eq!(p50["outcome"], "worse", "{p50}");
    assert!((5.0..15.0).contains(&p50["change"].as_f64().unwrap()), "{p50}");
    // One run of each is shown, and says that it tells nothing, and what would.
    let single = brownout(&["compare", &quick[0], &slow[0]]);
    assert_eq!(single.status.code(), Some(0), "{}", both(&single));
    // The sentence is broken at the width of the page.
    let words = text(&single.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Inconclusive: one run on a side ", "run A 2 more and B 2 more"] {
        assert!(words.contains(part), "{}", both(&single));
    }
}

#[test]
fn the_measured_phase_is_as_long_as_the_load_and_not_as_the_wait_for_its_last_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let stub = Stub::local(1).unwrap();
    stub.set(0, Behaviour::slow(Duration::from_secs(2)));
    let words = format!("write duration=1s --record {} -rate open=50/s", path.display());
    let done = Load::start(&stub, &words, "").done();
    assert_eq!(done.out.lines().last(), Some("END"), "{done}");
    let run = brownout_record::Run::open(&path).unwrap();
    let [baseline] = &run.phases(1).unwrap()[..] else { panic!("one phase") };
    let length_ns = baseline.ends_ns.unwrap() - baseline.starts_ns;
    assert!(length_ns.abs_diff(1_000_000_000) < 500_000_000, "{baseline:?}");
    assert!(baseline.starts_ns > 0, "the set-up is no part of it: {baseline:?}");
}

#[test]
fn a_recorded_load_says_what_its_profile_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/profiles/shop-stock.yaml");
    let stub = Stub::local(1).unwrap();
    let words =
        format!("user profile={} ops(insert=1) n=20 --record {} -rate threads=2", profile.display(), path.display());
    let done = Load::start(&stub, &words, "").done();
    assert_eq!(done.out.lines().last(), Some("END"), "{done}");
    let document = brownout_record::Run::open(&path).unwrap().document("experiment").unwrap().unwrap();
    assert!(document.contains("ops(insert=1)"), "{document}");
    assert!(document.contains(std::fs::read_to_string(profile).unwrap().trim_end()), "{document}");
}

#[test]
fn what_is_no_run_or_no_pair_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let none = directory.path().join("none.db");
    let none = none.to_str().unwrap();
    let refused = brownout(&["compare", none, none]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(text(&refused.stderr).contains("none.db"), "{}", both(&refused));
    for runs in [&["compare", none][..], &["compare", none, none, none]] {
        let refused = brownout(runs);
        assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
        assert!(text(&refused.stderr).contains("--with"), "{}", both(&refused));
    }
}
