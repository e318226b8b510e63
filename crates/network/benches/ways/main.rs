//! What hosts that run already pay for being attached to, by each way that this machine has: TCP throughput of one stream,
//! processor time per Gbit, round trips of a small datagram; hosts that nobody is attached to beside each, by turns, in one
//! run. Read the ratios. Nothing is impaired, but for the last column, where 10 ms lie from the sender to the receiver.
//!
//! The hosts are network namespaces, joined by veth pairs and a bridge as a container runtime joins them. TCP's buffers are
//! made larger in all, since the usual ones would be what bounds a stream over 10 ms.
//!
//! Needs root, and `ip` (package iproute2); takes a minute and a half. Options after `cargo bench -p brownout-network --bench
//! ways --`: `--rounds 3`, `--seconds 3` (of bulk transfer in each).

// A program may end with a message; what it needs, it names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../tests/common/mod.rs"]
mod common;
// That bench also looks at more.
#[allow(dead_code)]
#[path = "../emulator_vs_veth/measure.rs"]
mod measure;
#[path = "../../tests/others/mod.rs"]
mod others;
#[path = "../rounds/mod.rs"]
mod rounds;

use std::{net::Ipv4Addr, time::Duration};

use brownout_network::{Impairment, LinkControl, Way};

use measure::Round;
use others::Others;
use rounds::{arguments, median};

/// Two of the hosts, to measure between.
trait Hosts: Sync {
    /// Runs `work` inside of host `host` (0 or 1).
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T;
    /// The address of that host.
    fn address(&self, host: usize) -> Ipv4Addr;
}

impl Hosts for Others {
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.containers[host].run(work)
    }

    fn address(&self, host: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 99, 0, 2 + host as u8)
    }
}

/// What one turn measured: without an impairment, and Gbit/s with 10 ms; not a number where nothing can be delayed.
struct Turn {
    plain: Round,
    delayed_gbit_per_s: f64,
}

fn main() {
    let (rounds, seconds) = arguments("ways");
    let arms: Vec<Option<Way>> = [None].into_iter().chain(others::ways().into_iter().map(Some)).collect();
    println!("round  way       TCP Gbit/s  CPU-s/Gbit  RTT p50 µs  RTT p99 µs  Gbit/s at 10 ms");
    let mut measured: Vec<Vec<Turn>> = arms.iter().map(|_| Vec::new()).collect();
    for number in 0..rounds {
        // Who begins changes from round to round, so that nobody always has the warmer machine.
        for turn in 0..arms.len() {
            let arm = (number + turn) % arms.len();
            let turn = measure(arms[arm], seconds);
            print(&format!("{:>5}  {:<8}", number + 1, name(arms[arm])), &turn);
            measured[arm].push(turn);
        }
    }
    println!("\nmedians of {rounds} rounds, and ÷ those of hosts that nobody is attached to");
    let medians = |turns: &[Turn]| {
        let median = |value: fn(&Turn) -> f64| median(turns.iter().map(value).collect());
        [
            median(|turn| turn.plain.gbit_per_s),
            median(|turn| turn.plain.machine_cpu_per_gbit),
            median(|turn| turn.plain.rtt_p50_us),
            median(|turn| turn.plain.rtt_p99_us),
            median(|turn| turn.delayed_gbit_per_s),
        ]
    };
    let unattached = medians(&measured[0]);
    for (arm, turns) in arms.iter().zip(&measured) {
        let medians = medians(turns);
        let shown: Vec<String> = medians
            .iter()
            .zip(unattached)
            .map(|(value, beside)| match (value.is_nan(), beside.is_nan()) {
                (true, _) => String::new(),
                (false, true) => format!("{value:>8.3}"),
                (false, false) => format!("{value:>8.3} ({:>5.2})", value / beside),
            })
            .collect();
        println!("       {:<8}  {}", name(*arm), shown.join("  "));
    }
}

/// On hosts that are made for it.
fn measure(way: Option<Way>, seconds: Duration) -> Turn {
    let others = Others::of(way.unwrap_or(Way::Forward));
    measure::widen_windows(&others);
    let network = way.map(|way| others.attach_by(way));
    let plain = measure::round(&others, seconds);
    let delayed_gbit_per_s = network.map_or(f64::NAN, |network| {
        let there = common::link(&network, others::CONTAINERS[0], others::CONTAINERS[1]);
        let delay = Impairment::delay("10ms".parse().expect("a delay"));
        let _guard = network.control().impair(&[there], &delay).expect("the emulator runs");
        measure::round(&others, seconds).gbit_per_s
    });
    Turn { plain, delayed_gbit_per_s }
}

fn name(way: Option<Way>) -> &'static str {
    way.map_or("none", Way::name)
}

fn print(head: &str, turn: &Turn) {
    let Round { gbit_per_s, machine_cpu_per_gbit, rtt_p50_us, rtt_p99_us, .. } = &turn.plain;
    let delayed = turn.delayed_gbit_per_s;
    let delayed = if delayed.is_nan() { "–".to_owned() } else { format!("{delayed:.2}") };
    println!(
        "{head}  {gbit_per_s:>10.2}  {machine_cpu_per_gbit:>10.3}  {rtt_p50_us:>10.1}  {rtt_p99_us:>10.1}  {delayed:>15}"
    );
}
