//! What the layers of one link make of packets together.

use brownout_units::{BitRate, Delay, Share};

use super::*;
use crate::{
    emulator::stages::End,
    impairment::{Chance, Cut, Distribution, Loss, QueueLimit, RateLimit, Reorder},
    link::HostId,
};

const LINK: Link = Link { from: HostId(0), to: HostId(1) };

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

fn layers(seed: u64, impairments: &[Impairment]) -> Layers {
    let mut layers = Layers::new(seed, LINK);
    (0..).zip(impairments).for_each(|(name, impairment)| layers.add(name, *impairment));
    layers
}

fn fates_from(layers: &mut Layers, first: u32, packets: u32) -> Vec<Fate> {
    let mut fates = (first..first + packets).map(|n| Fate::new(n, 1_000, 0)).collect();
    layers.decide(&mut fates);
    fates
}

fn fates(layers: &mut Layers, packets: u32) -> Vec<Fate> {
    fates_from(layers, 0, packets)
}

fn delay(ms: u64) -> Impairment {
    Impairment::delay(Delay::from_ms(ms))
}

fn rate(text: &str) -> Impairment {
    let queue = QueueLimit::Time(Delay::from_secs(3_600));
    Impairment::rate(RateLimit { rate: text.parse::<BitRate>().unwrap(), queue, overhead_bytes: 0 })
}

/// All kinds at once.
fn all() -> Impairment {
    delay(10)
        .with_jitter(Delay::from_ms(2))
        .with_distribution(Distribution::ParetoNormal)
        .with_delay_correlation(share("25%"))
        .with_loss_model(Loss::GilbertElliott {
            p: share("5%"),
            r: share("30%"),
            one_minus_h: share("90%"),
            one_minus_k: share("1%"),
        })
        .with_duplicate(Chance { share: share("10%"), correlation: share("20%") })
        .with_corrupt(Chance::of(share("10%")))
        .with_reorder(Reorder { share: share("20%"), correlation: share("10%"), gap: 3 })
        .with_rate(rate("10mbit").rate.unwrap())
        .with_mtu(1_400)
        .with_cut(Cut::Reject)
}

#[test]
fn layers_report_exactly_what_they_were_given_the_oldest_first() {
    let asked = [all(), delay(1), Impairment::NONE, all().with_mtu(576)];
    let mut layers = layers(1, &asked);
    assert!(!layers.is_idle());
    assert_eq!(layers.effective().collect::<Vec<_>>(), [asked[0], asked[1], asked[3]]);
    assert_eq!(layers.gate(), Gate { cut: Some(Cut::Reject), mtu: Some(576) });
    layers.amend(1, delay(2));
    layers.remove(0);
    assert_eq!(layers.effective().collect::<Vec<_>>(), [delay(2), asked[3]]);
    [1, 2, 3].into_iter().for_each(|name| layers.remove(name));
    assert!(layers.is_idle() && layers.stages.is_empty());
    assert_eq!(layers.gate(), Gate::default());
}

#[test]
fn even_what_has_no_effect_is_reported_as_it_was_given() {
    for asked in [
        Impairment::NONE.with_distribution(Distribution::Pareto),
        Impairment::NONE.with_delay_correlation(share("5%")),
        Impairment::NONE.with_loss(Share::ZERO),
        Impairment::NONE.with_reorder(Reorder { gap: 5, ..Reorder::NEVER }),
        Impairment::NONE.with_corrupt(Chance { share: Share::ZERO, correlation: share("5%") }),
    ] {
        assert_eq!(layers(1, &[asked]).effective().collect::<Vec<_>>(), [asked]);
    }
}

#[test]
fn the_same_layers_have_the_same_fates_and_superframes_draw_like_single_packets() {
    let asked = [all(), all().with_jitter(Delay::from_ms(1))];
    let together = fates(&mut layers(7, &asked), 500);
    let mut one_by_one = layers(7, &asked);
    let apart: Vec<Fate> = (0..500).flat_map(|n| fates_from(&mut one_by_one, n, 1)).collect();
    assert_eq!(together, apart);
    assert_ne!(together, fates(&mut layers(8, &asked), 500));
}

