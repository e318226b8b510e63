//! Every kind of fault, before, during and after, in every company: what is there is proven, what is not is not.

use crate::scenario::{Does, MS, Made, Scenario};
use brownout_analysis::{FaultFindings, Findings, Proof, exit_code, findings};
use brownout_record::{Quantity, Subject};

fn analysed(scenario: &Scenario) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&scenario.run(directory.path())).unwrap()
}

fn faults(scenario: &Scenario) -> Vec<FaultFindings> {
    let found = analysed(scenario);
    let proven = found.trials[0].faults.iter().all(|fault| fault.verdict == Proof::Proven);
    assert!(proven || exit_code(&found) == 3, "what is not proven ends with 3");
    found.trials.into_iter().next().unwrap().faults
}

fn all_proven(what: &str, scenario: &Scenario) -> Vec<FaultFindings> {
    let faults = faults(scenario);
    for fault in &faults {
        assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]), "{what}: {}", fault.text);
        let hit: Vec<_> = fault.rows.iter().filter(|row| row.hit).collect();
        assert!(!hit.is_empty() && hit.iter().all(|row| row.measured.is_some()), "{what}: {hit:?}");
    }
    faults
}

fn refuted(what: &str, scenario: &Scenario) -> String {
    let fault = &faults(scenario)[0];
    assert_eq!(fault.verdict, Proof::Refuted, "{what}: {:?} {:?}", fault.reasons, fault.rows.first());
    fault.reasons.join("; ")
}

/// Every quantity with something to ask, and its tolerance: two of them, of which the second is more.
const KINDS: [(Quantity, [f64; 2], f64); 25] = [
    (Quantity::OneWayDelay, [50e6, 100e6], 2e6),
    (Quantity::DelaySpread, [20e6, 40e6], 4e6),
    (Quantity::Loss, [0.2, 0.5], 0.02),
    (Quantity::Duplicates, [0.2, 0.5], 0.02),
    (Quantity::Reordered, [0.2, 0.4], 0.05),
    (Quantity::Corruption, [0.2, 0.5], 0.02),
    (Quantity::Rate, [10e6, 2e6], 0.3e6),
    (Quantity::LargestPacket, [1400.0, 1200.0], 0.0),
    (Quantity::Answers, [-1.0, -1.0], 0.05),
    (Quantity::Running, [-1.0, -1.0], 0.05),
    (Quantity::ProcessorShare, [0.2, 0.1], 0.02),
    (Quantity::ReadTime, [20e6, 50e6], 2e6),
    (Quantity::WriteTime, [20e6, 50e6], 2e6),
    (Quantity::SyncTime, [20e6, 50e6], 2e6),
    (Quantity::ReadErrors, [0.5, 1.0], 0.02),
    (Quantity::WriteErrors, [0.5, 1.0], 0.02),
    (Quantity::SyncErrors, [0.5, 1.0], 0.02),
    (Quantity::MetadataTime, [20e6, 50e6], 2e6),
    (Quantity::MetadataErrors, [0.5, 1.0], 0.02),
    (Quantity::ReadDelayed, [0.5, 1.0], 0.02),
    (Quantity::WriteDelayed, [0.5, 1.0], 0.02),
    (Quantity::SyncDelayed, [0.5, 1.0], 0.02),
    (Quantity::MetadataDelayed, [0.5, 1.0], 0.02),
    (Quantity::ClockOffset, [500e6, -3600e9], 5e6),
    (Quantity::ClockDrift, [20e6, -50e6], 5e6),
];

/// One subject that is hit.
fn one(quantity: Quantity) -> Vec<Subject> {
    let subjects = Scenario::default().subjects(quantity);
    let hits = |subject: &Subject| match subject {
        Subject::Pair { from, to } | Subject::Overlay { from, to } => from == "n2" && to == "n1",
        Subject::Host { host } | Subject::Directory { host, .. } => host == "n2",
    };
    subjects.into_iter().filter(hits).collect()
}

/// A subject that is spared.
fn other(quantity: Quantity) -> Subject {
    let hit = one(quantity);
    Scenario::default().subjects(quantity).into_iter().rev().find(|subject| !hit.contains(subject)).unwrap()
}

fn kinds() -> impl Iterator<Item = (Quantity, Made)> {
    KINDS
        .into_iter()
        .map(|(quantity, [asked, _], tolerance)| (quantity, Made::new(quantity, one(quantity), asked, tolerance)))
}

#[test]
fn the_table_has_every_quantity() {
    // No fault asks for a time of answers: it only says when they came.
    let asked: Vec<Quantity> = Quantity::ALL.into_iter().filter(|one| *one != Quantity::AnswerTime).collect();
    assert_eq!(KINDS.map(|kind| kind.0).to_vec(), asked);
}

