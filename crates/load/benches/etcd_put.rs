//! What a put costs the client: the load on a real etcd of three members, beside what other clients took.
//!
//! `make bench` runs it, or `cargo bench -p brownout-load --bench etcd_put`; `-- --quick` measures briefly, and numbers
//! (`-- 1000`) choose rates. Members and client share this machine, so latencies are those of a busy one; the figure is
//! the CPU time of the load's thread, user and system. What others took was measured in the same way: open loop, one
//! thread, values of 100 bytes, all puts to the leader (`docs/benchmarks.md`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run says where")]

#[path = "../tests/real_etcd/mod.rs"]
mod real_etcd;

use std::{thread::sleep, time::Duration};

use brownout_load::{Arrivals, Balancing, Engine, EngineConfig, EtcdLoad, Histogram, Outcome, Pace, histogram};
use brownout_units::Rate;
use real_etcd::Etcd;

/// CPU µs per put of other clients, by rate, least and greatest of several runs: etcd 3.6.16, two cores, November 2026.
const OTHERS: [(f64, &str, f64, f64); 5] = [
    (1_000.0, "h2 on tokio", 81.0, 95.0),
    (1_000.0, "tonic", 108.0, 108.0),
    (1_000.0, "etcd-client 0.21.1", 97.0, 100.0),
    (8_000.0, "h2 on tokio", 15.0, 15.0),
    (8_000.0, "tonic", 21.0, 21.0),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (warm_up, window) = if arguments.iter().any(|one| one == "--quick") { (1, 3) } else { (3, 10) };
    let chosen: Vec<f64> = arguments.iter().filter_map(|one| one.parse().ok()).collect();
    let rates: Vec<f64> = if chosen.is_empty() { vec![1_000.0, 8_000.0] } else { chosen };
    let etcd = Etcd::start(3);
    println!("puts of 100 bytes to the leader of etcd {}, {window} s after {warm_up} s", etcd.version);
    println!(
        "{:>9} {:>11} {:>8} {:>8} {:>8} {:>14}  others' CPU µs/put",
        "asked/s", "answered/s", "CPU µs", "p50 ms", "p99 ms", "late p99 µs"
    );
    for rate in rates {
        measure(&etcd, rate, Duration::from_secs(warm_up), Duration::from_secs(window));
    }
}

fn measure(etcd: &Etcd, rate: f64, warm_up: Duration, window: Duration) {
    let load = EtcdLoad {
        prefix: "bench/".to_owned(),
        put: 1,
        range: 0,
        serializable: 0,
        txn: 0,
        population: 10_000,
        value_size: 100,
        watchers: 0,
    };
    let config = EngineConfig { balancing: Balancing::Leader, ..EngineConfig::new(etcd.coordinators()) };
    let engine = Engine::start_etcd_unless(config, load, &|| false).unwrap();
    let rate = Rate::per_second(rate).unwrap();
    engine.set_pace(Pace::Open { rate, arrivals: Arrivals::Constant }).unwrap();
    sleep(warm_up);
    drop(engine.drain());
    let (cpu, before) = (engine.cpu_ns(), engine.balance());
    sleep(window);
    let (used, after) = (engine.cpu_ns() - cpu, engine.balance());
    let puts = (after.answered_ok - before.answered_ok).max(1);
    let (mut response, mut lateness): (Histogram<u64>, Histogram<u64>) = (histogram(), histogram());
    for bucket in engine.drain() {
        let _ = lateness.add(&bucket.lateness);
        for series in bucket.series.iter().filter(|series| series.outcome == Outcome::Ok) {
            let _ = response.add(&series.response);
        }
    }
    let others: Vec<String> = OTHERS
        .iter()
        .filter(|(at, ..)| *at == rate.get())
        .map(|(_, name, least, most)| match least == most {
            true => format!("{name}: {least:.0}"),
            false => format!("{name}: {least:.0}..{most:.0}"),
        })
        .collect();
    let ms = |quantile: f64| response.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "{:>9.0} {:>11.0} {:>8.1} {:>8.2} {:>8.2} {:>14.0}  {}",
        rate.get(),
        puts as f64 / window.as_secs_f64(),
        used as f64 / 1e3 / puts as f64,
        ms(0.5),
        ms(0.99),
        lateness.value_at_quantile(0.99) as f64 / 1e3,
        others.join(", "),
    );
    let (_, balance) = engine.stop(Duration::from_secs(30));
    if balance.failed + balance.timed_out + balance.never_sent > 0 {
        println!(
            "          of {} puts {} failed, {} timed out, {} were never sent",
            balance.scheduled, balance.failed, balance.timed_out, balance.never_sent
        );
    }
}
