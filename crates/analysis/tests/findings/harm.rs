//! What nobody asked for is harm: it is found wherever and whenever it is, and named.

use crate::scenario::{Does, MS, Made, Scenario};
use brownout_analysis::{Findings, Proof, Validity, exit_code, findings};
use brownout_record::{Quantity, Subject};

fn analysed(scenario: &Scenario) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&scenario.run(directory.path())).unwrap()
}

fn pair(from: &str, to: &str) -> Subject {
    Subject::pair(from, to)
}

/// Everything that a host sends.
fn sends(host: &str) -> Vec<Subject> {
    ["n1", "n2", "n3", "load"].iter().filter(|to| **to != host).map(|to| pair(host, to)).collect()
}

/// The fault of slow-replica.
fn slow() -> Made {
    Made::new(Quantity::OneWayDelay, sends("n2"), 100e6, 2e6)
}

/// One subject is harmed in one quantity, and nothing else is.
fn harmed(what: &str, scenario: &Scenario, subject: &Subject, quantity: Quantity) -> String {
    let found = analysed(scenario);
    let trial = &found.trials[0];
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3), "{what}");
    let own = trial.harm.iter().find(|harm| harm.subject == *subject && harm.quantity == quantity);
    assert!(own.is_some(), "{what}: {:?} {:?}", trial.harm, trial.invalid);
    assert!(trial.harm.iter().all(|harm| scenario.outside[0].hits.contains(&harm.subject)), "{what}: {:?}", trial.harm);
    for fault in &trial.faults {
        assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]), "{what}");
    }
    let reason = trial.invalid.iter().find(|why| why.starts_with(&subject.to_string())).cloned();
    assert!(reason.is_some(), "{what}: {:?}", trial.invalid);
    reason.unwrap()
}

#[test]
fn what_a_spared_host_loses_while_another_is_slow_is_named() {
    let lossy = Made::new(Quantity::Loss, sends("n3"), 0.2, 0.02);
    let scenario = Scenario { outside: vec![lossy], ..Scenario::of(vec![slow()]) };
    let why = harmed("n3 loses", &scenario, &pair("n3", "n1"), Quantity::Loss);
    assert!(why.contains("also showed loss that no fault asked for"), "{why}");
    assert_eq!(analysed(&scenario).trials[0].harm.len(), 3, "what n3 sends to each");
}

#[test]
fn a_queue_before_a_limit_is_no_harm_and_a_run_that_does_not_tell_of_limits_may_have_one_anywhere() {
    let queue = || Made::new(Quantity::OneWayDelay, sends("n3"), 20e6, 2e6);
    let told = Scenario {
        outside: vec![queue()],
        network: vec!["100Mbit/s from n3".to_owned()],
        // Not a fault of delay: a spared pair that is slow would refute it.
        ..Scenario::of(vec![Made::new(Quantity::Loss, sends("n2"), 0.3, 0.03)])
    };
    harmed("no pair has a limit", &told, &pair("n3", "n1"), Quantity::OneWayDelay);
    let limited = Scenario { bottlenecks: Some(sends("n3")), ..told.clone() };
    let untold = Scenario { bottlenecks: None, ..told };
    for (what, scenario) in [("limited", &limited), ("untold", &untold)] {
        let trial = &analysed(scenario).trials[0];
        assert!(trial.harm.is_empty(), "{what}: {:?}", trial.harm);
    }
    // One LAN without limits has none, whether it is said or not.
    let plain = Scenario { network: Vec::new(), ..untold };
    harmed("no limits at all", &plain, &pair("n3", "n1"), Quantity::OneWayDelay);
}

