//! How exactly delays are kept, how many packets a second pass, and what an idle emulator takes.

use std::{fs, thread, time::Duration};

use brownout_network::{Impairment, LinkControl, Network};
use brownout_units::Delay;
use hdrhistogram::Histogram;

use super::{
    least::Least,
    measure, sleeper,
    udp::{self, Stream},
    veth::Veth,
};

/// Aim: the 99th percentile of release errors, µs, with a real-time emulator.
const AIM_RELEASE_US: f64 = 50.0;
/// Aim: packets a second that pass with a delay of 10 ms.
const AIM_PPS: f64 = 400_000.0;
/// Aim: an idle emulator's share of one processor.
const AIM_IDLE: f64 = 0.001;
/// A stream has passed when no more is missing.
const MISSING: f64 = 0.001;

const DELAYS: [&str; 4] = ["0.1ms", "1ms", "10ms", "100ms"];
const RATES: [u32; 3] = [1_000, 10_000, 100_000];
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// A row per delay and rate: each packet's release error, by the emulator's own count, and what it took beyond the delay
/// from the sender to the receiving kernel's stamp; the same on the kernel's path, delayed by netem where there is one;
/// and how late a thread ran that only slept, as urgently and as often as the emulator has to wake.
pub fn release_errors(emulator: &Network, veth: &Veth, least: &Least, lasts: Duration) {
    println!("\nhow late, µs: p50 / p99 / p99.9 of 60-byte UDP packets");
    let [own, ours, theirs] = ["emulator: release error", "emulator: one way − delay", "veth + netem: one way − delay"];
    let [only, bare] = ["a thread that only sleeps", "the least, never asleep"];
    println!(
        "{:>8}  {:>8}  {own:>26}  {only:>26}  {bare:>26}  {ours:>28}  {theirs:>28}  missing",
        "delay", "packets/s"
    );
    let netem = veth.netem(Duration::from_millis(1));
    let (mut p99s, mut beside) = (Vec::new(), Vec::new());
    for delay in std::iter::once(None).chain(DELAYS.map(Some)) {
        let asked: Delay = delay.unwrap_or("0ms").parse().expect("a delay");
        for rate in RATES {
            let _guard = delay.map(|_| {
                let guard = emulator.control().impair(&emulator.links(), &Impairment::delay(asked));
                guard.expect("the emulator runs")
            });
            emulator.control().take_counters().expect("the emulator runs");
            let stream = udp::stream(emulator, rate, lasts, asked.duration());
            let counters = emulator.control().take_counters().expect("the emulator runs");
            let release = &counters[0].release_error;
            let sleeping = delay.map(|_| sleeper::lateness(udp::apart(rate), lasts, emulator.realtime()));
            let bare = delay.map(|_| least.lateness(rate, lasts, asked.duration(), emulator.realtime()));
            if let (Some(sleeping), Some(bare)) = (&sleeping, &bare) {
                p99s.push(p99_us(release));
                beside.push((rate, [sleeping, bare].map(|other| p99_us(release) / p99_us(other))));
            }
            let by_netem = match (delay, &netem) {
                (Some(_), Err(_)) => "–".to_owned(),
                (delay, _) => {
                    if delay.is_some() {
                        veth.netem(asked.duration()).expect("netem worked a moment ago");
                    } else {
                        veth.clear();
                    }
                    quantiles(&udp::stream(veth, rate, lasts, asked.duration()).beyond)
                }
            };
            let release = if delay.is_some() { quantiles(release) } else { "–".to_owned() };
            let [sleeping, bare] = [sleeping, bare].map(|late| late.as_ref().map_or("–".to_owned(), quantiles));
            println!(
                "{:>8}  {rate:>8}  {release:>26}  {sleeping:>26}  {bare:>26}  {:>28}  {by_netem:>28}  {:.2} %",
                delay.unwrap_or("none"),
                quantiles(&stream.beyond),
                stream.lost_share() * 100.0
            );
        }
    }
    if let Err(reason) = &netem {
        println!("no sch_netem in this kernel ({reason}): nothing to set beside the delays");
    }
    veth.clear();
    let kept = p99s.iter().filter(|late| **late <= AIM_RELEASE_US).count();
    println!(
        "aim: release error p99 at most {AIM_RELEASE_US} µs under SCHED_FIFO: {} (met in {kept} of {} streams)",
        verdict(kept == p99s.len()),
        p99s.len()
    );
    for rate in RATES {
        for (n, name) in [only, bare].iter().enumerate() {
            let ratios = beside.iter().filter(|(of, _)| *of == rate).map(|(_, ratios)| format!("{:.1}", ratios[n]));
            let ratios = ratios.collect::<Vec<_>>().join(", ");
            println!("that p99 ÷ the p99 of {name}, at {rate}/s by delay: {ratios}");
        }
    }
}

