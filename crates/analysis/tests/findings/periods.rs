//! Every period of a fault has to show what was asked, in 95 % of its samples.

use crate::scenario::{Does, Jitter, Made, Scenario};
use brownout_analysis::{FaultFindings, Proof, exit_code, findings};
use brownout_record::{Quantity, Subject};

fn first_fault(scenario: &Scenario) -> FaultFindings {
    let directory = tempfile::tempdir().unwrap();
    let found = findings(&scenario.run(directory.path())).unwrap();
    let fault = found.trials[0].faults[0].clone();
    assert!(fault.verdict == Proof::Proven || exit_code(&found) == 3, "what is not proven ends with 3");
    fault
}

fn pair() -> Vec<Subject> {
    vec![Subject::pair("n2", "n1")]
}

fn node() -> Vec<Subject> {
    vec![Subject::host("n2")]
}

fn data() -> Vec<Subject> {
    vec![Subject::directory("n2", "data")]
}

/// One of each kind whose absence shows in a share of its samples.
fn kinds() -> Vec<Made> {
    vec![
        Made::new(Quantity::OneWayDelay, pair(), 50e6, 2e6),
        Made::new(Quantity::DelaySpread, pair(), 20e6, 7e6),
        Made::new(Quantity::Loss, pair(), 0.3, 0.03),
        Made::new(Quantity::Loss, pair(), 1.0, 0.001),
        Made::new(Quantity::Duplicates, pair(), 0.3, 0.03),
        Made::new(Quantity::Reordered, pair(), 0.3, 0.03),
        Made::new(Quantity::Corruption, pair(), 0.3, 0.03),
        Made::new(Quantity::Rate, pair(), 10e6, 1e6),
        Made::new(Quantity::LargestPacket, pair(), 1400.0, 0.0),
        Made::new(Quantity::Answers, node(), -1.0, 0.05),
        Made::new(Quantity::Running, node(), -1.0, 0.05),
        Made::new(Quantity::ProcessorShare, node(), 0.2, 0.02),
        Made::new(Quantity::SyncTime, data(), 20e6, 2e6),
        Made::new(Quantity::WriteErrors, data(), 0.9, 0.05),
        Made::new(Quantity::ReadDelayed, data(), 0.9, 0.05),
        Made::new(Quantity::ClockOffset, node(), 500e6, 5e6),
        Made::new(Quantity::ClockDrift, node(), 20e6, 4e6),
    ]
}

fn flaps() -> Vec<(u32, f64, f64)> {
    (0..6).map(|at| (0, 6.0 * f64::from(at), 6.0 * f64::from(at) + 3.0)).collect()
}

#[test]
fn a_flap_that_is_silent_in_two_of_six_periods_is_refuted_and_they_are_named() {
    for made in kinds() {
        let quantity = made.quantity;
        // The second and the fifth.
        let gone = Does::Gone(vec![(6.0, 9.0), (24.0, 27.0)]);
        let flapping = |does| Scenario {
            seconds: [20, 36, 20],
            held: true,
            looks: 200,
            ..Scenario::of(vec![made.clone().during(&flaps()).does(does)])
        };
        let honest = first_fault(&flapping(Does::AsSaid));
        assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]), "{quantity}");
        let verdicts: Vec<Proof> = honest.outcomes.iter().map(|period| period.verdict).collect();
        assert!(!verdicts.contains(&Proof::Refuted), "{quantity}: {verdicts:?}");
        let fault = first_fault(&flapping(gone));
        assert_eq!(fault.verdict, Proof::Refuted, "{quantity}: {:?}", fault.reasons);
        // Where a period is too short to be judged by itself, it is not proven, and all together are refuted.
        let silent = fault.outcomes.iter().filter(|period| period.verdict != Proof::Proven);
        assert_eq!(
            silent.map(|period| period.period).collect::<Vec<u32>>(),
            [2, 5],
            "{quantity}: {:?}",
            fault.outcomes
        );
        let named = fault.reasons.iter().any(|why| why.contains("period 2 of 6 (26.0 s to 29.0 s)"));
        let judged_alone = fault.outcomes.iter().any(|period| period.verdict == Proof::Refuted);
        assert!(named || !judged_alone, "{quantity}: {:?}", fault.reasons);
    }
}