#[test]
fn every_quantity_of_links_is_looked_at_on_spared_pairs_and_on_hit_ones() {
    for (quantity, much) in [
        (Quantity::Loss, 0.3),
        (Quantity::OneWayDelay, 20e6),
        (Quantity::DelaySpread, 20e6),
        (Quantity::Duplicates, 0.2),
        (Quantity::Reordered, 0.2),
        (Quantity::Corruption, 0.2),
    ] {
        for subject in [pair("n1", "n3"), pair("n2", "n1")] {
            // Of the hit pairs the delay is the fault's own business.
            let hit = subject == pair("n2", "n1");
            if hit && quantity == Quantity::OneWayDelay {
                continue;
            }
            let fault = if quantity == Quantity::OneWayDelay {
                Made::new(Quantity::Loss, sends("n2"), 0.3, 0.03)
            } else {
                Made::new(Quantity::OneWayDelay, sends("n2"), 100e6, 20e6)
            };
            // By the emulator's account as well as by the probes, and by these alone.
            for unseen in [false, true] {
                let what = format!("{quantity} {subject}, unseen by the emulator: {unseen}");
                let outside = vec![Made::new(quantity, vec![subject.clone()], much, 0.0)];
                let found = analysed(&Scenario { outside, unseen, ..Scenario::of(vec![fault.clone()]) });
                let trial = &found.trials[0];
                assert_eq!(exit_code(&found), 3, "{what}");
                let named = trial.invalid.iter().any(|why| why.contains(&subject.to_string()));
                assert!(named, "{what}: {:?}", trial.invalid);
                assert!(trial.harm.iter().all(|harm| harm.subject == subject), "{what}: {:?}", trial.harm);
            }
        }
    }
}

#[test]
fn harm_of_a_part_of_any_phase_is_found_without_any_fault() {
    // Before, during and after what would be the fault phase; each for three seconds.
    for from in [-12.0, 8.0, 28.0] {
        for (quantity, much) in [(Quantity::Loss, 0.5), (Quantity::OneWayDelay, 30e6)] {
            let short = Made::new(quantity, vec![pair("n1", "n3")], much, 0.0).during(&[(0, from, from + 3.0)]);
            let scenario = Scenario { outside: vec![short], ..Scenario::of(Vec::new()) };
            let why = harmed("for a while", &scenario, &pair("n1", "n3"), quantity);
            assert!(why.contains("that no fault asked for"), "{why}");
        }
    }
}

#[test]
fn what_faults_do_beside_what_they_ask_is_no_harm() {
    let one = || vec![pair("n2", "n1")];
    let kinds = [
        Made::new(Quantity::OneWayDelay, one(), 50e6, 2e6),
        Made::new(Quantity::DelaySpread, one(), 20e6, 7e6),
        Made::new(Quantity::Loss, one(), 0.3, 0.03),
        Made::new(Quantity::Loss, one(), 1.0, 0.001),
        Made::new(Quantity::Duplicates, one(), 0.3, 0.03),
        Made::new(Quantity::Reordered, one(), 0.3, 0.03),
        Made::new(Quantity::Corruption, one(), 0.3, 0.03),
        Made::new(Quantity::Rate, one(), 10e6, 1e6),
        Made::new(Quantity::LargestPacket, one(), 1400.0, 0.0),
        Made::new(Quantity::Answers, vec![Subject::host("n2")], -1.0, 0.05),
        Made::new(Quantity::ProcessorShare, vec![Subject::host("n2")], 0.2, 0.02),
        Made::new(Quantity::SyncTime, vec![Subject::directory("n2", "data")], 20e6, 2e6),
        Made::new(Quantity::ClockOffset, vec![Subject::host("n2")], 500e6, 5e6),
        Made::new(Quantity::ClockDrift, vec![Subject::host("n2")], 20e6, 5e6),
    ];
    for made in kinds {
        let found = analysed(&Scenario { held: true, ..Scenario::of(vec![made.clone()]) });
        assert_eq!(found.trials[0].invalid, [""; 0], "{}", made.quantity);
    }
    let wide = Scenario { base: (40 * MS, 10 * MS, 0.1), ..Scenario::of(vec![slow()]) };
    assert_eq!(analysed(&wide).trials[0].invalid, [""; 0], "a network that is slow and lossy by itself");
    assert_eq!(analysed(&Scenario::default()).trials[0].invalid, [""; 0], "nothing at all");
}

