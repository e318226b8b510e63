//! How late a thread runs whose processor has slept, by how long it slept: with processors that may sleep, and kept awake.
//!
//! One thread writes to a pipe after busy waiting, on one processor; another one waits for that, on another processor. Needs two
//! processors; to keep them awake needs root and a kernel with a driver for idle processors.

// A program may end with a message.
#![allow(missing_docs, clippy::expect_used)]

use std::{
    io::{Read, Write},
    thread,
    time::{Duration, Instant},
};

use brownout_machine::{Awake, Processors, bind_this_thread};

const SLEEPS: [Duration; 6] = [
    Duration::from_micros(20),
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
];
const TIMES: usize = 400;

fn main() {
    let processors = Processors::of_this_process();
    let [first, second, ..] = *processors.cpus() else {
        println!("idle: needs two processors");
        return;
    };
    println!("wake-up of a thread after so long a sleep, median and p99, us");
    println!("{:>10} {:>18} {:>18}", "slept", "may sleep", "kept awake");
    for sleep in SLEEPS {
        let asleep = lateness(sleep, first, second);
        let awake = match Awake::hold() {
            Ok(_held) => told(&lateness(sleep, first, second)),
            Err(error) => error.to_string(),
        };
        println!("{:>10} {:>18} {awake:>18}", format!("{sleep:?}"), told(&asleep));
    }
}

/// Ascending, ns.
fn lateness(sleep: Duration, first: usize, second: usize) -> Vec<u64> {
    let began = Instant::now();
    let (mut receiver, mut sender) = std::io::pipe().expect("a pipe");
    let mut late: Vec<u64> = thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            bind_this_thread(&[second]).expect("a processor of this process");
            let mut late = Vec::new();
            for _ in 0..TIMES {
                let mut stamp = [0; 8];
                receiver.read_exact(&mut stamp).expect("the sender is there");
                late.push(began.elapsed().as_nanos() as u64 - u64::from_ne_bytes(stamp));
            }
            late
        });
        scope.spawn(move || {
            bind_this_thread(&[first]).expect("a processor of this process");
            for _ in 0..TIMES {
                let until = Instant::now() + sleep;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                let stamp = began.elapsed().as_nanos() as u64;
                sender.write_all(&stamp.to_ne_bytes()).expect("the receiver is there");
            }
        });
        waiting.join().expect("it ends")
    });
    late.sort_unstable();
    late
}

fn told(late: &[u64]) -> String {
    let us = |share: usize| late[late.len() * share / 100] as f64 / 1e3;
    format!("{:.1} / {:.1}", us(50), us(99))
}