#[test]
fn a_fault_that_is_gone_for_a_tenth_of_one_long_period_is_refuted() {
    for made in kinds() {
        let quantity = made.quantity;
        let long = |does| Scenario {
            seconds: [20, 30, 20],
            held: true,
            looks: 200,
            ..Scenario::of(vec![made.clone().during(&[(0, 0.0, 30.0)]).does(does)])
        };
        let honest = first_fault(&long(Does::AsSaid));
        assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]), "{quantity}");
        assert_eq!(honest.outcomes[0].verdict, Proof::Proven, "{quantity}");
        let fault = first_fault(&long(Does::Gone(vec![(12.5, 15.5)])));
        assert_eq!(fault.verdict, Proof::Refuted, "{quantity}: {:?}", fault.outcomes);
        assert!(fault.reasons[0].starts_with(&made.hits[0].to_string()), "{:?}", fault.reasons);
    }
}

/// Two of ten lie elsewhere: that may be an accident, or the fault was gone for that long.
#[test]
fn few_measurements_prove_a_fault_only_if_all_of_them_agree() {
    let sized = |does| Scenario {
        looks: 20,
        ..Scenario::of(vec![
            Made::new(Quantity::LargestPacket, pair(), 1200.0, 0.0).during(&[(0, 0.0, 6.0)]).does(does),
        ])
    };
    let honest = first_fault(&sized(Does::AsSaid));
    assert_eq!((honest.verdict, honest.outcomes[0].verdict), (Proof::Proven, Proof::Proven), "{:?}", honest.reasons);
    // Two looks of ten.
    let fault = first_fault(&sized(Does::Gone(vec![(2.3, 3.3)])));
    assert_eq!((fault.verdict, fault.outcomes[0].verdict), (Proof::Unproven, Proof::Unproven));
    assert!(fault.reasons[0].contains("2 of 10 above"), "{:?}", fault.reasons);
}

/// Few looks of each period, of which one misses the fault now and then: all periods together show it.
#[test]
fn an_accident_in_a_short_period_is_judged_with_the_other_periods() {
    let sized = |does| Scenario {
        seconds: [20, 36, 20],
        looks: 20,
        ..Scenario::of(vec![Made::new(Quantity::LargestPacket, pair(), 1200.0, 0.0).during(&flaps()).does(does)])
    };
    let fault = first_fault(&sized(Does::Gone(vec![(7.3, 7.7)])));
    assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
    let alone: Vec<u32> =
        fault.outcomes.iter().filter(|one| one.verdict == Proof::Proven).map(|one| one.period).collect();
    assert_eq!(alone, [1, 3, 4, 5, 6]);
    let twice = (0..6).map(|at| 6.0 * f64::from(at)).map(|at| (at + 1.3, at + 2.3)).collect();
    assert_ne!(first_fault(&sized(Does::Gone(twice))).verdict, Proof::Proven, "half of every period");
}

#[test]
fn a_long_period_of_which_nobody_saw_anything_is_unproven() {
    let pauses: Vec<(u32, f64, f64)> =
        (0..6).map(|at| 15.0 * f64::from(at)).map(|from| (0, from, from + 10.0)).collect();
    let seen = Scenario {
        seconds: [20, 90, 20],
        ..Scenario::of(vec![Made::new(Quantity::Answers, node(), -1.0, 0.05).during(&pauses)])
    };
    assert_eq!(first_fault(&seen).verdict, Proof::Proven);
    let fault = first_fault(&Scenario { absent: vec![("heartbeat".to_owned(), 75.0, 85.0)], ..seen });
    assert_eq!((fault.verdict, fault.outcomes[5].verdict), (Proof::Unproven, Proof::Unproven));
    assert!(fault.reasons[0].contains("period 6 of 6 (95.0 s to 105.0 s)"), "{:?}", fault.reasons);
}