#[test]
fn what_is_there_is_proven_and_spared_subjects_with_it() {
    for (quantity, made) in kinds() {
        let scenario = Scenario::of(vec![made]);
        let fault = &all_proven(quantity.name(), &scenario)[0];
        assert_eq!(fault.rows.len(), scenario.subjects(quantity).len(), "{quantity}");
        let hit = &fault.rows[0];
        assert!((hit.measured.unwrap() - hit.expected).abs() <= hit.allowed, "{hit:?}");
        assert!(hit.sources.iter().any(|source| source.tells), "{hit:?}");
    }
}

#[test]
fn what_does_nothing_is_refuted_whatever_it_says() {
    for (quantity, made) in kinds() {
        let why = refuted(quantity.name(), &Scenario::of(vec![made.clone().does(Does::Nothing)]));
        assert!(why.starts_with(&format!("{}: ", made.hits[0])), "{quantity}: {why}");
    }
}

#[test]
fn what_hits_a_spared_subject_too_is_refuted_and_the_subject_is_named() {
    for (quantity, made) in kinds() {
        let subject = other(quantity);
        let why = refuted(quantity.name(), &Scenario::of(vec![made.does(Does::Spills(subject.clone()))]));
        assert!(why.starts_with(&format!("{subject}: ")) && why.contains("(spared)"), "{quantity}: {why}");
    }
}

#[test]
fn what_does_not_go_when_it_is_healed_is_refuted() {
    for (quantity, made) in kinds() {
        let why = refuted(quantity.name(), &Scenario::of(vec![made.does(Does::Stays)]));
        assert!(why.contains("although the fault was healed"), "{quantity}: {why}");
    }
}

#[test]
fn too_few_looks_prove_nothing() {
    for (quantity, made) in kinds() {
        let scenario = Scenario { probes: 1, looks: 1, counted: false, ..Scenario::of(vec![made]) };
        let fault = &faults(&scenario)[0];
        // The kernel's account of processor time is there whoever looks, but cannot say that there was no limit before.
        if quantity == Quantity::ProcessorShare {
            continue;
        }
        assert_eq!(fault.verdict, Proof::Unproven, "{quantity}: {:?}", fault.reasons);
        assert!(fault.reasons[0].contains("not enough evidence"), "{quantity}: {:?}", fault.reasons);
    }
}

#[test]
fn faults_of_one_kind_on_one_subject_are_expected_together() {
    for (quantity, [asked, more], tolerance) in KINDS {
        let first = Made::new(quantity, one(quantity), asked, tolerance).during(&[(0, 0.0, 14.0)]);
        let second = Made { hits: one(quantity), asked: vec![more], periods: vec![(0, 7.0, 20.0)], ..first.clone() };
        all_proven(quantity.name(), &Scenario::of(vec![first.clone(), second.clone()]));
        let broken = Scenario::of(vec![first.does(Does::Nothing), second]);
        refuted(quantity.name(), &broken);
    }
}

#[test]
fn faults_one_after_the_other_are_judged_each_in_its_time() {
    for (quantity, [asked, more], tolerance) in KINDS {
        let first = Made::new(quantity, one(quantity), asked, tolerance).during(&[(0, 0.0, 8.0)]);
        let second = Made::new(quantity, vec![other(quantity)], more, tolerance).during(&[(0, 10.0, 20.0)]);
        all_proven(quantity.name(), &Scenario::of(vec![first.clone(), second.clone()]));
        let broken = Scenario::of(vec![first, second.does(Does::Nothing)]);
        let found = faults(&broken);
        assert_eq!(
            (found[0].verdict, found[1].verdict),
            (Proof::Proven, Proof::Refuted),
            "{quantity} {:?}",
            found[0].reasons
        );
    }
}

#[test]
fn what_comes_and_goes_has_to_come_and_to_go() {
    let flaps: Vec<(u32, f64, f64)> = (0..6).map(|at| (0, 4.0 * f64::from(at), 4.0 * f64::from(at) + 2.0)).collect();
    for (quantity, made) in kinds() {
        let flapping = Scenario { seconds: [20, 30, 20], held: true, ..Scenario::of(vec![made.during(&flaps)]) };
        all_proven(quantity.name(), &flapping);
        let mut stuck = flapping;
        stuck.faults[0].does = Does::NoPauses;
        let why = refuted(quantity.name(), &stuck);
        assert!(why.contains("while it was not in force"), "{quantity}: {why}");
    }
}

