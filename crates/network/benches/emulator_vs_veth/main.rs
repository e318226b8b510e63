//! What a packet costs through the emulator, beside the kernel's own veth and bridge.
//!
//! Both grounds are made here, in network namespaces of their own, and measured in turn, in one
//! run: TCP throughput of one stream, processor time per Gbit, round trips of a small datagram.
//! Read the ratios; the absolute numbers are this machine's, at this moment.
//!
//! A clear link of the emulator takes a short cut: nothing is queued and nothing is cut up. So the
//! same is measured with a delay (every packet is queued) and with a little loss (GSO packets are
//! taken apart), on both ways; what these do to TCP itself is in their throughput.
//!
//! Then streams of small UDP packets: how late each is released, with four delays at three rates, beside the kernel's
//! netem where the kernel has it; how many packets a second pass; and what an idle emulator takes.
//!
//! Needs root, and `ip` and `tc` (package iproute2); takes three minutes. Options after `cargo bench -p brownout-network
//! --bench emulator_vs_veth --`: `--rounds 3`, `--seconds 3` (of bulk transfer per round; streams take two thirds of it),
//! `--default-scheduling` (as without root).

// A program may end with a message; what it needs, it names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod delays;
mod measure;
mod udp;
mod veth;

use std::time::Duration;

use brownout_network::{Host, HostSpec, Impairment, LinkControl, Network, NetworkSpec};

use measure::Round;
use veth::Veth;

/// Aim: the emulator's processor time per Gbit over the kernel path's.
const AIM: f64 = 1.5;
const CONGESTION_CONTROL: &str = "cubic";
/// A larger share of the machine taken by other programs than this, and the numbers say little.
const QUIET: f64 = 0.05;

/// A pair of hosts to measure between.
trait Ground: Sync {
    /// Runs `work` inside of host `host` (0 or 1).
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T;
    /// The address of that host.
    fn address(&self, host: usize) -> std::net::Ipv4Addr;
}

impl Ground for Network {
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts()[host].run(work).expect("a thread can enter a host that it made")
    }

    fn address(&self, host: usize) -> std::net::Ipv4Addr {
        Host::address(&self.hosts()[host])
    }
}

fn main() {
    let Arguments { rounds, seconds, realtime } = arguments();
    let host = |n| HostSpec::new(format!("h{n}"), [10, 77, 0, n].into());
    let emulator = Network::start(NetworkSpec {
        hosts: vec![host(1), host(2)],
        mtu: 1500,
        congestion_control: Some(CONGESTION_CONTROL.to_owned()),
        seed: 1,
        realtime,
    })
    .unwrap_or_else(|error| panic!("this bench needs root: {error}"));
    let veth = Veth::start(CONGESTION_CONTROL);

    let others = measure::others_share(Duration::from_secs(1));
    println!("emulator thread: {:?}; other programs take {:.0} % of this machine", emulator.realtime(), others * 100.0);
    transfers(&emulator, &veth, rounds, seconds);
    let lasts = seconds * 2 / 3;
    delays::release_errors(&emulator, &veth, lasts);
    delays::most_packets(&emulator, &veth, lasts);
    delays::idle(seconds);
    if others > QUIET {
        println!("\nwarning: the machine was not quiet; repeat before you quote these numbers");
    }
}

/// Bulk transfers and round trips on both grounds, by turns.
fn transfers(emulator: &Network, veth: &Veth, rounds: u32, seconds: Duration) {
    println!(
        "\nround  {:<20}  TCP Gbit/s  CPU-s/Gbit (machine)  CPU-s/Gbit (process)  RTT p50 µs  RTT p99 µs",
        "ground"
    );
    let delay = Impairment::delay("1ms".parse().expect("a delay"));
    let loss = Impairment::loss("0.1%".parse().expect("a share"));
    let arms = [
        ("veth", None),
        ("emulator", Some(Impairment::NONE)),
        ("emulator, delay 1 ms", Some(delay)),
        ("emulator, loss 0.1 %", Some(loss)),
    ];
    let mut measured = arms.map(|_| Vec::new());
    for number in 1..=rounds {
        // Who begins changes from round to round, so that nobody always has the warmer machine.
        for turn in 0..arms.len() {
            let arm = (number as usize + turn) % arms.len();
            let (name, impairment) = arms[arm];
            let round = match impairment {
                None => measure::round(veth, seconds),
                Some(Impairment::NONE) => measure::round(emulator, seconds),
                Some(impairment) => {
                    let guard = emulator.control().impair(&emulator.links(), &impairment);
                    let _guard = guard.expect("the emulator runs");
                    measure::round(emulator, seconds)
                }
            };
            measured[arm].push(print(number, name, round));
        }
    }

    println!(
        "\nmedian of {rounds} rounds          {}   emulator ÷ veth",
        arms.map(|(name, _)| format!("{name:>20}")).join(" ")
    );
    let row = |what: &str, value: fn(&Round) -> f64| {
        let medians = measured.each_ref().map(|rounds| median(rounds.iter().map(value).collect()));
        let ratio = medians[1] / medians[0];
        println!("{what:<26} {}   {ratio:>15.2}", medians.map(|median| format!("{median:>20.3}")).join(" "));
        ratio
    };
    row("TCP Gbit/s", |round| round.gbit_per_s);
    let ratio = row("CPU-s/Gbit (machine)", |round| round.machine_cpu_per_gbit);
    row("CPU-s/Gbit (process)", |round| round.process_cpu_per_gbit);
    row("RTT p50 µs", |round| round.rtt_p50_us);
    row("RTT p99 µs", |round| round.rtt_p99_us);
    let verdict = if ratio <= AIM { "met" } else { "missed" };
    println!("\naim: CPU-s/Gbit (machine) at most {AIM} × the kernel path's, on clear links: {verdict} ({ratio:.2})");
}

fn print(number: u32, ground: &str, round: Round) -> Round {
    println!(
        "{number:>5}  {ground:<20}  {:>10.2}  {:>20.3}  {:>20.3}  {:>10.1}  {:>10.1}",
        round.gbit_per_s, round.machine_cpu_per_gbit, round.process_cpu_per_gbit, round.rtt_p50_us, round.rtt_p99_us
    );
    round
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

struct Arguments {
    rounds: u32,
    /// Of bulk transfer in each round.
    seconds: Duration,
    realtime: bool,
}

fn arguments() -> Arguments {
    let mut parsed = Arguments { rounds: 3, seconds: Duration::from_secs(3), realtime: true };
    // Cargo itself adds --bench.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        if name == "--default-scheduling" {
            parsed.realtime = false;
            continue;
        }
        let mut number = || arguments.next()?.parse::<f64>().ok().filter(|value| (0.1..1e4).contains(value));
        match (name.as_str(), number()) {
            ("--rounds", Some(value)) => parsed.rounds = value.ceil() as u32,
            ("--seconds", Some(value)) => parsed.seconds = Duration::from_secs_f64(value),
            _ => {
                eprintln!("usage: emulator_vs_veth [--default-scheduling] [--rounds N] [--seconds S]");
                std::process::exit(2);
            }
        }
    }
    parsed
}