/// A slow node, seen on three ways; of one of them nobody saw anything in the third period.
#[test]
fn a_period_is_proven_only_if_it_was_judged_on_every_subject_that_is_hit() {
    let hits = ["n1", "n3", "load"].map(|to| Subject::pair("n2", to)).to_vec();
    let made = Made::new(Quantity::OneWayDelay, hits, 50e6, 2e6).during(&flaps());
    let seen = Scenario { seconds: [20, 36, 20], counted: false, ..Scenario::of(vec![made]) };
    let alone = |fault: &FaultFindings| {
        let proven = fault.outcomes.iter().filter(|one| one.verdict == Proof::Proven);
        proven.map(|one| one.period).collect::<Vec<u32>>()
    };
    let honest = first_fault(&seen);
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    assert_eq!(alone(&honest), [1, 2, 3, 4, 5, 6]);
    let fault = first_fault(&Scenario { absent: vec![("probes n2 → n3".to_owned(), 12.0, 15.0)], ..seen });
    assert_eq!(alone(&fault), [1, 2, 4, 5, 6], "{:?}", fault.outcomes);
    assert_eq!((fault.outcomes[2].verdict, &fault.outcomes[2].reasons[..]), (Proof::Unproven, &[][..]));
    assert_eq!(fault.verdict, Proof::Unproven);
    assert!(fault.reasons[0].contains("n2 → n3: period 3 of 6 (32.0 s to 35.0 s)"), "{:?}", fault.reasons);
}

/// What is judged in pauses and after the healing by nothing else than the proof.
fn of_no_harm() -> Vec<Made> {
    vec![
        Made::new(Quantity::Rate, pair(), 10e6, 1e6),
        Made::new(Quantity::LargestPacket, pair(), 1200.0, 0.0),
        Made::new(Quantity::SyncTime, data(), 20e6, 2e6),
        Made::new(Quantity::ReadTime, data(), 20e6, 2e6),
    ]
}

#[test]
fn a_fault_that_stays_for_a_part_of_the_recovery_is_refuted() {
    for made in of_no_harm() {
        let quantity = made.quantity;
        let healed = Scenario { looks: 200, ..Scenario::of(vec![made.clone()]) };
        assert_eq!(first_fault(&healed).verdict, Proof::Proven, "{quantity}");
        let fault = first_fault(&Scenario { outside: vec![made.during(&[(0, 20.0, 28.0)])], ..healed });
        assert_eq!(fault.verdict, Proof::Refuted, "{quantity}");
        assert!(fault.reasons[0].contains("although the fault was healed"), "{:?}", fault.reasons);
    }
}

#[test]
fn a_fault_that_stays_in_two_of_five_pauses_is_refuted() {
    for made in of_no_harm() {
        let quantity = made.quantity;
        let flapping =
            Scenario { seconds: [20, 36, 20], looks: 200, ..Scenario::of(vec![made.clone().during(&flaps())]) };
        assert_eq!(first_fault(&flapping).verdict, Proof::Proven, "{quantity}");
        // The pauses after the first period and after the third.
        let outside = vec![made.during(&[(0, 3.0, 6.0), (0, 15.0, 18.0)])];
        let fault = first_fault(&Scenario { outside, ..flapping });
        assert_eq!(fault.verdict, Proof::Refuted, "{quantity}");
        assert!(fault.reasons[0].contains("while it was not in force"), "{:?}", fault.reasons);
    }
}

