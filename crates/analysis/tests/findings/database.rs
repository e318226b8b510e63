//! What the database says that it did, in made-up runs: baseline 6 s to 16 s, fault to 26 s, recovery to 36 s.

use crate::common::{MS, SECOND, Synthetic};
use brownout_analysis::{DatabaseFindings, Mark, NodeEvidence, Pauses, findings};
use brownout_record::EvidenceRow;

fn row(seconds: f64, node: &str, name: &str, subject: &str, value: f64) -> EvidenceRow {
    EvidenceRow {
        at_ns: (seconds * 1e9) as u64,
        error_ns: 500_000,
        node: node.to_owned(),
        source: "jmx".to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    }
}

/// A reading shortly before the end of each of these seconds.
fn readings(node: &str, seconds: std::ops::Range<u32>) -> impl Iterator<Item = EvidenceRow> {
    seconds.map(move |second| row(f64::from(second) + 0.9, node, "reading", "", 2e6))
}

fn analysed(database: fn() -> Vec<EvidenceRow>) -> DatabaseFindings {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials: 1, planned_trials: 1, database, ..Synthetic::default() }.run(directory.path());
    findings(&run).unwrap().trials[0].database.clone().unwrap()
}

fn of<'a>(found: &'a DatabaseFindings, phase: &str, node: &str) -> &'a NodeEvidence {
    let phase = found.phases.iter().find(|one| one.phase == phase).unwrap();
    phase.by_node.iter().find(|one| one.node == node).unwrap()
}

fn rise(found: &DatabaseFindings, phase: &str, node: &str, name: &str, subject: &str) -> Option<f64> {
    let all = &of(found, phase, node).counters;
    all.iter().find(|one| one.name == name && one.subject == subject).map(|one| one.rise)
}

#[test]
fn a_run_without_any_has_none() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic::default().run(directory.path());
    assert_eq!(findings(&run).unwrap().trials[0].database, None);
}

#[test]
fn a_counter_rises_from_the_last_reading_before_the_phase_to_the_last_in_it() {
    let found = analysed(|| {
        let retries = |at, value| row(at, "n1", "speculative-retries", "", value);
        let mut all: Vec<EvidenceRow> = readings("n1", 2..36).collect();
        all.extend([retries(5.9, 7.0), retries(15.9, 10.0), retries(20.9, 400.0), retries(25.9, 500.0)]);
        all.extend([retries(26.9, 510.0), row(20.9, "n1", "dropped-messages", "MUTATION_REQ", 12.0)]);
        all
    });
    let retries = |phase| rise(&found, phase, "n1", "speculative-retries", "");
    assert_eq!([retries("baseline"), retries("fault"), retries("recovery")], [Some(3.0), Some(490.0), Some(10.0)]);
    // Nothing was told of it before, though the node was asked: it was 0.
    let dropped = |phase| rise(&found, phase, "n1", "dropped-messages", "MUTATION_REQ");
    assert_eq!([dropped("baseline"), dropped("fault"), dropped("recovery")], [None, Some(12.0), None]);
    assert_eq!(of(&found, "fault", "n1").readings, 10);
}

#[test]
fn a_counter_of_a_node_that_was_started_again_counts_from_nought() {
    let found = analysed(|| {
        let reads = |at, value| row(at, "n2", "replica-reads", "", value);
        let mut all: Vec<EvidenceRow> = readings("n2", 2..17).chain(readings("n2", 20..36)).collect();
        all.extend([reads(5.9, 1_000.0), reads(16.9, 2_000.0), reads(20.9, 50.0), reads(25.9, 80.0)]);
        all
    });
    assert_eq!(rise(&found, "fault", "n2", "replica-reads", ""), Some(1_080.0));
}

#[test]
fn of_a_node_that_does_not_answer_nothing_is_said_and_what_it_was_before_is_not_guessed() {
    let found = analysed(|| {
        let mut all: Vec<EvidenceRow> = readings("n3", 17..36).collect();
        all.extend([row(17.9, "n3", "replica-reads", "", 900.0), row(25.9, "n3", "replica-reads", "", 950.0)]);
        all
    });
    let before = of(&found, "baseline", "n3");
    assert!(before.readings == 0 && before.counters.is_empty() && before.scores.is_empty(), "{before:?}");
    assert_eq!(rise(&found, "fault", "n3", "replica-reads", ""), Some(50.0));
    // It has a place in the findings although it never said anything.
    assert_eq!(of(&found, "fault", "n1").readings, 0);
}

#[test]
fn a_gauge_is_what_it_showed_last_until_it_shows_something_else() {
    let found = analysed(|| {
        let mut all: Vec<EvidenceRow> = readings("n1", 2..36).collect();
        all.extend([row(15.9, "n1", "pending", "ReadStage", 4.0), row(21.0, "n1", "pending", "ReadStage", 0.0)]);
        all
    });
    let gauges = &of(&found, "fault", "n1").gauges;
    let [pending] = gauges.as_slice() else { panic!("{gauges:?}") };
    assert_eq!((pending.values.least, pending.values.most, pending.values.last), (0.0, 4.0, 0.0));
    assert!((pending.values.mean - 2.0).abs() < 0.01, "{pending:?}");
    // What stays 0 needs no line.
    assert!(of(&found, "recovery", "n1").gauges.is_empty());
}

