//! Limits of CPU time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::{Processors, Usage, bind_this_thread, run_urgently};

use super::*;
use crate::governor::Limit;

/// However the work ends, by a panic too, the sleeper does.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work`, and says how late a thread was at most meanwhile that only sleeps, as urgently as the one that keeps a limit.
/// That one may have been as late, and the node have run all the while that it should not: what was used too much is paid
/// back, but may be so after what is measured, or in it.
fn beside_a_sleeper<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    let sleep = || {
        run_urgently(15);
        let (mut most, nap) = (Duration::ZERO, Duration::from_millis(2));
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            thread::sleep(nap);
            most = most.max(begun.elapsed().saturating_sub(nap));
        }
        most
    };
    thread::scope(|scope| {
        let sleeper = scope.spawn(sleep);
        let over = Over(&is_over);
        let result = work();
        drop(over);
        (result, sleeper.join().unwrap())
    })
}

/// What the node used in a time, and what the machine did meanwhile: parts of the CPU time of all processors.
#[derive(Debug)]
struct Measured {
    /// By the node, measured from the outside.
    used: f64,
    /// By everything else on this machine, and by its hypervisor for others: so much the node may have missed.
    others: f64,
    /// While a thread that only sleeps was late: so much the node may have got too much or too little.
    late: f64,
}

impl Measured {
    /// Whether the machine itself spoiled it, for a node that should use this part: what it adds and takes is half of that.
    fn is_spoiled(&self, part: f64) -> bool {
        self.others + self.late > part / 2.0
    }

    /// The node never gets more than this part, and less only where others want the processors too.
    fn is(&self, part: f64) -> bool {
        let Measured { used, others, late } = *self;
        used < 1.05 * part + late && used > 0.95 * part - others - late
    }
}

/// What the node uses in so many seconds. The machine is watched from a while before, since debts are paid back.
fn measure(control: &ClusterControl, settle: Duration, seconds: u64) -> Measured {
    let processors = Processors::of_this_process();
    let read = || (monotonic_ns(), cpu_ns(control), Usage::now(&processors, monotonic_ns()).unwrap());
    let (((from_ns, from, before), (to_ns, to, after)), late) = beside_a_sleeper(|| {
        thread::sleep(settle);
        let begin = read();
        while monotonic_ns() < begin.0 + seconds * 1_000_000_000 {
            thread::sleep(Duration::from_millis(10));
            assert_eq!(control.state("n1").unwrap(), NodeState::Up, "slow is not paused");
        }
        (begin, read())
    });
    let (took_ns, all) = ((to_ns - from_ns) as f64, after.since(&before));
    let part = |ns: u64| ns as f64 / (took_ns * processors.capacity());
    let measured = Measured {
        used: part(to - from),
        others: part((all.all_ns + all.stolen_ns).saturating_sub(to - from)),
        late: late.as_nanos() as f64 / took_ns,
    };
    eprintln!("{measured:?}");
    measured
}

/// The first measurement that the machine did not spoil, by its own account. That one has to hold.
fn unspoiled(part: f64, measure: impl Fn() -> Measured) -> Measured {
    let found = (0..4).map(|_| measure()).find(|measured| !measured.is_spoiled(part));
    found.unwrap_or_else(|| panic!("this machine spoiled four measurements: it is too busy for this test"))
}

#[test]
fn a_spinning_node_gets_the_share_it_is_limited_to() {
    let (_cluster, control, _directory) = spin();
    // The less it may use, the longer, lest a moment's lateness be much of it.
    for (percent, seconds) in [(10, 10), (30, 4), (50, 4)] {
        let part = f64::from(percent) / 100.0;
        let limit = control.limit_cpu("n1", share(percent)).unwrap();
        // From the middle of a period's standstill to that of another, so that whole quotas are counted.
        let measured = unspoiled(part, || measure(&control, Duration::from_millis(480), seconds));
        assert!(measured.is(part), "asked {percent} %, measured {measured:?}");
        assert_eq!(control.cpu_share("n1").unwrap(), Some(share(percent)), "it was kept all the while");
        limit.heal();
    }
}