#[test]
fn the_packets_of_a_link_that_flaps_quickly_are_counted() {
    // The probes of the periods would not tell 5 % from none; readings lean over its changes by 20 µs.
    let flaps: Vec<(u32, f64, f64)> = (0..6).map(|at| (0, 4.0 * f64::from(at), 4.0 * f64::from(at) + 2.0)).collect();
    let flaky = Made::new(Quantity::Loss, one(Quantity::Loss), 0.05, 0.005).during(&flaps);
    let flapping = Scenario { seconds: [20, 30, 20], ..Scenario::of(vec![flaky]) };
    let hit = all_proven("a flaky flap", &flapping)[0].rows[0].clone();
    assert!(hit.sources.iter().any(|source| source.source == "counters" && source.tells), "{hit:?}");
    let mut nothing = flapping;
    nothing.faults[0].does = Does::Nothing;
    refuted("a flap that does nothing", &nothing);
}

#[test]
fn each_step_of_a_ramp_has_to_be_there() {
    for (quantity, [asked, more], tolerance) in KINDS {
        // A process is stopped or not.
        if asked == more {
            continue;
        }
        let ramp = Made {
            asked: vec![asked, more],
            periods: vec![(0, 0.0, 10.0), (1, 10.0, 20.0)],
            ..Made::new(quantity, one(quantity), asked, tolerance)
        };
        all_proven(quantity.name(), &Scenario::of(vec![ramp.clone()]));
        let why = refuted(quantity.name(), &Scenario::of(vec![ramp.does(Does::FirstSeverity)]));
        assert!(why.contains(&format!("(at {more})")), "{quantity}: {why}");
    }
}

#[test]
fn faults_of_different_kinds_on_one_subject_do_not_hide_each_other() {
    let made: Vec<Made> =
        kinds().filter(|(quantity, _)| *quantity != Quantity::ClockDrift).map(|(_, made)| made).collect();
    // Jitter is not told from reordering, nor anything from behind a bottleneck: these come on their own.
    let alone = [Quantity::Reordered, Quantity::Rate, Quantity::DelaySpread];
    let together = made.iter().filter(|made| !alone.contains(&made.quantity)).cloned().collect();
    all_proven("all together", &Scenario::of(together));
}

#[test]
fn a_partition_is_silence_and_hides_what_else_is_asked_of_its_pairs() {
    let pair = |from: &str, to: &str| Subject::pair(from, to);
    let cut = vec![pair("n1", "n3"), pair("n3", "n1"), pair("n2", "n3"), pair("n3", "n2")];
    let partition = Made::new(Quantity::Loss, cut.clone(), 1.0, 0.001);
    all_proven("a partition", &Scenario::of(vec![partition.clone()]));
    assert_eq!(analysed(&Scenario::of(vec![partition.clone()])).trials[0].invalid, [""; 0]);
    let slow = vec![pair("n2", "n1"), pair("n2", "n3"), pair("n2", "load")];
    let slow = Made::new(Quantity::OneWayDelay, slow, 100e6, 2e6).during(&[(0, 5.0, 15.0)]);
    let found = faults(&Scenario::of(vec![partition.clone(), slow.clone()]));
    assert_eq!(found[0].verdict, Proof::Proven, "{:?}", found[0].reasons);
    assert_eq!(found[1].verdict, Proof::Unproven);
    assert!(found[1].reasons[0].contains("n2 → n3: other faults in force hide it"), "{:?}", found[1].reasons);
    // Where the delay outlives the partition it is seen.
    let longer = slow.during(&[(0, 5.0, 20.0)]);
    all_proven(
        "a slow host that outlives a partition",
        &Scenario::of(vec![partition.during(&[(0, 0.0, 10.0)]), longer]),
    );
}

#[test]
fn a_network_that_is_slow_and_lossy_by_itself_is_no_fault() {
    let slow = Made::new(Quantity::OneWayDelay, one(Quantity::OneWayDelay), 50e6, 3e6);
    let flaky = Made::new(Quantity::Loss, one(Quantity::Loss), 0.5, 0.02);
    let wide = Scenario { base: (40 * MS, 10 * MS, 0.1), ..Scenario::of(vec![slow, flaky]) };
    all_proven("a wide network", &wide);
    let found = analysed(&wide);
    let trial = &found.trials[0];
    assert!(!trial.instrument.too_late, "a network with jitter is not a late instrument");
    assert_eq!(trial.invalid, [""; 0]);
}

