//! What one host does to itself or to a link is no other pair's concern.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_network::INTERFACE;
use common::{Meddling, PATIENCE, counters, failures, link, meddle, network, quantile, udp_pair};

/// What the emulator reads of one host before others have their turn.
const BATCH: f64 = 64.0;

/// h2's interface fails, once this is done to it and h0 has sent it so many packets: it is told once, loses these and all others, and
/// h1 goes on.
fn assert_gone(meddling: Meddling, first: u64) {
    let network = network(3);
    let (to_gone, _gone) = udp_pair(&network, "h0", "h2");
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    assert_eq!(network.control().take_failures(), []);
    let before = monotonic_ns();
    meddle(&network, "h2", INTERFACE, meddling);
    (0..first).for_each(|_| to_gone.send(&[7]));
    let told = failures(&network, || {});
    assert_eq!((told.len(), told[0].host), (1, network.host("h2").unwrap().id()));
    assert!(told[0].at_ns >= before && !told[0].reason.is_empty(), "{told:?}");
    for n in 0..100u8 {
        to_gone.send(&[n]);
        sender.send(&[n]);
        assert_eq!(receiver.receive(PATIENCE), Some(vec![n]));
    }
    let lost = counters(&network, link(&network, "h0", "h2"));
    assert_eq!((lost.dropped_write, lost.delivered_packets), (first + 100, 0));
    assert_eq!(network.control().take_failures(), [], "each is told once");
}

#[test]
fn a_host_that_deletes_its_interface_is_gone_and_the_others_go_on() {
    assert_gone(Meddling::Delete, 0);
}

#[test]
fn a_host_that_takes_its_interface_down_is_gone_when_it_is_sent_something_and_the_others_go_on() {
    assert_gone(Meddling::TakeDown, 1);
}

#[test]
fn a_flood_between_two_hosts_leaves_the_packets_of_others_on_time() {
    const PACKETS: usize = 300;
    const PAUSE: Duration = Duration::from_millis(3);
    let network = network(4);
    let (flooder, drain) = udp_pair(&network, "h0", "h1");
    let (sender, receiver) = udp_pair(&network, "h2", "h3");
    let on = AtomicBool::new(true);
    let began = Instant::now();
    let rounds = thread::scope(|scope| {
        scope.spawn(|| {
            while on.load(Ordering::Relaxed) {
                flooder.send(&[0; 64]);
            }
        });
        scope.spawn(|| {
            while on.load(Ordering::Relaxed) {
                drain.receive(Duration::from_millis(10));
            }
        });
        let rounds: Vec<[f64; 2]> = (0..PACKETS)
            .map_while(|_| {
                let asleep = Instant::now();
                thread::sleep(PAUSE);
                let overslept = asleep.elapsed().saturating_sub(PAUSE).as_secs_f64() * 1e3;
                sender.send(&monotonic_ns().to_be_bytes());
                let sent = receiver.receive(PATIENCE)?;
                let delay = (monotonic_ns() - u64::from_be_bytes(sent.try_into().unwrap())) as f64 / 1e6;
                Some([overslept, delay])
            })
            .collect();
        on.store(false, Ordering::Relaxed);
        rounds
    });
    let flood = counters(&network, link(&network, "h0", "h1")).offered_packets;
    let each = began.elapsed().as_secs_f64() * 1e3 / flood as f64;
    assert_eq!(rounds.len(), PACKETS, "a packet of others is lost");
    let [overslept, delay] = [0, 1].map(|of| {
        let mut all: Vec<f64> = rounds.iter().map(|round| round[of]).collect();
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.5)
    });
    // To arrive is to be woken, as by the end of a sleep, and to wait for a few batches of the flood: not for what waits at its
    // sender, which is five times as much as this.
    let most = 3.0 * overslept + 30.0 * BATCH * each;
    println!(
        "beside {flood} packets of a flood, {each:.4} ms each: half of the others within {delay:.3} ms, at most {most:.3}; \
         half of the sleeps {overslept:.3} ms too long"
    );
    assert!(flood > 10_000);
    assert!(delay < most, "{delay} ms, not below {most} ms");
}
