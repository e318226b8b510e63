//! The least that hands packets on through TUNs: what none that reads and writes them can do better.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Write},
    net::Ipv4Addr,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::{Scheduling, run_urgently};
use hdrhistogram::Histogram;

use super::{Hosts, namespace::Namespace, udp};

/// A stream lasts no longer at once: the thread never sleeps, and the kernel takes the processor from a real-time thread that
/// has run for 0.95 of a second (`sched_rt_runtime_us`). Waiting for the last packets is another 0.3 s.
const AT_ONCE: Duration = Duration::from_millis(600);
/// It then gives its processor up, whoever else should have run meanwhile.
const AT_MOST: Duration = Duration::from_millis(900);
/// The kernel's account begins anew meanwhile.
const REST: Duration = Duration::from_millis(600);
/// What a frame may be long: that of an Ethernet.
const LONGEST: usize = 1500;

/// Two hosts, and what each sends to the other.
pub struct Least {
    hosts: [Namespace; 2],
    tuns: [File; 2],
}

impl Least {
    pub fn start() -> Least {
        let hosts = [Namespace::new(), Namespace::new()];
        let tuns = [0, 1].map(|n| {
            let host: &Namespace = &hosts[n];
            let tun = host.run(open_tun);
            host.ip(&format!("address add {}/32 dev tun0", address(n)));
            host.ip("link set lo up");
            host.ip("link set tun0 up txqueuelen 10000");
            host.ip("route add 10.79.0.0/30 dev tun0");
            tun
        });
        Least { hosts, tuns }
    }

    /// How late packets of a stream from the first host to the second were released that had to wait for `delay`, ns, by a
    /// thread as urgent as the emulator's, which never sleeps, and has nothing else to decide.
    pub fn lateness(&self, rate: u32, lasts: Duration, delay: Duration, emulator: Scheduling) -> Histogram<u64> {
        let mut late = Histogram::new(3).expect("3 is within the 0 to 5 digits of a histogram");
        for _ in 0..lasts.as_nanos().div_ceil(AT_ONCE.as_nanos()) {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                let forward = || forward(&self.tuns, delay, emulator, &stop);
                let forwarder = scope.spawn(forward);
                udp::stream(self, rate, lasts.min(AT_ONCE), delay);
                stop.store(true, Ordering::Relaxed);
                late.add(forwarder.join().expect("the forwarder")).expect("it grows as needed");
            });
            thread::sleep(REST);
        }
        late
    }
}

/// Reads what the first host sends, and writes it to the second when it is due.
fn forward([from, to]: &[File; 2], delay: Duration, urgency: Scheduling, stop: &AtomicBool) -> Histogram<u64> {
    run_urgently(match urgency {
        Scheduling::Fifo(priority) => Some(priority),
        Scheduling::Default => None,
    });
    let (mut from, mut to) = (from, to);
    let mut late: Histogram<u64> = Histogram::new(3).expect("3 is within the 0 to 5 digits of a histogram");
    late.auto(true);
    let delay_ns = delay.as_nanos() as u64;
    let mut held: VecDeque<(u64, usize, [u8; LONGEST])> = VecDeque::with_capacity(1 << 16);
    let mut frame = [0; LONGEST];
    let ends_ns = monotonic_ns() + (AT_MOST + delay).as_nanos() as u64;
    while !stop.load(Ordering::Relaxed) && monotonic_ns() < ends_ns {
        while let Some((due_ns, length, frame)) = held.front() {
            let now = monotonic_ns();
            if now < *due_ns {
                break;
            }
            late.record(now - due_ns).expect("it grows as needed");
            to.write_all(&frame[..*length]).expect("the second host takes frames");
            held.pop_front();
        }
        match from.read(&mut frame) {
            Ok(length) => held.push_back((monotonic_ns() + delay_ns, length, frame)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => (),
            Err(error) => panic!("the first host's interface: {error}"),
        }
    }
    late
}

/// A TUN in the calling thread's namespace.
fn open_tun() -> File {
    let mut options = OpenOptions::new();
    let tun = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun").expect("a TUN device");
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..4].copy_from_slice(&b"tun0".map(|byte| byte as libc::c_char));
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which `request` is.
    let made = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(&mut request)) };
    assert_eq!(made, 0, "cannot make a TUN: {}", std::io::Error::last_os_error());
    tun
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, 0, 1 + host as u8)
}

impl Hosts for Least {
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].run(work)
    }

    fn address(&self, host: usize) -> Ipv4Addr {
        address(host)
    }
}