#[test]
fn a_node_that_is_silent_and_a_clock_that_is_wrong_for_no_reason_are_harm() {
    for (quantity, much) in [(Quantity::Answers, -1.0), (Quantity::ClockOffset, 200e6)] {
        // Another subject of the same kind is hit, so that somebody looks; what is spared is judged while it is in force.
        let fault = Made::new(quantity, vec![Subject::host("n2")], much, 0.05).during(&[(0, 0.0, 6.0)]);
        let outside = Made::new(quantity, vec![Subject::host("n3")], much, 0.0).during(&[(0, 12.0, 18.0)]);
        let fault = Made { tolerance: if quantity == Quantity::Answers { 0.05 } else { 5e6 }, ..fault };
        let found = analysed(&Scenario { outside: vec![outside.does(Does::AsSaid)], ..Scenario::of(vec![fault]) });
        let why = &found.trials[0].invalid;
        // What lasts long after the healing refutes the fault, which says so of the subject itself.
        let named = |why: &String| why.starts_with("n3 also showed") || why.contains("n3: ");
        assert!(why.iter().any(named), "{quantity}: {why:?}");
    }
}

/// While a fault is somewhere, and for a moment after it, nodes may wait for each other until none of their threads is left.
#[test]
fn a_node_that_does_not_answer_is_harmed_where_no_fault_is_or_was_a_moment_ago() {
    let stopped = |host: &str| Made::new(Quantity::Answers, vec![Subject::host(host)], -1.0, 0.05);
    let silent = |ended: &[(&str, f64)], from: f64, to: f64| {
        let faults = vec![stopped("n2").during(&[(0, 0.0, 6.0)]), slow().during(&[(0, 7.0, 10.0)])];
        let outside = vec![stopped("n3").during(&[(0, from, to)])];
        let ended = ended.iter().map(|(node, at)| ((*node).to_owned(), *at)).collect();
        let found = analysed(&Scenario { outside, ended, ..Scenario::of(faults) });
        // What lasts long after a pause refutes it, and its reason names the subject.
        let why = &found.trials[0].invalid;
        why.iter().any(|why| why.starts_with("n3 also showed answers") || why.contains("n3: "))
    };
    let silent_n3 = |from, to| silent(&[], from, to);
    assert!(!silent_n3(7.0, 14.5));
    assert!(silent_n3(22.0, 30.0), "in the recovery");
    assert!(silent_n3(15.5, 19.0), "after all");
    // A node that was started again, and the load that connects to it again, take longer.
    assert!(!silent(&[("n3", 3.0)], 22.0, 25.0), "20 s after the healing, the node is cold");
    assert!(silent(&[("n3", 3.0)], 27.0, 33.0), "then it is not");
    assert!(silent(&[("n2", 3.0)], 22.0, 25.0), "another one is not");
    assert!(silent(&[("n3", 6.5)], 22.0, 25.0), "a node that ended in no fault's time is not excused");
    // That it does not run is another matter.
    let faults = vec![Made::new(Quantity::Running, vec![Subject::host("n2")], -1.0, 0.05).during(&[(0, 0.0, 6.0)])];
    let outside = vec![Made::new(Quantity::Running, vec![Subject::host("n3")], -1.0, 0.05).during(&[(0, 7.0, 10.0)])];
    harmed("stopped", &Scenario { outside, ..Scenario::of(faults) }, &Subject::host("n3"), Quantity::Running);
}