#[test]
fn a_closed_loop_is_explained_only_where_its_delay_is_one() {
    let ways = vec![Subject::pair("n2", "load")];
    let slow = Made::new(Quantity::OneWayDelay, ways, 100e6, 2e6);
    let explained = |scenario: &Scenario| analysed(scenario).trials[0].closed_loop.clone().unwrap();
    let whole = Scenario { threads: Some(8), ..Scenario::of(vec![slow.clone()]) };
    assert!((explained(&whole).extra_delay_ns.unwrap() - 100e6 / 3.0).abs() < 1.0);
    let part = Scenario {
        threads: Some(8),
        ..Scenario::of(vec![
            slow.during(&[(0, 0.0, 8.0)]),
            Made::new(Quantity::OneWayDelay, vec![Subject::pair("n1", "load")], 50e6, 2e6).during(&[(0, 8.0, 20.0)]),
        ])
    };
    let part = explained(&part);
    assert_eq!((part.extra_delay_ns, part.predicted_loss), (None, None));
    assert!(part.inapplicable.unwrap().contains("fault 0"));
}

#[test]
fn the_fault_phase_holds_all_of_a_schedule_and_recovery_begins_after_it() {
    let slow = |from: f64, to: f64| {
        Made::new(Quantity::OneWayDelay, one(Quantity::OneWayDelay), 100e6, 2e6).during(&[(0, from, to)])
    };
    let found = analysed(&Scenario::of(vec![slow(0.0, 6.0), slow(8.0, 15.0)]));
    let of = |name: &str| found.trials[0].phases.iter().find(|phase| phase.name == name).unwrap();
    assert_eq!((of("baseline").intervals, of("fault").intervals, of("recovery").intervals), (19, 14, 20));
    assert_eq!(found.trials[0].effect.recovery_ns.map(|ns| ns / 1_000_000_000), Some(0));
    assert_eq!(found.trials[0].invalid, [""; 0]);
}

#[test]
fn a_limit_that_was_never_wanted_is_not_proven() {
    // The node takes half of the processors by itself.
    let limit = Made::new(Quantity::ProcessorShare, one(Quantity::ProcessorShare), 0.8, 0.05);
    let fault = &faults(&Scenario::of(vec![limit]))[0];
    assert_eq!(fault.verdict, Proof::Unproven);
    assert!(fault.reasons[0].contains("n2: it never needed more of the processors"), "{:?}", fault.reasons);
}

/// A governor says what it allows, and nothing needs to be seen of a limit that went; but it has to go.
#[test]
fn a_processor_limit_that_was_never_healed_is_not_proven() {
    let limit = Made::new(Quantity::ProcessorShare, one(Quantity::ProcessorShare), 0.2, 0.02);
    let cut = Scenario { held: true, ..Scenario::of(vec![limit.during(&[(0, 0.0, f64::INFINITY)])]) };
    let fault = &faults(&cut)[0];
    assert_eq!(fault.verdict, Proof::Unproven);
    assert!(fault.reasons[0].contains("cut before the fault was healed"), "{:?}", fault.reasons);
}

#[test]
fn of_twenty_hosts_and_eight_faults_every_subject_is_judged_by_each_fault() {
    judged_by_each_fault(20, 8);
}

#[test]
#[ignore = "the same with fifty hosts: make test-long"]
fn of_fifty_hosts_and_twenty_faults_every_subject_is_judged_by_each_fault() {
    judged_by_each_fault(50, 20);
}

fn judged_by_each_fault(count: usize, faults: usize) {
    let hosts: Vec<String> = (1..count).map(|at| format!("n{at}")).chain(["load".to_owned()]).collect();
    let slow = |at: usize| {
        let from = &hosts[at];
        let ways = hosts.iter().filter(|to| *to != from).map(|to| Subject::pair(from, to)).collect();
        let start = at as f64 / 4.0;
        Made::new(Quantity::OneWayDelay, ways, 50e6, 2e6).during(&[(0, start, start + 12.0)])
    };
    let made = (0..faults).map(slow).collect();
    let many = Scenario { hosts: hosts.clone(), faults: made, probes: 20, counted: true, ..Scenario::default() };
    let directory = tempfile::tempdir().unwrap();
    let found = findings(&many.run(directory.path())).unwrap();
    let rows: usize = found.trials[0].faults.iter().map(|fault| fault.rows.len()).sum();
    assert_eq!(rows, faults * count * (count - 1));
    for fault in &found.trials[0].faults {
        assert_ne!(fault.verdict, Proof::Refuted, "{:?}", fault.reasons);
    }
}

