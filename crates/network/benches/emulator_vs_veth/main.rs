//! What a packet costs through the emulator, beside the kernel's own veth and bridge.
//!
//! Both grounds are made here, in network namespaces of their own, and measured in turn, in one
//! run: TCP throughput of one stream, processor time per Gbit, round trips of a small datagram.
//! Read the ratios; the absolute numbers are this machine's, at this moment. TCP's buffers are made larger on both grounds,
//! since the usual ones would be what bounds a stream over 1 ms.
//!
//! A clear link of the emulator takes a short cut: nothing is queued and nothing is cut up. So the
//! same is measured with a delay (every packet is queued) and with a little loss (GSO packets are
//! taken apart), on both ways; what these do to TCP itself is in their throughput.
//!
//! Then streams of small UDP packets: how late each is released, with four delays at three rates, beside the kernel's
//! netem where the kernel has it, and beside a thread that only sleeps; how many packets a second pass; and what an idle
//! emulator takes.
//!
//! # Where the processor time goes
//! Per Gbit with a delay of 1 ms, the emulator's own code takes 5 to 12 % of its thread's time (the bench prints it); the kernel
//! takes the rest for it. veth hands a packet over by reference: the sender's copy into the kernel and the receiver's copy
//! out of it are the only ones. A TUN copies it out in `read` and in again in `write`, so that what a byte costs is paid
//! twice, and the receiving host's protocols run within that `write`. Already on clear links, where the thread reads,
//! writes and does nothing else, the kernel's part of that thread alone took 1.6 to 1.7 × what the whole path through veth took.
//! So 1.3 × cannot be met here by anything that reads and writes TUNs. The ratio is smaller where caches are cold or system
//! calls dear, since veth pays for these, too.
//!
//! # How late a release is
//! A packet is released late by three things. First, the thread has to wake. It sleeps in `epoll_pwait2`, whose timer has no
//! slack for a real-time thread; how late it runs then is up to the machine: on a virtual one the hypervisor has to deliver
//! the timer's interrupt, to a processor that may sleep (`crates/machine/benches/idle.rs`; a run keeps processors awake where
//! the kernel lets it, this bench does not). The thread asks to be woken earlier, by what waking has cost so far, and spends
//! the rest looking (`reactor/pace.rs`): 60 µs at most, and so that three of four wake-ups are in time. The p99 is among
//! the others. Second, what is due at the same time leaves one after the other, and the receiving host's protocols run
//! within each write. Third, while frames are read, releases wait for up to 5 µs.
//!
//! The first part is the machine's. So beside each stream another thread, as urgent, only sleeps until one absolute deadline
//! after the other, as often as the stream's packets come. The second is that of all that write TUNs. So the same stream also
//! passes *the least* that can carry it (`least.rs`), a thread that reads a TUN, waits, and writes another, never sleeps and
//! decides nothing. Where both miss the aim, as virtual machines of two processors mostly do at 100,000 packets/s, no emulator
//! can meet it.
//!
//! # What was tried
//! Side by side in one process on two shared processors, by turns, with wide TCP windows; medians of 4 to 7 rounds,
//! relative to the emulator as it was. Other programs kept the machine busy: within an arm, CPU per Gbit scattered from −20 %
//! to +25 % (a thread per receiving host: −36 % to +14 %) and packets per second by ± 5 %; smaller differences are none.
//!
//! | tried | CPU per Gbit, 1 ms | most packets/s, 10 ms | why it is not kept |
//! |---|---|---|---|
//! | `IFF_NAPI` on the TUNs | 1.01 | 0.99 | the kernel merges into GSO packets already; nothing to gain |
//! | RPS on the TUNs (all processors) | 1.17 | 0.98 (0.63 at worst) | an interrupt between processors per packet, and no processor is free |
//! | a read in two parts (`readv`: 2 KiB, tail), frames kept where they were read | 1.08 | CPU per packet 1.01 | the copy that it saves is 0.1 % (small packets: 0.8 %) of the samples: frames that fill a buffer are not copied anyhow |
//! | io_uring, fixed files, batches of up to 32 reads and 128 writes | 1.06 | 1.11 to 1.17 | see below |
//! | – its writes only | – | 1.01 | |
//! | – its reads only | – | 1.08 to 1.09 | |
//! | a thread per receiving host | 1.25 | 1.00 | two threads and two programs share two processors |
//! | 64 KiB buffers on huge pages | 1.05 | – | no difference |
//! | sleeping instead of looking just before a release | 1.02 | 1.01 | releases become later, and nothing cheaper: a wake-up costs what looking does |
//! | looking for what is due every 20 µs while reading, not after every frame | – | 1.02 | every 5 µs is **kept**: see below |
//!
//! Of being woken earlier yet, p99 of release errors over that of a thread that only sleeps, with four delays, in two runs of 1.3 s
//! a stream each, by turns with the emulator as it is, the machine quiet:
//!
//! | lead | 1,000/s | 10,000/s | 100,000/s | streams within 50 µs | why it is not kept |
//! |---|---|---|---|---|---|
//! | 60 µs at most, three of four in time | 0.5 to 2.1 | 1.0 to 3.0 | 2.3 to 16.8 | 4 and 10 of 12 | **kept** |
//! | 200 µs at most, 60 of 61 in time | 0.1 to 1.4 | 0.8 to 12.2 | 3.1 to 45.7 | 8 and 7 of 12 | halves what few packets wait, and helps no others; it looks for up to 0.2 ms before each release, on a processor that the databases need |
//!
//! Of looking for what is due more often while frames are read, 100,000 packets/s with 1 ms, twelve streams each, by turns:
//!
//! | every | p50, µs | p99, median of twelve, µs | of one processor |
//! |---|---|---|---|
//! | 20 µs | 26 | 145 | 83 % |
//! | 5 µs | 22 | 110 | 82 %, **kept** |
//! | frame | 19 | 108 | 81 % |
//!
//! With two hosts, each TUN has one receiver, so that a thread per receiving host needs no multi-queue TUN.
//!
//! io_uring is worth having for small packets alone, from 500,000 a second on. But Docker's default seccomp profile and the
//! sysctl `kernel.io_uring_disabled` refuse it, so there would be two packet paths, the one that more people run being
//! tested less, and one time stamp for a batch of packets. (Its reads need `RWF_NOWAIT`: on a TUN, `O_NONBLOCK` alone makes
//! them wait.)
//!
//! Needs root, and `ip` and `tc` (package iproute2); takes some four minutes. Options after `cargo bench -p brownout-network
//! --bench emulator_vs_veth --`: `--rounds 3`, `--seconds 3` (of bulk transfer per round; streams take two thirds of it),
//! `--default-scheduling` (as without root).