/// A disk that others use is slow by itself, now and then.
#[test]
fn a_disk_that_is_slow_in_some_operations_of_the_recovery_is_no_fault_that_stayed() {
    let made = Made::new(Quantity::SyncTime, data(), 20e6, 2e6);
    let busy: Vec<(u32, f64, f64)> = (0..18).map(|at| 21.0 + f64::from(at)).map(|from| (0, from, from + 0.4)).collect();
    let outside = vec![made.clone().during(&busy)];
    let fault = first_fault(&Scenario { outside, looks: 200, ..Scenario::of(vec![made]) });
    assert_eq!((fault.verdict, &fault.reasons[..]), (Proof::Proven, &[][..]));
}

/// A loss of 10 % in bursts of 20 packets: of 25 bursts' time in a period, seven may be lost by chance, or one.
#[test]
fn periods_that_lose_in_long_bursts_are_not_refuted_for_their_chance() {
    let bursts = [3, 7, 2, 1, 3, 2];
    let lost: Vec<(u32, f64, f64)> = flaps()
        .iter()
        .zip(bursts)
        .flat_map(|((_, start, _), count)| {
            let start = *start;
            (0..count).map(move |at| start + 0.6 + 0.3 * f64::from(at)).map(|from| (0, from, from + 0.1))
        })
        .collect();
    let said =
        |burst| Made { burst, ..Made::new(Quantity::Loss, pair(), 0.1, 0.05).during(&flaps()).does(Does::Nothing) };
    let really = Made::new(Quantity::Loss, pair(), 1.0, 0.001).during(&lost);
    let run = |burst| Scenario {
        seconds: [20, 36, 20],
        probes: 200,
        counted: false,
        outside: vec![really.clone()],
        ..Scenario::of(vec![said(burst)])
    };
    let fault = first_fault(&run(Some(20.0)));
    assert_ne!(fault.verdict, Proof::Refuted, "{:?}", fault.reasons);
    assert_eq!(first_fault(&run(None)).verdict, Proof::Refuted, "each by itself, nothing like this happens");
}

/// A tenth of the time, a delay is twice what was asked.
#[test]
fn a_delay_that_is_too_long_for_a_tenth_of_the_time_is_refuted() {
    let made = Made::new(Quantity::OneWayDelay, pair(), 50e6, 2e6);
    let does = Does::Otherwise(100e6, vec![(8.0, 10.5)]);
    let fault = first_fault(&Scenario::of(vec![made.does(does)]));
    assert_eq!(fault.verdict, Proof::Refuted);
    assert!(fault.reasons[0].contains("above"), "{:?}", fault.reasons);
}

#[test]
fn a_rate_that_is_far_below_what_was_asked_for_most_of_the_time_is_refuted() {
    let made = Made::new(Quantity::Rate, pair(), 10e6, 1e6);
    // One train in seven shows what was asked, and so the best of all do.
    let does = Does::Otherwise(1e6, vec![(0.0, 17.0)]);
    let fault = first_fault(&Scenario { looks: 200, ..Scenario::of(vec![made.does(does)]) });
    assert_eq!(fault.verdict, Proof::Refuted, "{:?}", fault.rows);
}

#[test]
fn a_limit_of_processors_that_is_stricter_than_asked_is_refuted() {
    let made = Made::new(Quantity::ProcessorShare, node(), 0.2, 0.02);
    let limited = |does| Scenario { held: true, ..Scenario::of(vec![made.clone().does(does)]) };
    let honest = first_fault(&limited(Does::AsSaid));
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    // It wants half of the processors, and is held for nine tenths of the time.
    let fault = first_fault(&limited(Does::Otherwise(0.05, vec![(0.0, 20.0)])));
    assert_eq!(fault.verdict, Proof::Refuted);
    assert!(fault.reasons[0].contains("where at least 18"), "{:?}", fault.reasons);
}

