//! What benches share that measure several arms by turns.

use std::{env, process, time::Duration};

/// The upper one where there are two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Of the command line: how many rounds, and how long a transfer lasts in each.
pub fn arguments(bench: &str) -> (usize, Duration) {
    let (mut rounds, mut seconds) = (3, Duration::from_secs(3));
    // Cargo itself adds --bench.
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        let number = arguments.next().and_then(|text| text.parse::<f64>().ok()).filter(|n| (0.1..1e4).contains(n));
        match (name.as_str(), number) {
            ("--rounds", Some(value)) => rounds = value.ceil() as usize,
            ("--seconds", Some(value)) => seconds = Duration::from_secs_f64(value),
            _ => {
                eprintln!("usage: {bench} [--rounds N] [--seconds S]");
                process::exit(2);
            }
        }
    }
    (rounds, seconds)
}
