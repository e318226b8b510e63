//! Limits of CPU time.

use std::sync::atomic::{AtomicBool, Ordering};

use brownout_base::clock::monotonic_ns;
use brownout_machine::run_urgently;

use super::*;

/// Does `work`, and says how late a thread was at most meanwhile that only sleeps, as urgently as the one that keeps a limit.
/// That one may have been as late, and the node have run all the while that it should not: what was used too much is paid
/// back, but may be so before or after what is measured.
fn beside_a_sleeper<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    let sleep = || {
        run_urgently(15);
        let (mut most, millisecond) = (Duration::ZERO, Duration::from_millis(1));
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            thread::sleep(millisecond);
            most = most.max(begun.elapsed().saturating_sub(millisecond));
        }
        most
    };
    thread::scope(|scope| {
        let sleeper = scope.spawn(sleep);
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        (result, sleeper.join().unwrap())
    })
}

/// What a limit did, as parts of what it should.
#[derive(Debug)]
struct Measured {
    /// The node's CPU time, measured from the outside, of what it may use.
    found: f64,
    /// The same as the limit counted it, of what was measured.
    counted: f64,
    /// The periods in which the node could use up what it may, since nothing else had the processors, of all.
    felt: f64,
    /// What the machine may have added or taken by being late, of what the node may use.
    unsure: f64,
}

impl Measured {
    /// Where others want the processors too, the node may get less in a period, but then the limit is not felt in it; it
    /// never gets more.
    fn good(&self) -> bool {
        let Measured { found, counted, felt, unsure } = *self;
        found < 1.05 + unsure
            && found > 0.95 * felt - unsure
            && felt.max(found) > 0.4
            && (counted - 1.0).abs() < 0.2 + unsure
    }
}

/// Measures a limit for so many seconds.
fn measure(control: &ClusterControl, percent: u32, seconds: u64) -> Measured {
    let limit = control.limit_cpu("n1", share(percent)).unwrap();
    // From the middle of a period's standstill to that of another, so that whole quotas are counted.
    thread::sleep(Duration::from_millis(480));
    let read = || (monotonic_ns(), cpu_ns(control), limit.sample());
    let (((from_ns, from, before), (to_ns, to, sample)), late) = beside_a_sleeper(|| {
        let begin = read();
        while monotonic_ns() < begin.0 + seconds * 1_000_000_000 {
            thread::sleep(Duration::from_millis(10));
            assert_eq!(control.state("n1").unwrap(), NodeState::Up, "slow is not paused");
        }
        (begin, read())
    });
    assert!(sample.kept && sample.throttled_periods <= sample.periods, "{sample:?}");
    assert!(sample.throttled_ns > 0 || sample.throttled_periods == 0, "{sample:?}");
    let ran = (to - from) as f64;
    let allowed_of_each = (to_ns - from_ns) as f64 * f64::from(percent) / 100.0;
    let measured = Measured {
        found: ran / (allowed_of_each * limit.processors()),
        counted: (sample.ran_ns - before.ran_ns) as f64 / ran,
        felt: (sample.throttled_periods - before.throttled_periods) as f64 / (sample.periods - before.periods) as f64,
        unsure: late.as_nanos() as f64 / allowed_of_each,
    };
    eprintln!("asked {percent} %: {measured:?}, {sample:?}, {:?}", limit.scheduling());
    limit.heal();
    measured
}

#[test]
fn a_spinning_node_gets_the_share_it_is_limited_to() {
    let (_cluster, control, _directory) = spin();
    // The less it may use, the longer, lest a moment's lateness be much of it.
    for (percent, seconds) in [(10, 10), (30, 4), (50, 4)] {
        // A machine that is too busy to tell spoils a measurement; four in a row are a failure.
        let mut all = Vec::new();
        while all.len() < 4 && !all.last().is_some_and(Measured::good) {
            all.push(measure(&control, percent, seconds));
        }
        assert!(all.last().is_some_and(Measured::good), "asked {percent} %, measured {all:?}");
    }
}

