//! Detectors scored: against schedules counted by hand, and in runs that are made up and read through the record.

use crate::scenario::{Made, Scenario};
use crate::watched::{MS, SECOND, Series};
use brownout_analysis::{
    Findings, TrialFindings, Validity, detector_summaries,
    detectors::{Accusation, Accused, Alarm, DETECTORS, Detection, DetectorFindings, Truth, score},
    findings,
};
use brownout_record::{Quantity, Subject};

/// Alarms at the end of these seconds; the made-up series begins at 100 s, has 120 of them and learns from the first 15.
fn scored(alarms: &[(u64, Option<Accused>)], truths: &[Truth]) -> DetectorFindings {
    let alarms = alarms.iter().map(|(second, accused)| Alarm { at_ns: second * SECOND, accused: accused.clone() });
    score("made up", alarms.collect(), truths, &Series::default().watched())
}

fn truth(fault: u32, accused: Accused, spells: &[(f64, f64)]) -> Truth {
    let spells = spells.iter().map(|(from, to)| ((from * 1e9) as u64, (to * 1e9) as u64)).collect();
    Truth { fault, guilty: [accused].into(), spells }
}

fn seen(fault: u32, seconds: Option<f64>, accused: Option<Accused>, accusation: Option<Accusation>) -> Detection {
    Detection { fault, time_to_detect_ns: seconds.map(|seconds| (seconds * 1e9) as u64), accused, accusation }
}

#[test]
fn the_score_is_that_which_is_counted_by_hand() {
    let n2 = || Accused::node("n2");
    // In force from 150.5 s to 160 s.
    let fault = || truth(0, n2(), &[(150.5, 160.0)]);
    let of = |alarms: &[(u64, Option<Accused>)]| scored(alarms, &[fault()]);

    // From 115 s to 220 s there are 105 steps. In force or within the grace are those that end at 151 s to 170 s: 20.
    let none = of(&[]);
    assert_eq!((none.quiet_ns, none.false_alarms, none.false_alarms_per_hour), (85 * SECOND, 0, Some(0.0)));
    assert_eq!(none.faults, [seen(0, None, None, None)]);

    // One before, one in the step in which it came, one that does not matter any more, one in the grace, one after.
    let alarms = [(130, Some(n2())), (151, Some(n2())), (158, None), (161, None), (170, None), (171, None)];
    let found = of(&alarms);
    assert_eq!(found.false_alarms, 2);
    assert!((found.false_alarms_per_hour.unwrap() - 2.0 * 3600.0 / 85.0).abs() < 1e-9);
    assert_eq!(found.faults, [seen(0, Some(0.5), Some(n2()), Some(Accusation::Right))]);

    // The step before it came is no part of it, nor is the step after it was healed.
    assert_eq!(of(&[(150, Some(n2()))]).faults, none.faults);
    assert_eq!((of(&[(150, Some(n2()))]).false_alarms, of(&[(161, None)]).false_alarms), (1, 0));
    assert_eq!(of(&[(161, None)]).faults, none.faults, "after its end it is too late");
    // The first alarm is the one that somebody goes by.
    let wrong = of(&[(153, Some(Accused::link("n2", "n3"))), (154, Some(n2()))]);
    assert_eq!(wrong.faults[0].accusation, Some(Accusation::Wrong));
    assert_eq!(of(&[(153, None), (154, Some(n2()))]).faults, [seen(0, Some(2.5), None, Some(Accusation::None))]);
}

#[test]
fn without_a_fault_every_alarm_is_false_and_with_one_all_the_time_there_is_no_rate() {
    let found = scored(&[(120, None), (200, Some(Accused::node("n1")))], &[]);
    assert_eq!((found.false_alarms, found.quiet_ns, found.faults.len()), (2, 105 * SECOND, 0));
    let always = scored(&[(120, None)], &[truth(0, Accused::node("n1"), &[(110.0, 220.0)])]);
    assert_eq!((always.false_alarms, always.quiet_ns, always.false_alarms_per_hour), (0, 0, None));
}

#[test]
fn of_several_faults_each_is_detected_by_the_alarm_that_names_it() {
    let (n1, n3) = (|| Accused::node("n1"), || Accused::link("n3", "load"));
    let truths = [truth(0, n1(), &[(130.0, 160.0)]), truth(1, n3(), &[(140.0, 150.0), (170.0, 180.0)])];
    let found = scored(&[(143, Some(n1())), (145, Some(n3())), (175, None)], &truths);
    let right = Some(Accusation::Right);
    assert_eq!(found.faults, [seen(0, Some(13.0), Some(n1()), right), seen(1, Some(5.0), Some(n3()), right)]);
    // An alarm that names neither counts for both.
    let found = scored(&[(143, None), (145, Some(n3()))], &truths);
    assert_eq!(found.faults.map(|one| one.time_to_detect_ns.unwrap() / SECOND), [13, 3]);
    // In its second spell, it was there for so long all the same.
    assert_eq!(scored(&[(175, None)], &truths).faults[1].time_to_detect_ns, Some(35 * SECOND));
}

trait Map {
    fn map<T>(self, with: impl Fn(Detection) -> T) -> Vec<T>;
}