/// n1 reads at QUORUM of three, so from two. From the middle of the fault phase on, n3 seems slow, too.
fn scores(of_n3: bool) -> Vec<EvidenceRow> {
    let score = |at, of: &str, value| row(at, "n1", "snitch-score", of, value);
    let mut all: Vec<EvidenceRow> = readings("n1", 2..36).collect();
    all.push(row(2.9, "n1", "snitch-badness-threshold", "", 1.0));
    all.extend([score(2.9, "n1", 0.2), score(2.9, "n2", 0.25), score(16.0, "n2", 1.0)]);
    if of_n3 {
        all.extend([score(2.9, "n3", 0.3), score(21.0, "n3", 0.6)]);
    }
    all
}

#[test]
fn scores_say_whether_a_coordinator_was_kept_from_a_slow_replica_or_went_on_reading_from_it() {
    let found = analysed(|| scores(true));
    assert_eq!(found.badness_threshold, Some(1.0));
    let scores = &of(&found, "fault", "n1").scores;
    let score = |of: &str| scores.iter().find(|score| score.of == of).unwrap();
    // 1 is more than twice 0.3, the second best, and not more than twice 0.6.
    assert!((score("n2").avoided.unwrap() - 0.5).abs() < 0.01, "{scores:?}");
    assert!((score("n2").values.mean - 1.0).abs() < 0.01, "{scores:?}");
    assert_eq!((score("n1").avoided, score("n3").avoided), (Some(0.0), Some(0.0)));
    // It would have been all the time, had n3 not seemed slow, too.
    assert_eq!(score("n2").because_of.as_deref(), Some("n3"));
    assert_eq!(score("n1").because_of.as_deref(), Some("n2"));
    let before = of(&found, "baseline", "n1").scores.iter().find(|score| score.of == "n2").unwrap();
    assert_eq!((before.avoided, before.values.mean), (Some(0.0), 0.25));
}

#[test]
fn an_old_score_of_a_replica_that_is_not_asked_leaves_a_coordinator_with_the_slow_one() {
    let found = analysed(|| {
        let score = |of: &str, value| row(2.9, "n1", "snitch-score", of, value);
        let mut all: Vec<EvidenceRow> = readings("n1", 2..36).collect();
        all.extend([score("n1", 0.01), score("n2", 0.02), score("n3", 1.0)]);
        all.extend([row(2.9, "n1", "snitch-badness-threshold", "", 1.0), row(16.5, "n1", "snitch-score", "n2", 0.25)]);
        all
    });
    let scores = &of(&found, "fault", "n1").scores;
    let score = |of: &str| scores.iter().find(|score| score.of == of).unwrap();
    assert_eq!((score("n2").avoided, score("n2").because_of.as_deref()), (Some(0.0), Some("n3")));
    assert_eq!((score("n3").avoided, score("n3").because_of.as_deref()), (Some(1.0), None));
}

#[test]
fn a_node_without_a_score_is_the_best_of_all() {
    let found = analysed(|| scores(false));
    let scores = &of(&found, "fault", "n1").scores;
    // 0 for n3, 0.2, 1: the second best is 0.2.
    let score = |of: &str| scores.iter().find(|score| score.of == of).unwrap().avoided;
    assert!(score("n2").unwrap() > 0.99 && score("n1") == Some(0.0), "{scores:?}");
}

#[test]
fn marks_and_pauses_belong_to_the_phase_in_which_they_were() {
    let found = analysed(|| {
        let pause = |at, ms: u64| row(at, "n2", "pause", "G1CollectForAllocation", (ms * MS) as f64);
        let mut all: Vec<EvidenceRow> = readings("n2", 2..36).collect();
        all.extend([pause(3.0, 900), pause(8.0, 20), pause(17.0, 5), pause(18.0, 30)]);
        all.extend([row(18.5, "n1", "marked-down", "n2", 1.0), row(27.0, "n1", "marked-up", "n2", 1.0)]);
        all.push(row(19.0, "n2", "noticed-pause", "", 6e9));
        all
    });
    let pauses = |phase| of(&found, phase, "n2").pauses;
    assert_eq!(pauses("baseline"), Pauses { count: 1, total_ns: 20 * MS, longest_ns: 20 * MS });
    assert_eq!(pauses("fault"), Pauses { count: 2, total_ns: 35 * MS, longest_ns: 30 * MS });
    assert_eq!(pauses("recovery"), Pauses::default());
    assert_eq!(rise(&found, "fault", "n2", "noticed-pause", ""), Some(1.0));
    let mark = |at_ns, phase: &str, up| Mark {
        at_ns,
        error_ns: 500_000,
        phase: Some(phase.to_owned()),
        node: "n1".to_owned(),
        of: "n2".to_owned(),
        up,
    };
    let (down, up) = (mark(18 * SECOND + 500 * MS, "fault", false), mark(27 * SECOND, "recovery", true));
    assert_eq!(found.marks, [down, up]);
}

