//! What a call of a shifted clock costs, beside the machine's own.
//!
//! This program runs itself with and without the preloaded object, in turns; read the ratios. Options after
//! `cargo bench -p brownout-clock --`: `--rounds 7`.

// A program may end with a message.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{process::Command, time::Instant};

use brownout_clock::{HostClock, write_object};

/// Set for the runs that measure.
const VARIABLE: &str = "BROWNOUT_CLOCK_BENCH";
const CALLS: u32 = 2_000_000;
const NAMES: [&str; 3] = ["clock_gettime(CLOCK_REALTIME)", "gettimeofday", "clock_gettime(CLOCK_MONOTONIC)"];

fn main() {
    if std::env::var_os(VARIABLE).is_some() {
        println!("{}", measured().map(|ns| ns.to_string()).join(" "));
        return;
    }
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = arguments.iter().position(|argument| argument == "--rounds");
    let rounds = rounds.map_or(7, |at| arguments[at + 1].parse().expect("--rounds takes a number"));

    let directory = tempfile::tempdir().unwrap();
    let object = write_object(directory.path()).unwrap();
    let clock = HostClock::create(directory.path().join("clock")).unwrap();
    clock.shift(3_600_000_000_000, 50_000).unwrap();

    let mut plain: [Vec<f64>; 3] = Default::default();
    let mut shifted: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        for (is_shifted, all) in [(false, &mut plain), (true, &mut shifted)] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.env(VARIABLE, "1");
            if is_shifted {
                command.envs(clock.environment(&object));
            }
            let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
            for (values, word) in all.iter_mut().zip(output.split_whitespace()) {
                values.push(word.parse().unwrap());
            }
        }
    }
    println!("{:32} {:>10} {:>10} {:>7}   medians of {rounds} rounds", "ns a call", "plain", "shifted", "ratio");
    for ((name, plain), shifted) in NAMES.iter().zip(plain).zip(shifted) {
        let (plain, shifted) = (median(plain), median(shifted));
        println!("{name:32} {plain:10.1} {shifted:10.1} {:7.2}", shifted / plain);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measured() -> [f64; 3] {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut of_day = libc::timeval { tv_sec: 0, tv_usec: 0 };
    [
        per_call(|| unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) }),
        per_call(|| unsafe { libc::gettimeofday(&mut of_day, std::ptr::null_mut()) }),
        per_call(|| unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) }),
    ]
}

/// Nanoseconds.
fn per_call(mut call: impl FnMut() -> libc::c_int) -> f64 {
    let began = Instant::now();
    for _ in 0..CALLS {
        assert_eq!(std::hint::black_box(call()), 0);
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
}