/// In two of six periods another pair has the limit as well: of all periods a median does not show it.
#[test]
fn sizes_and_rates_that_spill_over_in_some_periods_are_refuted() {
    for made in [Made::new(Quantity::LargestPacket, pair(), 1200.0, 0.0), Made::new(Quantity::Rate, pair(), 10e6, 1e6)]
    {
        let quantity = made.quantity;
        let spilling = |does| {
            let made = made.clone().during(&flaps()).does(does);
            first_fault(&Scenario { seconds: [20, 36, 20], looks: 200, ..Scenario::of(vec![made]) })
        };
        let honest = spilling(Does::AsSaid);
        assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]), "{quantity}");
        let fault = spilling(Does::SpillsIn(Subject::pair("n1", "n3"), vec![2, 5]));
        assert_eq!(fault.verdict, Proof::Refuted, "{quantity}");
        assert!(fault.reasons[0].starts_with("n1 → n3: period 2 of 6"), "{:?}", fault.reasons);
    }
}

/// A loss of 20 % in bursts of ten packets, as the emulator counted it: gone for a third of the time, it is 14 % of all.
#[test]
fn a_loss_in_bursts_that_is_gone_for_a_third_of_the_time_is_refuted() {
    let run = |does| {
        let made = Made { burst: Some(10.0), ..Made::new(Quantity::Loss, pair(), 0.2, 0.02) };
        first_fault(&Scenario {
            seconds: [20, 60, 20],
            ..Scenario::of(vec![made.during(&[(0, 0.0, 60.0)]).does(does)])
        })
    };
    let honest = run(Does::AsSaid);
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    let gone = run(Does::Gone(vec![(20.0, 38.0)]));
    assert_eq!(gone.verdict, Proof::Refuted);
    assert!(gone.reasons[0].starts_with("n2 → n1"), "{:?}", gone.reasons);
}

/// 28 periods of 200 ms, as those of garbage collections, in which some pairs lose a fifth.
fn short_losses(hits: Vec<Subject>, does: Does, scenario: Scenario) -> FaultFindings {
    let periods: Vec<(u32, f64, f64)> = (0..28).map(f64::from).map(|at| (0, at, at + 0.2)).collect();
    let made = Made::new(Quantity::Loss, hits, 0.2, 0.02).during(&periods).does(does);
    first_fault(&Scenario { faults: vec![made], ..scenario })
}

#[test]
fn short_lossy_periods_are_proven_together() {
    // Six probes a period and nothing else, 336 stretches: in nearly every such run four of six are lost somewhere.
    let scenario = Scenario { seconds: [20, 30, 20], probes: 60, counted: false, ..Scenario::default() };
    let few = short_losses(scenario.pairs(), Does::AsSaid, scenario);
    assert_eq!((few.verdict, &few.reasons[..]), (Proof::Proven, &[][..]));
    assert!(few.outcomes.iter().all(|one| one.verdict == Proof::Unproven), "{:?}", few.outcomes);
}

#[test]
fn a_short_lossy_period_in_which_nothing_was_lost_is_refuted_and_named() {
    // 200 probes a period tell a fifth from none, nearly always; and none lost of them is no chance.
    let hosts = ["n1", "n2", "load"].map(str::to_owned).to_vec();
    let scenario = || Scenario { hosts: hosts.clone(), seconds: [10, 30, 10], probes: 2_000, ..Scenario::default() };
    let honest = short_losses(pair(), Does::AsSaid, scenario());
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    assert!(honest.outcomes.iter().all(|one| one.verdict == Proof::Proven), "{:?}", honest.outcomes);
    let silent = short_losses(pair(), Does::Gone(vec![(9.0, 9.2)]), scenario());
    assert_eq!(silent.verdict, Proof::Refuted);
    let refuted = silent.outcomes.iter().filter(|one| one.verdict == Proof::Refuted);
    assert_eq!(refuted.map(|one| one.period).collect::<Vec<u32>>(), [10]);
    assert!(silent.reasons[0].contains("period 10 of 28 (19.0 s to 19.2 s)"), "{:?}", silent.reasons);
}

