//! What the impairments of one link make of packets together.

use brownout_base::HostId;
use brownout_units::{BitRate, Delay, Share};

use super::*;
use crate::{
    emulator::link::End,
    impairment::{Chance, Distribution, Loss, QueueLimit, Reorder},
};

const LINK: Link = Link { from: HostId(0), to: HostId(1) };

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

/// A link with these impairments, called 0, 1 ….
struct Road {
    impairments: Impairments,
    bottleneck: Bottleneck,
    last_release_ns: u64,
}

fn road(seed: u64, asked: &[Impairment]) -> Road {
    let mut impairments = Impairments::new(seed, LINK);
    (0..).zip(asked).for_each(|(id, asked)| impairments.add(id, *asked));
    Road { impairments, bottleneck: Bottleneck::default(), last_release_ns: 0 }
}

fn fates_from(road: &mut Road, first: u32, packets: u32) -> Vec<Fate> {
    road.bottleneck.change(0, road.impairments.rate(), None);
    let mut fates = (first..first + packets).map(|n| Fate::new(n, 1_000, 0)).collect();
    road.impairments.decide(&mut road.bottleneck, road.last_release_ns, &mut fates);
    let releases = fates.iter().filter(|fate| fate.end.is_none()).map(Fate::release_ns);
    road.last_release_ns = releases.fold(road.last_release_ns, u64::max);
    fates
}

fn fates(road: &mut Road, packets: u32) -> Vec<Fate> {
    fates_from(road, 0, packets)
}

fn delay(ms: u64) -> Impairment {
    Impairment::delay(Delay::from_ms(ms))
}

fn rate(text: &str) -> Impairment {
    let queue = QueueLimit::Time(Delay::from_secs(3_600));
    Impairment {
        rate: Some(RateLimit { rate: text.parse::<BitRate>().unwrap(), queue, overhead_bytes: 0 }),
        ..Impairment::NONE
    }
}

/// All kinds at once.
fn all() -> Impairment {
    Impairment {
        delay: Delay::from_ms(10),
        jitter: Delay::from_ms(2),
        distribution: Distribution::ParetoNormal,
        delay_correlation: share("25%"),
        loss: Loss::GilbertElliott {
            p: share("5%"),
            r: share("30%"),
            one_minus_h: share("90%"),
            one_minus_k: share("1%"),
        },
        duplicate: Chance { share: share("10%"), correlation: share("20%") },
        corrupt: Chance::of(share("10%")),
        reorder: Reorder { share: share("20%"), correlation: share("10%"), gap: 3 },
        rate: rate("10mbit").rate,
        mtu: Some(1_400),
        cut: Some(Cut::Reject),
    }
}

#[test]
fn impairments_in_force_are_told_exactly_as_given_the_oldest_first() {
    let asked = [all(), delay(1), Impairment::NONE, Impairment { mtu: Some(576), ..all() }];
    let mut road = road(1, &asked);
    assert!(!road.impairments.is_idle());
    assert_eq!(road.impairments.effective().collect::<Vec<_>>(), [asked[0], asked[1], asked[3]]);
    assert_eq!(road.impairments.gate(), Gate { cut: Some(Cut::Reject), mtu: Some(576) });
    road.impairments.amend(1, delay(2));
    road.impairments.remove(0);
    assert_eq!(road.impairments.effective().collect::<Vec<_>>(), [delay(2), asked[3]]);
    [1, 2, 3].into_iter().for_each(|name| road.impairments.remove(name));
    assert!(road.impairments.is_idle() && road.impairments.stages.is_empty());
    assert_eq!(road.impairments.gate(), Gate::default());
}

#[test]
fn even_what_has_no_effect_is_reported_as_it_was_given() {
    for asked in [
        Impairment { distribution: Distribution::Pareto, ..Impairment::NONE },
        Impairment { delay_correlation: share("5%"), ..Impairment::NONE },
        Impairment { loss: Loss::Independent(Share::ZERO), ..Impairment::NONE },
        Impairment { reorder: Reorder { gap: 5, ..Reorder::NEVER }, ..Impairment::NONE },
        Impairment { corrupt: Chance { share: Share::ZERO, correlation: share("5%") }, ..Impairment::NONE },
    ] {
        assert_eq!(road(1, &[asked]).impairments.effective().collect::<Vec<_>>(), [asked]);
    }
}

#[test]
fn the_same_impairments_have_the_same_fates_and_gso_packets_draw_like_single_ones() {
    let asked = [all(), Impairment { jitter: Delay::from_ms(1), ..all() }];
    let together = fates(&mut road(7, &asked), 500);
    let mut one_by_one = road(7, &asked);
    let apart: Vec<Fate> = (0..500).flat_map(|n| fates_from(&mut one_by_one, n, 1)).collect();
    assert_eq!(together, apart);
    assert_ne!(together, fates(&mut road(8, &asked), 500));
}

#[test]
fn two_impairments_of_one_kind_draw_independently_and_a_later_one_anew() {
    let lossy = Impairment { loss: Loss::Independent(share("20%")), ..Impairment::NONE };
    let mut road = road(7, &[lossy]);
    let lost = |road: &mut Road| fates(road, 200).iter().map(|f| f.end.is_some()).collect::<Vec<_>>();
    let first = lost(&mut road);
    road.impairments.remove(0);
    road.impairments.add(1, lossy);
    assert_ne!(lost(&mut road), first);
}

