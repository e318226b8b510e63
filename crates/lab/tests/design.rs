//! What a design makes of an experiment file: cells, blocks, trials and their seeds.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{collections::BTreeSet, path::Path};

use brownout_lab::{
    Design, Plan,
    experiment::{FileError, Source},
    planner::{self, Matrix},
};
use brownout_record::Arm;

/// Two delays at two consistencies; `more` is at the end of the file.
fn design(vary: &str, more: &str) -> Design {
    made(vary, more).unwrap()
}

fn made(vary: &str, more: &str) -> Result<Design, FileError> {
    let text = format!(
        "\
load: {{ rate: 400/s, population: 1_000, consistency: \"${{consistency}}\" }}
phases: {{ warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }}
faults: [{{ slow: {{ host: n2, delay: \"${{delay}}\" }} }}]
objective: {{ p95: 100ms }}
vary:
{vary}
{more}"
    );
    Design::new(&Source::from_text(Path::new("some.yaml"), text)?)
}

const FOUR: &str = "  delay: [50ms, 60ms]\n  consistency: [one, quorum]";

/// Cells that vary their faults wholly, one of them to none.
fn with_a_cell_without_faults(more: &str) -> Design {
    let text = format!(
        "\
load: {{ rate: 400/s, population: 1_000 }}
phases: {{ warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }}
faults: \"${{what}}\"
objective: {{ p95: 100ms }}
vary:
  what: {{ none: [], slow: [{{ slow: {{ host: n2, delay: 50ms }} }}], slower: [{{ slow: {{ host: n2, delay: 90ms }} }}] }}
{more}"
    );
    Design::new(&Source::from_text(Path::new("some.yaml"), text).unwrap()).unwrap()
}

/// Of a block the cells with their faults, and the cells under which trials without a fault run, both sorted.
fn block_of(design: &Design, block: u32) -> (Vec<usize>, Vec<usize>) {
    let of = |arm: Arm| {
        let trials =
            Matrix::new(design).trials().to_vec().into_iter().filter(|trial| trial.block == block && trial.arm == arm);
        let mut cells: Vec<usize> = trials.map(|trial| trial.cell).collect();
        cells.sort_unstable();
        cells
    };
    (of(Arm::Fault), of(Arm::None))
}

#[test]
fn a_block_holds_each_cell_once_and_trials_without_a_fault_for_each_load() {
    let design = design(FOUR, "trials: 5\nwithout-fault: 3");
    assert_eq!((design.cells.len(), design.blocks), (4, 5));
    // Cells 0 and 2 are at ONE, 1 and 3 at QUORUM: what differs in its faults alone shares.
    assert_eq!(design.cells.iter().map(|cell| cell.sharing).collect::<Vec<_>>(), [0, 1, 0, 1]);
    for block in 1..=5 {
        assert_eq!(block_of(&design, block), (vec![0, 1, 2, 3], vec![0, 0, 0, 1, 1, 1]));
    }
    let numbers: Vec<u32> = Matrix::new(&design).trials().to_vec().iter().map(|trial| trial.number).collect();
    assert_eq!(numbers, (1..=50).collect::<Vec<_>>());
    assert!(
        Matrix::new(&design).trials().to_vec().windows(2).all(|pair| pair[0].block <= pair[1].block),
        "block after block"
    );
    let rows = design.cell_rows(|_| String::new());
    assert_eq!(rows.iter().map(|row| row.compared_with).collect::<Vec<_>>(), [1, 2, 1, 2]);
    assert_eq!(planner::description(&design, None, 1).trials, 50);
}

#[test]
fn trials_without_a_fault_come_by_themselves_where_there_are_blocks_to_compare() {
    for (more, without) in
        [("trials: 1", 0), ("trials: 2", 1), ("trials: 1\nwithout-fault: 2", 2), ("trials: 3\nwithout-fault: 0", 0)]
    {
        assert_eq!(design(FOUR, more).without_fault, without, "{more}");
    }
}

#[test]
fn the_order_differs_between_blocks_and_seeds_and_repeats_by_the_seed() {
    let order = |seed: u32| -> Vec<Vec<(usize, Arm)>> {
        let design = design(FOUR, &format!("trials: 8\nseed: {seed}"));
        let of = |block| {
            let trials = Matrix::new(&design).trials().to_vec().into_iter().filter(move |trial| trial.block == block);
            trials.map(|trial| (trial.cell, trial.arm)).collect()
        };
        (1..=8).map(of).collect()
    };
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
    let different: BTreeSet<Vec<(usize, Arm)>> = order(7).into_iter().collect();
    assert!(different.len() >= 6, "of 720 orders of a block eight are hardly ever alike: {different:?}");
    // Nothing has a place of its own: over many blocks each trial of a block is the first at times.
    let firsts: BTreeSet<(usize, Arm)> =
        (1..=12).flat_map(|seed| order(seed).into_iter().map(|block| block[0])).collect();
    assert_eq!(firsts.len(), 6, "{firsts:?}");
}

#[test]
fn a_cell_without_faults_is_what_the_others_are_compared_with() {
    let design = with_a_cell_without_faults("trials: 3\nwithout-fault: 2");
    for block in 1..=3 {
        // It is run once, as every cell, and nothing beside it.
        assert_eq!(block_of(&design, block), (vec![1, 2], vec![0]));
    }
    let rows = design.cell_rows(|_| String::new());
    assert_eq!(rows.iter().map(|row| row.compared_with).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn every_trial_and_every_attempt_has_a_seed_of_its_own() {
    let design = design(FOUR, "trials: 4");
    let trials = Matrix::new(&design).trials().to_vec();
    let all: Vec<u64> =
        trials.iter().flat_map(|trial| (1..=3).map(|attempt| design.seed_of(*trial, attempt))).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    // It is the trial's, wherever it is run: alone, or in the whole design.
    let again = self::design(FOUR, "trials: 4");
    assert_eq!(all[3], again.seed_of(trials[1], 1));
    let other = self::design(FOUR, "trials: 4\nseed: 2");
    assert_ne!(all[0], other.seed_of(trials[0], 1));
}

#[test]
fn a_design_with_more_blocks_keeps_the_trials_that_it_had() {
    for (vary, more) in [(FOUR, "seed: 3\nwithout-fault: 2"), ("  delay: [50ms]\n  consistency: [one]", "seed: 4")] {
        let few = design(vary, &format!("trials: 3\n{more}"));
        let many = design(vary, &format!("trials: 9\n{more}"));
        let (before, after) = (Matrix::new(&few).trials().to_vec(), Matrix::new(&many).trials().to_vec());
        assert_eq!(after[..before.len()], before);
        for trial in before {
            assert_eq!(few.seed_of(trial, 1), many.seed_of(trial, 1));
        }
    }
}

#[test]
fn a_trial_without_a_fault_has_the_plan_of_its_cell_without_its_faults() {
    let design = design(FOUR, "trials: 2");
    for trial in Matrix::new(&design).trials().to_vec() {
        let plan = design.plan_of(trial, design.seed_of(trial, 1)).unwrap();
        let cell = &design.cells[trial.cell].plan;
        assert_eq!(plan.faults.len(), usize::from(trial.arm == Arm::Fault));
        let phases = |plan: &Plan| -> Vec<_> {
            plan.phases.iter().map(|planned| (planned.phase.name(), planned.length.duration())).collect()
        };
        assert_eq!(phases(&plan), phases(cell));
        let title = design.title(trial, 12);
        assert!(title.starts_with(&format!("trial {} of 12 (delay ", trial.number)), "{title}");
        assert_eq!(title.ends_with("; without fault)"), trial.arm == Arm::None, "{title}");
    }
}

#[test]
fn trials_that_come_to_another_network_or_cluster_take_the_time_that_a_new_one_takes() {
    let took = |vary: &str, more: &str| {
        planner::expected_duration(&design(vary, &format!("trials: 1\n{more}")), None).as_secs()
    };
    // Four trials on one stand: the warm-up of the first may take all of its 20 s, that of the others half of it.
    assert_eq!(took(FOUR, ""), 4 * 40 + 20 + 3 * 10 + 15 + 3 * 5);
    assert_eq!(took(FOUR, "fresh-every: 1"), 4 * (40 + 20 + 15));
    // Eight over two clusters: those of one cluster come together.
    let changing = took(&format!("{FOUR}\n  cluster.nodes: [3, 4]"), "");
    assert_eq!(changing, 2 * took(FOUR, ""));
}

#[test]
fn what_cannot_be_run_is_drawn_again_and_the_same_whenever_it_is() {
    let text = |seed: u64| {
        format!(
            "\
load: {{ rate: 400/s, population: 1_000 }}
phases: {{ warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }}
faults: [{{ chaos: {{ pause: 1s..2s, run: 8s..20s, faults: [slow: {{ delay: 60ms }}] }} }}]
objective: {{ p95: 100ms }}
trials: 60
without-fault: 0
seed: {seed}
"
        )
    };
    let design = |seed| Design::new(&Source::from_text(Path::new("some.yaml"), text(seed)).unwrap());
    // One of eight draws does not fit into the phase; that of the file itself has to.
    let (seed, made) = (1..=9).find_map(|seed| Some((seed, design(seed).ok()?))).unwrap();
    let again = design(seed).unwrap();
    let mut redrawn = 0;
    for trial in Matrix::new(&made).trials() {
        let (drawn, plan) = made.drawn(*trial, 1).unwrap();
        assert!(!plan.faults.is_empty());
        assert_eq!(plan.experiment.seed.0, drawn);
        assert_eq!(again.drawn(*trial, 1).unwrap().0, drawn);
        let own = made.seed_of(*trial, 1);
        assert_eq!(made.plan_of(*trial, own).is_ok(), own == drawn);
        redrawn += u32::from(own != drawn);
    }
    assert!(redrawn > 0, "the test has to draw what cannot be run");
}

#[test]
fn what_is_of_all_cells_together_cannot_vary() {
    for (key, levels) in
        [("trials", "2, 3"), ("without-fault", "2, 3"), ("attempts", "2, 3"), ("seed", "2, 3"), ("margin", "2%, 3%")]
    {
        let text = format!(
            "\
load: {{ rate: 400/s, population: 1_000 }}
phases: {{ warm-up: 20s, baseline: 10s, fault: 20s, recovery: 10s }}
faults: [{{ slow: {{ host: n2, delay: 50ms }} }}]
objective: {{ p95: 100ms }}
{key}: \"${{number}}\"
vary: {{ number: [{levels}] }}
"
        );
        let said = Design::new(&Source::from_text(Path::new("some.yaml"), text).unwrap()).err().unwrap().to_string();
        assert!(said.contains("some.yaml:5:") && said.contains(&format!("{key} is of all cells")), "{said}");
    }
}

#[test]
fn what_is_too_small_to_matter_is_said_by_the_file_and_goes_into_the_record() {
    assert_eq!(planner::description(&design(FOUR, "trials: 1"), None, 1).margin, Some(0.01));
    assert_eq!(planner::description(&design(FOUR, "trials: 1\nmargin: 2.5%"), None, 1).margin, Some(0.025));
    for (margin, said) in [("0%", "write 0.1% to 50%"), ("51%", "write 0.1% to 50%"), ("3", "a percentage")] {
        let error = made(FOUR, &format!("trials: 1\nmargin: {margin}")).err().unwrap().to_string();
        assert!(error.contains(said), "{margin}: {error}");
    }
}

#[test]
fn cells_of_one_network_and_cluster_are_tried_on_the_same_stands() {
    let one = design(FOUR, "trials: 1");
    assert_eq!((one.layouts().len(), one.cells.iter().map(|cell| cell.layout).max()), (1, Some(0)));
    let two = design(&format!("{FOUR}\n  cluster.nodes: [3, 4]"), "trials: 1");
    assert_eq!(two.cells.iter().map(|cell| cell.layout).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(two.layouts().len(), 2);
}

#[test]
fn a_block_changes_its_cluster_once_and_begins_with_either() {
    let two = design(&format!("{FOUR}\n  cluster.nodes: [3, 4]"), "trials: 12");
    let trials = Matrix::new(&two).trials().to_vec();
    let mut firsts = BTreeSet::new();
    let mut orders = BTreeSet::new();
    for block in trials.chunk_by(|one, other| one.block == other.block) {
        let layouts: Vec<usize> = block.iter().map(|trial| two.cells[trial.cell].layout).collect();
        assert_eq!(layouts.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1, "{layouts:?}");
        firsts.insert(layouts[0]);
        orders.insert(block.iter().map(|trial| (trial.cell, trial.arm == Arm::None)).collect::<Vec<_>>());
    }
    assert_eq!(firsts.len(), 2);
    assert!(orders.len() > 8, "within a cluster trials come in an order of chance: {orders:?}");
}
