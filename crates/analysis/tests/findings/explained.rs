//! What arithmetic explains, beside what made-up runs show.

use std::collections::BTreeMap;

use crate::scenario::{Does, MS, Made, SECOND, Scenario};
use brownout_analysis::{
    Candidate, Explained, Findings, Loss, Shifted, Validity, findings, touchable, touchable_by_role,
};
use brownout_record::{
    EvidenceRow, FaultRecord, LoadPart, NodePlacement, OperationPlacement, PairDistance, Placement, Quantity, Subject,
};

fn analysed(scenario: &Scenario) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&scenario.run(directory.path())).unwrap()
}

fn explained(scenario: &Scenario) -> Explained {
    analysed(scenario).trials[0].explained.clone().unwrap()
}

/// One row on one node, asked by its token; reads alone.
fn one_copy() -> Placement {
    let node = |at: i64| NodePlacement {
        node: format!("n{}", at + 1),
        token: i64::MIN.wrapping_add(at.wrapping_mul(6_148_914_691_236_517_205)),
        site: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
    };
    Placement {
        ring: (0..3).map(node).collect(),
        coordinators: "token-aware".to_owned(),
        asked: ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
        operations: vec![OperationPlacement {
            operation: "read".to_owned(),
            reads: true,
            share: Some(1.0),
            consistency: "quorum".to_owned(),
            copies: BTreeMap::from([("datacenter1".to_owned(), 1)]),
            rows: 1_000_000,
        }],
        distances: Vec::new(),
    }
}

/// Everything n2 sends is late.
fn slow(ms: u64) -> Made {
    let hits = ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    Made::new(Quantity::OneWayDelay, hits, (ms * MS) as f64, (ms * MS) as f64 * 0.05)
}

fn closed(faults: Vec<Made>) -> Scenario {
    Scenario { threads: Some(8), closes: true, placement: Some(one_copy()), ..Scenario::of(faults) }
}

fn loss<'a>(own: &'a Explained, figure: &str) -> &'a Loss {
    own.prediction.as_ref().unwrap().losses.iter().find(|loss| loss.figure == figure).unwrap()
}

fn percentile(own: &Explained, quantile: f64) -> &Shifted {
    own.prediction.as_ref().unwrap().latencies.iter().find(|one| one.quantile == quantile).unwrap()
}

#[test]
fn a_closed_loop_loses_what_the_plan_says_and_nothing_is_left_over() {
    for ms in [2, 20, 100] {
        let own = explained(&closed(vec![slow(ms)]));
        assert_eq!(own.touched.len(), 1);
        let touched = &own.touched[0];
        assert!((touched.must - 1.0 / 3.0).abs() < 1e-9 && (touched.may - 1.0 / 3.0).abs() < 1e-9, "{touched:?}");
        let prediction = own.prediction.as_ref().unwrap();
        assert!((prediction.least.share - 1.0 / 3.0).abs() < 1e-9, "{:?}", prediction.least);
        assert!((prediction.least.delay_ns - (ms * MS) as f64).abs() < 1.0);
        assert_eq!(prediction.least, prediction.most);
        // 1.17 ms before, a third of the delay on top.
        let truth = ms as f64 / 3.0 / (1.17 + ms as f64 / 3.0);
        let throughput = loss(&own, "throughput");
        assert!((throughput.least - truth).abs() < 0.002 && (throughput.most - truth).abs() < 0.002, "{throughput:?}");
        assert!((throughput.measured.unwrap() - truth).abs() < 0.02, "{ms}: {throughput:?}, {truth}");
        assert!((throughput.by_latency.unwrap() - truth).abs() < 0.02, "{ms}: {throughput:?}, {truth}");
        assert!(throughput.remainder.unwrap().abs() < 0.02, "{throughput:?}");
        let goodput = loss(&own, "goodput");
        assert!(goodput.remainder.unwrap().abs() < 0.02, "{goodput:?}");
        // Beyond the objective of 50 ms a third of what is left is not good, too.
        let good = if ms > 50 { 2.0 / 3.0 } else { 1.0 };
        assert!((goodput.least - (1.0 - (1.0 - truth) * good)).abs() < 0.002, "{goodput:?}");
        let (p50, p99) = (percentile(&own, 0.5), percentile(&own, 0.99));
        assert!(p50.remainder_ns.abs() < 0.1e6 && p50.least_ns < 2 * MS, "{p50:?}");
        assert!(p99.remainder_ns.abs() < 0.01 * (ms * MS) as f64 && p99.most_ns > ms * MS, "{p99:?}");
        assert_eq!(own.inapplicable, None);
    }
}

#[test]
fn threads_over_throughput_stands_beside_the_measured_mean_in_every_phase() {
    let found = analysed(&closed(vec![slow(20)]));
    let phases = &found.trials[0].closed_loop.as_ref().unwrap().phases;
    assert_eq!(phases.iter().map(|one| one.phase.as_str()).collect::<Vec<_>>(), ["baseline", "fault", "recovery"]);
    for one in phases {
        assert!((one.by_throughput_ns.unwrap() / one.mean_ns - 1.0).abs() < 0.05, "{one:?}");
    }
    assert!(phases[1].mean_ns > 5.0 * phases[0].mean_ns, "{phases:?}");
}

