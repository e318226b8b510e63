//! What arithmetic says of operations that are loads of their own.

use std::collections::BTreeMap;

use crate::scenario::{MS, Made, Scenario};
use brownout_analysis::{Explained, TrialFindings, Validity, findings};
use brownout_record::{LoadPart, NodePlacement, OperationPlacement, Placement, Quantity, Subject};

const SLOW_MS: f64 = 20.0;
/// Mean responses of reads and writes without a fault, ms; of the one and the other a third meets the delay.
const BEFORE: [f64; 2] = [1.17, 41.17];

fn part(operation: &str, rate: Option<f64>, threads: Option<u32>) -> LoadPart {
    LoadPart { operation: operation.to_owned(), rate, threads }
}

/// One copy of each row, asked by its token.
fn placement(shares: [Option<f64>; 2]) -> Placement {
    let node = |at: i64| NodePlacement {
        node: format!("n{}", at + 1),
        token: i64::MIN.wrapping_add(at.wrapping_mul(6_148_914_691_236_517_205)),
        site: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
    };
    let operation = |(name, share): (&str, Option<f64>)| OperationPlacement {
        operation: name.to_owned(),
        reads: name == "read",
        share,
        consistency: "quorum".to_owned(),
        copies: BTreeMap::from([("datacenter1".to_owned(), 1)]),
        rows: 1_000_000,
    };
    Placement {
        ring: (0..3).map(node).collect(),
        coordinators: "token-aware".to_owned(),
        asked: ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
        operations: ["read", "write"].into_iter().zip(shares).map(operation).collect(),
        distances: Vec::new(),
    }
}

/// Reads and writes like these while all that n2 sends is late.
fn trial(parts: [LoadPart; 2], threads: Option<u32>, shares: [Option<f64>; 2]) -> TrialFindings {
    let hits = ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    let slow = Made::new(Quantity::OneWayDelay, hits, SLOW_MS * MS as f64, SLOW_MS * MS as f64 * 0.05);
    let scenario =
        Scenario { parts: parts.to_vec(), threads, placement: Some(placement(shares)), ..Scenario::of(vec![slow]) };
    let directory = tempfile::tempdir().unwrap();
    let found = findings(&scenario.run(directory.path())).unwrap();
    assert_eq!(found.trials[0].validity, Validity::Valid, "{:?}", found.trials[0].invalid);
    found.trials[0].clone()
}

fn explained(trial: &TrialFindings) -> &Explained {
    trial.explained.as_ref().unwrap()
}

fn figures(trial: &TrialFindings) -> Vec<&str> {
    let losses = &explained(trial).prediction.as_ref().unwrap().losses;
    losses.iter().map(|loss| loss.figure.as_str()).collect()
}

/// Of which operations percentiles are predicted.
fn operations(trial: &TrialFindings) -> Vec<Option<&str>> {
    let latencies = &explained(trial).prediction.as_ref().unwrap().latencies;
    let mut all: Vec<Option<&str>> = latencies.iter().map(|one| one.operation.as_deref()).collect();
    all.dedup();
    all
}

#[test]
fn users_of_their_own_lose_by_their_own_means_and_together_by_their_throughputs() {
    let trial = trial([part("read", None, Some(6)), part("write", None, Some(2))], Some(8), [None; 2]);
    let throughput = |extra: f64| 6.0 / (BEFORE[0] + extra) + 2.0 / (BEFORE[1] + extra);
    let truth = 1.0 - throughput(SLOW_MS / 3.0) / throughput(0.0);
    let own = trial.closed_loop.as_ref().unwrap();
    assert_eq!((own.threads, &own.inapplicable), (8, &None));
    assert!((own.predicted_loss.unwrap() - truth).abs() < 0.003, "{own:?}, {truth}");
    assert!((own.measured_loss.unwrap() - truth).abs() < 0.02, "{own:?}, {truth}");
    // Little's law holds of all users and all operations together.
    for little in &own.phases {
        assert!((little.predicted / little.measured - 1.0).abs() < 0.05, "{little:?}");
    }
    let losses = &explained(&trial).prediction.as_ref().unwrap().losses;
    assert!((losses[0].least - truth).abs() < 0.003 && (losses[0].most - truth).abs() < 0.003, "{losses:?}, {truth}");
    assert!((losses[0].by_latency.unwrap() - truth).abs() < 0.03, "{losses:?}");
    // By one mean of all it would be another figure.
    let mean = 8.0 / throughput(0.0);
    assert!((SLOW_MS / 3.0 / (mean + SLOW_MS / 3.0) - truth).abs() > 0.02);
}

#[test]
fn of_a_closed_load_beside_an_open_one_no_throughput_is_predicted_and_it_is_said_why() {
    let trial = trial([part("read", Some(90.0), None), part("write", None, Some(2))], None, [None; 2]);
    let own = trial.closed_loop.as_ref().unwrap();
    let why = own.inapplicable.as_ref().unwrap();
    assert!(why.contains("only write is closed"), "{why}");
    assert_eq!((own.threads, own.phases.len(), own.predicted_loss, own.measured_loss), (2, 0, None, None));
    assert!(figures(&trial).is_empty(), "{:?}", figures(&trial));
}

#[test]
fn where_users_change_the_shares_nothing_is_told_of_all_operations_together() {
    let mixed = trial([part("read", Some(90.0), None), part("write", None, Some(2))], None, [None; 2]);
    assert_eq!(operations(&mixed), [Some("read"), Some("write")]);
    let touched: Vec<_> = explained(&mixed).touched.iter().map(|one| one.operation.as_deref()).collect();
    assert_eq!(touched, [Some("read"), Some("write")], "the plan knows no shares");
    let rated = [part("read", Some(90.0), None), part("write", Some(30.0), None)];
    let open = trial(rated, None, [Some(0.75), Some(0.25)]);
    assert_eq!(operations(&open), [None, Some("read"), Some("write")]);
    assert_eq!((open.closed_loop.is_none(), figures(&open)), (true, vec!["goodput"]));
    assert_eq!(explained(&open).touched[0].operation, None);
}

#[test]
fn each_operation_s_percentiles_are_predicted_by_its_own_baseline() {
    let trial = trial([part("read", Some(90.0), None), part("write", None, Some(2))], None, [None; 2]);
    for one in &explained(&trial).prediction.as_ref().unwrap().latencies {
        assert!(one.remainder_ns.abs() < 0.5e6, "{one:?}");
    }
    let prediction = explained(&trial).prediction.as_ref().unwrap();
    assert!((prediction.least.share - 1.0 / 3.0).abs() < 1e-6, "{:?}", prediction.least);
}