/// Between the beginning of the phase and a fault that comes late lies a stretch of which half a second is much, or all.
#[test]
fn a_node_that_is_silent_for_a_moment_of_a_short_stretch_is_not_harmed() {
    let stopped = |host: &str| Made::new(Quantity::Answers, vec![Subject::host(host)], -1.0, 0.05);
    let harmed = |comes: f64, from: f64, to: f64| {
        let outside = vec![stopped("n3").during(&[(0, from, to)])];
        let faults = vec![stopped("n2").during(&[(0, comes, 10.0)])];
        // Asked every 20 ms.
        let found = analysed(&Scenario { outside, looks: 500, answer_times: true, ..Scenario::of(faults) });
        // What is long enough refutes the fault as well, which spares n3.
        found.trials[0].invalid.iter().any(|why| why.starts_with("n3 also showed answers") || why.contains("n3: "))
    };
    assert!(!harmed(0.6, 0.0, 0.6), "just before a fault that came late");
    assert!(!harmed(2.0, 1.3, 2.0), "a moment");
    assert!(harmed(4.0, 0.5, 3.9), "longer than that");
}

/// Links may keep a node from answering; they do not move its clock.
#[test]
fn a_slow_link_to_a_node_does_not_excuse_that_its_clock_is_wrong() {
    let ahead = |host: &str, by: f64| Made::new(Quantity::ClockOffset, vec![Subject::host(host)], by, 5e6);
    let scenario = Scenario {
        outside: vec![ahead("n3", 200e6).during(&[(0, 9.0, 15.0)])],
        ..Scenario::of(vec![ahead("n1", 500e6).during(&[(0, 0.0, 6.0)]), slow()])
    };
    let why = harmed("a clock beside a slow node", &scenario, &Subject::host("n3"), Quantity::ClockOffset);
    assert!(why.contains("that no fault asked for"), "{why}");
}

/// A database whose disk failed is ended and started again; one whose links are slow is not.
#[test]
fn a_process_that_ends_is_excused_by_its_disk_and_not_by_its_links() {
    let stopped = |host: &str| Made::new(Quantity::Running, vec![Subject::host(host)], -1.0, 0.05);
    let paused = stopped("n3").during(&[(0, 0.0, 6.0)]);
    let ended = stopped("n2").during(&[(0, 13.0, 14.5)]);
    let disk = Made::new(Quantity::SyncErrors, vec![Subject::directory("n2", "data")], 0.9, 0.05);
    let beside = |fault| Scenario { outside: vec![ended.clone()], ..Scenario::of(vec![paused.clone(), fault]) };
    harmed("beside a slow link", &beside(slow()), &Subject::host("n2"), Quantity::Running);
    assert_eq!(analysed(&beside(disk.during(&[(0, 10.0, 20.0)]))).trials[0].harm.len(), 0);
}

/// The nearest end of its bound is all that a late reading of a clock shows.
#[test]
fn a_clock_that_is_read_late_now_and_then_is_neither_wrong_nor_harmed() {
    let fault = Made::new(Quantity::ClockOffset, vec![Subject::host("n2")], 500e6, 5e6);
    let found = analysed(&Scenario { late_answers: true, ..Scenario::of(vec![fault]) });
    assert_eq!(found.trials[0].invalid, [""; 0]);
    assert_eq!(found.trials[0].faults[0].verdict, Proof::Proven);
}

/// A fault that hits every pair leaves none that could show that the emulator had to wait.
#[test]
fn intervals_are_late_in_which_the_emulator_waited_though_every_pair_is_hit() {
    let everywhere = Made::new(Quantity::OneWayDelay, Scenario::default().pairs(), 50e6, 2e6);
    let quiet = Scenario { starved: Some(50 * MS), ..Scenario::of(vec![everywhere]) };
    assert_eq!(analysed(&quiet).trials[0].instrument.late_intervals, [0; 0]);
    let found = analysed(&Scenario { starved: Some(300 * MS), ..quiet });
    let trial = &found.trials[0];
    assert_eq!((trial.instrument.late_intervals.len(), trial.instrument.too_late), (19, true));
    assert_eq!(exit_code(&found), 3);
    assert!(trial.invalid.iter().any(|why| why.contains("the instrument was late")), "{:?}", trial.invalid);
}