#[test]
fn what_is_beyond_the_plan_is_left_over() {
    // The network also delays what n1 sends, and no file asked for it.
    let spills = slow(20).does(Does::Spills(Subject::pair("n1", "load")));
    let own = explained(&closed(vec![spills]));
    let throughput = loss(&own, "throughput");
    assert!(throughput.remainder.unwrap() > 0.05, "{throughput:?}");
    assert!(percentile(&own, 0.5).remainder_ns > 15.0 * MS as f64);
    let nothing = explained(&closed(vec![slow(20).does(Does::Nothing)]));
    assert!(loss(&nothing, "throughput").remainder.unwrap() < -0.5);
}

#[test]
fn an_open_loop_loses_only_what_no_longer_keeps_the_objective() {
    let open = |ms| explained(&Scenario { threads: None, closes: false, ..closed(vec![slow(ms)]) });
    let own = open(20);
    assert_eq!(own.prediction.as_ref().unwrap().losses.len(), 1);
    let goodput = loss(&own, "goodput");
    assert_eq!((goodput.least, goodput.most, goodput.remainder), (0.0, 0.0, Some(0.0)));
    let goodput = loss(&open(100), "goodput").clone();
    assert!((goodput.least - 1.0 / 3.0).abs() < 1e-6 && goodput.remainder.unwrap().abs() < 1e-6, "{goodput:?}");
}

#[test]
fn there_is_no_prediction_where_delays_come_and_go_or_are_none() {
    let why = |scenario: &Scenario| {
        let own = explained(scenario);
        assert_eq!(own.prediction, None);
        own.inapplicable.unwrap()
    };
    let brief = closed(vec![slow(20).during(&[(0, 0.0, 8.0)]), slow(10).during(&[(0, 8.0, 20.0)])]);
    assert!(why(&brief).contains("changes within the fault phase"));
    let own = explained(&brief);
    // Each fault, and both together.
    assert_eq!(own.touched.iter().map(|row| row.fault).collect::<Vec<_>>(), [Some(0), Some(1), None]);
    assert!(own.floors.iter().all(|floor| floor.phase == "baseline"));
    let lossy = Made::new(Quantity::Loss, vec![Subject::pair("n2", "load")], 0.3, 0.03);
    assert!(why(&closed(vec![lossy])).contains("no fault asks for a delay"));
    assert!(why(&closed(Vec::new())).contains("there is no fault"));
    let told = Scenario { placement: None, ..closed(vec![slow(20)]) };
    assert_eq!(analysed(&told).trials[0].explained, None, "a record that does not tell where rows lie");
}

fn far() -> Placement {
    let hosts = ["n1", "n2", "n3", "load"];
    let pairs = hosts.iter().flat_map(|from| hosts.iter().filter(move |to| *to != from).map(move |to| (from, to)));
    let distance = |(from, to): (&&str, &&str)| PairDistance {
        from: (*from).to_owned(),
        to: (*to).to_owned(),
        delay_ns: 40 * MS,
        least_ns: 39 * MS,
    };
    Placement { distances: pairs.map(distance).collect(), ..one_copy() }
}

#[test]
fn the_database_took_what_lies_above_the_least_latency_of_the_topology() {
    let wide = Scenario {
        base: (40 * MS, 100_000, 0.0),
        network: vec!["among n1, n2, n3, load: 40ms".to_owned()],
        placement: Some(far()),
        ..Scenario::of(vec![slow(100)])
    };
    let own = explained(&wide);
    let of = |phase: &str| own.floors.iter().find(|floor| floor.phase == phase).unwrap();
    let baseline = of("baseline");
    assert_eq!((baseline.operation.as_str(), baseline.floor_ns, baseline.impossible), ("read", 78e6, Some(false)));
    assert!((baseline.above_ns.unwrap() - 3e6).abs() < 0.2e6, "{baseline:?}");
    // Two thirds do not meet the delay.
    assert_eq!((of("fault").floor_ns, of("fault").impossible), (78e6, Some(false)));
}

#[test]
fn a_median_below_the_least_latency_makes_the_trial_invalid() {
    // The network takes no time, and the plan has 40 ms each way.
    let found = analysed(&Scenario { placement: Some(far()), ..Scenario::of(vec![slow(100)]) });
    let trial = &found.trials[0];
    assert_eq!(trial.validity, Validity::Invalid);
    assert!(trial.invalid.iter().any(|why| why.contains("half of all reads in the baseline")), "{:?}", trial.invalid);
    let near = analysed(&Scenario { placement: Some(one_copy()), ..Scenario::of(vec![slow(100)]) });
    assert_eq!(near.trials[0].invalid, [""; 0]);
    // Where links lose packets, operations may take other ways, and only the baseline is judged.
    let lossy = Made::new(Quantity::Loss, vec![Subject::pair("n2", "load")], 0.3, 0.03);
    let lossy = explained(&Scenario { placement: Some(far()), ..Scenario::of(vec![lossy]) });
    assert_eq!(lossy.floors.iter().map(|floor| floor.impossible).collect::<Vec<_>>(), [Some(true), None]);
}