const BOUND: &str = "BROWNOUT_TEST_BOUND";

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn keep_a_limit_on_one_processor() {
    if env::var_os(BOUND).is_none() {
        return;
    }
    let processors = Processors::of_this_process();
    assert_eq!(processors.count(), 1, "{processors}");
    let (_cluster, control, _directory) = spin();
    let limit = control.limit_cpu("n1", share(30)).unwrap();
    let measured = unspoiled(0.3, || measure(&control, Duration::from_millis(480), 4));
    assert!(measured.is(0.3), "asked 30 % of {processors}, measured {measured:?}");
    limit.heal();
}

#[test]
fn a_limit_is_a_share_of_the_one_processor_that_a_process_is_bound_to() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let child = thread::spawn(|| {
        let first = Processors::of_this_process().cpus()[0];
        // What this thread starts inherits it.
        bind_this_thread(&[first]).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        let name = concat!(module_path!(), "::keep_a_limit_on_one_processor");
        command.args(["--ignored", "--exact", "--nocapture", name.split_once("::").unwrap().1]).env(BOUND, "1");
        command.output().unwrap()
    });
    let output = child.join().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn a_limit_is_a_share_of_what_a_quota_leaves_of_the_processors() {
    let (cluster, control, _directory) = spin();
    let processors = Processors::of_this_process();
    let half = Processors::made_up(processors.cpus(), processors.cpus().len(), Some(0.5));
    let limit = Limit::start_on(&cluster.nodes()[0].supervisor, share(60), &half).unwrap();
    let part = 0.6 * 0.5 / processors.capacity();
    let measured = unspoiled(part, || measure(&control, Duration::from_millis(480), 6));
    assert!(measured.is(part), "asked 60 % of half a processor, {part} of {processors}, measured {measured:?}");
    drop(limit);
}

#[test]
fn a_healed_limit_lets_the_node_take_all_it_can_and_of_two_the_lesser_counts() {
    let (_cluster, control, _directory) = spin();
    let loose = control.limit_cpu("n1", share(60)).unwrap();
    let tight = control.limit_cpu("n1", share(5)).unwrap();
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(5)));
    // Far less than the looser one allows.
    let both = unspoiled(0.2, || measure(&control, Duration::from_millis(1_000), 3));
    assert!(both.used < 0.1 + both.late, "{both:?}");
    drop(tight);
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(60)));
    let healed = loose.heal();
    assert_eq!(control.cpu_share("n1").unwrap(), None);
    assert!(healed.error_ns < 1_000_000_000);
    let free = unspoiled(1.0, || measure(&control, Duration::ZERO, 1));
    assert!(free.used > 0.9 - free.others - free.late, "{free:?} after {both:?}");
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
    let (cluster, control, _directory) = spin();
    let supervisor = Arc::clone(&cluster.nodes()[0].supervisor);
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    // Its thread meets a poisoned wait by a panic of our making, in place of a defect.
    supervisor.life().governing.sabotage();
    supervisor.changed.notify_all();
    until(|| control.cpu_share("n1").unwrap().is_none());
    let (at, before) = (monotonic_ns(), cpu_ns(&control));
    thread::sleep(Duration::from_millis(500));
    let used = (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64;
    assert!(used > 0.1, "{used}: it was held");
    // A new limit is kept again.
    drop(limit);
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(1)));
    limit.heal();
}

#[test]
fn a_limit_stays_through_a_restart() {
    let (_cluster, control, _directory) = spin();
    let limit = control.limit_cpu("n1", share(5)).unwrap();
    control.kill("n1", libc::SIGKILL).unwrap();
    control.start("n1").unwrap();
    let (held, used) = (control.held_ns("n1").unwrap(), cpu_ns(&control));
    until(|| control.held_ns("n1").unwrap() > held + 500_000_000 && cpu_ns(&control) > used);
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(5)));
    drop(limit);
}

#[test]
fn too_small_a_share_is_refused() {
    let (_cluster, control, _directory) = run(idle);
    let error = control.limit_cpu("n1", Share::new(0.005).unwrap()).unwrap_err().to_string();
    assert!(error.contains("0.5%") && error.contains("least is 1%"), "{error}");
    assert_eq!(control.cpu_share("n1").unwrap(), None);
}
