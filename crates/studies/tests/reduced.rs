//! What is kept of a run says what its findings say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use brownout_studies::{reduce, stored::Stored};
use common::{MS, SECOND, Synthetic, three_copies};

fn closed_loop() -> Synthetic {
    Synthetic {
        trials: 2,
        planned_trials: 2,
        without: 1,
        levels: &[20, 100],
        threads: Some(8),
        placement: Some(three_copies()),
        ..Synthetic::default()
    }
}

#[test]
fn every_cell_has_its_phases_its_effect_its_proof_and_one_series() {
    let directory = tempfile::tempdir().unwrap();
    let run = closed_loop().run(directory.path());
    let findings = brownout_analysis::findings(&run).unwrap();
    let stored = reduce(&run, "brownout run made-up.yaml").unwrap();
    assert_eq!((stored.command.as_str(), stored.cells.len()), ("brownout run made-up.yaml", 2));
    assert_eq!(stored.valid as usize, findings.trials.len(), "{}", stored.sentence);
    for (kept, found) in stored.cells.iter().zip(&findings.cells) {
        assert_eq!((&kept.levels, kept.trials as usize), (&found.levels, found.valid_trials.len()));
        let fault = kept.phases.iter().find(|phase| phase.name == "fault").unwrap();
        let same = found.phases.iter().find(|phase| phase.name == "fault").unwrap();
        assert!((fault.throughput() - same.rates.unwrap().delivered).abs() < 0.01);
        assert!((fault.mean_ns.unwrap() - same.response.unwrap().mean_ns).abs() < 1.0);
        let apart = kept.effects[0].change.unwrap() - found.effect.change.unwrap();
        assert!(apart.abs() < 1e-5, "{:?} beside {:?}", kept.effects[0], found.effect);
        assert_eq!(kept.effects.len(), 1 + found.figures.len());
        let [proof] = kept.proofs.as_slice() else { panic!("{:?}", kept.proofs) };
        assert_eq!((proof.proven, proof.trials), (2, 2));
        let probes = proof.sources.iter().find(|source| source.name == "probes").unwrap();
        assert!((probes.seen - proof.asked).abs() < 2.0 * MS as f64, "{proof:?}");
        assert!(proof.spared.unwrap().abs() < MS as f64 && probes.samples > 100);
        let series = kept.series.as_ref().unwrap();
        assert_eq!(series.fault, (10.0, 20.0), "in seconds since the baseline began");
        assert_eq!((series.seconds[0], series.seconds.len()), (0.0, 30));
        assert_eq!((series.delivered.len(), series.mean_ms.len(), series.p99_ms.len()), (30, 30, 30));
        assert!(series.mean_ms[15] > series.mean_ms[5], "{series:?}");
        assert_eq!((kept.baselines.len(), kept.lost.len()), (2, 2), "of each trial");
        for baseline in &kept.baselines {
            assert!(baseline.throughput > 0.0 && baseline.processors.unwrap().busy > 0.0, "{baseline:?}");
        }
        // Ten a second, in all seconds that lie wholly in the phase.
        assert!(kept.lost.iter().all(|one| (80..=100).contains(&one.looked_for) && one.lost == 0), "{:?}", kept.lost);
        assert_eq!((kept.clocks.len(), kept.elections), (0, None), "nobody asked, and there is no leader");
    }
    let asked: Vec<f64> = stored.cells.iter().map(|cell| cell.proofs[0].asked).collect();
    assert_eq!(asked, [20.0 * MS as f64, 100.0 * MS as f64]);
    let without = stored.without.unwrap();
    assert_eq!((without.trials, without.phases.len()), (2, 3));
}