/// What three members of etcd say: n1 leads, is lost at 18 s, and n3 is elected at 19.5 s.
fn etcd() -> Vec<EvidenceRow> {
    let mut all: Vec<EvidenceRow> = ["n1", "n2", "n3"].into_iter().flat_map(|node| readings(node, 2..36)).collect();
    all.extend(["n1", "n2", "n3"].map(|node| row(2.9, node, "leader", "n1", 2.0)));
    all.extend(["n2", "n3"].map(|node| row(18.0, node, "lost-leader", "n1", 2.0)));
    all.push(row(19.0, "n3", "campaign", "", 3.0));
    all.extend(["n3", "n2"].map(|node| row(19.5, node, "elected", "n3", 3.0)));
    all.push(row(21.9, "n1", "leader", "n3", 3.0));
    for (at, count, total) in [(5.9, 100.0, 40e6), (10.9, 150.0, 60e6), (15.9, 200.0, 80e6), (25.9, 300.0, 2e9)] {
        all.push(row(at, "n1", "wal-fsyncs", "", count));
        all.push(row(at, "n1", "wal-fsync-time", "", total));
    }
    all.extend([row(5.9, "n1", "wal-fsync-p99", "", 1e6), row(20.9, "n1", "wal-fsync-p99", "", 64e6)]);
    all.extend([row(2.9, "n2", "connected", "n1", 1.0), row(18.9, "n2", "connected", "n1", 0.0)]);
    all.extend([row(2.9, "n2", "proposals-failed", "", 1.0), row(18.9, "n2", "proposals-failed", "", 4.0)]);
    // The reader gives them in order of time.
    all.sort_by_key(|row| row.at_ns);
    all
}

#[test]
fn who_led_is_told_phase_by_phase_with_elections_and_the_time_without_a_leader() {
    let found = analysed(etcd);
    let told: Vec<(u64, Option<&str>, u64)> =
        found.leaders.iter().map(|one| (one.at_ns / MS, one.node.as_deref(), one.term)).collect();
    assert_eq!(told, [(2_900, Some("n1"), 2), (18_000, None, 2), (19_500, Some("n3"), 3)]);
    assert_eq!(found.leaders[2].phase.as_deref(), Some("fault"));
    let led = |phase: &str| found.phases.iter().find(|one| one.phase == phase).unwrap().led.clone().unwrap();
    let baseline = led("baseline");
    assert_eq!((baseline.by, baseline.elections, baseline.without_ns), (vec!["n1".to_owned()], 0, 0));
    let fault = led("fault");
    assert_eq!((fault.by, fault.elections), (vec!["n1".to_owned(), "n3".to_owned()], 1));
    assert_eq!(fault.without_ns, 1_500 * MS);
    assert_eq!(led("recovery").by, ["n3"]);
    assert_eq!(rise(&found, "fault", "n3", "campaign", ""), Some(1.0));
    // What says who leads is neither a counter nor a gauge.
    let names = |one: &NodeEvidence| {
        let gauges = one.gauges.iter().map(|gauge| gauge.name.clone());
        one.counters.iter().map(|counter| counter.name.clone()).chain(gauges).collect::<Vec<_>>()
    };
    let all: Vec<String> = found.phases.iter().flat_map(|phase| phase.by_node.iter().flat_map(names)).collect();
    assert!(all.iter().all(|name| !name.contains("lead") && !name.contains("elected")), "{all:?}");
    assert!(analysed(|| scores(true)).leaders.is_empty(), "nobody leads a ring");
}

#[test]
fn a_time_that_is_counted_with_its_number_is_told_as_a_mean() {
    let found = analysed(etcd);
    let mean = |phase: &str| {
        let all = &of(&found, phase, "n1").means;
        all.iter().find(|one| one.name == "wal-fsync").map(|one| (one.count, one.mean_ns))
    };
    assert_eq!(mean("baseline"), Some((100.0, 0.4e6)));
    assert_eq!(mean("fault"), Some((100.0, 19.2e6)));
    assert_eq!(mean("recovery"), None, "there were none");
    assert_eq!(rise(&found, "fault", "n1", "wal-fsyncs", ""), None, "the mean has them");
    let most = of(&found, "fault", "n1").gauges.iter().find(|one| one.name == "wal-fsync-p99").unwrap().values.most;
    assert_eq!(most, 64e6);
    assert_eq!(rise(&found, "fault", "n2", "proposals-failed", ""), Some(3.0));
    // Of a stream that stays up nothing is told.
    let connected = |phase: &str| of(&found, phase, "n2").gauges.iter().find(|one| one.name == "connected").cloned();
    assert_eq!(connected("baseline"), None);
    assert_eq!(connected("fault").unwrap().values.last, 0.0);
}