#[test]
fn a_healed_limit_lets_the_node_take_all_it_can_and_of_two_the_lesser_counts() {
    let (_cluster, control, _directory) = spin();
    let used = |length_ms: u64| {
        let (at, before) = (monotonic_ns(), cpu_ns(&control));
        thread::sleep(Duration::from_millis(length_ms));
        (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64
    };
    let processors = brownout_machine::Processors::of_this_process().capacity();
    let loose = control.limit_cpu("n1", share(60)).unwrap();
    let tight = control.limit_cpu("n1", share(5)).unwrap();
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(5)));
    thread::sleep(Duration::from_millis(1_000));
    // Twice what it may, and what it takes while the machine is late, three times at most.
    let mut both = f64::INFINITY;
    let is_tight = (0..3).any(|_| {
        let (found, late) = beside_a_sleeper(|| used(3_000));
        both = found;
        found < (0.10 + late.as_secs_f64() / 3.0) * processors
    });
    drop(tight);
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(60)));
    let healed = loose.heal();
    assert_eq!(control.cpu_share("n1").unwrap(), None);
    assert!(healed.error_ns < 1_000_000_000);
    // Others may want the processors, too.
    let mut free = 0.0;
    let is_free = (0..3).any(|_| {
        free = used(1_000);
        free > 2.0 * both
    });
    eprintln!("{both} with the limits, {free} without");
    assert!(is_tight && is_free, "{both}, {free}");
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn a_paused_node_stays_paused_whatever_its_limit_does() {
    let (_cluster, control, _directory) = spin();
    let stands = || {
        let before = cpu_ns(&control);
        thread::sleep(Duration::from_millis(350));
        cpu_ns(&control) == before && control.state("n1").unwrap() == NodeState::Paused
    };
    let limit = control.limit_cpu("n1", share(20)).unwrap();
    thread::sleep(Duration::from_millis(150));
    let before = monotonic_ns();
    let paused = control.pause("n1").unwrap();
    assert!(paused.at_ns - paused.error_ns >= before && paused.at_ns + paused.error_ns <= monotonic_ns() + 1);
    assert!(stands(), "under a limit");
    limit.heal();
    assert!(stands(), "when its limit was healed");
    let limit = control.limit_cpu("n1", share(20)).unwrap();
    assert!(stands(), "when it was limited while paused");
    control.unpause("n1").unwrap();
    let before = cpu_ns(&control);
    until(|| cpu_ns(&control) > before);
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
    limit.heal();
}

#[test]
fn a_node_goes_on_when_its_governor_dies() {
    let (_cluster, control, _directory) = spin();
    let node = control.node("n1").unwrap();
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    // Its thread meets a poisoned wait by a panic of our making, in place of a defect.
    node.supervisor.life().governing.sabotage();
    node.supervisor.changed.notify_all();
    until(|| !limit.sample().kept);
    assert_eq!(control.cpu_share("n1").unwrap(), None, "nobody keeps it");
    let (at, before) = (monotonic_ns(), cpu_ns(&control));
    thread::sleep(Duration::from_millis(500));
    let used = (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64;
    assert!(used > 0.1, "{used}: it was held");
    // A new limit is kept again.
    drop(limit);
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    assert!(limit.sample().kept);
}

#[test]
fn a_limit_stays_through_a_restart() {
    let (_cluster, control, _directory) = spin();
    let limit = control.limit_cpu("n1", share(5)).unwrap();
    control.kill("n1", libc::SIGKILL).unwrap();
    control.start("n1").unwrap();
    until(|| limit.sample().throttled_periods > 5);
    let before = limit.sample();
    thread::sleep(Duration::from_millis(1_000));
    let sample = limit.sample();
    assert!(sample.ran_ns > before.ran_ns && sample.periods > before.periods, "{before:?}, {sample:?}");
    assert_eq!(limit.share(), share(5));
    drop(limit);
}

#[test]
fn too_small_a_share_is_refused() {
    let (_cluster, control, _directory) = run(idle);
    let error = control.limit_cpu("n1", Share::new(0.005).unwrap()).unwrap_err().to_string();
    assert!(error.contains("0.5%") && error.contains("least is 1%"), "{error}");
    assert_eq!(control.cpu_share("n1").unwrap(), None);
}
