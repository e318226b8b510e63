//! When a network is dropped, nothing of it stays. Alone in its program, because it counts what the
//! whole process holds.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    time::{Duration, Instant},
};

use brownout_network::{Impairment, Network, NetworkSpec};
use brownout_probe::Probes;
use brownout_units::Delay;

fn count(directory: &str) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_dropped_network_leaves_no_descriptor_and_no_thread() {
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    for _ in 0..3 {
        let network = common::network(4);
        let probes = Probes::start(&network, Duration::from_millis(10)).unwrap();
        let links = network.links();
        let guard = common::impair(&network, &links, Impairment::delay(Delay::from_secs(1)));
        std::thread::sleep(Duration::from_millis(100));
        drop((guard, probes, network));
        let refused = NetworkSpec { congestion_control: Some("nosuch".into()), ..common::spec(3) };
        assert!(Network::start(refused).is_err());
    }
    // A thread that has been joined stays listed for a moment.
    let end = Instant::now() + common::PATIENCE;
    while (count("/proc/self/fd"), count("/proc/self/task")) != before {
        assert!(Instant::now() < end, "{} {} {before:?}", count("/proc/self/fd"), count("/proc/self/task"));
        std::thread::sleep(Duration::from_millis(10));
    }
}