/// A node that computes little may not answer in time either, though nobody asked it to be silent.
#[test]
fn a_node_that_another_fault_hits_is_not_blamed_for_its_answers() {
    let host = |name: &str| vec![Subject::host(name)];
    let silent =
        |name: &str, does| Made::new(Quantity::Answers, host(name), -1.0, 0.05).during(&[(0, 2.0, 12.0)]).does(does);
    let spills = || silent("n1", Does::Spills(Subject::host("n2")));
    let limited = |from, to| Made::new(Quantity::ProcessorShare, host("n2"), 0.2, 0.02).during(&[(0, from, to)]);
    // All the time that n2 is silent, it is limited.
    let scenario = Scenario { held: true, ..Scenario::of(vec![spills(), limited(0.0, 16.0)]) };
    let found = faults(&scenario);
    let row = found[0].rows.iter().find(|row| row.subject == Subject::host("n2")).unwrap();
    assert_eq!((found[0].verdict, row.verdict), (Proof::Proven, Proof::Proven), "{:?}", found[0].reasons);
    assert!(row.why.as_ref().unwrap().contains("not judged"), "{row:?}");
    let unhit = found[0].rows.iter().find(|row| row.subject == Subject::host("n3")).unwrap();
    assert!(unhit.why.is_none() && unhit.measured.is_some(), "{unhit:?}");
    // For most of it, it is not; and the other fault hits another node.
    for other in [limited(14.0, 18.0), Made { hits: host("n3"), ..limited(0.0, 16.0) }] {
        let why = refuted("spills", &Scenario { held: true, ..Scenario::of(vec![spills(), other]) });
        assert!(why.starts_with("n2: ") && why.contains("(spared)"), "{why}");
    }
}

/// A database whose disk fails closes its doors: that is not the pause that did not end.
#[test]
fn a_node_that_is_healed_is_not_blamed_for_what_another_fault_does_to_its_disk() {
    let twice = Made::new(Quantity::Answers, vec![Subject::host("n2")], -1.0, 0.05);
    let twice = twice.during(&[(0, 0.0, 4.0), (0, 12.0, 16.0)]).does(Does::NoPauses);
    let disk = |host: &str| {
        Made::new(Quantity::SyncErrors, vec![Subject::directory(host, "data")], 0.9, 0.05).during(&[(0, 4.0, 12.0)])
    };
    let found = faults(&Scenario::of(vec![twice.clone(), disk("n2")]));
    assert_eq!((found[0].verdict, &found[0].reasons[..]), (Proof::Proven, &[][..]));
    let why = refuted("another disk", &Scenario::of(vec![twice, disk("n3")]));
    assert!(why.starts_with("n2: ") && why.contains("while it was not in force"), "{why}");
}

#[test]
fn a_clock_is_proven_only_by_what_its_database_takes_for_the_time() {
    for quantity in [Quantity::ClockOffset, Quantity::ClockDrift] {
        let made = Made::new(quantity, vec![Subject::host("n2")], 50e6, 5e6);
        let silent = Scenario { silent: vec!["database".to_owned()], ..Scenario::of(vec![made]) };
        let fault = &faults(&silent)[0];
        assert_eq!(fault.verdict, Proof::Unproven, "{quantity}: {:?}", fault.reasons);
        assert!(fault.reasons[0].contains("database") && fault.reasons[0].starts_with("n2: "), "{:?}", fault.reasons);
    }
}

/// A clock that is set wrong and drifts from there: its offset is judged at the moment in which both began.
#[test]
fn a_drift_with_an_offset_has_to_show_both_and_neither_after_healing() {
    let both = |offset: f64, does: Does| {
        let drift = Made::new(Quantity::ClockDrift, vec![Subject::host("n2")], 20e6, 5e6);
        let one = drift.during(&[(0, 2.0, 8.0), (0, 10.0, 18.0)]).does(does);
        Scenario::of(vec![Made { also: Some((Quantity::ClockOffset, offset, 5e6)), ..one }])
    };
    for offset in [0.0, 300e6, -2e9] {
        let found = faults(&both(offset, Does::AsSaid));
        assert_eq!((found[0].verdict, &found[0].reasons[..]), (Proof::Proven, &[][..]), "{offset}");
        let rows = found[0].rows.iter().filter(|row| row.quantity == Quantity::ClockOffset && row.hit);
        let seen: Vec<f64> = rows.map(|row| row.measured.unwrap()).collect();
        assert!(seen.len() == 1 && (seen[0] - offset).abs() < 2e6, "{offset}: {seen:?}");
    }
    // The drift alone is there; or all is, and does not go.
    let why = refuted("no offset", &both(300e6, Does::OnlyFirst));
    assert!(why.contains("n2: ") && why.contains("300"), "{why}");
    refuted("stays", &both(300e6, Does::Stays));
}
