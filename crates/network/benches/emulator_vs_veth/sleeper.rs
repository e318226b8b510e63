//! How late a thread runs that does nothing but sleep: what this machine takes to wake one.

use std::{
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::{Scheduling, run_urgently};
use hdrhistogram::Histogram;
use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec},
};

/// Sleeps until one deadline after another, `apart` from each other, as urgently as the emulator runs, and says how late
/// each found it running, ns. A deadline that passes while it wakes for the one before is late, too.
pub fn lateness(apart: Duration, lasts: Duration, emulator: Scheduling) -> Histogram<u64> {
    let work = move || {
        run_urgently(match emulator {
            Scheduling::Fifo(priority) => Some(priority),
            Scheduling::Default => None,
        });
        let mut late = Histogram::new(3).expect("3 is within the 0 to 5 digits of a histogram");
        let (began, mut due_ns) = (Instant::now(), monotonic_ns());
        while began.elapsed() < lasts {
            due_ns += apart.as_nanos() as u64;
            let due = Timespec { tv_sec: (due_ns / 1_000_000_000) as i64, tv_nsec: (due_ns % 1_000_000_000) as i64 };
            clock_nanosleep_absolute(ClockId::Monotonic, &due).expect("nothing interrupts this thread");
            // It grows as needed.
            let _ = late.record(monotonic_ns().saturating_sub(due_ns));
        }
        late
    };
    thread::spawn(work).join().expect("the sleeper")
}
