//! Impairments come and go: guards, several on one link, what is in flight, and what the emulator says of itself.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_network::{Impairment, ImpairmentGuard, Link, LinkControl, Loss, Network, NetworkError};
use brownout_probe::{ProbeSample, Probes};
use brownout_units::Delay;
use common::{PATIENCE, delays_ms, impair, lateness_ms, link, network, samples, udp_pair};

fn delay(ms: u64) -> Impairment {
    Impairment::delay(Delay::from_ms(ms))
}

/// Since when it is known to be in force.
fn in_force_ns(guard: &ImpairmentGuard) -> u64 {
    guard.change().at_ns + guard.change().error_ns
}

/// The shortest delay of 50 probes that were sent on `link` after `since_ns`, in ms.
///
/// Nothing makes a packet early, and of so many one gets through a busy machine in good time: it is judged by the
/// shortest, with room for what this very run shows of the machine.
fn assert_least(network: &Network, probes: &Probes, link: Link, since_ns: u64, asked_ms: f64) {
    const ROOM_MS: f64 = 10.0;
    let hit = |s: &ProbeSample| s.link == link && s.sent_ns > since_ns && s.delay_ns.is_some();
    let all = samples(probes, |all| all.iter().filter(|s| hit(s)).count() >= 50);
    let least = delays_ms(&all.into_iter().filter(hit).collect::<Vec<_>>(), link)[0];
    let lateness = lateness_ms(network, link);
    println!("asked {asked_ms} ms: least {least:.3} ms, released late by {lateness:.3} ms");
    assert!(least >= asked_ms, "{least} ms is less than {asked_ms} ms");
    assert!(least < asked_ms + ROOM_MS + lateness, "{least} ms is far from {asked_ms} ms; lateness {lateness} ms");
}

#[test]
fn guards_on_one_link_compose_and_heal_one_by_one_in_any_order() {
    let network = network(2);
    let control = network.control();
    let hit = link(&network, "h0", "h1");
    let probes = Probes::start(&network, Duration::from_millis(2)).unwrap();

    let first = impair(&network, &[hit], Impairment { loss: Loss::Independent("10%".parse().unwrap()), ..delay(20) });
    let second = impair(&network, &[hit], Impairment { loss: Loss::Independent("50%".parse().unwrap()), ..delay(40) });
    let [older, newer] = [(20, "10%"), (40, "50%")]
        .map(|(ms, loss)| Impairment { loss: Loss::Independent(loss.parse().unwrap()), ..delay(ms) });
    assert_eq!(control.effective(hit).unwrap(), [older, newer]);
    assert_least(&network, &probes, hit, in_force_ns(&second), 60.0);

    let healed = first.heal().unwrap();
    assert_eq!(control.effective(hit).unwrap(), [newer]);
    assert_least(&network, &probes, hit, healed.at_ns + healed.error_ns, 40.0);

    drop(second);
    assert_eq!(control.effective(hit).unwrap(), []);
    assert_least(&network, &probes, hit, monotonic_ns(), 0.0);
}

#[test]
fn a_change_is_in_force_when_it_says() {
    const DELAY_NS: u64 = 200_000_000;
    let network = network(2);
    let hit = link(&network, "h0", "h1");
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    let (sending, sent) = (AtomicBool::new(true), AtomicUsize::new(0));
    // Of what has arrived, when the newest was sent.
    let newest_ns = AtomicU64::new(0);
    let until = |is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end);
            thread::sleep(Duration::from_millis(1));
        }
    };
    // So many that a machine that holds up the receiver for a while makes but some of them late; and the last of them is
    // through, however long it was held.
    let wait_for_more = || {
        let enough = sent.load(Ordering::Relaxed) + 1_000;
        until(&|| sent.load(Ordering::Relaxed) >= enough);
        let now_ns = monotonic_ns();
        until(&|| newest_ns.load(Ordering::Relaxed) >= now_ns);
    };
    let (guard, healed, arrived) = thread::scope(|scope| {
        let sends = scope.spawn(|| {
            while sending.load(Ordering::Relaxed) {
                sender.send(&monotonic_ns().to_be_bytes());
                sent.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(200));
            }
        });
        let receives = scope.spawn(|| {
            let mut arrived = Vec::new();
            // Until nothing has come for longer than any was held.
            while let Some(datagram) = receiver.receive(Duration::from_secs(2)) {
                let sent_ns = u64::from_be_bytes(datagram.try_into().unwrap());
                arrived.push((sent_ns, monotonic_ns()));
                newest_ns.store(sent_ns, Ordering::Relaxed);
            }
            arrived
        });
        wait_for_more();
        let guard = impair(&network, &[hit], delay(DELAY_NS / 1_000_000));
        let in_force = guard.change();
        wait_for_more();
        let healed = guard.heal().unwrap();
        wait_for_more();
        sending.store(false, Ordering::Relaxed);
        sends.join().unwrap();
        (in_force, healed, receives.join().unwrap())
    });
    assert!(guard.at_ns + guard.error_ns <= healed.at_ns - healed.error_ns + 1);
    let (begins, ends) = (guard.at_ns + guard.error_ns, healed.at_ns - healed.error_ns);
    let hit: Vec<_> = arrived.iter().filter(|(sent, _)| *sent > begins && *sent < ends).collect();
    assert!(hit.len() > 50, "{} datagrams while it was in force", hit.len());
    for (sent, arrived) in hit {
        // Nothing makes it early but the healing.
        assert!(
            *arrived >= (sent + DELAY_NS).min(ends),
            "sent {} ns after it, held {} ns",
            sent - begins,
            arrived - sent
        );
    }
    // What was sent before it was asked for, and had time to enter, was not held. A machine that stands still makes some
    // late, but not most.
    let before: Vec<_> = arrived.iter().filter(|(sent, _)| *sent + 5_000_000 < guard.at_ns - guard.error_ns).collect();
    let late = before.iter().filter(|(sent, arrived)| arrived - sent >= DELAY_NS).count();
    assert!(before.len() > 20 && late * 2 < before.len(), "{late} of {} were held before it began", before.len());
    let after: Vec<_> = arrived.iter().filter(|(sent, _)| *sent > healed.at_ns + healed.error_ns).collect();
    let late = after.iter().filter(|(sent, arrived)| arrived - sent >= DELAY_NS).count();
    assert!(after.len() > 20 && late * 2 < after.len(), "{late} of {} were held after it had ended", after.len());
}