#[test]
fn clocks_are_kept_by_phase_and_elections_by_when_somebody_leads_in_a_newer_term() {
    let told = || -> Vec<brownout_record::EvidenceRow> {
        // Both nodes tell of the election of term 4, seven seconds after the fault came; that of term 3 was in the baseline,
        // and who led in term 2 had been elected before.
        let row = |node: &str, at: u64, term: f64| brownout_record::EvidenceRow {
            at_ns: at * SECOND,
            error_ns: 0,
            node: node.to_owned(),
            source: "log".to_owned(),
            subject: "n1".to_owned(),
            name: "elected".to_owned(),
            value: term,
        };
        vec![row("n1", 3, 2.0), row("n1", 8, 3.0), row("n1", 23, 4.0), row("n2", 24, 4.0)]
    };
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { clocks: Some(20 * MS as i64), database: told, ..Synthetic::default() }.run(directory.path());
    let stored = reduce(&run, "").unwrap();
    let cell = &stored.cells[0];
    let phases: Vec<&str> = cell.clocks.iter().map(|clocks| clocks.phase.as_str()).collect();
    assert_eq!(phases, ["baseline", "fault", "recovery"]);
    let offset = |phase: usize| {
        let pair = cell.clocks[phase].pairs.iter().find(|pair| pair.host == "n1" && pair.server == "n2").unwrap();
        (pair.offset_ns / MS as f64, pair.round_trip_ns / MS as f64)
    };
    assert_eq!((offset(0), offset(1)), ((0.0, 2.0), (20.0, 2.0)));
    assert_eq!(cell.elections, Some(1.0));
    assert_eq!(cell.series.as_ref().unwrap().elections, [2.0, 17.0], "seconds since the baseline began");
}

#[test]
fn a_cell_without_a_valid_trial_has_no_figures_but_its_proof() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { shown: 0, counted: 0, ..Synthetic::default() }.run(directory.path());
    let stored = reduce(&run, "").unwrap();
    let [cell] = stored.cells.as_slice() else { panic!("{stored:?}") };
    assert_eq!((cell.trials, cell.phases.len(), cell.series.is_none()), (0, 0, true));
    let [proof] = cell.proofs.as_slice() else { panic!("{cell:?}") };
    assert_eq!((proof.proven, proof.trials), (0, 2));
    let probes = proof.sources.iter().find(|source| source.name == "probes").unwrap();
    assert!(probes.seen.abs() < MS as f64, "what was asked and what was seen stand beside each other: {proof:?}");
}

#[test]
fn the_file_comes_back_as_it_was_and_a_second_is_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let run = closed_loop().run(directory.path());
    let stored = reduce(&run, "brownout run made-up.yaml").unwrap();
    let text = stored.text().unwrap();
    let path = directory.path().join("made-up.json");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(Stored::read(&path).unwrap(), stored);
    let number = |line: &str| line.trim().trim_end_matches(',').parse::<f64>().is_ok();
    assert!(text.contains("\"seconds\": [0.0,") && !text.lines().any(number), "{text}");
    std::fs::write(&path, text.replacen("\"format\": 2", "\"format\": 3", 1)).unwrap();
    assert!(Stored::read(&path).unwrap_err().to_string().contains("format 3"));
}

#[test]
fn a_grid_of_severities_has_a_danger_zone_and_other_runs_have_none() {
    let directory = tempfile::tempdir().unwrap();
    let levels = &[10, 30, 100, 300];
    let grid = Synthetic { trials: 6, planned_trials: 6, without: 1, levels, ..Synthetic::default() };
    let run = grid.run(directory.path());
    let stored = reduce(&run, "").unwrap();
    let zone = stored.zone.unwrap();
    let losses: Vec<f64> = zone.crossings.iter().map(|crossing| crossing.loss).collect();
    assert_eq!(losses, [0.1, 0.5]);
    // An open loop whose operations are all answered loses no throughput at any delay.
    let last = zone.crossings.last().unwrap();
    assert_eq!(last.high, None, "{last:?}");
    assert!((last.low.unwrap() - 0.3 * SECOND as f64).abs() < 1e3, "{last:?}");

    let directory = tempfile::tempdir().unwrap();
    let run = closed_loop().run(directory.path());
    assert_eq!(reduce(&run, "").unwrap().zone, None, "two trials without a fault do not tell what a trial scatters by");
}
