//! Limits of CPU time.

use std::time::Duration;

use brownout_network::monotonic_ns;

use super::*;

/// The part of all processors' time that the node takes over 40 periods, measured from the outside; and the part of the
/// periods in which it could use up what it may, since nothing else had the processors.
fn measure(control: &ClusterControl, percent: u32) -> (f64, f64) {
    let begin = cpu_ns(control);
    let limit = control.limit_cpu("n1", share(percent)).unwrap();
    // From the middle of a period's standstill to that of another, so that whole quotas are counted.
    thread::sleep(Duration::from_millis(480));
    let (from_ns, from, before) = (monotonic_ns(), cpu_ns(control), limit.sample());
    while monotonic_ns() < from_ns + 4_000_000_000 {
        thread::sleep(Duration::from_millis(10));
        assert_eq!(control.state("n1").unwrap(), NodeState::Up, "slow is not paused");
    }
    let (to_ns, to, sample) = (monotonic_ns(), cpu_ns(control), limit.sample());
    assert!(sample.kept && sample.throttled_ns > 0 && sample.throttled_periods <= sample.periods, "{sample:?}");
    assert!(sample.ran_ns.abs_diff(to - begin) < (to - begin) / 5, "{sample:?}, {}", to - begin);
    let found = (to - from) as f64 / ((to_ns - from_ns) * u64::from(limit.processors())) as f64;
    let felt = (sample.throttled_periods - before.throttled_periods) as f64 / (sample.periods - before.periods) as f64;
    eprintln!(
        "asked {percent} %, measured {:.2} %, felt in {:.0} % of the periods: {sample:?}, {:?}",
        found * 100.0,
        felt * 100.0,
        limit.scheduling()
    );
    limit.heal();
    (found * 100.0 / f64::from(percent), felt)
}

#[test]
fn a_spinning_node_gets_the_share_it_is_limited_to() {
    let (_cluster, control, _folder) = spin();
    for percent in [10, 30, 50] {
        // Where others want the processors too, it may get less in a period, but then the limit is not felt in it; it never
        // gets more. A machine that is too busy to tell spoils a measurement; three in a row are a failure.
        let good = |&(found, felt): &(f64, f64)| found < 1.05 && found > 0.95 * felt && felt.max(found) > 0.6;
        let mut all = Vec::new();
        while all.len() < 3 && !all.last().is_some_and(good) {
            all.push(measure(&control, percent));
        }
        assert!(all.last().is_some_and(good), "asked {percent} %, measured (of that, felt) {all:?}");
    }
}

#[test]
fn a_healed_limit_lets_the_node_take_all_it_can_and_of_two_the_lesser_counts() {
    let (_cluster, control, _folder) = spin();
    let used = |length_ms: u64| {
        let (at, before) = (monotonic_ns(), cpu_ns(&control));
        thread::sleep(Duration::from_millis(length_ms));
        (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64
    };
    let processors = thread::available_parallelism().unwrap().get() as f64;
    let loose = control.limit_cpu("n1", share(60)).unwrap();
    let tight = control.limit_cpu("n1", share(5)).unwrap();
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(5)));
    thread::sleep(Duration::from_millis(1_000));
    let both = used(1_000);
    drop(tight);
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(60)));
    let healed = loose.heal();
    assert_eq!(control.cpu_share("n1").unwrap(), None);
    assert!(healed.error_ns < 1_000_000_000);
    let free = used(1_000);
    eprintln!("{both} with the limits, {free} without");
    assert!(both < 0.10 * processors && free > 3.0 * both, "{both}, {free}");
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn a_paused_node_stays_paused_whatever_its_limit_does() {
    let (_cluster, control, _folder) = spin();
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
    let (_cluster, control, _folder) = spin();
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
    let (_cluster, control, _folder) = spin();
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
    let (_cluster, control, _folder) = run(idle);
    let error = control.limit_cpu("n1", Share::new(0.005).unwrap()).unwrap_err().to_string();
    assert!(error.contains("0.5%") && error.contains("least is 1%"), "{error}");
    assert_eq!(control.cpu_share("n1").unwrap(), None);
}