#[test]
fn a_link_that_becomes_faster_neither_reorders_nor_holds_up_nor_drops() {
    let network = network(2);
    let hit = link(&network, "h0", "h1");
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    let mut guard: Option<ImpairmentGuard> = None;
    let mut sent = 0u32;
    for ms in [100, 20, 60, 1, 30, 0] {
        let next = impair(&network, &[hit], delay(ms));
        // The old impairment goes once the new one is there: slower for a moment, then as asked.
        drop(guard.replace(next));
        for _ in 0..40 {
            sender.send(&sent.to_be_bytes());
            sent += 1;
            thread::sleep(Duration::from_micros(500));
        }
    }
    let mut arrived = Vec::new();
    while arrived.len() < sent as usize {
        let datagram = receiver.receive(PATIENCE).unwrap_or_else(|| panic!("one is missing: {arrived:?}"));
        arrived.push(u32::from_be_bytes(datagram.try_into().unwrap()));
    }
    assert_eq!(arrived, (0..sent).collect::<Vec<_>>());
}

#[test]
fn healing_releases_what_was_held() {
    let network = network(2);
    let hit = link(&network, "h0", "h1");
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    let guard = impair(&network, &[hit], delay(3_600_000));
    (0..10u8).for_each(|n| sender.send(&[n]));
    assert_eq!(receiver.receive(Duration::from_millis(100)), None);
    drop(guard);
    (10..20u8).for_each(|n| sender.send(&[n]));
    let arrived: Vec<_> = (0..20).map(|_| receiver.receive(PATIENCE).unwrap()[0]).collect();
    assert_eq!(arrived, (0..20).collect::<Vec<_>>());
}

#[test]
fn links_that_are_none_are_refused() {
    let (network, larger) = (network(2), network(3));
    let control = network.control();
    let stranger = link(&larger, "h0", "h2");
    let itself = Link { from: stranger.from, to: stranger.from };
    for links in [vec![stranger], vec![itself]] {
        assert!(matches!(control.impair(&links, &delay(1)), Err(NetworkError::NoSuchLink { .. })));
        assert!(matches!(control.effective(links[0]), Err(NetworkError::NoSuchLink { .. })));
    }
    assert!(matches!(control.impair(&[], &delay(1)), Err(NetworkError::NoLinks)));
}

#[test]
fn a_link_named_twice_is_impaired_once() {
    let network = network(2);
    let hit = link(&network, "h0", "h1");
    let _guard = impair(&network, &[hit, hit], delay(10));
    assert_eq!(network.control().effective(hit).unwrap(), [delay(10)]);
}

#[test]
fn a_network_that_has_ended_says_so() {
    let network = network(2);
    let (control, hit) = (network.control(), link(&network, "h0", "h1"));
    let guard = impair(&network, &[hit], delay(10));
    drop(network);
    assert!(matches!(control.impair(&[hit], &delay(1)), Err(NetworkError::EmulatorGone)));
    assert!(matches!(control.take_counters(), Err(NetworkError::EmulatorGone)));
    assert!(matches!(guard.heal(), Err(NetworkError::EmulatorGone)));
}