#[test]
fn one_kind_does_not_change_the_draws_of_another() {
    let lossy = Impairment { loss: Loss::Independent(share("20%")), ..Impairment::NONE };
    let lost = |asked| fates(&mut road(7, &[asked]), 1_000).iter().map(|f| f.end.is_some()).collect::<Vec<_>>();
    assert_eq!(
        lost(lossy),
        lost(Impairment { jitter: Delay::from_ms(1), loss: Loss::Independent(share("20%")), ..delay(1) })
    );
    let jittered = Impairment { jitter: Delay::from_ms(1), ..delay(10) };
    let flights = |asked| fates(&mut road(7, &[asked]), 1_000).iter().map(|f| f.flight_ns).collect::<Vec<_>>();
    assert_eq!(flights(jittered), flights(Impairment { loss: Loss::Independent(share("20%")), ..jittered }));
}

#[test]
fn delays_add_losses_combine_and_the_least_rate_counts() {
    let asked = [
        Impairment { loss: Loss::Independent(share("20%")), rate: Some(rate("8mbit").rate.unwrap()), ..delay(10) },
        Impairment { loss: Loss::Independent(share("50%")), ..delay(5) },
        rate("4mbit"),
    ];
    let fates = fates(&mut road(3, &asked), 100_000);
    let arrived: Vec<_> = fates.iter().filter(|fate| fate.end.is_none()).collect();
    let share = arrived.len() as f64 / fates.len() as f64;
    assert!((share - 0.8 * 0.5).abs() < 0.006, "{share}");
    assert!(arrived.iter().all(|fate| fate.flight_ns == 15_000_000));
    // 1,000 bytes take 2 ms; only what is lost by none of them takes any.
    assert!((1..).zip(&arrived).all(|(n, fate)| fate.departs_ns == n * 2_000_000));
}

#[test]
fn a_packet_skips_the_delay_of_the_impairment_that_says_so() {
    let skip = Reorder { share: Share::ALL, correlation: Share::ZERO, gap: 2 };
    let fates = fates(&mut road(1, &[Impairment { reorder: skip, ..delay(10) }, delay(1)]), 4);
    assert_eq!(fates.iter().map(|fate| fate.flight_ns / 1_000_000).collect::<Vec<_>>(), [11, 1, 11, 1]);
}

#[test]
fn amending_keeps_what_an_impairment_remembers() {
    let bad = |p, r| {
        let loss = |text: &str| share(text);
        Impairment {
            loss: Loss::GilbertElliott { p: loss(p), r: loss(r), one_minus_h: Share::ALL, one_minus_k: Share::ZERO },
            ..Impairment::NONE
        }
    };
    let mut road = road(1, &[Impairment { rate: Some(rate("8mbit").rate.unwrap()), ..bad("100%", "0%") }]);
    assert!(fates(&mut road, 3).iter().all(|fate| fate.end == Some(End::Lost)));
    road.impairments.amend(0, bad("0%", "0%"));
    assert!(fates(&mut road, 3).iter().all(|fate| fate.end == Some(End::Lost)), "still in the bad state");
    // A kind that was amended away and back goes on with its random numbers.
    let mut twice = self::road(1, &[Impairment { loss: Loss::Independent(share("50%")), ..Impairment::NONE }]);
    let before = fates(&mut twice, 64);
    twice.impairments.amend(0, Impairment::NONE);
    twice.impairments.amend(0, Impairment { loss: Loss::Independent(share("50%")), ..Impairment::NONE });
    assert_ne!(fates(&mut twice, 64), before);
}

#[test]
fn with_a_rate_jitter_keeps_the_order_as_in_netem_and_without_it_does_not() {
    let jitter = Impairment { jitter: Delay::from_ms(5), ..delay(10) };
    let limited = Impairment { rate: Some(rate("800mbit").rate.unwrap()), ..jitter };
    let elsewhere = [jitter, rate("800mbit")];
    for asked in [&[limited][..], &elsewhere[..]] {
        let fates = fates(&mut road(5, asked), 2_000);
        // 1,000 bytes take 10 µs; no gap is smaller.
        assert!(fates.windows(2).all(|pair| pair[1].release_ns() >= pair[0].release_ns() + 10_000), "{asked:?}");
        assert!(fates.iter().all(|fate| (5_000_000..=15_000_000).contains(&fate.flight_ns)));
    }
    let free = fates(&mut road(5, &[jitter]), 2_000);
    let overtaken = free.windows(2).filter(|pair| pair[1].release_ns() < pair[0].release_ns()).count();
    assert!(overtaken > 500, "{overtaken}");
}

#[test]
fn with_a_rate_copies_keep_the_order_too_and_without_it_overtake_their_packets() {
    let copied = Impairment { jitter: Delay::from_ms(5), duplicate: Chance::of(share("50%")), ..delay(10) };
    let limited = Impairment { rate: rate("800mbit").rate, ..copied };
    let fates_of = |asked| fates(&mut road(5, &[asked]), 2_000);
    let in_order = fates_of(limited);
    assert!(in_order.iter().filter(|fate| fate.copy).count() > 800);
    // 1,000 bytes take 10 µs, those of a copy, too.
    assert!(in_order.windows(2).all(|pair| pair[1].release_ns() >= pair[0].release_ns() + 10_000));
    let free = fates_of(copied);
    let overtaken = free.windows(2).filter(|pair| pair[1].copy && pair[1].release_ns() < pair[0].release_ns()).count();
    assert!(overtaken > 200, "{overtaken}");
}

#[test]
fn with_a_rate_those_told_to_overtake_still_do() {
    let skip = Reorder { share: Share::ALL, correlation: Share::ZERO, gap: 4 };
    let asked = Impairment { reorder: skip, rate: Some(rate("8mbit").rate.unwrap()), ..delay(10) };
    let fates = fates(&mut road(1, &[asked]), 8);
    let releases: Vec<u64> = fates.iter().map(|fate| fate.release_ns() / 1_000_000).collect();
    assert_eq!(releases, [11, 12, 13, 4, 15, 16, 17, 8]);
}
