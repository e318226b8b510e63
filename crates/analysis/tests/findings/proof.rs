//! A fault that is not proven did not happen.

use crate::{
    common::{MS, SECOND, Synthetic},
    scenario::{Made, Scenario},
};
use brownout_analysis::{Findings, Proof, ProofRow, SourceSeen, Validity, exit_code, findings};
use brownout_record::{MachineClockRow, MachineRole, MachineRow, Quantity, Recorder, Run, Subject};

fn analysed(synthetic: &Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&synthetic.run(directory.path())).unwrap()
}

/// The first fault of the first trial is not proven; returns the verdict and the reasons.
fn verdict_of(synthetic: &Synthetic) -> (Proof, String) {
    let found = analysed(synthetic);
    let fault = &found.trials[0].faults[0];
    if fault.verdict != Proof::Proven {
        assert_ne!(found.verdict.validity, Validity::Valid);
        assert_ne!(exit_code(&found), 0);
    }
    (fault.verdict, fault.reasons.join("; "))
}

/// What a source saw in a row.
fn seen<'a>(row: &'a ProofRow, source: &str) -> &'a SourceSeen {
    row.sources.iter().find(|seen| seen.source == source).unwrap()
}

#[test]
fn a_fault_that_shows_what_was_asked_is_proven() {
    let found = analysed(&Synthetic::default());
    for fault in found.trials.iter().flat_map(|trial| &trial.faults) {
        assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
        assert_eq!(fault.rows.len(), 12);
        let from_n2 = |row: &ProofRow| matches!(&row.subject, Subject::Pair { from, .. } if from == "n2");
        assert!(fault.rows[..3].iter().all(|row| row.hit && from_n2(row)), "hit subjects come first");
        assert_eq!(fault.unsettled_ns, 600 * MS);
        for row in &fault.rows {
            let asked = if row.hit { 100e6 } else { 0.0 };
            for source in ["probes", "counters"] {
                let change = seen(row, source).change.unwrap();
                assert!((change - asked).abs() < 0.1e6, "{} {source} {change}", row.subject);
            }
            // 20 probes a second; after each change, and before the end, a margin of 0.6 s; before the healing one of 0.15 s;
            // and the stamps' errors.
            assert_eq!(seen(row, "probes").samples, [200, 184, 175]);
        }
    }
    assert_eq!(found.verdict.validity, Validity::Valid);
}

#[test]
fn probes_that_the_healing_lets_go_early_say_nothing_of_the_delay() {
    // Of the five seconds in force, the first quarter is left out (a packet meets what is in force when it is sent), and the last two
    // as well (and a little).
    let asked = 2 * SECOND;
    let short = Synthetic {
        asked,
        shown: asked,
        counted: asked,
        slower: asked,
        length: Some(5),
        probes: 100,
        ..Synthetic::default()
    };
    let found = analysed(&short);
    let fault = &found.trials[0].faults[0];
    assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
    let row = &fault.rows[0];
    assert_eq!(seen(row, "probes").samples[1], 169, "{row:?}");
    // The emulator counts what it lets go when it does so: its readings count up to the healing.
    assert_eq!(seen(row, "counters").samples[1], 200);
}

#[test]
fn a_fault_below_an_overlay_is_proven_above_as_well_and_refuted_where_nothing_shows_there() {
    for overlay in ["vxlan", "openvpn"] {
        let found = analysed(&Synthetic { overlay, ..Synthetic::default() });
        let fault = &found.trials[0].faults[0];
        assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]), "{overlay}");
        let above: Vec<&ProofRow> =
            fault.rows.iter().filter(|row| matches!(row.subject, Subject::Overlay { .. })).collect();
        // Of each ordered pair, whether n2 sends or not.
        let hit = above.iter().filter(|row| row.hit).count();
        assert_eq!((fault.rows.len(), above.len(), hit), (24, 12, 3), "{overlay}");
        for row in above {
            let asked = if row.hit { 100e6 } else { 0.0 };
            assert_eq!((row.asked, row.sources.len()), (asked, 1), "{}", row.subject);
            assert!((seen(row, "probes").change.unwrap() - asked).abs() < 0.1e6, "{}", row.subject);
        }
        assert_eq!(found.verdict.validity, Validity::Valid, "{overlay}");
    }
    let (verdict, why) = verdict_of(&Synthetic { overlay: "vxlan", only_below: true, ..Synthetic::default() });
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.contains("n2 → n1 (overlay): probes show a change of"), "{why}");
}

