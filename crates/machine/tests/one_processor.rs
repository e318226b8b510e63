//! A process that may use one processor alone (`taskset -c 0`): all shares are of that one.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use brownout_machine::{Processors, Usage, bind_this_thread};

/// Long beside the kernel's ticks, in which it counts.
const LOOK: Duration = Duration::from_secs(1);
/// More than the processor can run at once.
const SPINNING: usize = 4;

fn spin(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Not a test: what the one below runs, bound to one processor.
#[test]
#[ignore = "run by the other, in a process of its own"]
fn fills_what_it_may_use() {
    let processors = Processors::of_this_process();
    assert_eq!((processors.count(), processors.whole()), (1, 1));
    assert!(processors.capacity() <= 1.0, "{processors}");
    let stop = AtomicBool::new(false);
    let busy = thread::scope(|scope| {
        for _ in 0..SPINNING {
            scope.spawn(|| spin(&stop));
        }
        let begun = Instant::now();
        let usage = || Usage::now(&processors, begun.elapsed().as_nanos() as u64).unwrap();
        let before = usage();
        thread::sleep(LOOK);
        let used = usage().since(&before);
        let all_ns = begun.elapsed().as_nanos() as f64 * processors.capacity();
        // Before anything can fail: the scope waits for those that spin.
        stop.store(true, Ordering::Relaxed);
        (used.busy_ns + used.stolen_ns) as f64 / all_ns
    });
    assert!((0.9..1.1).contains(&busy), "{busy:.3} of {processors} is busy");
}

#[test]
fn a_full_processor_is_all_of_what_a_process_has_that_is_bound_to_it() {
    let child = thread::spawn(|| {
        let first = Processors::of_this_process().cpus()[0];
        // What this thread starts inherits it.
        bind_this_thread(&[first]).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "fills_what_it_may_use", "--ignored", "--nocapture"]).output().unwrap()
    });
    let output = child.join().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}