/// With 34 probes of each period a loss of 15 % can be none.
#[test]
fn a_period_that_cannot_tell_the_fault_from_none_is_not_proven_by_itself() {
    let made = Made::new(Quantity::Loss, pair(), 0.15, 0.015).during(&flaps());
    let few = Scenario { seconds: [40, 36, 40], probes: 14, counted: false, ..Scenario::of(vec![made]) };
    let fault = first_fault(&few);
    assert_ne!(fault.verdict, Proof::Refuted, "{:?}", fault.reasons);
    assert!(fault.outcomes.iter().all(|one| one.verdict == Proof::Unproven), "{:?}", fault.outcomes);
}

/// Not in one piece, but here and there.
#[test]
fn a_delay_that_one_packet_in_ten_escapes_is_refuted() {
    let gone: Vec<(f64, f64)> = (0..30).map(|at| (f64::from(at) + 0.5, f64::from(at) + 0.6)).collect();
    let made = Made::new(Quantity::OneWayDelay, pair(), 50e6, 2e6).during(&[(0, 0.0, 30.0)]);
    let fault = first_fault(&Scenario { seconds: [20, 30, 20], ..Scenario::of(vec![made.does(Does::Gone(gone))]) });
    assert_eq!(fault.verdict, Proof::Refuted);
    assert!(fault.reasons[0].contains("below") && fault.reasons[0].contains("5% may be"), "{:?}", fault.reasons);
}

const JITTERS: [Jitter; 5] =
    [Jitter::Uniform, Jitter::Normal, Jitter::Pareto, Jitter::ParetoNormal, Jitter::Correlated(0.9)];

/// p90 − p10 of what is left is within a third of what was asked.
#[test]
fn a_jitter_that_a_third_or_half_of_the_packets_escape_is_refuted_whatever_its_distribution() {
    for jitter in JITTERS {
        let scattered = |escaping| {
            let made = Made::new(Quantity::DelaySpread, pair(), 20e6, 7.5e6);
            first_fault(&Scenario { jitter, escaping, ..Scenario::of(vec![made]) })
        };
        let honest = scattered(0.0);
        assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]), "{jitter:?}");
        for escaping in [0.3, 0.5] {
            let fault = scattered(escaping);
            assert_eq!(fault.verdict, Proof::Refuted, "{jitter:?} {escaping}");
            let told = fault.reasons.iter().any(|why| why.contains("of each other"));
            assert!(told || jitter != Jitter::Uniform, "{escaping}: {:?}", fault.reasons);
        }
    }
}

/// Of single periods there are too few packets.
#[test]
fn a_jitter_that_packets_escape_is_refuted_by_short_periods_together() {
    let short: Vec<(u32, f64, f64)> = (0..12).map(|at| 3.0 * f64::from(at)).map(|from| (0, from, from + 1.0)).collect();
    let scattered = |escaping| {
        let made = Made::new(Quantity::DelaySpread, pair(), 20e6, 7.5e6).during(&short);
        first_fault(&Scenario { seconds: [20, 36, 20], escaping, ..Scenario::of(vec![made]) })
    };
    let honest = scattered(0.0);
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    assert_eq!(scattered(0.4).verdict, Proof::Refuted);
}