/// As a packet filter of a host would: the emulator sees nothing of it.
fn outside(made: Made, scenario: Scenario) -> Scenario {
    Scenario { outside: vec![made], unseen: true, ..scenario }
}

/// Each stretch holds too few probes to tell a loss from an accident.
#[test]
fn what_a_flapping_fault_loses_besides_is_found_in_all_of_its_stretches_together() {
    let flaps: Vec<(u32, f64, f64)> = (0..10).map(|at| 3.0 * f64::from(at)).map(|from| (0, from, from + 2.0)).collect();
    let honest = Scenario { seconds: [20, 30, 20], ..Scenario::of(vec![slow().during(&flaps)]) };
    assert_eq!(analysed(&honest).trials[0].invalid, [""; 0]);
    let lossy = Made::new(Quantity::Loss, vec![pair("n2", "n1")], 0.12, 0.0).during(&flaps);
    let why = harmed("a flap", &outside(lossy, honest), &pair("n2", "n1"), Quantity::Loss);
    assert!(why.contains("10 stretches together") && why.contains("loss that no fault asked for"), "{why}");
}

/// The fault phase alone.
fn for_a_while(quantity: Quantity, much: f64) -> Made {
    Made::new(quantity, vec![pair("n1", "n3")], much, 0.0).during(&[(0, 0.0, 20.0)])
}

fn lossy() -> Scenario {
    // Not a fault of delay: a spared pair that is slow would refute it.
    Scenario::of(vec![Made::new(Quantity::Loss, sends("n2"), 0.3, 0.03)])
}

#[test]
fn delays_of_less_than_a_millisecond_are_harm_where_the_network_is_exact() {
    for (quantity, much) in [(Quantity::OneWayDelay, 0.5e6), (Quantity::DelaySpread, 1e6)] {
        harmed("small", &outside(for_a_while(quantity, much), lossy()), &pair("n1", "n3"), quantity);
    }
    let little = outside(for_a_while(Quantity::OneWayDelay, 0.1e6), lossy());
    assert!(analysed(&little).trials[0].harm.is_empty(), "within what a machine does by itself");
}

#[test]
fn small_delays_are_no_harm_where_the_machine_may_have_made_them() {
    let slower = || outside(for_a_while(Quantity::OneWayDelay, 0.8e6), lossy());
    harmed("a quiet machine", &slower(), &pair("n1", "n3"), Quantity::OneWayDelay);
    // Its baseline scatters as much; the emulator waited, but not for so long that its intervals are late; nobody knows.
    let inexact = Scenario { base: (MS, MS, 0.0), ..slower() };
    let waited = Scenario { starved: Some(60 * MS), ..slower() };
    let unknown = Scenario { starved: None, ..slower() };
    for (what, scenario) in [("inexact", inexact), ("waited", waited), ("unknown", unknown)] {
        let trial = &analysed(&scenario).trials[0];
        assert!(trial.harm.is_empty() && trial.instrument.late_intervals.is_empty(), "{what}: {:?}", trial.invalid);
    }
    // Nor does a machine that is busy hide a delay that it would not make.
    let slow = outside(for_a_while(Quantity::OneWayDelay, 4e6), lossy());
    let waited = Scenario { starved: Some(60 * MS), ..slow };
    harmed("more than it would", &waited, &pair("n1", "n3"), Quantity::OneWayDelay);
}

/// The emulator says how many packets it dropped before a limit; no more probes than that can be among them.
#[test]
fn before_a_limit_what_a_full_queue_drops_is_no_harm_and_what_it_did_not_drop_is() {
    let limited = |queues: f64| Scenario {
        bottlenecks: Some(sends("n1")),
        queues: vec![(pair("n1", "n3"), queues)],
        network: vec!["100Mbit/s from n1".to_owned()],
        ..Scenario::of(vec![slow()])
    };
    for queues in [0.0, 0.01, 0.2] {
        let trial = &analysed(&limited(queues)).trials[0];
        assert_eq!((&trial.invalid[..], trial.harm.len()), (&[][..], 0), "{queues}");
    }
    // A queue that drops nothing, and one that drops four packets a second, where ten probes are missing.
    for queues in [0.0, 0.01] {
        let lost = outside(for_a_while(Quantity::Loss, 0.2), limited(queues));
        let why = harmed("lost outside", &lost, &pair("n1", "n3"), Quantity::Loss);
        assert!(why.contains("loss that no fault asked for"), "{queues}: {why}");
    }
}