impl Map for Vec<Detection> {
    fn map<T>(self, with: impl Fn(Detection) -> T) -> Vec<T> {
        self.into_iter().map(with).collect()
    }
}

fn analysed(scenario: &Scenario) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&scenario.run(directory.path())).unwrap()
}

fn of<'a>(trial: &'a TrialFindings, detector: &str) -> &'a DetectorFindings {
    trial.detectors.iter().find(|one| one.detector == detector).unwrap()
}

/// Everything that n2 sends is 100 ms late.
fn slow_n2() -> Made {
    let hits = ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    Made::new(Quantity::OneWayDelay, hits, 100.0 * MS as f64, 2.0 * MS as f64)
}

#[test]
fn a_run_tells_who_would_have_noticed_a_slow_node() {
    let found = analysed(&Scenario { seconds: [30, 20, 20], ..Scenario::of(vec![slow_n2()]) });
    let trial = &found.trials[0];
    assert_eq!((trial.validity, trial.detectors.len()), (Validity::Valid, DETECTORS.len()), "{:?}", trial.invalid);
    for detector in ["peer-relative", "row/column"] {
        let own = of(trial, detector);
        assert_eq!(own.faults[0].accusation, Some(Accusation::Right), "{own:?}");
        assert_eq!(own.faults[0].accused, Some(Accused::node("n2")));
        assert!((2 * SECOND..=4 * SECOND).contains(&own.faults[0].time_to_detect_ns.unwrap()), "{own:?}");
    }
    for own in &trial.detectors {
        // 15 s of the baseline were learnt from; of the recovery the first 10 s are within the grace.
        assert_eq!((own.false_alarms, own.quiet_ns), (0, 25 * SECOND), "{own:?}");
    }
    let sums = detector_summaries(found.trials.iter().chain(&found.trials));
    let peers = sums.iter().find(|sum| sum.detector == "peer-relative").unwrap();
    assert_eq!((peers.faults, peers.right, peers.wrong, peers.nobody, peers.quiet_ns), (2, 2, 0, 0, 50 * SECOND));
    assert_eq!((peers.trials, peers.detected, peers.times_to_detect_ns.len()), (2, 2, 2));
    assert_eq!(peers.time_to_detect_ns, of(trial, "peer-relative").faults[0].time_to_detect_ns);
    assert_eq!(peers.false_alarms_per_hour, Some(0.0));
    // No false alarm in 50 s leaves room for very many an hour.
    assert!((peers.false_alarms_per_hour_at_most.unwrap() - 2.9957 * 72.0).abs() < 0.1);
    // The cell has the same of its trials, in the JSON too.
    assert_eq!(found.cells[0].detectors, detector_summaries(found.trials.iter()));
    let json = serde_json::to_value(&found.cells[0].detectors).unwrap();
    let peers = json.as_array().unwrap().iter().find(|one| one["detector"] == "peer-relative").unwrap();
    assert_eq!((&peers["detected"], &peers["faults"], &peers["trials"]), (&1.into(), &1.into(), &1.into()));
    assert!(peers["time_to_detect_ns"].as_u64().unwrap() >= 2 * SECOND && peers["false_alarms_per_hour"] == 0.0);
    let invalid = TrialFindings { validity: Validity::Invalid, ..trial.clone() };
    assert_eq!(detector_summaries([&invalid].into_iter()), []);
}

#[test]
fn a_run_tells_a_slow_link_from_a_slow_node() {
    let hits = vec![Subject::pair("n3", "n1"), Subject::pair("n1", "n3")];
    let link = Made::new(Quantity::OneWayDelay, hits, 20.0 * MS as f64, 2.0 * MS as f64);
    let found = analysed(&Scenario::of(vec![link]));
    let own = of(&found.trials[0], "row/column");
    assert_eq!(own.faults[0].accused, Some(Accused::link("n1", "n3")));
    assert_eq!(own.faults[0].accusation, Some(Accusation::Right), "{own:?}");
    // The clients' operations do not show it in this made-up run.
    assert_eq!(of(&found.trials[0], "peer-relative").faults[0].time_to_detect_ns, None);
}

#[test]
fn what_comes_later_in_a_run_changes_no_earlier_alarm() {
    let later = Made::new(Quantity::Loss, vec![Subject::pair("n1", "n3")], 0.5, 0.03).during(&[(0, 12.0, 20.0)]);
    let (one, two) = (analysed(&Scenario::of(vec![slow_n2()])), analysed(&Scenario::of(vec![slow_n2(), later])));
    let alarms = |found: &Findings, detector: &str| -> Vec<Alarm> {
        let all = &of(&found.trials[0], detector).alarms;
        all.iter().filter(|alarm| alarm.at_ns <= 32 * SECOND).cloned().collect()
    };
    for detector in &DETECTORS {
        assert_eq!(alarms(&one, detector.name), alarms(&two, detector.name), "{}", detector.name);
    }
    assert!(!alarms(&one, "row/column").is_empty());
}

#[test]
fn a_baseline_that_is_too_short_to_learn_from_has_no_detectors() {
    let found = analysed(&Scenario { seconds: [9, 20, 20], ..Scenario::of(vec![slow_n2()]) });
    assert_eq!(found.trials[0].detectors, []);
}