// A program may end with a message; what it needs, it names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod delays;
mod least;
mod measure;
mod namespace;
mod sleeper;
mod udp;
mod veth;

use std::time::Duration;

use brownout_network::{Host, HostSpec, Impairment, LinkControl, Loss, Network, NetworkSpec};

use least::Least;
use measure::Round;
use veth::Veth;

/// Aim: the emulator's processor time per Gbit over the kernel path's, with a delay of 1 ms.
const AIM: f64 = 1.3;
/// Aim: what passes meanwhile, in Gbit/s.
const AIM_GBIT: f64 = 20.0;
const CONGESTION_CONTROL: &str = "cubic";
/// A larger share of the machine taken by other programs than this, and the numbers say little.
const QUIET: f64 = 0.05;

/// A pair of hosts to measure between.
trait Hosts: Sync {
    /// Runs `work` inside of host `host` (0 or 1).
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T;
    /// The address of that host.
    fn address(&self, host: usize) -> std::net::Ipv4Addr;
}

impl Hosts for Network {
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
        overlay: None,
    })
    .unwrap_or_else(|error| panic!("this bench needs root: {error}"));
    let veth = Veth::start(CONGESTION_CONTROL);
    measure::widen_windows(&emulator);
    measure::widen_windows(&veth);

    let others = measure::others_share(Duration::from_secs(1));
    println!("emulator thread: {:?}; other programs take {:.0} % of this machine", emulator.realtime(), others * 100.0);
    transfers(&emulator, &veth, rounds, seconds);
    let lasts = seconds * 2 / 3;
    delays::release_errors(&emulator, &veth, &Least::start(), lasts);
    delays::most_packets(&emulator, &veth, lasts);
    delays::idle(seconds);
    if others > QUIET {
        println!("\nwarning: the machine was not quiet; repeat before you quote these numbers");
    }
}

/// Bulk transfers and round trips on both networks, by turns.
fn transfers(emulator: &Network, veth: &Veth, rounds: u32, seconds: Duration) {
    println!(
        "\nround  {:<20}  TCP Gbit/s  CPU-s/Gbit (machine)  CPU-s/Gbit (process)  RTT p50 µs  RTT p99 µs",
        "network"
    );
    let delay = Impairment::delay("1ms".parse().expect("a delay"));
    let loss = Impairment { loss: Loss::Independent("0.1%".parse().expect("a share")), ..Impairment::NONE };
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

    println!("\nmedian of {rounds} rounds                 {}", arms.map(|(name, _)| format!("{name:>20}")).join(" "));
    let row = |what: &str, value: fn(&Round) -> f64| {
        let medians = measured.each_ref().map(|rounds| median(rounds.iter().map(value).collect()));
        println!("{what:<33} {}", medians.map(|median| format!("{median:>20.3}")).join(" "));
        medians
    };
    let gbit = row("TCP Gbit/s", |round| round.gbit_per_s);
    let machine = row("CPU-s/Gbit (machine)", |round| round.machine_cpu_per_gbit);
    println!("{:<33} {}", "  ÷ veth", machine.map(|cpu| format!("{:>20.2}", cpu / machine[0])).join(" "));
    row("CPU-s/Gbit (process)", |round| round.process_cpu_per_gbit);
    row("  emulator's thread, own code", |round| round.emulator_user_cpu_per_gbit);
    row("  emulator's thread, in the kernel", |round| round.emulator_kernel_cpu_per_gbit);
    row("RTT p50 µs", |round| round.rtt_p50_us);
    row("RTT p99 µs", |round| round.rtt_p99_us);
    let ratio = machine[2] / machine[0];
    let verdict = if ratio <= AIM && gbit[2] >= AIM_GBIT { "met" } else { "missed" };
    println!(
        "\naim: with a delay of 1 ms, CPU-s/Gbit (machine) at most {AIM} × the kernel path's at {AIM_GBIT} Gbit/s: {verdict} \
         ({ratio:.2} at {:.1})",
        gbit[2]
    );
}

fn print(number: u32, network: &str, round: Round) -> Round {
    println!(
        "{number:>5}  {network:<20}  {:>10.2}  {:>20.3}  {:>20.3}  {:>10.1}  {:>10.1}",
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
