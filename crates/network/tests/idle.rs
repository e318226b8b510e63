//! What links cost that nothing happens on.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    sync::{Mutex, PoisonError},
};

use brownout_network::{Impairment, LinkControl, Loss};
use brownout_units::Delay;
use common::{impair, network};

/// These tests judge the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Memory of this process that is resident, in kB.
fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn two_thousand_idle_links_cost_little_memory_impaired_or_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = resident_kb();
    let network = network(50);
    let counters = network.control().take_counters().unwrap();
    assert_eq!(counters.len(), 2_450);
    drop(counters);
    let clear = resident_kb();
    let guards: Vec<_> = (0..3)
        .map(|n| {
            impair(
                &network,
                &network.links(),
                Impairment { delay: Delay::from_ms(n), jitter: Delay::from_ms(n), ..Impairment::NONE },
            )
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

/// Nanoseconds that the emulator's thread has run: the first number of its schedstat.
fn ran_ns() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let is_emulator =
        |task: &std::path::PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "emulator");
    let of_task = |task: std::path::PathBuf| {
        let text = fs::read_to_string(task.join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    tasks.filter(is_emulator).map(of_task).sum()
}

#[test]
fn an_idle_network_takes_no_time_impaired_or_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let network = network(10);
    let asked =
        Impairment { delay: Delay::from_ms(10), loss: Loss::Independent("1%".parse().unwrap()), ..Impairment::NONE };
    let _guard = impair(&network, &network.links(), asked);
    // Kernels announce their new addresses for a while; a thread that looks all the time would run all the time.
    let second = || {
        let before = ran_ns();
        std::thread::sleep(std::time::Duration::from_secs(1));
        (ran_ns() - before) as f64 / 1e6
    };
    let least = (0..3).map(|_| second()).fold(f64::MAX, f64::min);
    println!("{least:.3} ms of processor time in the quietest of three seconds");
    assert!(least < 5.0, "{least} ms a second");
}
