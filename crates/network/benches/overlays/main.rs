//! What overlays cost on emulated links: TCP throughput of one stream, processor time per Gbit, round trips of a small
//! datagram; bare links beside each overlay, by turns, in one run. Read the ratios.
//!
//! The aims are of a machine of two processors with Linux 6.18, on which, in November 2026, bare links passed 36 to 44 Gbit/s:
//! VXLAN in GSO packets 5 Gbit/s (1.0 packet by packet), WireGuard with its own segmentation 3 Gbit/s (0.86 packet by packet,
//! 0.52 with boringtun-cli, 0.31 with wireguard-go 20220316). On other machines they are what to look at first.
//!
//! Needs root, and OpenVPN for the last arm; takes a minute. Options after `cargo bench -p brownout-network --bench overlays
//! --`: `--rounds 3`, `--seconds 3` (of bulk transfer in each round).

// A program may end with a message; what it needs, it names.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../rounds/mod.rs"]
mod rounds;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_network::{
    Host, HostSpec, Network, NetworkSpec,
    overlay::{Overlay, openvpn_program},
};

use rounds::{arguments, median};

/// Gbit/s of one stream.
const AIMS: [(Overlay, f64); 2] = [(Overlay::Vxlan, 5.0), (Overlay::Wireguard, 3.0)];
/// A datagram whose answer takes longer was lost.
const LOST_AFTER: Duration = Duration::from_millis(200);
/// Clock ticks of `/proc/PID/stat` (sysconf(_SC_CLK_TCK) is 100 on every Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// What one turn measured.
#[derive(Clone, Copy)]
struct Round {
    gbit_per_s: f64,
    /// Seconds of all processors together, but for other programs: of this process and of the overlay's own.
    cpu_per_gbit: f64,
    rtt_p50_us: f64,
    rtt_p99_us: f64,
}

fn main() {
    let (rounds, seconds) = arguments("overlays");
    let overlays = Overlay::ALL.into_iter().filter(|one| *one != Overlay::Openvpn || openvpn_program().is_some());
    let arms: Vec<Option<Overlay>> = [None].into_iter().chain(overlays.map(Some)).collect();
    println!("round  network            TCP Gbit/s  CPU-s/Gbit  RTT p50 µs  RTT p99 µs");
    let mut measured: Vec<Vec<Round>> = arms.iter().map(|_| Vec::new()).collect();
    for number in 0..rounds {
        // Who begins changes from round to round, so that nobody always has the warmer machine.
        for turn in 0..arms.len() {
            let arm = (number + turn) % arms.len();
            let round = measure(arms[arm], seconds);
            print(&format!("{:>5}  {:<16}", number + 1, name(arms[arm])), round);
            measured[arm].push(round);
        }
    }
    println!("\nmedians of {rounds} rounds");
    for (arm, rounds) in arms.iter().zip(&measured) {
        let median = |value: fn(&Round) -> f64| median(rounds.iter().map(value).collect());
        let round = Round {
            gbit_per_s: median(|round| round.gbit_per_s),
            cpu_per_gbit: median(|round| round.cpu_per_gbit),
            rtt_p50_us: median(|round| round.rtt_p50_us),
            rtt_p99_us: median(|round| round.rtt_p99_us),
        };
        print(&format!("       {:<16}", name(*arm)), round);
        if let Some((_, aim)) = AIMS.iter().find(|(overlay, _)| Some(*overlay) == *arm) {
            let verdict = if round.gbit_per_s >= *aim { "met" } else { "missed" };
            println!("       aim: {aim} Gbit/s: {verdict}");
        }
    }
}

fn name(overlay: Option<Overlay>) -> String {
    overlay.map_or_else(|| "bare".to_owned(), |overlay| overlay.to_string())
}

fn print(what: &str, round: Round) {
    println!(
        "{what}  {:>11.2}  {:>10.3}  {:>10.1}  {:>10.1}",
        round.gbit_per_s, round.cpu_per_gbit, round.rtt_p50_us, round.rtt_p99_us
    );
}

fn measure(overlay: Option<Overlay>, seconds: Duration) -> Round {
    let host = |n| HostSpec::new(format!("h{n}"), [10, 77, 0, n].into());
    let network = Network::start(NetworkSpec {
        hosts: vec![host(1), host(2)],
        mtu: 1500,
        congestion_control: Some("cubic".to_owned()),
        seed: 1,
        realtime: true,
        overlay,
    })
    .unwrap_or_else(|error| panic!("this bench needs root: {error}"));
    let processes = network.overlay().map(|overlay| overlay.processes().to_vec()).unwrap_or_default();
    let [client, server] = [&network.hosts()[0], &network.hosts()[1]];
    let (gbit_per_s, cpu_per_gbit) = bulk(client, server, &processes, seconds);
    let (rtt_p50_us, rtt_p99_us) = ping(client, server, Duration::from_secs(1));
    Round { gbit_per_s, cpu_per_gbit, rtt_p50_us, rtt_p99_us }
}

/// One TCP stream at full speed: Gbit/s, and CPU seconds per Gbit.
fn bulk(client: &Host, server: &Host, processes: &[u32], seconds: Duration) -> (f64, f64) {
    let listener = server.run(|| TcpListener::bind((server.service(), 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let (received, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let receiver = thread::spawn({
        let received = Arc::clone(&received);
        move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 256 << 10];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        }
    });
    let mut stream = client.run(|| TcpStream::connect(target)).unwrap().unwrap();
    let sender = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let block = vec![7; 128 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&block).unwrap();
            }
        }
    });
    thread::sleep(Duration::from_millis(500));
    let look = || (Instant::now(), received.load(Ordering::Relaxed), cpu_seconds(processes));
    let before = look();
    thread::sleep(seconds);
    let after = look();
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    receiver.join().unwrap();
    let gbit = (after.1 - before.1) as f64 * 8.0 / 1e9;
    (gbit / (after.0 - before.0).as_secs_f64(), (after.2 - before.2) / gbit)
}

/// CPU time that this process and some others have used.
fn cpu_seconds(processes: &[u32]) -> f64 {
    let of = |process: &str| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        // From the third field on: utime and stime are the 14th and the 15th.
        let ticks = rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
        ticks.sum::<f64>() / TICKS_PER_SECOND
    };
    of("self") + processes.iter().map(|process| of(&process.to_string())).sum::<f64>()
}

/// Round trips of a 64-byte datagram between two waiting threads: median and 99th percentile, µs.
fn ping(client: &Host, server: &Host, time: Duration) -> (f64, f64) {
    let socket = |host: &Host| {
        let socket = host.run(|| UdpSocket::bind((host.service(), 0))).unwrap().unwrap();
        socket.set_read_timeout(Some(LOST_AFTER)).unwrap();
        socket
    };
    let (asking, answering) = (socket(client), socket(server));
    asking.connect(answering.local_addr().unwrap()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let echo = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut buffer = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, from)) = answering.recv_from(&mut buffer) {
                    answering.send_to(&buffer[..length], from).unwrap();
                }
            }
        }
    });
    let (mut trips, mut buffer, end) = (Vec::new(), [0; 64], Instant::now() + time);
    while Instant::now() < end {
        let sent = Instant::now();
        asking.send(&[1; 64]).unwrap();
        if asking.recv(&mut buffer).is_ok() {
            trips.push(sent.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    stop.store(true, Ordering::Relaxed);
    echo.join().unwrap();
    trips.sort_by(f64::total_cmp);
    assert!(!trips.is_empty(), "no answer came");
    let at = |share: f64| trips[((trips.len() - 1) as f64 * share) as usize];
    (at(0.5), at(0.99))
}