#[test]
fn a_process_that_carries_packets_may_lose_some_and_one_that_is_gone_is_harm() {
    for (overlay, lost_above, harmed) in
        [("openvpn", 0.0, 0), ("openvpn", 0.3, 0), ("openvpn", 1.0, 12), ("vxlan", 0.3, 12)]
    {
        let found = analysed(&Synthetic { overlay, lost_above, no_fault: true, ..Synthetic::default() });
        let harm = &found.trials[0].harm;
        assert!(harm.iter().all(|one| matches!(one.subject, Subject::Overlay { .. })), "{harm:?}");
        let losses = harm.iter().filter(|one| one.quantity == Quantity::Loss).count();
        assert_eq!(losses, harmed, "{overlay} loses {lost_above}: {harm:?}");
        assert_eq!(found.verdict.validity == Validity::Valid, harmed == 0, "{overlay} loses {lost_above}");
    }
}

#[test]
fn an_injection_that_does_nothing_is_refuted() {
    let sabotaged = Synthetic { shown: 0, counted: 0, slower: 0, ..Synthetic::default() };
    let (verdict, why) = verdict_of(&sabotaged);
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.contains("n2 → n1: probes show a change of"), "{why}");
    let found = analysed(&sabotaged);
    assert_eq!(exit_code(&found), 3);
    assert!(found.verdict.sentence.starts_with("Invalid: trial 1: the fault"), "{}", found.verdict.sentence);
}

#[test]
fn what_the_probes_show_and_the_counters_do_not_is_refuted() {
    let (verdict, why) = verdict_of(&Synthetic { counted: 0, ..Synthetic::default() });
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.contains("the emulator's counters show"), "{why}");
}

#[test]
fn a_spared_pair_that_is_slow_too_refutes_and_is_named() {
    let (verdict, why) = verdict_of(&Synthetic { also_slow: Some(("n3", "n1")), ..Synthetic::default() });
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.starts_with("n3 → n1: probes (spared) show a change of 100"), "{why}");
}

#[test]
fn a_fault_that_does_not_heal_is_refuted_whether_below_an_overlay_or_only_above_it() {
    let (verdict, why) = verdict_of(&Synthetic { stays_slow: true, ..Synthetic::default() });
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.contains("probes show a change of 100ms although the fault was healed where 0.00ns"), "{why}");
    let above = Synthetic { overlay: "wireguard", stays_above: true, ..Synthetic::default() };
    let (verdict, why) = verdict_of(&above);
    assert_eq!(verdict, Proof::Refuted);
    assert!(why.contains("(overlay): probes show") && why.contains("although the fault was healed"), "{why}");
}

#[test]
fn too_few_probes_prove_nothing() {
    let (verdict, why) = verdict_of(&Synthetic { probes: 2, ..Synthetic::default() });
    assert_eq!(verdict, Proof::Unproven);
    assert!(why.contains("not enough evidence from probes: 20 before"), "{why}");
}