#[test]
fn two_layers_of_one_kind_draw_independently_and_a_later_one_anew() {
    let lossy = Impairment::loss(share("20%"));
    let mut layers = layers(7, &[lossy]);
    let lost = |layers: &mut Layers| fates(layers, 200).iter().map(|f| f.end.is_some()).collect::<Vec<_>>();
    let first = lost(&mut layers);
    layers.remove(0);
    layers.add(1, lossy);
    assert_ne!(lost(&mut layers), first);
}

#[test]
fn one_kind_does_not_change_the_draws_of_another() {
    let lossy = Impairment::loss(share("20%"));
    let lost = |asked| fates(&mut layers(7, &[asked]), 1_000).iter().map(|f| f.end.is_some()).collect::<Vec<_>>();
    assert_eq!(lost(lossy), lost(lossy.with_jitter(Delay::from_ms(1)).with_delay(Delay::from_ms(1))));
    let jittered = delay(10).with_jitter(Delay::from_ms(1));
    let flights = |asked| fates(&mut layers(7, &[asked]), 1_000).iter().map(|f| f.flight_ns).collect::<Vec<_>>();
    assert_eq!(flights(jittered), flights(jittered.with_loss(share("20%"))));
}

#[test]
fn delays_add_losses_combine_and_rates_act_in_series() {
    let asked = [
        delay(10).with_loss(share("20%")).with_rate(rate("8mbit").rate.unwrap()),
        delay(5).with_loss(share("50%")),
        rate("4mbit"),
    ];
    let fates = fates(&mut layers(3, &asked), 100_000);
    let arrived: Vec<_> = fates.iter().filter(|fate| fate.end.is_none()).collect();
    let share = arrived.len() as f64 / fates.len() as f64;
    assert!((share - 0.8 * 0.5).abs() < 0.006, "{share}");
    assert!(arrived.iter().all(|fate| fate.flight_ns == 15_000_000));
    // 1,000 bytes take 1 ms and then 2 ms; only what is lost by no layer takes any.
    assert!((1..).zip(&arrived).all(|(n, fate)| fate.departs_ns == 1_000_000 + n * 2_000_000));
}

#[test]
fn a_packet_skips_the_delay_of_the_layer_that_says_so() {
    let skip = Reorder { share: Share::ALL, correlation: Share::ZERO, gap: 2 };
    let fates = fates(&mut layers(1, &[delay(10).with_reorder(skip), delay(1)]), 4);
    assert_eq!(fates.iter().map(|fate| fate.flight_ns / 1_000_000).collect::<Vec<_>>(), [11, 1, 11, 1]);
}

#[test]
fn amending_keeps_what_a_layer_remembers() {
    let bad = |p, r| {
        let loss = |text: &str| share(text);
        Impairment::NONE.with_loss_model(Loss::GilbertElliott {
            p: loss(p),
            r: loss(r),
            one_minus_h: Share::ALL,
            one_minus_k: Share::ZERO,
        })
    };
    let mut layers = layers(1, &[bad("100%", "0%").with_rate(rate("8mbit").rate.unwrap())]);
    assert!(fates(&mut layers, 3).iter().all(|fate| fate.end == Some(End::Lost)));
    layers.amend(0, bad("0%", "0%"));
    assert!(fates(&mut layers, 3).iter().all(|fate| fate.end == Some(End::Lost)), "still in the bad state");
    // A kind that was amended away and back goes on with its random numbers.
    let mut twice = self::layers(1, &[Impairment::loss(share("50%"))]);
    let before = fates(&mut twice, 64);
    twice.amend(0, Impairment::NONE);
    twice.amend(0, Impairment::loss(share("50%")));
    assert_ne!(fates(&mut twice, 64), before);
}

#[test]
fn a_backlog_survives_an_amendment_until_it_is_stretched() {
    let mut layers = layers(1, &[rate("8mbit")]);
    fates(&mut layers, 10);
    layers.amend(0, rate("16mbit"));
    assert_eq!(fates(&mut layers, 1)[0].departs_ns, 10_500_000);
}
