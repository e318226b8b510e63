//! How urgently the emulator's and the prober's threads run, and what it shows when they are kept waiting. Their threads
//! are found by name, so these tests take turns.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_machine::Scheduling;
use brownout_network::NetworkSpec;
use brownout_probe::{Probes, TrainSpec, Trains};
use common::{PATIENCE, spec, start};

static TURN: Mutex<()> = Mutex::new(());

/// This process' thread of that name.
fn thread_named(name: &str) -> libc::pid_t {
    let named =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name);
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().filter(named);
    // The one before may still be listed.
    tasks.map(|task| task.file_name().to_str().unwrap().parse().unwrap()).max().expect("a thread of this name")
}

/// What the kernel says of this process' thread of that name.
fn scheduling_of(name: &str) -> Scheduling {
    let thread = thread_named(name);
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are writable for the call.
    let policy = unsafe {
        assert_eq!(libc::sched_getparam(thread, &mut parameters), 0);
        libc::sched_getscheduler(thread) & !libc::SCHED_RESET_ON_FORK
    };
    match policy {
        libc::SCHED_FIFO => Scheduling::Fifo(parameters.sched_priority as u8),
        other => {
            assert_eq!(other, libc::SCHED_OTHER);
            Scheduling::Default
        }
    }
}

/// Whether the kernel lets a thread of ours be that urgent; containers may forbid it even to root.
fn may_have_fifo(priority: u8) -> bool {
    let ask = move || {
        let parameters = libc::sched_param { sched_priority: priority.into() };
        // SAFETY: the parameters are valid for the call; only this thread changes, and ends.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
    };
    thread::spawn(ask).join().unwrap()
}

#[test]
fn the_scheduling_reported_is_the_threads_own_and_the_best_that_is_allowed_and_asked_for() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for realtime in [false, true] {
        let network = start(NetworkSpec { realtime, ..spec(2) });
        let probes = Probes::start(&network, Duration::from_millis(100)).unwrap();
        let trains = Trains::start(&network, &[], TrainSpec::default()).unwrap();
        let best = |priority| match realtime && may_have_fifo(priority) {
            true => Scheduling::Fifo(priority),
            false => Scheduling::Default,
        };
        assert_eq!([network.realtime(), scheduling_of("emulator")], [best(20); 2]);
        assert_eq!([probes.realtime(), scheduling_of("prober")], [best(19); 2]);
        assert_eq!([trains.realtime(), scheduling_of("trainer")], [best(18); 2]);
    }
}

#[test]
fn an_emulator_that_is_kept_from_running_shows_it_even_on_clear_links() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let network = start(NetworkSpec { realtime: false, ..spec(2) });
    let _probes = Probes::start(&network, Duration::from_millis(5)).unwrap();
    let before = network.waited_ns().expect("this kernel keeps no schedstat (CONFIG_SCHED_INFO)");
    // It runs only when nobody else wants to; and on every processor somebody does.
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the call.
    assert_eq!(unsafe { libc::sched_setscheduler(thread_named("emulator"), libc::SCHED_IDLE, &parameters) }, 0);
    let stop = AtomicBool::new(false);
    let waited = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let end = Instant::now() + PATIENCE;
        let mut waited = 0;
        while waited < 20_000_000 && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
            waited = network.waited_ns().unwrap() - before;
        }
        stop.store(true, Ordering::Relaxed);
        waited
    });
    assert!(waited >= 20_000_000, "{waited}");
}