/// All that n2 sends is dropped by a packet filter of its own, as firewalls and network policies do with what they do not know.
#[test]
fn where_no_probe_arrives_before_any_fault_nothing_is_proven() {
    let from_n2 = || ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    for (quantity, asked, tolerance) in
        [(Quantity::OneWayDelay, 100e6, 20e6), (Quantity::Loss, 0.3, 0.03), (Quantity::Loss, 1.0, 0.001)]
    {
        let eats = Made::new(Quantity::Loss, from_n2(), 1.0, 0.0).during(&[(0, -20.0, 40.0)]);
        let fault = Made::new(quantity, from_n2(), asked, tolerance);
        let directory = tempfile::tempdir().unwrap();
        // The emulator, which sees the packets of others, shows what was asked.
        let scenario = Scenario { outside: vec![eats], unseen: true, ..Scenario::of(vec![fault]) };
        let found = findings(&scenario.run(directory.path())).unwrap();
        let fault = &found.trials[0].faults[0];
        assert_eq!(fault.verdict, Proof::Unproven, "{quantity}: {:?}", fault.reasons);
        let words = "probes arrived before any fault: a firewall or a network policy";
        assert!(fault.reasons[0].contains(words), "{quantity}: {:?}", fault.reasons);
        assert_eq!(exit_code(&found), 3);
    }
}

#[test]
fn a_delay_between_machines_is_told_as_exactly_as_their_clocks_are_known_and_no_better() {
    let from_n2 = || ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    // n2 is on a machine of its own; the tolerance is 2 ms.
    for (error_ns, verdict) in
        [(Some(20_000), Proof::Proven), (Some(3_000_000), Proof::Unproven), (None, Proof::Unproven)]
    {
        let directory = tempfile::tempdir().unwrap();
        let scenario = Scenario::of(vec![Made::new(Quantity::OneWayDelay, from_n2(), 100e6, 2e6)]);
        drop(scenario.run(directory.path()));
        let mut recorder = Recorder::resume(&directory.path().join("run.db"), 0, 0).unwrap();
        let machine = |machine: &str, hosts: &[&str]| MachineRow {
            machine: machine.to_owned(),
            role: MachineRole::Agent,
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        };
        let knows = |one: &str, other: &str| MachineClockRow {
            machine: one.to_owned(),
            other: other.to_owned(),
            at_ns: 5 * SECOND,
            ahead_ns: 1_000,
            error_ns: error_ns.unwrap_or_default(),
        };
        recorder
            .batch(|recorder| {
                recorder.machine(1, &machine("a", &["n1", "n3"]))?;
                recorder.machine(1, &machine("b", &["n2"]))?;
                let known = [knows("a", "b"), knows("b", "a")];
                known.iter().filter(|_| error_ns.is_some()).try_for_each(|row| recorder.machine_clock(1, row))
            })
            .unwrap();
        recorder.finish().unwrap();
        let found = findings(&Run::open(directory.path()).unwrap()).unwrap();
        let fault = &found.trials[0].faults[0];
        assert_eq!(fault.verdict, verdict, "{error_ns:?}: {:?}", fault.reasons);
        if verdict == Proof::Unproven {
            let known = if error_ns.is_some() { "is only known to within ± 3.00ms" } else { "is not known" };
            let words = format!("how far the clocks of its two machines are apart {known}");
            assert!(fault.reasons.iter().any(|why| why.contains(&words)), "{:?}", fault.reasons);
            // n2 → load ends on the machine where it begins.
            assert!(!fault.reasons.iter().any(|why| why.contains("load:")), "{:?}", fault.reasons);
        }
        let machines = &found.trials[0].machines;
        assert_eq!((machines.len(), machines[1].hosts.as_slice()), (2, ["n2".to_owned()].as_slice()));
        assert_eq!(machines[0].clocks.len(), usize::from(error_ns.is_some()));
    }
}

#[test]
fn a_delay_within_the_tolerance_cannot_be_told_from_none() {
    let small = Synthetic { asked: MS, shown: MS, counted: MS, ..Synthetic::default() };
    let (verdict, why) = verdict_of(&small);
    assert_eq!(verdict, Proof::Unproven);
    assert!(why.contains("cannot distinguish"), "{why}");
}

