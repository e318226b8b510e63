//! How many labs work at once, and what that leaves as it is.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{collections::BTreeSet, path::Path};

use brownout_lab::{
    Design,
    design::PlannedTrial,
    experiment::{FileError, Source},
    labs::{self, Room},
    planner::{self, Matrix, Planner},
};
use brownout_machine::Core;

const FILE: &str = "\
load: { rate: 400/s, population: 1_000 }
phases: { warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }
faults: [{ slow: { host: n2, delay: \"${delay}\" } }]
objective: { p95: 100ms }
trials: 4
";
const DELAYS: &str = "vary: { delay: [50ms, 60ms, 70ms] }\n";

fn made(text: &str) -> Result<Design, FileError> {
    Design::new(&Source::from_text(Path::new("some.yaml"), text.to_owned()).unwrap())
}

/// Three delays, and what else the file says.
fn design(more: &str) -> Design {
    made(&format!("{FILE}{DELAYS}{more}")).unwrap()
}

/// A machine of so many cores, of two processors each if `threads` is 2, with room for everything else.
fn room(cores: usize, threads: usize) -> Room {
    let core = |number: usize| Core {
        cpus: (0..threads).map(|thread| number + thread * cores).collect(),
        strength: 1_024,
        near: (0, 0),
    };
    let capacity = (cores * threads) as f64;
    Room { cores: (0..cores).map(core).collect(), capacity, memory: Some(1 << 40), disk: Some(1 << 40) }
}

fn refusal(design: &Design, room: &Room) -> (String, u8) {
    let error = labs::of(design, room, None).unwrap_err();
    (error.to_string(), error.exit_code())
}

#[test]
fn one_lab_works_unless_more_are_asked_for_and_it_has_the_whole_machine() {
    for more in ["", "parallel: 1\n"] {
        let labs = labs::of(&design(more), &room(16, 2), None).unwrap();
        assert_eq!(labs.processors, [(0..32).collect::<Vec<_>>()]);
        assert_eq!(labs.words(), "one at a time (parallel: 1)");
    }
}

#[test]
fn as_many_labs_work_as_each_has_processors_for_its_nodes_the_emulator_and_the_load() {
    let auto = design("parallel: auto\n");
    // Three nodes want five processors.
    for (cores, threads, expected) in [(1, 1, 1), (2, 1, 1), (9, 1, 1), (10, 1, 2), (16, 1, 3), (8, 2, 2), (64, 1, 12)]
    {
        let labs = labs::of(&auto, &room(cores, threads), None).unwrap();
        assert_eq!(labs.count(), expected, "{cores} cores of {threads}: {}", labs.words());
        let all: Vec<usize> = labs.processors.iter().flatten().copied().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no processor is of two labs");
        assert!(labs.warning().is_none());
    }
    let two = labs::of(&auto, &room(2, 1), None).unwrap().words();
    for part in ["one at a time", "parallel: auto", "a lab of 3 nodes wants 5 processors", "there are 2 processors"] {
        assert!(two.contains(part), "{two}");
    }
    // One trial of each delay and one without a fault, in four blocks.
    assert_eq!(labs::of(&auto, &room(200, 1), None).unwrap().count(), 16, "no more labs than trials");
}

#[test]
fn memory_and_disk_and_a_quota_limit_them_too() {
    let auto = design("parallel: auto\n");
    let of = |room: &Room| labs::of(&auto, room, None).unwrap();
    let many = room(64, 1);
    // Three nodes of 512 MiB need 2.4 GiB.
    let labs = of(&Room { memory: Some(8 << 30), ..many.clone() });
    assert!(labs.count() == 3 && labs.reason.contains("needs 2496 MB, and 8192 MB are available"), "{}", labs.words());
    let labs = of(&Room { disk: Some(2 << 30), ..many.clone() });
    assert!(labs.count() == 2 && labs.reason.contains("2048 MB are free"), "{}", labs.words());
    let labs = of(&Room { capacity: 10.0, ..many.clone() });
    assert!(labs.count() == 2 && labs.reason.contains("a quota gives 10.00"), "{}", labs.words());
    assert!(labs.processors.iter().all(|own| own.len() == 5), "{labs:?}");
    assert_eq!(of(&Room { memory: None, disk: None, ..room(10, 1) }).count(), 2, "where nobody tells");
}

#[test]
fn a_number_that_the_machine_cannot_carry_is_refused_with_the_reason_and_the_remedy() {
    let four = design("parallel: 4\n");
    let (said, code) = refusal(&four, &room(2, 1));
    assert_eq!(code, 4);
    for part in [
        "parallel: 4",
        "a lab of 3 nodes needs 2 processors at least",
        "there are 2 processors",
        "enough for 1 at once",
        "auto",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // Eight processors, but a core is no two labs'.
    assert!(labs::of(&four, &room(8, 1), None).is_ok());
    assert!(refusal(&four, &room(3, 2)).0.contains("6 processors (3 cores)"));
    let (said, _) = refusal(&four, &Room { memory: Some(4 << 30), ..room(8, 1) });
    assert!(said.contains("4 of them 9984 MB") && said.contains("4096 MB are available"), "{said}");
    let (said, _) = refusal(&four, &Room { disk: Some(1 << 30), ..room(8, 1) });
    assert!(said.contains("4096 MB of disk") && said.contains("--out"), "{said}");
}

#[test]
fn labs_of_one_node_may_have_one_processor_each_and_are_warned_of() {
    let small = FILE.replace("host: n2", "host: n1").replace("objective", "cluster: { nodes: 1 }\nobjective");
    let two =
        made(&format!("{small}{DELAYS}parallel: 2\n").replace("load: {", "load: { replication: 1, consistency: one,"));
    let labs = labs::of(&two.unwrap(), &room(2, 1), None).unwrap();
    assert_eq!(labs.processors, [[0], [1]]);
    assert!(labs.words().contains("2 at once, each on processors of its own: 0; 1"), "{}", labs.words());
    assert!(labs.warning().unwrap().contains("one processor"));
}

#[test]
fn a_run_that_goes_on_has_as_many_labs_as_before_or_is_refused() {
    let auto = design("parallel: auto\n");
    assert_eq!(labs::of(&auto, &room(16, 1), Some(2)).unwrap().count(), 2, "three would fit");
    let error = labs::of(&auto, &room(3, 1), Some(2)).unwrap_err().to_string();
    assert!(error.contains("parallel: 2"), "{error}");
    // What the file says holds whatever was before: it was the same file.
    assert_eq!(labs::of(&design("parallel: 3\n"), &room(16, 1), Some(3)).unwrap().count(), 3);
}

#[test]
fn trials_their_numbers_and_seeds_are_those_of_the_design_however_many_labs_there_are() {
    let all = |design: &Design| -> Vec<(PlannedTrial, u64)> {
        Matrix::new(design).trials().iter().map(|trial| (*trial, design.seed_of(*trial, 1))).collect()
    };
    let one = all(&design(""));
    assert_eq!(one.len(), 16);
    for more in ["parallel: 2\n", "parallel: auto\n"] {
        assert_eq!(all(&design(more)), one, "{more}");
    }
}

#[test]
fn trials_are_handed_out_in_order_and_none_twice_while_others_are_under_way() {
    let design = design("parallel: 3\n");
    let planner = Planner::new(&design);
    let (mut settled, mut under_way, mut order) = (Default::default(), Vec::new(), Vec::new());
    // Always the second of those under way ends first: trials are settled out of order.
    while let Some(next) = planner.next_beside(&settled, &under_way) {
        order.push(next.number);
        under_way.push(next.number);
        if under_way.len() == 3 {
            settled.insert(under_way.remove(1), None);
        }
    }
    assert_eq!(order, (1..=16).collect::<Vec<_>>());
    assert_eq!(under_way.len(), 2);
    // Killed now, the run goes on with exactly those.
    assert_eq!(planner.missing(&settled), 2);
    let mut again = Vec::new();
    while let Some(next) = planner.next_beside(&settled, &again) {
        again.push(next.number);
    }
    assert_eq!(again, under_way);
}

#[test]
fn where_it_varies_a_block_has_its_trials_in_groups_of_as_many_labs() {
    let design =
        made(&format!("{FILE}vary: {{ delay: [50ms, 60ms], parallel: [1, 2] }}\n").replace("trials: 4", "trials: 12"))
            .unwrap();
    let trials = Matrix::new(&design).trials().to_vec();
    let of = |trial: &PlannedTrial| design.cells[trial.cell].plan.parallel;
    let mut first = BTreeSet::new();
    for block in 1..=12 {
        let groups: Vec<Option<u32>> = trials.iter().filter(|trial| trial.block == block).map(of).collect();
        // Two delays and one trial without a fault each: what is compared has the same neighbours.
        assert_eq!(groups.len(), 6);
        assert_eq!(groups.chunk_by(|a, b| a == b).map(<[_]>::len).collect::<Vec<_>>(), [3, 3], "{groups:?}");
        first.insert(groups[0]);
    }
    assert_eq!(first, BTreeSet::from([Some(1), Some(2)]), "either comes first in some blocks");
    // Both have the processors that a lab has beside another: alone, it is only without neighbours.
    assert_eq!(
        labs::of(&design, &room(12, 1), None).unwrap().processors.iter().map(Vec::len).collect::<Vec<_>>(),
        [6, 6]
    );
}

#[test]
fn what_cannot_be_is_told() {
    let refused = |more: &str| made(&format!("{FILE}{more}")).err().map(|error| error.to_string());
    for (more, parts) in [
        (format!("{DELAYS}parallel: 0\n"), &["parallel", "write 1 to 256"][..]),
        (format!("{DELAYS}parallel: all\n"), &["'all'", "or auto"]),
        ("vary: { delay: [50ms], parallel: [1, auto] }\n".to_owned(), &["vary.parallel", "write numbers"]),
    ] {
        let said = refused(&more).unwrap();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let search =
        FILE.replace("${delay}", "50ms").replace("trials: 4\n", "search: { danger-zone: faults.0.slow.delay }\n");
    let said = made(&format!("{search}parallel: 2\n")).err().unwrap().to_string();
    assert!(said.contains("parallel") && said.contains("a search chooses each trial"), "{said}");
    for one in ["parallel: auto\n", ""] {
        let labs = labs::of(&made(&format!("{search}{one}")).unwrap(), &room(64, 1), None).unwrap();
        assert!(labs.count() == 1 && labs.reason.contains("a search"), "{}", labs.words());
    }
}

#[test]
fn several_labs_take_their_share_of_the_time() {
    let one = planner::expected_duration(&design(""), None);
    let design = design("parallel: 4\n");
    let labs = labs::of(&design, &room(16, 1), None).unwrap();
    assert_eq!(planner::expected_duration(&design, Some(&labs)), one / 4);
}