#[test]
fn behind_a_limit_that_is_a_fault_loss_is_judged_likewise() {
    let slower = |queues: f64| Scenario {
        queues: vec![(pair("n1", "n3"), queues)],
        ..Scenario::of(vec![Made::new(Quantity::Rate, vec![pair("n1", "n3")], 10e6, 1e6)])
    };
    for queues in [0.0, 0.2] {
        assert_eq!(analysed(&slower(queues)).trials[0].invalid, [""; 0], "{queues}");
    }
    let lost = outside(for_a_while(Quantity::Loss, 0.2), slower(0.01));
    harmed("lost outside", &lost, &pair("n1", "n3"), Quantity::Loss);
}

#[test]
fn pairs_of_too_few_probes_are_counted_and_told() {
    let trial = |probes| analysed(&Scenario { probes, ..Scenario::default() });
    let many = trial(50);
    assert_eq!(many.trials[0].harm_not_judged, 0);
    assert!(!many.warnings.iter().any(|warning| warning.contains("looked for harm")), "{:?}", many.warnings);
    // Twenty of each pair in the baseline.
    let few = trial(1);
    assert_eq!(few.trials[0].harm_not_judged, 12);
    let told =
        "on 12 ordered pairs of hosts nobody looked for harm: fewer than 30 of their probes were sent in the baseline";
    assert!(few.warnings.iter().any(|warning| warning.contains(told)), "{:?}", few.warnings);
}

/// A slow disk needs no probe to be proven: that a pair was harmed meanwhile, nobody would have seen.
#[test]
fn a_phase_without_probes_is_not_taken_for_one_without_harm() {
    let slow = Made::new(Quantity::SyncTime, vec![Subject::directory("n2", "data")], 20e6, 2e6);
    let seen = Scenario { probes: 50, ..Scenario::of(vec![slow]) };
    assert_eq!(analysed(&seen).trials[0].invalid, [""; 0]);
    let absent = |from, to| vec![("probes".to_owned(), from, to)];
    let found = analysed(&Scenario { absent: absent(5.0, 20.0), ..seen.clone() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3));
    let why = &found.trials[0].invalid[0];
    assert!(why.contains("in the fault hardly any probes were sent on 12 of 12 ordered pairs"), "{why}");
    assert!(why.contains("sent 250 of about 1000"), "{why}");
    let found = analysed(&Scenario { absent: absent(20.0, 40.0), ..seen });
    assert!(found.trials[0].invalid[0].contains("in the recovery"), "{:?}", found.trials[0].invalid);
}

/// Nobody is left who could say that packets did not wait for the emulator.
#[test]
fn intervals_are_late_of_which_nobody_knows_whether_the_emulator_waited() {
    let everywhere = Made::new(Quantity::OneWayDelay, Scenario::default().pairs(), 50e6, 2e6);
    let unknown = Scenario { starved: None, ..Scenario::of(vec![everywhere]) };
    let found = analysed(&unknown);
    let trial = &found.trials[0];
    let instrument = &trial.instrument;
    assert_eq!((exit_code(&found), instrument.unwitnessed, instrument.late_share), (3, instrument.intervals, 1.0));
    let told = "it is not known how long the emulator waited for a processor";
    assert!(trial.invalid.iter().any(|why| why.contains(told)), "{:?}", trial.invalid);
    // Probes on spared pairs say it as well.
    let spared = Scenario { faults: vec![slow()], ..unknown };
    assert_eq!(analysed(&spared).trials[0].invalid, [""; 0]);
}