#[test]
fn a_fault_that_was_cut_before_healing_is_unproven() {
    let plan = Synthetic::default();
    let cut_at = plan.starts("fault") + 5 * SECOND;
    let (verdict, why) = verdict_of(&Synthetic { trials: 1, cut_at: Some(cut_at), ..plan });
    assert_eq!(verdict, Proof::Unproven);
    assert!(why.starts_with("the run was cut before the fault was healed"), "{why}");
}

#[test]
fn a_fault_that_the_trial_did_not_come_to_is_unproven() {
    let (verdict, why) = verdict_of(&Synthetic { trials: 1, cut_at: Some(8 * SECOND), ..Synthetic::default() });
    assert_eq!(verdict, Proof::Unproven);
    assert!(why.contains("never injected"), "{why}");
}

#[test]
fn faults_in_force_together_are_expected_together() {
    let both = Synthetic { second_fault: Some(30 * MS), ..Synthetic::default() };
    let found = analysed(&both);
    for fault in &found.trials[0].faults {
        assert_eq!(fault.verdict, Proof::Proven, "{:?}", fault.reasons);
    }
    let of = |index: usize, from: &str| {
        let is = |row: &&ProofRow| matches!(&row.subject, Subject::Pair { from: own, .. } if own == from);
        found.trials[0].faults[index].rows.iter().find(is).unwrap()
    };
    assert_eq!((of(0, "n3").asked, of(0, "n3").expected), (0.0, 30e6));
    assert_eq!((of(1, "n3").asked, of(1, "n3").expected), (30e6, 30e6));
    assert_eq!((&of(0, "n3").together[..], &of(1, "n3").together[..]), (&[1][..], &[][..]));
}

/// A run in which everything n2 sends is lost with one probability where another was asked for.
fn lossy(asked: f64, lost: f64) -> Synthetic {
    Synthetic { loss: Some(asked), lost, shown: 0, counted: 0, slower: 0, probes: 50, ..Synthetic::default() }
}

#[test]
fn a_loss_is_proven_within_its_tolerance_and_the_error_of_its_counts() {
    let found = analysed(&lossy(0.1, 0.1));
    let fault = &found.trials[0].faults[0];
    assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
    for row in fault.rows.iter().filter(|row| row.hit) {
        // 475 probes during and 500 before: half-widths of about 6 % and 2.6 %.
        let error = seen(row, "probes").error;
        assert!((0.06..0.08).contains(&error), "{error}");
        assert!((seen(row, "counters").change.unwrap() - 0.1).abs() < 1e-9);
    }
    let spared = fault.rows.iter().find(|row| !row.hit).unwrap();
    assert_eq!(seen(spared, "probes").change, Some(0.0));
}

#[test]
fn another_loss_than_asked_is_refuted() {
    for (asked, lost) in [(0.3, 0.0), (0.3, 0.1), (0.1, 0.3)] {
        let (verdict, why) = verdict_of(&lossy(asked, lost));
        assert_eq!(verdict, Proof::Refuted, "{asked} {lost} {why}");
    }
}

#[test]
fn a_loss_that_few_probes_cannot_tell_is_proven_by_the_packets_of_the_counters() {
    let found = analysed(&lossy(0.03, 0.03));
    let fault = &found.trials[0].faults[0];
    assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
    let row = &fault.rows[0];
    assert!(seen(row, "probes").allowed.unwrap() > 0.03 && !seen(row, "probes").tells, "{row:?}");
    assert!(seen(row, "counters").tells, "{row:?}");
}

#[test]
fn a_loss_too_small_for_the_number_of_probes_is_unproven() {
    let (verdict, why) = verdict_of(&lossy(0.01, 0.01));
    assert_eq!(verdict, Proof::Unproven);
    assert!(why.contains("cannot distinguish 1.00% from none"), "{why}");
}
