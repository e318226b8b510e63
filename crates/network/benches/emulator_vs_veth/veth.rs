//! The reference: two namespaces, joined by veth pairs and a bridge in a third.

use std::{fs::File, net::Ipv4Addr, os::fd::AsRawFd, process::Command, thread, time::Duration};

use super::Hosts;

pub struct Veth {
    hosts: [Namespace; 2],
    // Goes last: the bridge lives in it.
    _middle: Namespace,
}

impl Veth {
    pub fn start(congestion_control: &str) -> Veth {
        let middle = Namespace::new();
        let hosts = [Namespace::new(), Namespace::new()];
        middle.ip("link add br0 type bridge");
        middle.ip("link set br0 up");
        for (n, host) in hosts.iter().enumerate() {
            middle.ip(&format!("link add v{n} type veth peer name eth0 netns {}", host.path()));
            middle.ip(&format!("link set v{n} master br0 up"));
            host.ip(&format!("address add {}/32 dev eth0", address(n)));
            host.ip("link set lo up");
            host.ip("link set eth0 up");
            host.ip(&format!("route add 10.78.0.0/30 dev eth0 congctl {congestion_control}"));
        }
        Veth { hosts, _middle: middle }
    }
}

impl Veth {
    /// Delays all that the first host sends, by the kernel's own netem; what `tc` says if there is none.
    pub fn netem(&self, delay: Duration) -> Result<(), String> {
        // netem holds 1,000 packets and drops the rest in silence, unless it is told otherwise.
        let arguments = format!("qdisc replace dev eth0 root netem delay {}us limit 1000000", delay.as_micros());
        let run = || Command::new("tc").args(arguments.split(' ')).output();
        let output = self.hosts[0].run(run).map_err(|error| format!("tc: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("tc failed").to_owned()),
        }
    }

    /// No delay any more.
    pub fn clear(&self) {
        // Fails when there was none.
        let run = || Command::new("tc").args(["qdisc", "delete", "dev", "eth0", "root"]).output();
        let _ = self.hosts[0].run(run);
    }
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, 1 + host as u8)
}

impl Hosts for Veth {
    fn run<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        self.hosts[host].run(work)
    }

    fn address(&self, host: usize) -> Ipv4Addr {
        address(host)
    }
}

/// A network namespace, which goes when this is dropped.
struct Namespace(File);

impl Namespace {
    fn new() -> Namespace {
        let make = || {
            // SAFETY: no memory is involved; only the new thread's namespace changes.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(made, 0, "cannot make a network namespace: {}", std::io::Error::last_os_error());
            Namespace(File::open("/proc/thread-self/ns/net").expect("/proc is mounted"))
        };
        thread::scope(|scope| scope.spawn(make).join()).expect("the thread that makes a namespace")
    }

    /// Where another process finds it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            // SAFETY: no memory is involved; the descriptor is open.
            let entered = unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "cannot enter a network namespace: {}", std::io::Error::last_os_error());
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join()).expect("work inside of a namespace")
    }

    fn ip(&self, arguments: &str) {
        let run = || Command::new("ip").args(arguments.split(' ')).status();
        let status = self.run(run).expect("this bench needs `ip`: apt-get install iproute2");
        assert!(status.success(), "ip {arguments}");
    }
}