/// So few probes meet it that the emulator's own packets have to tell; it is read right before and right after each change.
#[test]
fn periods_of_a_fraction_of_a_second_are_proven_by_the_packets_of_the_load_as_well() {
    let short: Vec<(u32, f64, f64)> =
        (0..20).map(|at| 2.0 * f64::from(at) + 0.35).map(|from| (0, from, from + 0.3)).collect();
    for (made, shown) in [
        (Made::new(Quantity::OneWayDelay, pair(), 20e6, 2e6), 20e6),
        (Made::new(Quantity::Loss, pair(), 0.3, 0.03), 0.3),
    ] {
        let quantity = made.quantity;
        let brief = |does| {
            let made = made.clone().during(&short).does(does);
            first_fault(&Scenario { seconds: [20, 42, 20], ..Scenario::of(vec![made]) })
        };
        let honest = brief(Does::AsSaid);
        assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]), "{quantity}");
        let hit = honest.rows.iter().find(|row| row.hit).unwrap();
        let counted = hit.sources.iter().find(|source| source.source == "counters").unwrap();
        assert!(counted.samples[1] > 1_000, "{quantity}: {counted:?}");
        assert!((counted.change.unwrap() / shown - 1.0).abs() < 0.1, "{quantity}: {counted:?}");
        let sabotaged = brief(Does::Nothing);
        assert_eq!(sabotaged.verdict, Proof::Refuted, "{quantity}: {:?}", sabotaged.reasons);
        // Five of twenty are a median of nothing.
        let gone = short.iter().skip(3).step_by(4).map(|(_, from, to)| (*from, *to)).collect();
        let partly = brief(Does::Gone(gone));
        assert_eq!(partly.verdict, Proof::Refuted, "{quantity}: {:?}", partly.reasons);
    }
}

/// A delay of 50 ms that is there for 100 ms: what is sent in time for it to be over before the healing is sent before it has settled.
#[test]
fn periods_in_which_no_probe_can_tell_are_proven_by_the_packets_of_the_load() {
    let short: Vec<(u32, f64, f64)> =
        (0..20).map(|at| 2.0 * f64::from(at) + 0.35).map(|from| (0, from, from + 0.1)).collect();
    let brief = |does, counted| {
        let made = Made::new(Quantity::OneWayDelay, pair(), 50e6, 2e6).during(&short).does(does);
        first_fault(&Scenario { seconds: [20, 42, 20], counted, ..Scenario::of(vec![made]) })
    };
    let honest = brief(Does::AsSaid, true);
    assert_eq!((honest.verdict, &honest.reasons[..]), (Proof::Proven, &[][..]));
    let hit = honest.rows.iter().find(|row| row.hit).unwrap();
    let samples = |name| hit.sources.iter().find(|source| source.source == name).unwrap().samples[1];
    assert!(samples("probes") < 30 && samples("counters") > 500, "{:?}", hit.sources);
    assert_eq!(brief(Does::Nothing, true).verdict, Proof::Refuted);
    assert_eq!(brief(Does::AsSaid, false).verdict, Proof::Unproven, "nobody saw it");
}

/// A way that stutters, and a processor that was taken from the emulator while one of its tenths of a second went on.
#[test]
fn a_brief_period_may_be_as_much_too_long_as_the_emulator_says_that_it_was_late() {
    let brief: Vec<(u32, f64, f64)> = (0..10).map(|at| 0.6 * f64::from(at)).map(|from| (0, from, from + 0.1)).collect();
    let made = Made::new(Quantity::OneWayDelay, pair(), 50e6, 1e6).during(&brief);
    let otherwise = |shown, from_to, released_late| {
        let does = Does::Otherwise(shown, vec![from_to]);
        first_fault(&Scenario { released_late, ..Scenario::of(vec![made.clone().does(does)]) })
    };
    let stutters = |shown, released_late| otherwise(shown, (1.2, 1.3), released_late);
    let late = stutters(51.9e6, 2_000_000);
    assert_eq!((late.verdict, &late.reasons[..]), (Proof::Proven, &[][..]));
    // Nobody says that the emulator was late; it was not late by so much; or what was asked was not all there.
    for (shown, released_late) in [(51.9e6, 10_000), (54e6, 2_000_000), (48e6, 2_000_000)] {
        let fault = stutters(shown, released_late);
        assert_eq!(fault.verdict, Proof::Refuted, "{shown}, {released_late}");
        assert!(fault.reasons[0].contains("period 3 of 10"), "{:?}", fault.reasons);
    }
    // An emulator that is late in each of them makes another delay than was asked, whatever it says.
    let always = otherwise(51.9e6, (0.0, 20.0), 2_000_000);
    assert_eq!(always.verdict, Proof::Refuted, "{:?}", always.reasons);
}
