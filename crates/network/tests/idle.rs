//! What links cost that nothing happens on.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use brownout_network::{Impairment, LinkControl, Loss};
use brownout_units::Delay;
use common::{impair, network, quantile};

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

/// Nanoseconds that the thread of this name has run: the first number of its schedstat.
fn ran_ns(thread: &str) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let is_meant =
        |task: &std::path::PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread);
    let of_task = |task: std::path::PathBuf| {
        let text = fs::read_to_string(task.join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    tasks.filter(is_meant).map(of_task).sum()
}

#[test]
fn an_idle_network_takes_no_time_impaired_or_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let network = network(10);
    let asked =
        Impairment { delay: Delay::from_ms(10), loss: Loss::Independent("1%".parse().unwrap()), ..Impairment::NONE };
    let _guard = impair(&network, &network.links(), asked);
    // Beside one that looks a hundred times a second, at whatever that takes on this machine.
    let names = ["emulator", "looker"];
    let seconds: Vec<[f64; 2]> = thread::scope(|scope| {
        let (_stop, stopped) = mpsc::channel::<()>();
        let look = move || {
            while stopped.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {}
        };
        thread::Builder::new().name(names[1].to_owned()).spawn_scoped(scope, look).unwrap();
        let second = || {
            let before = names.map(ran_ns);
            thread::sleep(Duration::from_secs(1));
            let after = names.map(ran_ns);
            [0, 1].map(|of| (after[of] - before[of]) as f64 / 1e6)
        };
        (0..7).map(|_| second()).collect()
    });
    println!("ms of processor time a second, of {names:?}: {seconds:.3?}");
    let [emulator, looker] = [0, 1].map(|of| {
        let mut all: Vec<f64> = seconds.iter().map(|second| second[of]).collect();
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.5)
    });
    // Kernels announce their new addresses for a while: that is in a few of the seconds.
    assert!(emulator < looker, "{emulator} ms a second, and {looker} ms to look a hundred times");
}