/// Three members of etcd, asked in turn; puts alone.
fn puts() -> Placement {
    let put = |plan: OperationPlacement| OperationPlacement {
        operation: "put".to_owned(),
        reads: false,
        consistency: "raft".to_owned(),
        copies: BTreeMap::new(),
        ..plan
    };
    let own = one_copy();
    Placement {
        coordinators: "round-robin".to_owned(),
        operations: own.operations.into_iter().map(put).collect(),
        ..own
    }
}

/// At so many seconds of the run a member says whom it follows, in which term.
fn follows(seconds: u64, member: &str, leader: &str, term: u32) -> EvidenceRow {
    EvidenceRow {
        at_ns: seconds * SECOND,
        error_ns: MS,
        node: member.to_owned(),
        source: "status".to_owned(),
        subject: leader.to_owned(),
        name: "leader".to_owned(),
        value: f64::from(term),
    }
}

/// A closed loop of puts, and who leads.
fn closed_puts(leader: &str, fault: Made) -> Scenario {
    Scenario {
        leader: Some(leader.to_owned()),
        database: ["n1", "n2", "n3"].map(|member| follows(1, member, leader, 2)).to_vec(),
        placement: Some(puts()),
        parts: vec![LoadPart { operation: "put".to_owned(), rate: None, threads: Some(8) }],
        ..closed(vec![fault])
    }
}

#[test]
fn what_a_slow_leader_costs_is_two_delays_of_every_put_and_a_slow_follower_those_that_it_is_asked() {
    for (leader, share) in [("n2", 1.0), ("n1", 1.0 / 3.0)] {
        let own = explained(&closed_puts(leader, slow(20)));
        assert_eq!(own.leader.as_deref(), Some(leader));
        assert_eq!(own.inapplicable, None);
        let touched = &own.touched[0];
        assert!((touched.must - share).abs() < 1e-9 && (touched.may - share).abs() < 1e-9, "{leader}: {touched:?}");
        let prediction = own.prediction.as_ref().unwrap();
        assert!((prediction.least.share - share).abs() < 1e-9, "{leader}: {:?}", prediction.least);
        assert!((prediction.least.delay_ns - 40.0 * MS as f64).abs() < 1.0, "{leader}: {:?}", prediction.least);
        assert_eq!(prediction.least, prediction.most);
        let throughput = loss(&own, "throughput");
        assert!(throughput.remainder.unwrap().abs() < 0.02, "{leader}: {throughput:?}");
        assert!(throughput.measured.unwrap() > 0.8, "{leader}: {throughput:?}");
    }
}

#[test]
fn where_the_leader_changes_nothing_is_predicted() {
    let mut changed = closed_puts("n2", slow(20));
    changed.database.extend([follows(25, "n3", "", 3), follows(26, "n3", "n3", 3), follows(26, "n1", "n3", 3)]);
    let own = explained(&changed);
    assert_eq!((own.leader.as_deref(), &own.prediction), (Some("n2"), &None));
    let why = own.inapplicable.unwrap();
    assert!(why.contains("n2 did not lead all through the fault"), "{why}");
    assert!(own.floors.iter().all(|floor| floor.phase == "baseline") && !own.floors.is_empty(), "{:?}", own.floors);
    // Where nobody says who led, there is nothing to count with.
    let silent = explained(&Scenario { database: Vec::new(), ..closed_puts("n2", slow(20)) });
    assert!(silent.touched.is_empty() && silent.inapplicable.unwrap().contains("who led"));
}

#[test]
fn before_a_run_shares_hold_whoever_leads_and_a_fault_on_a_role_has_those_of_the_role() {
    let directory = tempfile::tempdir().unwrap();
    let run = closed_puts("n1", slow(20)).run(directory.path());
    let description = run.description().unwrap();
    let of = |node: &str| -> FaultRecord {
        let hits = ["n1", "n2", "n3", "load"].into_iter().filter(|to| *to != node).map(|to| Subject::pair(node, to));
        let made = Made::new(Quantity::OneWayDelay, hits.collect(), 20e6, 1e6);
        Scenario::of(vec![made.clone()]).record(0, &made)
    };
    let shares = |rows: Vec<brownout_analysis::Touched>| (rows[0].must, rows[0].may);
    let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9;
    let third = 1.0 / 3.0;
    assert!(near(shares(touchable(&description, &[of("n2")]).unwrap()), (third, 1.0)));
    let candidates = |leads: bool| -> Vec<Candidate> {
        let candidate = |node: &str| Candidate { node: node.to_owned(), leads, fault: of(node) };
        ["n1", "n2", "n3"].map(candidate).to_vec()
    };
    let by_role = |leads: bool| shares(touchable_by_role(&description, &candidates(leads)).unwrap());
    assert!(near(by_role(true), (1.0, 1.0)));
    assert!(near(by_role(false), (third, third)));
}