/// Raises the rate of 60-byte packets until more than one in a thousand is missing or the generator is at its end.
pub fn most_packets(emulator: &Network, veth: &Veth, lasts: Duration) {
    const STEPS: [u32; 8] = [100_000, 200_000, 300_000, 350_000, 400_000, 450_000, 500_000, 600_000];
    println!("\nmost packets a second of which at most one in 1,000 is missing (60 bytes, one way)");
    println!("on veth it is the sender's own thread that carries a packet all the way; here it is the emulator's");
    let climb = |name: &str, measure: &dyn Fn(u32) -> Stream| -> f64 {
        let (mut best, mut end) = (0.0f64, "all steps passed".to_owned());
        for rate in STEPS {
            let busy = emulator_cpu();
            let stream = measure(rate);
            let busy = (emulator_cpu() - busy) / stream.took.as_secs_f64();
            if stream.lost_share() > MISSING {
                end = format!("at {rate}: {:.1} % missing", stream.lost_share() * 100.0);
                break;
            }
            best = best.max(stream.received_per_s());
            if stream.sent_per_s() < f64::from(rate) * 0.98 {
                end = format!("the generator could send no more than {:.0}", stream.sent_per_s());
                break;
            }
            println!("{name:<24} {rate:>8}/s passed; emulator thread {:>3.0} % of one core", busy * 100.0);
        }
        println!("{name:<24} {best:>8.0}/s; {end}");
        best
    };
    let delay: Delay = "10ms".parse().expect("a delay");
    climb("veth + bridge", &|rate| udp::stream(veth, rate, lasts, Duration::ZERO));
    climb("emulator", &|rate| udp::stream(emulator, rate, lasts, Duration::ZERO));
    let guard = emulator.control().impair(&emulator.links(), &Impairment::delay(delay)).expect("the emulator runs");
    let most = climb("emulator, delay 10 ms", &|rate| udp::stream(emulator, rate, lasts, delay.duration()));
    drop(guard);
    // A paced sender keeps its rate to less than a thousandth.
    let is_met = most >= 0.999 * AIM_PPS;
    println!("aim: at least {AIM_PPS}/s with a delay of 10 ms on one core: {} ({most:.0})", verdict(is_met));
}

/// What the emulator's thread takes of one processor while nobody sends.
pub fn idle(time: Duration) {
    let before = emulator_cpu();
    thread::sleep(time);
    let share = (emulator_cpu() - before) / time.as_secs_f64();
    println!("\nidle emulator: {:.3} % of one core; aim: 0.0 %: {}", share * 100.0, verdict(share < AIM_IDLE));
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn p99_us(histogram: &Histogram<u64>) -> f64 {
    histogram.value_at_quantile(0.99) as f64 / 1e3
}

/// In µs.
fn quantiles(histogram: &Histogram<u64>) -> String {
    QUANTILES.map(|share| format!("{:.0}", histogram.value_at_quantile(share) as f64 / 1e3)).join(" / ")
}

/// Seconds that the emulator's thread has run (Linux, Documentation/scheduler/sched-stats.rst).
fn emulator_cpu() -> f64 {
    let text = fs::read_to_string(measure::emulator_task().expect("the emulator runs").join("schedstat"))
        .expect("this kernel keeps schedstats");
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number of nanoseconds") / 1e9
}
