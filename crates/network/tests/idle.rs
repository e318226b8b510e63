//! What links cost that nothing happens on.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use brownout_network::{Impairment, LinkControl};
use brownout_units::Delay;
use common::{impair, network};

/// Memory of this process that is resident, in kB.
fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn two_thousand_idle_links_cost_little_memory_impaired_or_not() {
    let before = resident_kb();
    let network = network(50);
    let counters = network.control().take_counters().unwrap();
    assert_eq!(counters.len(), 2_450);
    drop(counters);
    let clear = resident_kb();
    let guards: Vec<_> = (0..3)
        .map(|n| {
            impair(&network, &network.links(), Impairment::delay(Delay::from_ms(n)).with_jitter(Delay::from_ms(n)))
        })
        .collect();
    let impaired = resident_kb();
    let [clear_kb, impaired_kb] =
        [clear.saturating_sub(before), impaired.saturating_sub(clear)].map(|kb| kb as f64 / 2_450.0);
    println!("{clear_kb:.2} kB for each of 2,450 links, {impaired_kb:.2} kB more for three impairments on each");
    // Two histograms of three digits alone would be 32 kB.
    assert!(clear_kb < 8.0, "{clear_kb} kB for each idle link");
    assert!(impaired_kb < 4.0, "{impaired_kb} kB for three impairments on each");
    drop(guards);
    assert!(network.links().iter().all(|link| network.control().effective(*link).unwrap().is_empty()));
}
