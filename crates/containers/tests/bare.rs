//! Containers that are nothing but processes in network namespaces, made by the test and gone with it.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    net::IpAddr,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_clock::{HostClock, write_object};
use brownout_containers::{By, Container, ContainersError, Runtime, Selection, What, find};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    thread::{UnshareFlags, unshare_unsafe},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// Runs in a network namespace of its own, which stands for the machine's.
fn in_own_network(body: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let body = || {
            // SAFETY: the table of open files stays shared, so that no descriptor changes its meaning.
            let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
            unshared.expect("root, or root in a user namespace");
            body();
        };
        scope.spawn(body).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// A process that does nothing, until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(program: &str, arguments: &[&str]) -> Sleeper {
        let mut command = Command::new(program);
        command.args(arguments).args(["sleep", "300"]).stdin(Stdio::null());
        let sleeper = Sleeper(command.spawn().unwrap());
        // `unshare` and `nsenter` become what they start.
        let begun = Instant::now();
        while fs::read_to_string(format!("/proc/{}/comm", sleeper.pid())).unwrap().trim() != "sleep" {
            assert!(begun.elapsed() < PATIENCE, "{program} does not start");
            thread::sleep(Duration::from_millis(5));
        }
        sleeper
    }

    /// In a new network, without interfaces.
    fn apart() -> Sleeper {
        Sleeper::start("unshare", &["--net"])
    }

    /// In a new network, with a veth whose end here has that name, and that address with its last number.
    fn on_veth(here: &str, last: u8) -> Sleeper {
        let sleeper = Sleeper::apart();
        ip(&format!("link add {here} type veth peer name eth0 netns {}", sleeper.pid()));
        ip(&format!("link set {here} up"));
        sleeper.inside(&format!(
            "ip link set eth0 up && ip address add 10.99.0.{last}/24 dev eth0 && ip route add default via 10.99.0.1 \
             && ip address add fd99::{last}/64 dev eth0 nodad"
        ));
        sleeper
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn network(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.pid()).into()
    }

    /// Runs a line of shell in its network.
    fn inside(&self, line: &str) {
        let network = format!("--net={}", self.network().display());
        run(Command::new("nsenter").args([network.as_str(), "sh", "-c", line]));
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &str) {
    run(Command::new("ip").args(arguments.split(' ')));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn found(by: By) -> Vec<Container> {
    find(&Selection { by, socket: None }).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_process_is_found_with_its_interface_and_the_machines_end_of_it() {
    in_own_network(|| {
        let (a, b) = (Sleeper::on_veth("veth-a", 2), Sleeper::on_veth("veth-b", 3));
        // Of a second network.
        ip(&format!("link add veth-c type veth peer name eth1 netns {}", b.pid()));
        b.inside("ip link set eth1 up && ip address add 10.98.0.3/24 dev eth1");
        b.inside("echo 1 >/proc/sys/net/ipv4/conf/eth1/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter");
        b.inside("echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter");

        let both = found(By::Pids(vec![b.pid(), a.pid()]));
        let names: Vec<String> = both.iter().map(|container| container.name.clone()).collect();
        let expected = [format!("sleep-{}", b.pid()), format!("sleep-{}", a.pid())];
        assert_eq!(names, expected, "in the order in which they were named");
        let [of_b, of_a] = &both[..] else { panic!("{both:?}") };
        assert_eq!((of_a.runtime, of_a.pid, of_a.interface.as_str()), (Runtime::None, Some(a.pid()), "eth0"));
        assert_eq!(of_a.addresses, [address("10.99.0.2"), address("fd99::2")]);
        assert_eq!(of_a.machine_interface.as_deref(), Some("veth-a"));
        assert_eq!(of_a.gateways, [address("10.99.0.1")]);
        assert_eq!(of_a.interfaces[0].kind, "veth");
        assert!(of_a.interfaces[0].mac.as_ref().is_some_and(|mac| mac.len() == 17), "{:?}", of_a.interfaces);

        let ends: Vec<_> = of_b.interfaces.iter().map(|interface| interface.machine_interface.as_deref()).collect();
        assert_eq!(ends, [Some("veth-b"), Some("veth-c")]);
        let strict: Vec<bool> = of_b.interfaces.iter().map(|interface| interface.strict_reverse_path).collect();
        assert_eq!(strict, [false, true]);

        for what in [What::Links, What::Pause, What::Cpu] {
            assert_eq!(of_a.refusal(what), None, "{what:?}");
        }
        for (what, words) in [
            (What::Kill, "nobody is known who would start it again"),
            (What::Restart, "nobody is known who would start it again"),
            (What::Disk, "brownout wrap"),
            (What::Clock, "brownout wrap"),
        ] {
            let refusal = of_a.refusal(what);
            assert!(refusal.is_some_and(|reason| reason.contains(words)), "{what:?}: {refusal:?}");
        }
    });
}

#[test]
fn a_namespace_is_found_by_its_file_and_is_the_one_that_is_opened() {
    in_own_network(|| {
        let sleeper = Sleeper::on_veth("veth-a", 2);
        let all = found(By::Namespaces(vec![sleeper.network()]));
        let [container] = &all[..] else { panic!("{all:?}") };
        assert_eq!((container.pid, container.is_running()), (None, true));
        assert_eq!(container.addresses[0], address("10.99.0.2"));
        assert_eq!(container.refusal(What::Links), None);
        assert!(container.refusal(What::Pause).is_some_and(|reason| reason.contains("pids: [PID]")));
        let opened = container.namespace().unwrap();
        let opened = fs::metadata(format!("/proc/self/fd/{}", opened.as_raw_fd())).unwrap().ino();
        assert_eq!(opened, fs::metadata(sleeper.network()).unwrap().ino());
        assert!(matches!(container.pidfd(), Err(ContainersError::Gone { .. })));
    });
}

#[test]
fn networks_that_cannot_be_attached_are_told_with_the_reason() {
    in_own_network(|| {
        let (own, none, first) = (Sleeper::start("env", &[]), Sleeper::apart(), Sleeper::on_veth("veth-a", 2));
        let second = Sleeper::start("nsenter", &[&format!("--net={}", first.network().display())]);
        let all = found(By::Pids([&own, &none, &first, &second].map(Sleeper::pid).to_vec()));
        let refusals: Vec<&str> = all.iter().map(|container| container.refusal(What::Links).unwrap_or("")).collect();
        assert!(refusals[0].contains("network_mode: host"), "{refusals:?}");
        assert!(refusals[1].contains("network_mode: none"), "{refusals:?}");
        assert!(refusals[2].contains(&format!("same network as sleep-{}", second.pid())), "{refusals:?}");
        assert!(refusals[3].contains(&format!("same network as sleep-{}", first.pid())), "{refusals:?}");
        assert_eq!((all[0].interface.as_str(), all[0].addresses.len()), ("", 0), "the machine's are not its own");
        assert!(all.iter().all(|container| container.refusal(What::Pause).is_none()), "{all:?}");
    });
}

#[test]
fn a_process_that_was_started_with_a_clock_of_its_own_is_found_with_the_file_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let object = write_object(directory.path()).unwrap();
    let file = directory.path().canonicalize().unwrap().join("db-1.clock");
    let clock = HostClock::create(&file).unwrap();
    let words = clock.environment(&object).map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
    let (with, without) = (Sleeper::start("env", &[&words[0], &words[1]]), Sleeper::start("env", &[&words[1]]));
    let container = |sleeper: &Sleeper| found(By::Pids(vec![sleeper.pid()])).remove(0);
    // Its loader may not be that far.
    let begun = Instant::now();
    while container(&with).refusal(What::Clock).is_some() && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    let found = container(&with);
    assert_eq!((found.refusal(What::Clock), found.clock.as_deref()), (None, Some(file.as_path())));
    let other = container(&without);
    assert!(other.refusal(What::Clock).is_some_and(|reason| reason.contains("brownout wrap")), "{other:?}");
    assert_eq!(other.clock, None);
    let changed = HostClock::adopt(&file).unwrap();
    changed.shift(5_000_000_000, 0).unwrap();
    assert!(clock.skew().offset_ns > 4_000_000_000, "it is the same clock");
}

#[test]
fn one_that_has_ended_is_gone_and_its_descriptor_says_so() {
    in_own_network(|| {
        let mut sleeper = Sleeper::apart();
        let container = found(By::Pids(vec![sleeper.pid()])).remove(0);
        let pidfd = container.pidfd().unwrap();
        let ended = |patience: Duration| {
            let patience = Timespec::try_from(patience).unwrap();
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&patience)).unwrap() == 1
        };
        assert!(!ended(Duration::ZERO));
        assert_eq!(container.again().unwrap(), container);
        sleeper.0.kill().unwrap();
        assert!(ended(PATIENCE));
        // Whether somebody has waited for it or not.
        for _ in 0..2 {
            for error in [container.namespace().err(), container.pidfd().err(), container.again().err()] {
                assert!(matches!(error, Some(ContainersError::Gone { .. })), "{error:?}");
            }
            sleeper.0.wait().unwrap();
        }
    });
}
